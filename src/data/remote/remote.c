#include "data/remote/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "data/remote/cache.h"
#include "data/remote/fetcher.h"
#include "data/remote/http.h"
#include "data/remote/request.h"
#include "data/remote/store.h"

enum {
    MOST_RUN = 16,   /* blocks in one request */
    LOOK_AHEAD = 32, /* blocks */
    WAIT_MS = 100,   /* until one who waits looks whether it still should */
};

typedef enum block_state {
    BLOCK_UNKNOWN,
    BLOCK_QUEUED, /* as unknown, but the fetcher has it on its list */
    BLOCK_FETCHED_NOW,
    BLOCK_CHECKED
} block_state;

typedef struct remote {
    char *url;
    stk_http_file file;
    uint64_t id[2], n_blocks;
    stk_mutex lock; /* guards what follows */
    stk_cond fetched;
    uint8_t *state;                /* [n_blocks], a block_state */
    uint64_t last;                 /* block that was read */
    bool loses;                    /* blocks that were there have gone: the cache is smaller than what is read */
    double latency_s, bytes_per_s; /* averages over the last requests */
} remote;

static size_t block_bytes(const remote *r, uint64_t number)
{
    uint64_t left = r->file.n_bytes - number * STK_BLOCK_BYTES;
    return left < STK_BLOCK_BYTES ? (size_t)left : STK_BLOCK_BYTES;
}

static stk_block_place place_of(const remote *r, uint64_t number)
{
    return (stk_block_place){{r->id[0], r->id[1]}, number, block_bytes(r, number)};
}

/* --- fetching --- */

static bool is_missing(const remote *r, uint64_t number)
{
    return r->state[number] <= BLOCK_QUEUED;
}

/* Blocks from `first` on that one request should bring; they are marked as being fetched. The lock is held. */
static int claim_run(remote *r, uint64_t first)
{
    double worth = r->latency_s * r->bytes_per_s / STK_BLOCK_BYTES;
    int most = worth < 1 ? 1 : worth > MOST_RUN ? MOST_RUN : (int)worth, n = 0;
    for (; n < most && first + (uint64_t)n < r->n_blocks; n++) {
        if (!is_missing(r, first + (uint64_t)n)) break;
        r->state[first + (uint64_t)n] = BLOCK_FETCHED_NOW;
    }
    return n;
}

static void note_speed(remote *r, size_t n, double latency_s, double seconds)
{
    double rate = seconds > latency_s ? (double)n / (seconds - latency_s) : 0;
    r->latency_s = r->latency_s > 0 ? 0.75 * r->latency_s + 0.25 * latency_s : latency_s;
    if (rate > 0) r->bytes_per_s = r->bytes_per_s > 0 ? 0.75 * r->bytes_per_s + 0.25 * rate : rate;
}

/* Blocks [first, first + n_run), which this thread has claimed; bytes [at, at + n) of the first one go to dst. */
static stk_status fetch_run(remote *r, uint64_t first, int n_run, bool once, size_t at, size_t n, void *dst)
{
    size_t n_bytes = (size_t)(n_run - 1) * STK_BLOCK_BYTES + block_bytes(r, first + (uint64_t)n_run - 1);
    double latency_s = 0, seconds = 0;
    stk_status status = STK_OK;
    uint8_t *data = malloc(n_bytes);
    if (!data) STK_TRY(stk_fail_memory(n_bytes));
    STK_TRY(stk_http_read(r->url, &r->file, first * STK_BLOCK_BYTES, n_bytes, data, once, &latency_s, &seconds));
    for (int i = 0; i < n_run; i++) {
        stk_block_place place = place_of(r, first + (uint64_t)i);
        stk_cache_write(&place, data + (size_t)i * STK_BLOCK_BYTES);
    }
    stk_fetcher_note_latency(latency_s);
    if (n) memcpy(dst, data + at, n);
done:
    free(data);
    stk_mutex_lock(&r->lock);
    if (status == STK_OK) note_speed(r, n_bytes, latency_s, seconds);
    /* Without a cache, or with one that lost them, they are fetched again. */
    for (int i = 0; i < n_run; i++)
        r->state[first + (uint64_t)i] = status == STK_OK ? BLOCK_CHECKED : BLOCK_UNKNOWN;
    stk_cond_broadcast(&r->fetched);
    stk_mutex_unlock(&r->lock);
    return status;
}

/* Bytes [at, at + n) of one block. */
static stk_status read_block(remote *r, uint64_t number, size_t at, size_t n, void *dst)
{
    stk_block_place place = place_of(r, number);
    stk_mutex_lock(&r->lock);
    bool waits = r->state[number] == BLOCK_FETCHED_NOW;
    while (r->state[number] == BLOCK_FETCHED_NOW && stk_request_seconds_left() > 0)
        (void)stk_cond_wait_ms(&r->fetched, &r->lock, WAIT_MS);
    bool is_late = r->state[number] == BLOCK_FETCHED_NOW;
    bool check = is_missing(r, number);
    stk_mutex_unlock(&r->lock);
    if (is_late) return stk_fail(STK_IO, "cannot read '%s': it did not come within the time that was given", r->url);
    if (waits) stk_fetcher_note_wait();
    if (stk_cache_read(&place, check, at, n, dst)) {
        if (check) {
            stk_mutex_lock(&r->lock);
            if (is_missing(r, number)) r->state[number] = BLOCK_CHECKED;
            stk_mutex_unlock(&r->lock);
        }
        return STK_OK;
    }
    stk_mutex_lock(&r->lock);
    if (r->state[number] == BLOCK_FETCHED_NOW) { /* by another thread, since we looked */
        stk_mutex_unlock(&r->lock);
        return read_block(r, number, at, n, dst);
    }
    r->loses = r->loses || r->state[number] == BLOCK_CHECKED;
    r->state[number] = BLOCK_UNKNOWN;
    int n_run = claim_run(r, number);
    stk_mutex_unlock(&r->lock);
    stk_fetcher_note_wait();
    return fetch_run(r, number, n_run, false, at, n, dst);
}

/* A block that was queued, in a thread of the fetcher. */
static void bring_block(void *owner, uint64_t number)
{
    remote *r = owner;
    stk_block_place place = place_of(r, number);
    uint8_t byte;
    stk_mutex_lock(&r->lock);
    bool wanted = r->state[number] == BLOCK_QUEUED;
    if (wanted) r->state[number] = BLOCK_FETCHED_NOW;
    stk_mutex_unlock(&r->lock);
    if (!wanted) return;
    bool is_there = stk_cache_read(&place, true, 0, 1, &byte);
    stk_mutex_lock(&r->lock);
    r->state[number] = is_there ? BLOCK_CHECKED : BLOCK_FETCHED_NOW;
    if (is_there) stk_cond_broadcast(&r->fetched);
    stk_mutex_unlock(&r->lock);
    /* One alone: others are fetched at the same time, and their memory adds up. */
    if (!is_there) (void)fetch_run(r, number, 1, true, 0, 0, NULL);
}

/* Marks a block as queued. False: it needs no fetching. */
static bool mark_queued(remote *r, uint64_t number)
{
    stk_block_place place = place_of(r, number);
    stk_mutex_lock(&r->lock);
    bool is_gone = r->loses && r->state[number] == BLOCK_CHECKED && !stk_cache_has(&place);
    bool is_new = is_gone || r->state[number] == BLOCK_UNKNOWN;
    if (is_new) r->state[number] = BLOCK_QUEUED;
    stk_mutex_unlock(&r->lock);
    return is_new;
}

static bool fetch_remote(void *self, uint64_t at, size_t n)
{
    remote *r = self;
    bool has_room = true;
    for (uint64_t number = at / STK_BLOCK_BYTES; number <= (at + n - 1) / STK_BLOCK_BYTES && has_room; number++) {
        if (!mark_queued(r, number) || stk_fetcher_add(bring_block, r, number)) continue;
        has_room = false;
        stk_mutex_lock(&r->lock);
        if (r->state[number] == BLOCK_QUEUED) r->state[number] = BLOCK_UNKNOWN;
        stk_mutex_unlock(&r->lock);
    }
    return has_room;
}

/* Who reads one block after the other, as scans for records do, will read those that follow, too. */
static void look_ahead(remote *r, uint64_t number)
{
    stk_mutex_lock(&r->lock);
    bool in_turn = number == r->last + 1;
    r->last = number;
    stk_mutex_unlock(&r->lock);
    uint64_t n = (uint64_t)stk_cache_blocks_ahead();
    uint64_t end = number + 1 + (n < LOOK_AHEAD ? n : LOOK_AHEAD);
    if (end > r->n_blocks) end = r->n_blocks;
    if (!in_turn || number + 1 >= end) return;
    uint64_t at = (number + 1) * STK_BLOCK_BYTES, end_at = end * STK_BLOCK_BYTES;
    if (end_at > r->file.n_bytes) end_at = r->file.n_bytes;
    (void)fetch_remote(r, at, (size_t)(end_at - at));
}

static stk_status read_remote(void *self, uint64_t at, void *dst, size_t n)
{
    remote *r = self;
    for (size_t done = 0; done < n;) {
        uint64_t number = (at + done) / STK_BLOCK_BYTES;
        size_t from = (size_t)((at + done) % STK_BLOCK_BYTES), left = block_bytes(r, number) - from;
        size_t part = n - done < left ? n - done : left;
        look_ahead(r, number);
        STK_RETURN_IF_ERROR(read_block(r, number, from, part, (char *)dst + done));
        done += part;
    }
    return STK_OK;
}

static void close_remote(void *self)
{
    remote *r = self;
    stk_fetcher_leave(r);
    stk_cond_destroy(&r->fetched);
    stk_mutex_destroy(&r->lock);
    free(r->state);
    free(r->url);
    free(r);
}

static const stk_input_backend backend = {read_remote, close_remote, fetch_remote};

/* --- opening --- */

/* Of this very state of the file: another one has other blocks. */
static stk_status find_id(const char *path, const stk_http_file *file, uint64_t id[2])
{
    stk_text store = {0};
    stk_status status = stk_store_identity(path, &store);
    stk_cache_key key = {stk_text_get(&store), path, file->etag, file->modified, file->n_bytes};
    if (status == STK_OK) status = stk_cache_id(&key, id);
    stk_text_free(&store);
    return status;
}

static stk_status set_up(remote *r, const char *path)
{
    if (!stk_cache_is_there())
        return stk_fail(STK_IO, "'%s' needs a cache folder that can be written to: set STOKER_CACHE to one", path);
    if (!(r->url = strdup(path))) return stk_fail_memory(strlen(path));
    STK_RETURN_IF_ERROR(stk_http_stat(path, &r->file));
    r->latency_s = r->file.latency_s;
    r->n_blocks = (r->file.n_bytes + STK_BLOCK_BYTES - 1) / STK_BLOCK_BYTES;
    STK_RETURN_IF_ERROR(find_id(path, &r->file, r->id));
    r->state = calloc((size_t)r->n_blocks + 1, 1);
    return r->state ? STK_OK : stk_fail_memory((size_t)r->n_blocks);
}

static stk_status open_remote(const char *path, stk_input *out)
{
    stk_status status;
    bool has_entered = false, has_lock = false;
    *out = (stk_input){.fd = -1};
    remote *r = calloc(1, sizeof(*r));
    if (!r) return stk_fail_memory(sizeof(*r));
    STK_TRY(set_up(r, path));
    out->path = strdup(path);
    if (!out->path) STK_TRY(stk_fail_memory(strlen(path)));
    STK_TRY(stk_fetcher_enter());
    has_entered = true;
    STK_TRY(stk_mutex_init(&r->lock));
    has_lock = true;
    STK_TRY(stk_cond_init(&r->fetched));
    out->n_bytes = r->file.n_bytes;
    out->mtime_ns = (int64_t)(r->id[0] >> 1); /* stands for the state */
    out->backend = &backend;
    out->backend_self = r;
    return STK_OK;
done:
    if (has_lock) stk_mutex_destroy(&r->lock);
    if (has_entered) stk_fetcher_leave(r);
    free(out->path);
    *out = (stk_input){.fd = -1};
    free(r->state);
    free(r->url);
    free(r);
    return status;
}

stk_status stk_open_input(const char *path, bool keep_open, stk_input *out)
{
    return stk_is_remote(path) ? open_remote(path, out) : stk_input_open(path, keep_open, out);
}

stk_status stk_read_input(const char *path, uint8_t **buffer, size_t *capacity, size_t *n)
{
    return stk_read_input_small(path, SIZE_MAX, buffer, capacity, n);
}

stk_status stk_read_input_small(const char *path, size_t most_bytes, uint8_t **buffer, size_t *capacity, size_t *n)
{
    if (!stk_is_remote(path)) return stk_file_read_small(path, most_bytes, buffer, capacity, n);
    stk_input input;
    STK_RETURN_IF_ERROR(open_remote(path, &input));
    stk_status status = stk_file_check_size(path, (size_t)input.n_bytes, most_bytes);
    if (status != STK_OK) goto done;
    *n = (size_t)input.n_bytes;
    if (*n > *capacity || !*buffer) {
        uint8_t *grown = realloc(*buffer, *n + 1);
        if (!grown) STK_TRY(stk_fail_memory(*n));
        *buffer = grown;
        *capacity = *n + 1;
    }
    status = stk_input_read(&input, 0, *buffer, *n);
done:
    stk_input_close(&input);
    return status;
}
