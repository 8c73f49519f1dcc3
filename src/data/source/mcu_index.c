/* See source/mcu_index.h. Each record has a place, which one thread at a time may fill; once filled, it is read by all
 * and never changes. */
#include "data/source/mcu_index.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/content_hash.h"
#include "base/error.h"
#include "base/thread.h"
#include "data/common/side_file.h"
#include "stoker/data/index.h"

/* A kill loses what the last half minute brought, or as much as is learned in 20 times the time that saving takes. */
enum { SAVE_S = 30, SAVE_SHARE = 20 };
static const int64_t save_ns = SAVE_S * 1000000000ll;

typedef enum learned_state { UNKNOWN, TAKEN, KNOWN } learned_state;

enum { LIKELY_BYTES = 1024 }; /* of one file's entries, while they are written, too */

typedef struct learned_file {
    atomic_int state; /* learned_state; what follows is valid in KNOWN */
    bool owned;       /* its entries; else they are the index file's */
    uint32_t n_entries;
    uint64_t n_bytes, content;
    stk_file_times times;
    const stk_jpeg_entry *entry;
} learned_file;

struct stk_mcu_index {
    const stk_source *source;
    const char *folder;
    const stk_entries *known;
    learned_file *file;                   /* [source->n_records] */
    atomic_llong n_known, n_new, n_saved; /* new ones: learned here; saved: of those */
    atomic_llong n_kept, n_without;
    atomic_llong save_at_ns; /* the next time, on the clock */

    stk_mutex lock;              /* of saving */
    char path[STK_ENTRIES_PATH]; /* guarded by lock; "": not saved yet */
    int64_t n_bytes;             /* guarded by lock */
};

stk_status stk_mcu_index_open(const stk_source *source, const char *folder, const stk_entries *known,
                              stk_mcu_index **out)
{
    stk_status status = STK_OK;
    *out = NULL;
    stk_mcu_index *l = calloc(1, sizeof(*l));
    if (!l) return stk_fail_memory(sizeof(*l));
    l->source = source;
    l->folder = folder;
    l->known = known;
    l->file = calloc((size_t)source->n_records, sizeof(*l->file));
    if (!l->file) STK_TRY(stk_fail_memory((size_t)source->n_records * sizeof(*l->file)));
    STK_TRY(stk_mutex_init(&l->lock));
    atomic_store(&l->save_at_ns, stk_clock_ns() + save_ns);
    *out = l;
    return STK_OK;
done:
    free(l->file);
    free(l);
    return status;
}

/* --- one record --- */

/* known: but for its name. */
static void publish(stk_mcu_index *l, learned_file *f, const stk_entries_file *known, bool owned)
{
    f->n_bytes = known->n_bytes;
    f->content = known->content;
    f->times = known->times;
    f->entry = known->entry;
    f->n_entries = known->n_entries;
    f->owned = owned;
    atomic_store(&f->state, KNOWN);
    if (known->n_entries == 0) atomic_fetch_add(&l->n_without, 1);
    atomic_fetch_add(&l->n_known, 1);
}

static stk_entries_file state_of(const learned_file *f)
{
    return (stk_entries_file){NULL, f->n_bytes, f->times, f->content, f->entry, f->n_entries};
}

/* From the index file, where it has this state of the file. */
static bool take_known(stk_mcu_index *l, learned_file *f, const char *path, stk_span encoded, stk_file_times times)
{
    stk_entries_file old;
    int unknown = UNKNOWN;
    if (!stk_entries_find(l->known, path, &old) || old.n_bytes != encoded.n || old.times.mtime_ns != times.mtime_ns)
        return false;
    if (!stk_entries_fit(&old, encoded, times.ctime_ns)) return false;
    if (!atomic_compare_exchange_strong(&f->state, &unknown, TAKEN)) return false;
    atomic_fetch_add(&l->n_kept, 1);
    old.times = times; /* with which it fits */
    publish(l, f, &old, false);
    return true;
}

void stk_mcu_index_give(stk_mcu_index *l, int64_t i_record, const char *path, stk_span encoded, stk_file_times times,
                        stk_jpeg_hint *hint)
{
    learned_file *f = &l->file[i_record];
    int state = atomic_load(&f->state);
    if (state == UNKNOWN && take_known(l, f, path, encoded, times)) state = KNOWN;
    if (state == UNKNOWN) {
        hint->mcu_index = l;
        hint->i_record = i_record;
        hint->times = times;
    } else if (state == KNOWN && f->times.mtime_ns == times.mtime_ns) {
        stk_entries_file known = state_of(f);
        if (known.n_entries == 0 || known.n_entries > INT_MAX || !stk_entries_fit(&known, encoded, times.ctime_ns))
            return;
        hint->entry = known.entry;
        hint->n_entries = (int)known.n_entries;
    }
}

/* All entries of a file, a copy: NULL with *n 0 where it has none. */
static stk_status finish_entries(stk_span encoded, stk_jpeg_index *index, stk_jpeg_entry **out, int *n)
{
    *out = NULL;
    *n = 0;
    stk_jpeg_reader *reader = stk_jpeg_reader_of_thread();
    if (!reader) return STK_NO_MEMORY;
    stk_status status =
        stk_image_format_of(encoded) == STK_IMAGE_JPEG ? stk_jpeg_reader_index(reader, encoded, index) : STK_CORRUPT;
    if (status == STK_NO_MEMORY) return status;
    if (status != STK_OK || index->n == 0 || index->n_known != index->n) return STK_OK;
    size_t bytes = (size_t)index->n * sizeof(**out);
    if (!(*out = malloc(bytes))) return stk_fail_memory(bytes);
    memcpy(*out, index->entry, bytes);
    *n = index->n;
    return STK_OK;
}

/* --- saving --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stk_entries_file *)a)->name, ((const stk_entries_file *)b)->name);
}

/* The record's name below the folder, malloc'ed. */
static char *name_of(const stk_mcu_index *l, int64_t i)
{
    char quoted[STK_ENTRIES_PATH];
    l->source->class->name_record(l->source, i, quoted, sizeof(quoted));
    size_t n = strlen(quoted), n_folder = strlen(l->folder);
    while (n_folder > 1 && l->folder[n_folder - 1] == '/')
        n_folder--;
    if (n < n_folder + 3) return strdup("");
    const char *name = quoted + 1 + n_folder;
    quoted[n - 1] = 0;
    return strdup(name + strspn(name, "/"));
}

/* The state of record i: what is known here, or what another process has written to `other` meanwhile. */
static bool describe(stk_mcu_index *l, const stk_entries *other, int64_t i, stk_entries_file *out)
{
    learned_file *f = &l->file[i];
    char path[STK_ENTRIES_PATH];
    if (atomic_load(&f->state) == KNOWN) {
        *out = state_of(f);
        return true;
    }
    l->source->class->name_record(l->source, i, path, sizeof(path));
    path[strlen(path) - 1] = 0;
    return stk_entries_find(other, path + 1, out);
}

/* lock is held. */
static stk_status write_index(stk_mcu_index *l)
{
    stk_entries other = {0};
    int64_t n = 0, n_new = atomic_load(&l->n_new);
    stk_status status;
    if (!stk_keeps_data()) return STK_OK;
    size_t bytes = (size_t)l->source->n_records * sizeof(stk_entries_file);
    stk_entries_file *files = malloc(bytes);
    if (!files) return stk_fail_memory(bytes);
    (void)stk_entries_open(l->folder, NULL, &other); /* a damaged one is as good as none */
    for (int64_t i = 0; i < l->source->n_records; i++) {
        if (!describe(l, &other, i, &files[n])) continue;
        files[n].name = name_of(l, i);
        if (!files[n++].name) STK_TRY(stk_fail_memory(STK_ENTRIES_PATH));
    }
    if (n) qsort(files, (size_t)n, sizeof(*files), by_name);
    STK_TRY(stk_entries_save(l->folder, files, n, l->path, &l->n_bytes));
    atomic_store(&l->n_saved, n_new);
done:
    for (int64_t i = 0; i < n; i++)
        free((void *)(uintptr_t)files[i].name);
    free(files);
    stk_entries_close(&other);
    return status;
}

static void save(stk_mcu_index *l)
{
    int64_t start_ns = stk_clock_ns();
    stk_mutex_lock(&l->lock);
    if (atomic_load(&l->n_new) > atomic_load(&l->n_saved)) (void)write_index(l);
    int64_t now_ns = stk_clock_ns();
    atomic_store(&l->save_at_ns, now_ns + save_ns + SAVE_SHARE * (now_ns - start_ns));
    stk_mutex_unlock(&l->lock);
}

/* When all is known, and now and then; by the thread that comes first. */
static void save_in_time(stk_mcu_index *l)
{
    bool complete = atomic_load(&l->n_known) == l->source->n_records;
    long long at_ns = atomic_load(&l->save_at_ns);
    if (!complete && stk_clock_ns() < at_ns) return;
    if (!complete && !atomic_compare_exchange_strong(&l->save_at_ns, &at_ns, LLONG_MAX)) return;
    save(l);
}

void stk_mcu_index_take(const stk_jpeg_hint *hint, stk_span encoded, stk_jpeg_index *learned)
{
    stk_mcu_index *l = hint->mcu_index;
    learned_file *f = &l->file[hint->i_record];
    stk_jpeg_index own = {.n = 0};
    stk_jpeg_entry *entry = NULL;
    int n, unknown = UNKNOWN;
    if (!atomic_compare_exchange_strong(&f->state, &unknown, TAKEN)) return;
    if (learned->n == 0) {
        own.entry = malloc(STK_JPEG_MOST_ROWS * sizeof(*own.entry));
        learned = &own;
    }
    stk_status status = learned->entry ? finish_entries(encoded, learned, &entry, &n) : STK_NO_MEMORY;
    free(own.entry);
    if (status != STK_OK) {
        atomic_store(&f->state, UNKNOWN); /* another time, with more memory */
        return;
    }
    uint64_t content = stk_content_hash(encoded.data, encoded.n);
    publish(l, f, &(stk_entries_file){NULL, encoded.n, hint->times, content, entry, (uint32_t)n}, true);
    atomic_fetch_add(&l->n_new, 1);
    save_in_time(l);
}

/* --- the rest --- */

void stk_mcu_index_get_progress(stk_mcu_index *l, stk_index_progress *out)
{
    *out = (stk_index_progress){.n_done = atomic_load(&l->n_known),
                                .n_files = l->source->n_records,
                                .n_kept = atomic_load(&l->n_kept),
                                .n_without = atomic_load(&l->n_without)};
    stk_mutex_lock(&l->lock);
    out->n_bytes = l->n_bytes;
    memcpy(out->path, l->path, sizeof(l->path));
    stk_mutex_unlock(&l->lock);
}

void stk_mcu_index_close(stk_mcu_index *l)
{
    if (!l) return;
    save(l);
    for (int64_t i = 0; i < l->source->n_records; i++)
        if (l->file[i].owned) free((void *)(uintptr_t)l->file[i].entry);
    stk_mutex_destroy(&l->lock);
    free(l->file);
    free(l);
}

/* --- of a source --- */

stk_status stk_entry_points_open(const char *folder, stk_entry_points *points, char *note, size_t note_bytes)
{
    if (!(points->folder = strdup(folder))) return stk_fail_memory(strlen(folder));
    return stk_entries_find_own(folder, &points->known, note, note_bytes);
}

void stk_entry_points_close(stk_entry_points *points)
{
    stk_mcu_index_close(points->mcu_index);
    stk_entries_close(&points->known);
    free(points->folder);
    *points = (stk_entry_points){0};
}

size_t stk_entry_points_bytes(const stk_entry_points *points)
{
    const stk_mcu_index *l = points->mcu_index;
    size_t n = stk_entries_bytes(&points->known);
    return l ? n + (size_t)l->source->n_records * (sizeof(*l->file) + LIKELY_BYTES) : n;
}

void stk_entry_points_give(const stk_entry_points *points, int64_t i_record, const char *path, stk_span encoded,
                           stk_file_times times, stk_jpeg_hint *hint)
{
    if (points->mcu_index)
        stk_mcu_index_give(points->mcu_index, i_record, path, encoded, times, hint);
    else
        stk_entries_give(&points->known, path, encoded, times, hint);
}
