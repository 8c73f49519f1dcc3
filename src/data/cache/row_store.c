/* See data/cache/row_store.h. A file is, little-endian,
 *
 *     "stkrows1"   u64 key   u64 n_records   u64 XXH64 of these   u64 end of the rows   24 bytes of zeros
 *     n_records x { u64 at   u64 n_bytes   u64 name   u64 bytes   i64 mtime_ns   u64 XXH64 of the row, then of these }
 *     rows, each at a multiple of 64
 *
 * A row is written first and its entry in the table after it, so that an entry that is there and whole stands for a row
 * that is whole, or whose checksum says that it is not. `end` is moved on under a lock of the file.
 */
#include "data/cache/row_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/align.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/little.h"
#include "base/new_file.h"
#include "data/common/side_file.h"

enum { HEADER = 64, ENTRY = 48, END_AT = 32, ALIGNMENT = 64 };
static const char magic[] = "stkrows1";

typedef enum row_state { ABSENT, WRITING, PRESENT } row_state;

typedef struct row {
    atomic_int state; /* in memory, and of what this process knows of a file */
    uint64_t at, n_bytes;
    stk_row_stamp stamp;
} row;

struct stk_row_store {
    int64_t n_records;
    row *row;
    _Atomic int64_t n_rows;
    _Atomic size_t n_bytes;
    /* in memory */
    unsigned char *memory;
    size_t memory_bytes;
    _Atomic size_t used;
    /* in a file */
    int fd; /* -1: in memory */
    _Atomic bool full;
    stk_mutex lock; /* of `end`, among this process's threads */
    bool has_lock;
};

static bool same_stamp(const stk_row_stamp *a, const stk_row_stamp *b)
{
    return a->name == b->name && a->n_bytes == b->n_bytes && a->mtime_ns == b->mtime_ns;
}

static stk_status new_store(int64_t n_records, stk_row_store **out)
{
    stk_row_store *store = calloc(1, sizeof(*store));
    *out = store;
    if (!store) return stk_fail_memory(sizeof(*store));
    store->fd = -1;
    store->n_records = n_records;
    store->row = calloc((size_t)n_records, sizeof(*store->row));
    if (!store->row) return stk_fail_memory((size_t)n_records * sizeof(*store->row));
    STK_RETURN_IF_ERROR(stk_mutex_init(&store->lock));
    store->has_lock = true;
    return STK_OK;
}

void stk_row_store_close(stk_row_store *store)
{
    if (!store) return;
    if (store->fd >= 0) close(store->fd);
    if (store->has_lock) stk_mutex_destroy(&store->lock);
    stk_pages_free(store->memory, store->memory_bytes);
    free(store->row);
    free(store);
}

void stk_row_store_count(stk_row_store *store, int64_t *n_rows, size_t *n_bytes)
{
    *n_rows = atomic_load(&store->n_rows);
    *n_bytes = atomic_load(&store->n_bytes);
}

static void note_present(stk_row_store *store, row *r, int state_before)
{
    if (state_before == PRESENT) return;
    atomic_fetch_add(&store->n_rows, 1);
    atomic_fetch_add(&store->n_bytes, r->n_bytes);
}

/* --- in memory --- */

stk_status stk_row_store_in_memory(int64_t n_records, size_t n_bytes, stk_row_store **out)
{
    stk_status status;
    stk_row_store *store;
    STK_TRY(new_store(n_records, &store));
    /* Its pages come as they are written. */
    store->memory = stk_pages_get(n_bytes ? n_bytes : 1, ALIGNMENT);
    store->memory_bytes = n_bytes ? n_bytes : 1;
    if (!store->memory) STK_TRY(stk_fail_memory(n_bytes));
    *out = store;
    store = NULL;
done:
    stk_row_store_close(store);
    return status;
}

static void put_in_memory(stk_row_store *store, row *r, const stk_row_stamp *stamp, stk_span bytes)
{
    size_t n = stk_round_up(bytes.n, ALIGNMENT), used = atomic_load(&store->used);
    int absent = ABSENT;
    if (!atomic_compare_exchange_strong(&r->state, &absent, WRITING)) return; /* another thread makes it */
    do {
        if (n > store->memory_bytes - used) {
            atomic_store(&r->state, ABSENT);
            return;
        }
    } while (!atomic_compare_exchange_weak(&store->used, &used, used + n));
    if (bytes.n) memcpy(store->memory + used, bytes.data, bytes.n);
    r->at = used;
    r->n_bytes = bytes.n;
    r->stamp = *stamp;
    note_present(store, r, ABSENT);
    atomic_store(&r->state, PRESENT);
}

/* --- in a file --- */

static bool read_at(int fd, uint64_t at, void *dst, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = pread(fd, (char *)dst + got, n - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return false;
        got += (size_t)r;
    }
    return true;
}

static bool write_at(int fd, uint64_t at, const void *src, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = pwrite(fd, (const char *)src + done, n - done, (off_t)(at + done));
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return false;
        done += (size_t)r;
    }
    return true;
}

static uint64_t first_row_at(int64_t n_records)
{
    return stk_round_up(HEADER + (uint64_t)n_records * ENTRY, 4096);
}

static void make_header(uint64_t key, int64_t n_records, unsigned char header[HEADER])
{
    memset(header, 0, HEADER);
    memcpy(header, magic, 8);
    stk_put_little64(header + 8, key);
    stk_put_little64(header + 16, (uint64_t)n_records);
    stk_put_little64(header + 24, stk_hash64(header, 24, 0));
    stk_put_little64(header + END_AT, first_row_at(n_records));
}

static uint64_t entry_hash(uint64_t row_hash, const unsigned char *entry)
{
    return stk_hash64(entry, ENTRY - 8, row_hash);
}

/* Opens a file of that key; -1: there is none. */
static int open_ours(const char *path, const unsigned char header[HEADER])
{
    unsigned char found[HEADER];
    int fd = open(path, (stk_keeps_data() ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -1;
    if (read_at(fd, 0, found, HEADER) && !memcmp(found, header, END_AT)) return fd;
    close(fd);
    return -1;
}

/* Only what is nothing or a cache of ours is replaced, such as one of other data. */
static stk_status check_replaced(const char *path)
{
    if (stk_new_file_may_replace(path, magic, sizeof(magic) - 1)) return STK_OK;
    return stk_fail(STK_BUSY, "cannot make the cache '%s': something that is no cache is there; name another path",
                    path);
}

static stk_status make_file(const char *path, const unsigned char header[HEADER], int64_t n_records)
{
    stk_new_file file;
    STK_RETURN_IF_ERROR(stk_new_file_begin(&file, path));
    bool good = write_at(file.fd, 0, header, HEADER) && ftruncate(file.fd, (off_t)first_row_at(n_records)) == 0;
    stk_status status = good ? stk_new_file_finish(&file, true)
                             : stk_fail(STK_IO, "cannot make the cache '%s': %s", path, stk_errno_text(errno));
    stk_new_file_end(&file);
    return status;
}

/* What the table says of a record; false: nothing. *row_hash is of its bytes, as far as they are whole. */
static bool parse_entry(const unsigned char *entry, row *out, uint64_t *sum)
{
    out->at = stk_little64(entry);
    out->n_bytes = stk_little64(entry + 8);
    out->stamp = (stk_row_stamp){stk_little64(entry + 16), stk_little64(entry + 24), (int64_t)stk_little64(entry + 32)};
    *sum = stk_little64(entry + 40);
    return out->at != 0;
}

/* Counts the rows that the table lists; each is checked when it is read. */
static stk_status count_file(stk_row_store *store)
{
    enum { AT_ONCE = 1024 };
    unsigned char *entries = malloc(AT_ONCE * ENTRY);
    if (!entries) return stk_fail_memory(AT_ONCE * ENTRY);
    for (int64_t i = 0; i < store->n_records; i += AT_ONCE) {
        int64_t n = store->n_records - i < AT_ONCE ? store->n_records - i : AT_ONCE;
        if (!read_at(store->fd, HEADER + (uint64_t)i * ENTRY, entries, (size_t)n * ENTRY)) break;
        for (int64_t k = 0; k < n; k++) {
            uint64_t sum;
            row *r = &store->row[i + k];
            if (!parse_entry(entries + k * ENTRY, r, &sum)) continue;
            note_present(store, r, ABSENT);
            atomic_store(&r->state, PRESENT);
        }
    }
    free(entries);
    return STK_OK;
}

stk_status stk_row_store_in_file(const char *path, uint64_t key, int64_t n_records, stk_row_store **out)
{
    unsigned char header[HEADER];
    stk_status status;
    stk_row_store *store;
    make_header(key, n_records, header);
    STK_TRY(new_store(n_records, &store));
    store->fd = open_ours(path, header);
    if (store->fd < 0) STK_TRY(check_replaced(path));
    /* Without a file nothing is in the store, and nothing is put into it. */
    store->full = !stk_keeps_data();
    if (store->fd < 0 && !store->full) {
        STK_TRY(make_file(path, header, n_records));
        store->fd = open_ours(path, header);
        if (store->fd < 0) STK_TRY(stk_fail(STK_IO, "cannot open the cache '%s': %s", path, stk_errno_text(errno)));
    }
    if (store->fd >= 0) STK_TRY(count_file(store));
    *out = store;
    store = NULL;
done:
    stk_row_store_close(store);
    return status;
}

static bool get_from_file(stk_row_store *store, int64_t i, const stk_row_stamp *stamp, stk_scratch *place,
                          stk_span *out)
{
    unsigned char entry[ENTRY];
    row found = {.at = 0};
    uint64_t sum;
    row *r = &store->row[i];
    /* Another process may have stored it in the meantime. */
    if (!read_at(store->fd, HEADER + (uint64_t)i * ENTRY, entry, ENTRY) || !parse_entry(entry, &found, &sum))
        return false;
    if (!same_stamp(&found.stamp, stamp) || found.n_bytes > SIZE_MAX / 2) return false;
    struct stat info;
    if (fstat(store->fd, &info) != 0 || found.at + found.n_bytes > (uint64_t)info.st_size) return false;
    void *bytes = stk_scratch_get(place, (size_t)found.n_bytes ? (size_t)found.n_bytes : 1);
    if (!bytes || !read_at(store->fd, found.at, bytes, (size_t)found.n_bytes)) return false;
    if (entry_hash(stk_hash64(bytes, (size_t)found.n_bytes, 0), entry) != sum) return false;
    int absent = ABSENT;
    if (atomic_compare_exchange_strong(&r->state, &absent, WRITING)) {
        r->n_bytes = found.n_bytes;
        note_present(store, r, ABSENT);
        atomic_store(&r->state, PRESENT);
    }
    *out = (stk_span){bytes, (size_t)found.n_bytes};
    return true;
}

/* Room for n bytes; 0: none. */
static uint64_t take_room(stk_row_store *store, size_t n)
{
    unsigned char end[8];
    uint64_t at = 0;
    stk_mutex_lock(&store->lock);
    if (flock(store->fd, LOCK_EX) == 0) {
        if (read_at(store->fd, END_AT, end, 8)) {
            at = stk_round_up(stk_little64(end), ALIGNMENT);
            if (at < first_row_at(store->n_records)) at = first_row_at(store->n_records);
            stk_put_little64(end, at + n);
            if (!write_at(store->fd, END_AT, end, 8)) at = 0;
        }
        flock(store->fd, LOCK_UN);
    }
    stk_mutex_unlock(&store->lock);
    return at;
}

static void put_in_file(stk_row_store *store, int64_t i, const stk_row_stamp *stamp, stk_span bytes)
{
    unsigned char entry[ENTRY];
    row *r = &store->row[i];
    if (atomic_load(&store->full)) return;
    uint64_t at = take_room(store, bytes.n);
    if (at == 0 || !write_at(store->fd, at, bytes.data, bytes.n)) {
        atomic_store(&store->full, true); /* no room on the disk: what is there serves */
        return;
    }
    stk_put_little64(entry, at);
    stk_put_little64(entry + 8, bytes.n);
    stk_put_little64(entry + 16, stamp->name);
    stk_put_little64(entry + 24, stamp->n_bytes);
    stk_put_little64(entry + 32, (uint64_t)stamp->mtime_ns);
    stk_put_little64(entry + 40, entry_hash(stk_hash64(bytes.data, bytes.n, 0), entry));
    if (!write_at(store->fd, HEADER + (uint64_t)i * ENTRY, entry, ENTRY)) return;
    int absent = ABSENT;
    if (!atomic_compare_exchange_strong(&r->state, &absent, WRITING)) return;
    r->n_bytes = bytes.n;
    note_present(store, r, ABSENT);
    atomic_store(&r->state, PRESENT);
}

bool stk_row_store_is_full(const stk_row_store *store)
{
    return stk_keeps_data() && atomic_load(&store->full);
}

/* --- both --- */

bool stk_row_store_get(stk_row_store *store, int64_t i_record, const stk_row_stamp *stamp, stk_scratch *place,
                       stk_span *out)
{
    const row *r = &store->row[i_record];
    if (store->fd >= 0) return get_from_file(store, i_record, stamp, place, out);
    if (atomic_load(&r->state) != PRESENT || !same_stamp(&r->stamp, stamp)) return false;
    *out = (stk_span){store->memory + r->at, (size_t)r->n_bytes};
    return true;
}

void stk_row_store_put(stk_row_store *store, int64_t i_record, const stk_row_stamp *stamp, stk_span bytes)
{
    if (store->fd >= 0)
        put_in_file(store, i_record, stamp, bytes);
    else if (store->memory)
        put_in_memory(store, &store->row[i_record], stamp, bytes);
}
