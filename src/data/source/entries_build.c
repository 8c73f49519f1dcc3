/* See stoker/data/index.h. Threads claim files and parse them; the calling thread waits, reports, and writes the index:
 * at the end, and when it is stopped what there is. A file that an older index knows in its present state is not read.
 * One that finds no room next to what the other threads read is read when they have ended, or is too large. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/neighbour.h"
#include "base/thread.h"
#include "data/codec/image.h"
#include "data/common/side_file.h"
#include "data/source/entries.h"
#include "data/source/fields.h"
#include "data/source/reader.h"
#include "data/source/records.h"
#include "stoker/data/index.h"
#include "stoker/data/sources.h"

enum { BLOCK = 16, MAX_THREADS = 256, REPORT_MS = 100, SAVE_MS = 30000 };

typedef struct built {
    char *path; /* owned */
    uint64_t n_bytes;
    stk_file_times times;
    uint64_t content;
    stk_jpeg_entry *entry; /* owned, unless it is of the old index */
    uint32_t n_entries;
    bool kept, is_later; /* is_later: found no room */
    atomic_bool done;
} built;

typedef struct builder {
    const char *folder;
    size_t n_folder; /* of its name, with the slash */
    int every;
    stk_memory *memory; /* that files and entries are charged to */
    stk_entries old;
    built *file; /* [n] */
    int64_t n;
    atomic_llong next, n_done, n_kept, n_without;
    atomic_bool stop;

    stk_mutex lock;
    stk_cond changed;      /* a thread ended */
    int n_running;         /* guarded by lock */
    stk_status status;     /* guarded by lock; the first failure */
    char error_text[1024]; /* guarded by lock */

    int64_t n_too_large; /* once the threads have ended; error_text is of the first */
} builder;

/* --- one file --- */

static int64_t time_ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void keep(built *f, const stk_entries_file *old)
{
    f->n_bytes = old->n_bytes;
    f->content = old->content;
    f->entry = (stk_jpeg_entry *)(uintptr_t)old->entry;
    f->n_entries = old->n_entries;
    f->kept = true;
}

/* Takes what the old index has of a file that was read, if there are as many entries as there should be. */
static bool has_old(const builder *b, built *f, int size)
{
    stk_entries_file old;
    if (!stk_entries_find(&b->old, f->path, &old) || old.n_entries != (uint32_t)size) return false;
    if (f->n_bytes != old.n_bytes || f->times.mtime_ns != old.times.mtime_ns || f->content != old.content) return false;
    keep(f, &old);
    return true;
}

/* f->entry: as charged as what a source holds, so that a limit that nobody gave is for reading alone. They were charged
 * like any block until now, as a file may promise more of them than fit. */
static stk_status hold_entries(const builder *b, size_t bytes)
{
    stk_memory_release(b->memory, bytes);
    return stk_memory_charge_held(b->memory, bytes);
}

static stk_status make_entries(const builder *b, built *f, stk_jpeg_reader *reader, stk_span encoded, int size)
{
    size_t bytes = (size_t)size * sizeof(*f->entry);
    STK_RETURN_IF_ERROR(stk_memory_charge(b->memory, bytes));
    stk_jpeg_index index = {.entry = malloc(bytes), .n = size};
    stk_status status = index.entry ? stk_jpeg_reader_index(reader, encoded, &index) : stk_fail_memory(bytes);
    if (status == STK_OK && index.n_known == size) {
        status = hold_entries(b, bytes);
        if (status == STK_OK) {
            f->entry = index.entry;
            f->n_entries = (uint32_t)size;
            return STK_OK;
        }
    } else {
        stk_memory_release(b->memory, bytes);
    }
    free(index.entry);
    return status == STK_NO_MEMORY ? status : STK_OK;
}

/* Files without entry points stay without; only what is no fault of the file fails. */
static stk_status parse_file(const builder *b, built *f, stk_jpeg_reader *reader, stk_scratch *scratch)
{
    size_t n;
    stk_status status = stk_file_read_stamped(f->path, scratch, &n, &f->times);
    if (status != STK_OK) return status == STK_NO_MEMORY ? status : STK_OK;
    stk_span encoded = {scratch->data, n};
    f->n_bytes = n;
    f->content = stk_content_hash(encoded.data, n);
    bool is_jpeg = stk_image_format_of(encoded) == STK_IMAGE_JPEG;
    int size = is_jpeg ? stk_jpeg_reader_index_size(reader, encoded, b->every) : 0;
    if (size < 0) return STK_NO_MEMORY;
    if (size == 0 || has_old(b, f, size)) return STK_OK;
    return make_entries(b, f, reader, encoded, size);
}

/* An old index says nothing of how far its entries are apart: where that is asked for, parse_file looks. */
static bool take_old(const builder *b, built *f)
{
    struct stat info;
    stk_entries_file old;
    if (b->every || !stk_entries_find(&b->old, f->path, &old) || stat(f->path, &info) != 0) return false;
    if ((uint64_t)info.st_size != old.n_bytes || time_ns(info.st_mtim) != old.times.mtime_ns) return false;
    /* Another file can have the same size and be given the same time, but not in the past. */
    if (old.times.ctime_ns == 0 || time_ns(info.st_ctim) != old.times.ctime_ns) return false;
    keep(f, &old);
    f->times = old.times;
    return true;
}

/* --- threads --- */

static void fail_all(builder *b, stk_status status)
{
    stk_mutex_lock(&b->lock);
    if (b->status == STK_OK) {
        b->status = status;
        snprintf(b->error_text, sizeof(b->error_text), "%s", stk_error_text());
    }
    stk_mutex_unlock(&b->lock);
    atomic_store(&b->stop, true);
}

static void finish_file(builder *b, built *f)
{
    atomic_fetch_add(&b->n_kept, f->kept);
    atomic_fetch_add(&b->n_without, f->n_entries == 0);
    atomic_fetch_add(&b->n_done, 1);
    atomic_store(&f->done, true);
}

static void make_files(builder *b, stk_jpeg_reader *reader, stk_scratch *scratch)
{
    while (!atomic_load(&b->stop)) {
        int64_t from = atomic_fetch_add(&b->next, BLOCK), to = from + BLOCK < b->n ? from + BLOCK : b->n;
        if (from >= to) return;
        for (int64_t i = from; i < to && !atomic_load(&b->stop); i++) {
            built *f = &b->file[i];
            stk_status status = take_old(b, f) ? STK_OK : parse_file(b, f, reader, scratch);
            f->is_later = status == STK_NO_MEMORY;
            if (f->is_later) {
                stk_jpeg_reader_trim(reader);
                stk_scratch_free(scratch);
                continue;
            }
            if (status != STK_OK) {
                fail_all(b, status);
                return;
            }
            finish_file(b, f);
        }
    }
}

static void run(void *arg)
{
    builder *b = arg;
    stk_scratch scratch = {0};
    stk_jpeg_reader *reader = NULL;
    (void)stk_memory_use(b->memory);
    stk_status status = stk_jpeg_reader_open(&reader);
    if (status == STK_OK)
        make_files(b, reader, &scratch);
    else
        fail_all(b, status);
    stk_jpeg_reader_close(reader);
    stk_scratch_free(&scratch);
    stk_mutex_lock(&b->lock);
    b->n_running--;
    stk_cond_signal(&b->changed);
    stk_mutex_unlock(&b->lock);
}

/* One that finds no room with nothing next to it is larger than the limit. */
static void make_later(builder *b)
{
    stk_scratch scratch = {0};
    stk_memory *before = stk_memory_use(b->memory);
    for (int64_t i = 0; i < b->n && !atomic_load(&b->stop); i++) {
        built *f = &b->file[i];
        if (!f->is_later) continue;
        stk_jpeg_reader *reader = NULL;
        stk_status status = stk_jpeg_reader_open(&reader);
        if (status == STK_OK) status = parse_file(b, f, reader, &scratch);
        stk_jpeg_reader_close(reader);
        stk_scratch_free(&scratch);
        if (status == STK_OK) finish_file(b, f);
        if (status == STK_NO_MEMORY && b->n_too_large++ == 0)
            snprintf(b->error_text, sizeof(b->error_text), "'%s': %s", f->path, stk_error_text());
        if (status != STK_OK && status != STK_NO_MEMORY) fail_all(b, status);
    }
    (void)stk_memory_use(before);
}

/* --- writing --- */

/* What is done so far. */
static stk_status save(const builder *b, stk_index_progress *p)
{
    int64_t n = 0;
    stk_entries_file *files = calloc((size_t)b->n + 1, sizeof(*files));
    if (!files) return stk_fail_memory((size_t)b->n * sizeof(*files));
    for (int64_t i = 0; i < b->n; i++) {
        const built *f = &b->file[i];
        if (!atomic_load(&f->done)) continue;
        files[n++] =
            (stk_entries_file){f->path + b->n_folder, f->n_bytes, f->times, f->content, f->entry, f->n_entries};
    }
    stk_status status = stk_entries_save(b->folder, files, n, p->path, &p->n_bytes);
    free(files);
    return status;
}

static void take_counts(builder *b, stk_index_progress *p)
{
    p->n_files = b->n;
    p->n_done = atomic_load(&b->n_done);
    p->n_kept = atomic_load(&b->n_kept);
    p->n_without = atomic_load(&b->n_without);
}

/* Waits until all threads have ended; saves from time to time, so that even a kill loses little. */
static void wait_and_report(builder *b, const stk_index_options *options, stk_index_progress *p)
{
    int since_save_ms = 0;
    bool goes_on = true;
    stk_mutex_lock(&b->lock);
    while (b->n_running > 0) {
        since_save_ms += stk_cond_wait_ms(&b->changed, &b->lock, REPORT_MS) ? 0 : REPORT_MS;
        stk_mutex_unlock(&b->lock);
        take_counts(b, p);
        if (goes_on && options->on_progress && !options->on_progress(options->user, p)) {
            goes_on = false;
            stk_fail(STK_INTERRUPTED, "making the index was stopped");
            fail_all(b, STK_INTERRUPTED);
        }
        if (since_save_ms >= SAVE_MS) {
            since_save_ms = 0;
            (void)save(b, p);
        }
        stk_mutex_lock(&b->lock);
    }
    stk_mutex_unlock(&b->lock);
}

static stk_status run_threads(builder *b, const stk_index_options *options, stk_index_progress *p)
{
    stk_thread thread[MAX_THREADS] = {0};
    int n = options->n_threads ? options->n_threads : stk_n_cores();
    stk_status status = STK_OK;
    if (n > MAX_THREADS) n = MAX_THREADS;
    for (int i = 0; i < n && status == STK_OK; i++) {
        stk_mutex_lock(&b->lock);
        b->n_running++;
        stk_mutex_unlock(&b->lock);
        status = stk_thread_start(&thread[i], "stk-index", false, run, b);
        if (status == STK_OK) continue;
        fail_all(b, status);
        stk_mutex_lock(&b->lock);
        b->n_running--;
        stk_mutex_unlock(&b->lock);
    }
    wait_and_report(b, options, p);
    for (int i = 0; i < n; i++)
        stk_thread_join(&thread[i]);
    make_later(b);
    take_counts(b, p);
    return b->status;
}

/* --- the folder --- */

static stk_status list_files(builder *b)
{
    const char *folder = b->folder;
    stk_status status;
    stk_source *source = NULL;
    STK_TRY(stk_source_open_paths(&folder, 1, STK_LABELS_NONE, NULL, &source));
    if (strcmp(source->class->name, "files") != 0)
        STK_TRY(stk_fail(STK_UNSUPPORTED, "'%s' holds a pack, and only folders of image files have an index", folder));
    b->file = calloc((size_t)source->n_records, sizeof(*b->file));
    if (!b->file) STK_TRY(stk_fail_memory((size_t)source->n_records * sizeof(*b->file)));
    for (; b->n < source->n_records; b->n++) {
        char name[STK_ENTRIES_PATH]; /* in quotes */
        stk_source_name(source, b->n, 0, name, sizeof(name));
        b->file[b->n].path = strndup(name + 1, strlen(name) - 2);
        if (!b->file[b->n].path) STK_TRY(stk_fail_memory(sizeof(name)));
    }
done:
    if (source) source->class->close(source);
    return status;
}

static void free_builder(builder *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        free(b->file[i].path);
        if (!b->file[i].kept) free(b->file[i].entry);
    }
    free(b->file);
    stk_entries_close(&b->old);
    stk_cond_destroy(&b->changed);
    stk_mutex_destroy(&b->lock);
}

static stk_status build(builder *b, const stk_index_options *options, stk_index_progress *p)
{
    STK_RETURN_IF_ERROR(list_files(b));
    b->n_folder = strlen(b->folder);
    while (b->n_folder > 1 && b->folder[b->n_folder - 1] == '/')
        b->n_folder--;
    b->n_folder += b->folder[b->n_folder - 1] != '/';
    /* A damaged old index is as good as none. */
    if (stk_entries_open(b->folder, NULL, &b->old) == STK_NO_MEMORY) return STK_NO_MEMORY;
    stk_status status = run_threads(b, options, p);
    if (status == STK_OK || status == STK_INTERRUPTED) STK_RETURN_IF_ERROR(save(b, p));
    if (status != STK_OK) return stk_fail(status, "%s", b->error_text);
    if (b->n_too_large == 0) return STK_OK;
    return stk_fail(STK_NO_MEMORY, "%s; %lld of %lld files are too large for the limit, the others are in the index",
                    b->error_text, (long long)b->n_too_large, (long long)b->n);
}

stk_status stk_index_folder(const char *folder, const stk_index_options *options, stk_index_progress *result)
{
    stk_index_options defaults = {0};
    stk_index_progress progress;
    char hint[STK_PATH_HINT];
    if (!options) options = &defaults;
    if (!result) result = &progress;
    *result = (stk_index_progress){0};
    if (!folder) return stk_fail(STK_INVALID, "'folder' is NULL");
    if (!stk_path_is_dir(folder))
        return stk_fail(STK_NOT_FOUND, "there is no folder '%s'%s", folder, stk_path_hint(folder, hint));
    if (options->n_threads < 0) return stk_fail(STK_INVALID, "'n_threads' is %d", options->n_threads);
    if (options->every < 0) return stk_fail(STK_INVALID, "'every' is %d", options->every);
    builder b = {.folder = folder, .every = options->every};
    STK_RETURN_IF_ERROR(stk_mutex_init(&b.lock));
    stk_status status = stk_cond_init(&b.changed);
    if (status != STK_OK) {
        stk_mutex_destroy(&b.lock);
        return status;
    }
    status = stk_memory_new(options->memory_bytes, &b.memory);
    if (status == STK_OK) status = build(&b, options, result);
    free_builder(&b);
    stk_memory_free(b.memory);
    return status;
}
