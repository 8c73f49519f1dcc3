/* Writing checkpoints. A file is a list of parts: its header and the tensors where they lie. A snapshot is one part,
 * into which these were copied. A thread writes either.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"
#include "trace/trace.h"
#include "weights/checkpoint.h"
#include "weights/checkpoint_inside.h"
#include "weights/checkpoint_io.h"
#include "weights/checkpoint_state.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

enum { MODEL, OPTIMIZER, STATE }; /* in the order of stk_manifest_names */

typedef struct part {
    const void *data;
    size_t n;
    const stk_named_tensor *read; /* data NULL: the tensor that a source has */
} part;

typedef struct image {
    stk_text header; /* of the tensors; or all of the file */
    part *part;      /* owned */
    size_t n_parts, n;
    char *copy; /* of all parts */
    size_t capacity;
} image;

struct stk_checkpoint_writer {
    char run_dir[3800];
    int keep;
    image file[STK_MANIFEST_FILES]; /* belong to the thread while busy */
    int64_t step;                   /* likewise */
    bool best;                      /* likewise */
    stk_checkpoint_known known;     /* likewise */
    stk_mutex lock;
    stk_cond changed;
    stk_thread thread;
    bool busy, ending;            /* guarded by lock */
    stk_checkpoint_report report; /* guarded by lock */
};

/* --- what is written --- */

static void add_part(image *out, const void *data, size_t n)
{
    out->part[out->n_parts++] = (part){data, n, NULL};
    out->n += n;
}

static void add_tensor(image *out, const stk_named_tensor *tensor)
{
    add_part(out, tensor->view.data, stk_desc_bytes(tensor->view.desc));
    if (!tensor->view.data && tensor->source) out->part[out->n_parts - 1].read = tensor;
}

/* Into n bytes. */
static stk_status read_part(const part *p, void *dst)
{
    if (p->read) return p->read->source->read(p->read->source->user, p->read->number, dst);
    if (p->n) memcpy(dst, p->data, p->n);
    return STK_OK;
}

/* A safetensors file with the tensors of one of the two kinds. */
static stk_status list_tensors(image *out, const stk_named_tensor *tensors, size_t n_tensors, bool optimizer)
{
    static const char *const layout[] = {STK_LAYOUT_KEY, STK_LAYOUT_OURS, NULL};
    stk_status status = STK_OK;
    size_t n = 0;
    const char **names = malloc((n_tensors + 1) * sizeof(*names));
    const stk_named_tensor **own = malloc((n_tensors + 1) * sizeof(*own));
    stk_tensor_desc *descs = malloc((n_tensors + 1) * sizeof(*descs));
    part *parts = realloc(out->part, (n_tensors + 1) * sizeof(*parts));
    if (parts) out->part = parts;
    if (!names || !own || !descs || !parts) STK_TRY(stk_fail_memory(n_tensors * sizeof(*parts)));
    for (size_t i = 0; i < n_tensors; i++) {
        if (stk_is_optimizer_state(tensors, n_tensors, tensors[i].name) != optimizer) continue;
        names[n] = tensors[i].name;
        own[n] = &tensors[i];
        descs[n++] = tensors[i].view.desc;
    }
    stk_text_free(&out->header);
    out->n_parts = out->n = 0;
    STK_TRY(stk_safetensors_header(names, descs, n, layout, &out->header));
    add_part(out, out->header.data, out->header.n);
    for (size_t i = 0; i < n; i++)
        add_tensor(out, own[i]);
done:
    free(names);
    free(own);
    free(descs);
    return status;
}

static stk_status list_state(image *out, const stk_train_state *state, const char *recipe)
{
    char *json = stk_state_to_json(state, recipe);
    part *parts = realloc(out->part, sizeof(*parts));
    if (parts) out->part = parts;
    stk_text_free(&out->header);
    out->n_parts = out->n = 0;
    if (json) stk_text_add(&out->header, "%s", json);
    bool failed = !json || !parts || out->header.failed;
    free(json);
    if (failed) return stk_fail_memory(4096);
    add_part(out, out->header.data, out->header.n);
    return STK_OK;
}

/* All parts in one, which later steps leave alone. */
static stk_status copy_parts(image *out)
{
    size_t n = 0;
    if (out->n > out->capacity) {
        char *grown = realloc(out->copy, out->n);
        if (!grown) return stk_fail_memory(out->n);
        out->copy = grown;
        out->capacity = out->n;
    }
    for (size_t i = 0; i < out->n_parts; i++) {
        STK_RETURN_IF_ERROR(read_part(&out->part[i], out->copy + n));
        n += out->part[i].n;
    }
    out->n_parts = out->n = 0;
    add_part(out, out->copy, n);
    return STK_OK;
}

/* --- the thread's work --- */

static stk_status write_part(stk_out_file *file, const part *p, stk_hash64_parts *hash)
{
    void *room = NULL;
    const void *data = p->data;
    stk_status status = STK_OK;
    if (p->read) {
        data = room = malloc(p->n + 1);
        if (!room) return stk_fail_memory(p->n);
        STK_TRY(read_part(p, room));
    }
    STK_TRY(stk_out_write(file, data, p->n));
    stk_hash64_add(hash, data, p->n);
done:
    free(room);
    return status;
}

static stk_status write_file(const char *dir, const char *name, const image *content, uint64_t *sum)
{
    stk_hash64_parts hash = stk_hash64_begin(0);
    char path[4096];
    stk_out_file file = {.fd = -1};
    stk_status status;
    STK_TRY(stk_path_join(path, sizeof(path), dir, name));
    STK_TRY(stk_out_open(path, &file));
    for (size_t i = 0; i < content->n_parts; i++)
        STK_TRY(write_part(&file, &content->part[i], &hash));
    *sum = stk_hash64_end(&hash);
    return stk_out_finish(&file);
done:
    stk_out_abandon(&file);
    return status;
}

static stk_status write_files(const stk_checkpoint_writer *writer, const char *dir)
{
    stk_manifest_file files[STK_MANIFEST_FILES];
    for (int i = 0; i < STK_MANIFEST_FILES; i++) {
        const image *file = &writer->file[i];
        files[i] = (stk_manifest_file){stk_manifest_names[i], file->n, 0};
        STK_RETURN_IF_ERROR(write_file(dir, files[i].name, file, &files[i].hash));
    }
    char *manifest = stk_manifest_to_json(files);
    if (!manifest) return stk_fail_memory(1024);
    part whole = {manifest, strlen(manifest), NULL};
    uint64_t unused;
    stk_status status = write_file(dir, "manifest.json", &(image){.part = &whole, .n_parts = 1}, &unused);
    free(manifest);
    return status == STK_OK ? stk_io_sync_dir(dir) : status;
}

/* The file `best` holds the name of the best checkpoint's folder. */
static stk_status write_best(const stk_checkpoint_writer *writer, const char *name)
{
    char path[4096], text[80];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), writer->run_dir, "best"));
    snprintf(text, sizeof(text), "%s\n", name);
    return stk_file_write_durably(path, text, strlen(text));
}

/* Puts the new folder at its place. The same step may have been saved before, at the end of a run or by a run that was
 * resumed; killed between the two renames, that one is put back by the next process. */
static stk_status replace(const stk_checkpoint_writer *writer, const char *temporary, const char *path, const char *old,
                          bool *is_there)
{
    if (stk_path_exists(path)) STK_RETURN_IF_ERROR(stk_io_rename(path, old));
    stk_status status = stk_io_rename(temporary, path);
    if (status != STK_OK && stk_path_exists(old)) (void)rename(old, path);
    STK_RETURN_IF_ERROR(status);
    *is_there = true;
    STK_RETURN_IF_ERROR(stk_io_sync_dir(writer->run_dir));
    if (!stk_path_exists(old)) return STK_OK;
    if (stk_checkpoint_move_foreign(old, path) == STK_OK) (void)stk_checkpoint_remove(old);
    return STK_OK;
}

/* is_there: the checkpoint lies at path, which more may have to follow. */
static stk_status write_checkpoint(stk_checkpoint_writer *writer, char *path, bool *is_there)
{
    const char *flaw = "a crash of the machine may lose it";
    char temporary[4096], old[4096], name[64];
    stk_status status;
    temporary[0] = 0;
    snprintf(name, sizeof(name), "step-%lld", (long long)writer->step);
    STK_TRY(stk_path_join(path, 4096, writer->run_dir, name));
    STK_TRY(stk_path_join(old, sizeof(old), writer->run_dir, ".old"));
    /* A failed save may have left the only whole one there. */
    STK_TRY(stk_checkpoint_restore_renamed(writer->run_dir));
    STK_TRY(stk_checkpoint_remove(old));
    STK_TRY(stk_path_join(temporary, sizeof(temporary), writer->run_dir, ".saving"));
    STK_TRY(stk_checkpoint_remove(temporary));
    STK_TRY(stk_io_mkdir(temporary));
    STK_TRY(write_files(writer, temporary));
    STK_TRY(replace(writer, temporary, path, old, is_there));
    flaw = "it is not noted as the best";
    stk_checkpoint_note(&writer->known, writer->step);
    if (writer->best) STK_TRY(write_best(writer, name));
    stk_checkpoint_retire(writer->run_dir, writer->keep, writer->step, &writer->known);
    return STK_OK;
done:
    if (*is_there)
        (void)stk_fail_prefix(status, "step %lld was saved, but %s: ", (long long)writer->step, flaw);
    else
        (void)stk_fail_prefix(status, "step %lld was not saved: ", (long long)writer->step);
    char text[512];
    snprintf(text, sizeof(text), "%s", stk_error_text());
    if (temporary[0]) (void)stk_checkpoint_remove(temporary);
    return stk_fail(status, "%s", text);
}

static void writer_main(void *arg)
{
    stk_checkpoint_writer *writer = arg;
    stk_mutex_lock(&writer->lock);
    for (;;) {
        while (!writer->busy && !writer->ending)
            stk_cond_wait(&writer->changed, &writer->lock);
        if (!writer->busy) break;
        stk_mutex_unlock(&writer->lock);
        stk_checkpoint_report report = {.finished = true, .step = writer->step};
        int64_t begin = stk_trace_begin();
        report.status = write_checkpoint(writer, report.path, &report.is_there);
        stk_trace_end(begin, STK_TRACE_CHECKPOINT, "write checkpoint", report.step);
        if (report.status != STK_OK) snprintf(report.error, sizeof(report.error), "%s", stk_error_text());
        stk_mutex_lock(&writer->lock);
        writer->report = report;
        writer->busy = false;
        stk_cond_broadcast(&writer->changed);
    }
    stk_mutex_unlock(&writer->lock);
}

/* --- the caller's side --- */

stk_status stk_checkpoint_writer_open(const char *run_dir, int keep, stk_checkpoint_writer **out)
{
    stk_checkpoint_writer *writer = calloc(1, sizeof(*writer));
    if (!writer) return stk_fail_memory(sizeof(*writer));
    stk_status status;
    if (snprintf(writer->run_dir, sizeof(writer->run_dir), "%s", run_dir) >= (int)sizeof(writer->run_dir))
        STK_TRY(stk_fail(STK_INVALID, "path '%.60s...' is too long", run_dir));
    writer->keep = keep < 2 ? 2 : keep;
    STK_TRY(stk_checkpoint_restore_renamed(run_dir));
    STK_TRY(stk_checkpoint_remove_leftovers(run_dir));
    STK_TRY(stk_mutex_init(&writer->lock));
    STK_TRY(stk_cond_init(&writer->changed));
    STK_TRY(stk_thread_start(&writer->thread, "stk-checkpoint", true, writer_main, writer));
    *out = writer;
    return STK_OK;
done:
    free(writer);
    return status;
}

void stk_checkpoint_writer_close(stk_checkpoint_writer *writer)
{
    if (!writer) return;
    stk_mutex_lock(&writer->lock);
    writer->ending = true;
    stk_cond_broadcast(&writer->changed);
    stk_mutex_unlock(&writer->lock);
    stk_thread_join(&writer->thread);
    stk_cond_destroy(&writer->changed);
    stk_mutex_destroy(&writer->lock);
    free(writer->known.step);
    for (int i = 0; i < STK_MANIFEST_FILES; i++) {
        stk_text_free(&writer->file[i].header);
        free(writer->file[i].part);
        free(writer->file[i].copy);
    }
    free(writer);
}

static void wait_until_idle(stk_checkpoint_writer *writer)
{
    stk_mutex_lock(&writer->lock);
    int64_t begin = writer->busy ? stk_trace_begin() : 0, step = writer->step;
    while (writer->busy)
        stk_cond_wait(&writer->changed, &writer->lock);
    stk_mutex_unlock(&writer->lock);
    stk_trace_end(begin, STK_TRACE_CHECKPOINT, "wait for checkpoint", step);
}

/* Lists what is to be written. The thread sleeps until it is started, so the images are ours. */
static stk_status prepare(stk_checkpoint_writer *writer, const stk_named_tensor *tensors, size_t n_tensors,
                          const stk_train_state *state, const char *recipe)
{
    wait_until_idle(writer);
    STK_RETURN_IF_ERROR(list_tensors(&writer->file[MODEL], tensors, n_tensors, false));
    STK_RETURN_IF_ERROR(list_tensors(&writer->file[OPTIMIZER], tensors, n_tensors, true));
    return list_state(&writer->file[STATE], state, recipe);
}

static void start(stk_checkpoint_writer *writer, int64_t step, bool best)
{
    stk_mutex_lock(&writer->lock);
    writer->step = step;
    writer->best = best;
    writer->busy = true;
    stk_cond_broadcast(&writer->changed);
    stk_mutex_unlock(&writer->lock);
}

stk_status stk_checkpoint_save(stk_checkpoint_writer *writer, const stk_named_tensor *tensors, size_t n_tensors,
                               const stk_train_state *state, const char *recipe, bool best)
{
    STK_RETURN_IF_ERROR(prepare(writer, tensors, n_tensors, state, recipe));
    int64_t begin = stk_trace_begin();
    for (int i = 0; i < STK_MANIFEST_FILES; i++)
        STK_RETURN_IF_ERROR(copy_parts(&writer->file[i]));
    stk_trace_end(begin, STK_TRACE_CHECKPOINT, "copy for checkpoint", state->step);
    start(writer, state->step, best);
    return STK_OK;
}

stk_status stk_checkpoint_save_in_place(stk_checkpoint_writer *writer, const stk_named_tensor *tensors,
                                        size_t n_tensors, const stk_train_state *state, const char *recipe, bool best)
{
    STK_RETURN_IF_ERROR(prepare(writer, tensors, n_tensors, state, recipe));
    start(writer, state->step, best);
    wait_until_idle(writer);
    return STK_OK;
}

void stk_checkpoint_poll(stk_checkpoint_writer *writer, stk_checkpoint_report *out)
{
    stk_mutex_lock(&writer->lock);
    *out = writer->report;
    writer->report.finished = false;
    stk_mutex_unlock(&writer->lock);
}

void stk_checkpoint_wait(stk_checkpoint_writer *writer, stk_checkpoint_report *out)
{
    wait_until_idle(writer);
    stk_checkpoint_poll(writer, out);
}
