/* See stoker/data/verify.h. Threads claim blocks of records; the calling thread waits and reports. A source of data
 * sets is verified data set by data set; one whose records are parts of files, file by file. */
#include "stoker/data/verify.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/codec/image.h"
#include "data/dataset/dataset.h"
#include "data/source/reader.h"

enum { RECORDS_AT_ONCE = 8, MAX_THREADS = 256, REPORT_MS = 100, MOST_FOUND = 100000, MOST_REASON = 400 };

typedef struct found {
    int64_t i_record;
    char *reason;
} found;

typedef struct verifier {
    const stk_source *source;
    int64_t n_units;            /* records, or files */
    int64_t block;              /* that a thread claims at once */
    stk_verify_progress before; /* of the data sets that are done; n_records is of all */
    atomic_llong next, n_done, n_bytes;
    atomic_bool stop;
    stk_memory *memory; /* that records are charged to */

    stk_mutex lock;
    stk_cond changed;      /* a thread ended */
    int n_running;         /* guarded by lock */
    stk_status status;     /* guarded by lock; the first failure of verifying itself */
    char error_text[512];  /* guarded by lock */
    found *found;          /* guarded by lock */
    int64_t n_found, room; /* guarded by lock */
    int64_t n_corrupt;     /* guarded by lock */
    int64_t *later; /* guarded by lock; those that found no room next to the others', checked when all have ended */
    int64_t n_later, later_room; /* guarded by lock */
    int64_t n_too_large;         /* of the corrupt ones; once the threads have ended */
} verifier;

/* --- one record --- */

static stk_status decode(const stk_item *item, stk_scratch *pixels)
{
    stk_span encoded = {item->data, item->n_bytes};
    int64_t height, width;
    STK_RETURN_IF_ERROR(stk_image_size(encoded, &height, &width));
    size_t n = (size_t)height * (size_t)width * 3;
    uint8_t *dst = stk_scratch_get(pixels, n);
    return dst ? stk_image_decode(encoded, 3, dst) : STK_NO_MEMORY;
}

static stk_status check_file(verifier *v, int64_t i, stk_reader *reader)
{
    int64_t n_bytes = 0;
    stk_status status = v->source->class->read_file(v->source, i, &reader->work, &n_bytes);
    atomic_fetch_add(&v->n_bytes, n_bytes);
    return status;
}

static stk_status check_record(verifier *v, int64_t i, stk_reader *reader, stk_scratch *pixels)
{
    const stk_source *source = v->source;
    stk_item item[STK_MAX_FIELDS];
    if (source->class->read_file) return check_file(v, i, reader);
    STK_RETURN_IF_ERROR(stk_reader_read(reader, source, i, &(stk_stage_key){0}, item));
    for (int f = 0; f < source->n_fields; f++) {
        atomic_fetch_add(&v->n_bytes, (long long)item[f].n_bytes);
        if (item[f].type.kind != STK_FIELD_ENCODED) continue;
        stk_status status = decode(&item[f], pixels);
        if (status != STK_OK && strcmp(source->field[f].name, "image"))
            stk_fail_prefix(status, "field '%s': ", source->field[f].name);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

/* --- threads --- */

static void fail_all(verifier *v, stk_status status)
{
    stk_mutex_lock(&v->lock);
    if (v->status == STK_OK) {
        v->status = status;
        snprintf(v->error_text, sizeof(v->error_text), "%s", stk_error_text());
    }
    stk_mutex_unlock(&v->lock);
    atomic_store(&v->stop, true);
}

/* The thread's error text is the reason. */
static stk_status note(verifier *v, int64_t i)
{
    stk_status status = STK_OK;
    stk_mutex_lock(&v->lock);
    v->n_corrupt++;
    if (v->n_found == MOST_FOUND) goto done;
    if (v->n_found == v->room) {
        int64_t room = 2 * v->room + 64;
        found *grown = realloc(v->found, (size_t)room * sizeof(*grown));
        if (!grown) STK_TRY(stk_fail_memory((size_t)room * sizeof(*grown)));
        v->found = grown;
        v->room = room;
    }
    char *reason = strndup(stk_error_text(), MOST_REASON);
    if (!reason) STK_TRY(stk_fail_memory(MOST_REASON));
    v->found[v->n_found++] = (found){i, reason};
done:
    stk_mutex_unlock(&v->lock);
    return status;
}

/* False: there is no memory even for that. */
static bool put_off(verifier *v, int64_t i)
{
    bool done = true;
    stk_mutex_lock(&v->lock);
    if (v->n_later == v->later_room) {
        int64_t room = 2 * v->later_room + 64;
        int64_t *grown = realloc(v->later, (size_t)room * sizeof(*grown));
        done = grown != NULL;
        if (done) v->later = grown;
        if (done) v->later_room = room;
    }
    if (done) v->later[v->n_later++] = i;
    stk_mutex_unlock(&v->lock);
    return done;
}

/* One that finds no room with nothing next to it is larger than the limit, as its reason says. */
static void check_later(verifier *v)
{
    stk_reader reader = {0};
    stk_scratch pixels = {0};
    stk_memory *before = stk_memory_use(v->memory);
    for (int64_t k = 0; k < v->n_later && !atomic_load(&v->stop); k++) {
        stk_status status = check_record(v, v->later[k], &reader, &pixels);
        stk_reader_free(&reader, v->source);
        stk_scratch_free(&pixels);
        v->n_too_large += status == STK_NO_MEMORY;
        if (status != STK_OK && (status == STK_NO_MEMORY || stk_record_can_skip(status))) status = note(v, v->later[k]);
        if (status != STK_OK) fail_all(v, status);
        atomic_fetch_add(&v->n_done, 1);
    }
    (void)stk_memory_use(before);
}

static void run(void *arg)
{
    verifier *v = arg;
    stk_reader reader = {0};
    stk_scratch pixels = {0};
    (void)stk_memory_use(v->memory);
    while (!atomic_load(&v->stop)) {
        int64_t from = atomic_fetch_add(&v->next, v->block), to = from + v->block;
        if (to > v->n_units) to = v->n_units;
        if (from >= to) break;
        for (int64_t i = from; i < to && !atomic_load(&v->stop); i++) {
            stk_status status = check_record(v, i, &reader, &pixels);
            if (status == STK_NO_MEMORY && put_off(v, i)) {
                stk_reader_free(&reader, v->source);
                stk_scratch_free(&pixels);
                continue;
            }
            if (status != STK_OK && stk_record_can_skip(status)) status = note(v, i);
            if (status != STK_OK) fail_all(v, status);
            atomic_fetch_add(&v->n_done, 1);
        }
    }
    stk_reader_free(&reader, v->source);
    stk_scratch_free(&pixels);
    stk_mutex_lock(&v->lock);
    v->n_running--;
    stk_cond_signal(&v->changed);
    stk_mutex_unlock(&v->lock);
}

static stk_verify_progress progress_of(verifier *v)
{
    const stk_verify_progress *before = &v->before;
    return (stk_verify_progress){.n_done = before->n_done + atomic_load(&v->n_done),
                                 .n_records = before->n_records,
                                 .n_bytes = before->n_bytes + atomic_load(&v->n_bytes),
                                 .n_corrupt = before->n_corrupt + v->n_corrupt,
                                 .n_too_large = before->n_too_large + v->n_too_large};
}

/* Waits until all threads have ended. */
static void wait_and_report(verifier *v, const stk_verify_options *options)
{
    bool goes_on = true;
    stk_mutex_lock(&v->lock);
    while (v->n_running > 0) {
        (void)stk_cond_wait_ms(&v->changed, &v->lock, REPORT_MS);
        stk_verify_progress now = progress_of(v);
        if (!options->on_progress || !goes_on) continue;
        stk_mutex_unlock(&v->lock);
        goes_on = options->on_progress(options->user, &now);
        if (!goes_on) {
            stk_fail(STK_INTERRUPTED, "verifying was stopped");
            fail_all(v, STK_INTERRUPTED);
        }
        stk_mutex_lock(&v->lock);
    }
    stk_mutex_unlock(&v->lock);
}

static stk_status run_threads(verifier *v, const stk_verify_options *options)
{
    stk_thread thread[MAX_THREADS] = {0};
    int n = options->n_threads ? options->n_threads : stk_n_cores();
    stk_status status = STK_OK;
    if (n > MAX_THREADS) n = MAX_THREADS;
    for (int i = 0; i < n && status == STK_OK; i++) {
        stk_mutex_lock(&v->lock);
        v->n_running++;
        stk_mutex_unlock(&v->lock);
        status = stk_thread_start(&thread[i], "stk-verify", false, run, v);
        if (status == STK_OK) continue;
        fail_all(v, status);
        stk_mutex_lock(&v->lock);
        v->n_running--;
        stk_mutex_unlock(&v->lock);
    }
    wait_and_report(v, options);
    for (int i = 0; i < n; i++)
        stk_thread_join(&thread[i]);
    check_later(v);
    return v->status == STK_OK ? STK_OK : stk_fail(v->status, "%s", v->error_text);
}

/* --- what was found --- */

static int compare(const void *a, const void *b)
{
    int64_t x = ((const found *)a)->i_record, y = ((const found *)b)->i_record;
    return (x > y) - (x < y);
}

/* Takes "'a.tar', sample 'x' at byte 512" apart. file has room for the name. */
static void split_name(const char *name, stk_corrupt_record *out, char *file)
{
    static const char *const ends[] = {"', record ", "', sample "};
    const char *end = NULL, *at = NULL;
    for (const char *p = name; (p = strstr(p, " at byte ")); p++)
        at = p + strlen(" at byte ");
    for (size_t i = 0; at && !end && i < sizeof(ends) / sizeof(ends[0]); i++)
        end = strstr(name, ends[i]);
    if (name[0] != '\'') return;
    if (end)
        out->offset_bytes = strtoll(at, NULL, 10);
    else
        end = name + strlen(name) - 1;
    if (end <= name || *end != '\'') return;
    memcpy(file, name + 1, (size_t)(end - name - 1));
    file[end - name - 1] = 0;
    out->file = file;
}

static void name_unit(const stk_source *source, int64_t i, char *out, size_t out_bytes)
{
    if (source->class->read_file)
        snprintf(out, out_bytes, "'%s'", source->class->path_of_file(source, i));
    else
        stk_source_name(source, i, 0, out, out_bytes);
}

static void report(verifier *v, const stk_verify_options *options)
{
    if (v->n_found > 1) qsort(v->found, (size_t)v->n_found, sizeof(*v->found), compare);
    for (int64_t i = 0; i < v->n_found && options->on_corrupt; i++) {
        char name[4096 + 64], file[sizeof(name)];
        stk_corrupt_record record = {.i_record = v->found[i].i_record, .name = name, .offset_bytes = -1};
        name_unit(v->source, record.i_record, name, sizeof(name));
        split_name(name, &record, file);
        record.reason = v->found[i].reason;
        size_t n = strlen(name);
        if (!strncmp(record.reason, name, n) && !strncmp(record.reason + n, ": ", 2)) record.reason += n + 2;
        options->on_corrupt(options->user, &record);
    }
}

/* --- data sets --- */

static int64_t count_units(const stk_source *source)
{
    return source->class->read_file ? source->n_files : source->n_records;
}

/* Checks a source, and those of the data sets that it is made of, before any is read; *n_units: of all. */
static stk_status check_sources(const stk_source *source, int64_t *n_units)
{
    if (source->in_order)
        return stk_fail(STK_UNSUPPORTED, "a generator's samples cannot be verified: they are made, not read");
    if (!source->class->child) {
        *n_units += count_units(source);
        return STK_OK;
    }
    const stk_dataset *child;
    for (int i = 0; (child = source->class->child(source, i)); i++)
        STK_RETURN_IF_ERROR(check_sources(child->source, n_units));
    return STK_OK;
}

/* *sum: what was before, and then with this source. Corrupt records are no error here. */
static stk_status verify_source(const stk_source *source, const stk_verify_options *options, stk_verify_progress *sum)
{
    verifier v = {.source = source, .n_units = count_units(source), .before = *sum, .memory = stk_memory_in_use()};
    v.block = source->class->read_file ? 1 : RECORDS_AT_ONCE;
    STK_RETURN_IF_ERROR(stk_mutex_init(&v.lock));
    stk_status status = stk_cond_init(&v.changed);
    if (status != STK_OK) {
        stk_mutex_destroy(&v.lock);
        return status;
    }
    status = run_threads(&v, options);
    report(&v, options);
    *sum = progress_of(&v);
    for (int64_t i = 0; i < v.n_found; i++)
        free(v.found[i].reason);
    free(v.found);
    free(v.later);
    stk_cond_destroy(&v.changed);
    stk_mutex_destroy(&v.lock);
    return status;
}

static stk_status verify_all(const stk_source *source, const stk_verify_options *options, stk_verify_progress *sum)
{
    if (!source->class->child) return verify_source(source, options, sum);
    const stk_dataset *child;
    for (int i = 0; (child = source->class->child(source, i)); i++)
        STK_RETURN_IF_ERROR(verify_all(child->source, options, sum));
    return STK_OK;
}

stk_status stk_dataset_verify(const stk_dataset *dataset, const stk_verify_options *options,
                              stk_verify_progress *result)
{
    if (!dataset) return stk_fail(STK_INVALID, "there is no data set");
    stk_verify_options defaults = {0};
    stk_verify_progress own;
    if (!options) options = &defaults;
    if (!result) result = &own;
    *result = (stk_verify_progress){0};
    if (options->n_threads < 0) return stk_fail(STK_INVALID, "'n_threads' is %d", options->n_threads);
    STK_RETURN_IF_ERROR(stk_dataset_status(dataset));
    STK_RETURN_IF_ERROR(check_sources(dataset->source, &result->n_records));
    stk_memory *memory;
    STK_RETURN_IF_ERROR(stk_dataset_enter_memory(dataset, &memory));
    stk_status status = verify_all(dataset->source, options, result);
    stk_dataset_leave_memory(memory);
    STK_RETURN_IF_ERROR(status);
    if (result->n_corrupt == 0) return STK_OK;
    return stk_fail(STK_CORRUPT, "%lld of %lld records are corrupt%s", (long long)result->n_corrupt,
                    (long long)result->n_records,
                    result->n_too_large ? ", or too large for the memory limit (data.memory)" : "");
}
