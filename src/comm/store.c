/* See comm/store.h. Every process has all keys, so that a get is a look at a list. */
#include "comm/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "comm/mpi_process.h"
#include "comm/patience.h"

enum { STORE_TAG = 2, PIECE_BYTES = 1 << 15, REST_MS = 1, LOOK_MS = 50, FLUSH_MS = 1000, WHY_BYTES = 600 };

/* A key and its value; without a key: why a rank cannot go on. */
typedef struct entry {
    struct entry *next;      /* of all that are here */
    struct entry *next_sent; /* of those that are to be sent */
    int rank;                /* whose it is */
    size_t key_bytes, value_bytes;
    char data[]; /* the key, then the value */
} entry;

/* What messages are: pieces of entries, which MPI leaves in their order. */
typedef struct piece {
    int32_t rank;
    int64_t key_bytes, value_bytes, at;
    char data[PIECE_BYTES];
} piece;

struct stk_store {
    stk_mpi_process *process;
    stk_mutex lock; /* guards the following, up to the failure */
    stk_cond changed, is_put;
    entry *first, *to_send, **last_to_send;
    bool is_sending, ends;
    stk_status failed;
    char why[WHY_BYTES];
    stk_thread thread; /* all that follows is its own */
    stk_mpi_handle receiving;
    entry **coming; /* [n_ranks]: of which a part has come; NULL: nothing */
    entry *sending;
    size_t sent_bytes;       /* of it */
    stk_mpi_handle *request; /* [n_ranks] */
    bool *is_under_way;      /* [n_ranks] */
    piece in, out;
};

static size_t bytes_of(const entry *e)
{
    return e->key_bytes + e->value_bytes;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static entry *new_entry(int rank, size_t key_bytes, size_t value_bytes)
{
    entry *e = malloc(sizeof(*e) + key_bytes + value_bytes + 1);
    if (!e) return NULL;
    *e = (entry){.rank = rank, .key_bytes = key_bytes, .value_bytes = value_bytes};
    e->data[key_bytes + value_bytes] = 0;
    return e;
}

/* --- the list; the lock is held --- */

static entry *find(const stk_store *s, stk_bytes key)
{
    entry *e = s->first;
    while (e && (e->key_bytes != key.n || memcmp(e->data, key.data, key.n) != 0))
        e = e->next;
    return e;
}

static void fail_store(stk_store *s, stk_status status, const char *why)
{
    if (s->failed == STK_OK) {
        s->failed = status;
        snprintf(s->why, sizeof(s->why), "%s", why);
    }
    stk_cond_broadcast(&s->changed);
}

/* Takes the entry. */
static void add(stk_store *s, entry *e)
{
    if (e->key_bytes == 0) {
        s->process->is_broken = true; /* Not all may come to MPI's end. */
        fail_store(s, STK_LOST, e->data);
    }
    e->next = s->first;
    s->first = e;
    stk_cond_broadcast(&s->changed);
}

static void add_to_send(stk_store *s, entry *e)
{
    *s->last_to_send = e;
    s->last_to_send = &e->next_sent;
    s->is_sending = true;
    stk_cond_signal(&s->is_put);
}

/* --- messages; the store's thread --- */

static void fail_thread(stk_store *s, stk_status status, const char *why)
{
    stk_mutex_lock(&s->lock);
    fail_store(s, status, why);
    stk_mutex_unlock(&s->lock);
}

static bool receive_next(stk_store *s)
{
    const stk_mpi *m = s->process->mpi;
    int code = STK_MPI_ALONE(s->process, m->Irecv(&s->in, sizeof(s->in), m->byte, m->any_source, STORE_TAG,
                                                  s->process->side, &s->receiving));
    if (code != 0) s->receiving = NULL;
    return code == 0;
}

static void take_piece(stk_store *s)
{
    const piece *p = &s->in;
    entry **coming = &s->coming[p->rank];
    if (p->at == 0) *coming = new_entry(p->rank, (size_t)p->key_bytes, (size_t)p->value_bytes);
    if (!*coming) {
        fail_thread(s, STK_NO_MEMORY, "no memory for what another rank has put");
        return;
    }
    size_t all = bytes_of(*coming), n = smaller(all - (size_t)p->at, PIECE_BYTES);
    memcpy((*coming)->data + p->at, p->data, n);
    if ((size_t)p->at + n < all) return;
    stk_mutex_lock(&s->lock);
    add(s, *coming);
    stk_mutex_unlock(&s->lock);
    *coming = NULL;
}

/* Whether something came. */
static bool receive(stk_store *s)
{
    const stk_mpi *m = s->process->mpi;
    int came = 0;
    if (!s->receiving) return false;
    int code = STK_MPI_ALONE(s->process, m->Test(&s->receiving, &came, m->ignore_status));
    if (code == 0 && !came) return false;
    if (came) take_piece(s);
    if (code == 0 && receive_next(s)) return true;
    fail_thread(s, STK_DEVICE, "MPI cannot receive what other ranks put");
    return false;
}

/* Whether the piece before has gone to all. */
static bool has_gone(stk_store *s)
{
    const stk_mpi *m = s->process->mpi;
    bool gone = true;
    for (int r = 0; r < s->process->n_ranks; r++) {
        int done = 0;
        if (!s->is_under_way[r]) continue;
        (void)STK_MPI_ALONE(s->process, m->Test(&s->request[r], &done, m->ignore_status));
        s->is_under_way[r] = !done;
        gone = gone && done;
    }
    return gone;
}

/* The next one that has bytes to be sent. */
static entry *choose_next(stk_store *s)
{
    if (s->sending && s->sent_bytes < bytes_of(s->sending)) return s->sending;
    stk_mutex_lock(&s->lock);
    s->sending = s->to_send;
    s->sent_bytes = 0;
    if (s->to_send) s->to_send = s->to_send->next_sent;
    if (!s->to_send) s->last_to_send = &s->to_send;
    s->is_sending = s->sending != NULL;
    stk_mutex_unlock(&s->lock);
    return s->sending;
}

/* Whether something was sent. */
static bool send(stk_store *s)
{
    const stk_mpi *m = s->process->mpi;
    entry *e = has_gone(s) ? choose_next(s) : NULL;
    if (!e) return false;
    size_t n = smaller(bytes_of(e) - s->sent_bytes, PIECE_BYTES);
    s->out.rank = e->rank;
    s->out.key_bytes = (int64_t)e->key_bytes;
    s->out.value_bytes = (int64_t)e->value_bytes;
    s->out.at = (int64_t)s->sent_bytes;
    memcpy(s->out.data, e->data + s->sent_bytes, n);
    s->sent_bytes += n;
    for (int r = 0; r < s->process->n_ranks; r++) {
        if (r == s->process->rank) continue;
        int code = STK_MPI_ALONE(s->process, m->Isend(&s->out, (int)(offsetof(piece, data) + n), m->byte, r, STORE_TAG,
                                                      s->process->side, &s->request[r]));
        s->is_under_way[r] = code == 0;
        if (code != 0) fail_thread(s, STK_DEVICE, "MPI cannot send what this rank puts");
    }
    return true;
}

static void run(void *arg)
{
    stk_store *s = arg;
    stk_mutex_lock(&s->lock);
    while (!s->ends) {
        stk_mutex_unlock(&s->lock);
        bool received = receive(s), sent = send(s);
        stk_mutex_lock(&s->lock);
        if (!received && !sent && !s->ends) (void)stk_cond_wait_ms(&s->is_put, &s->lock, REST_MS);
    }
    stk_mutex_unlock(&s->lock);
}

/* --- opening and ending --- */

/* What is there stays when this fails: it is asked for once. */
static stk_status begin(stk_mpi_process *process, stk_store *s)
{
    size_t n = (size_t)process->n_ranks;
    s->process = process;
    s->last_to_send = &s->to_send;
    s->coming = calloc(n, sizeof(*s->coming));
    s->request = calloc(n, sizeof(*s->request));
    s->is_under_way = calloc(n, sizeof(*s->is_under_way));
    if (!s->coming || !s->request || !s->is_under_way) return stk_fail_memory(n * sizeof(*s->coming));
    STK_RETURN_IF_ERROR(stk_mutex_init(&s->lock));
    STK_RETURN_IF_ERROR(stk_cond_init(&s->changed));
    STK_RETURN_IF_ERROR(stk_cond_init(&s->is_put));
    if (!receive_next(s)) return stk_fail(STK_DEVICE, "MPI cannot receive what other ranks put");
    return stk_thread_start(&s->thread, "stk-store", false, run, s);
}

stk_status stk_store_open(stk_store **out)
{
    stk_mpi_process *process = stk_mpi_process_get();
    *out = process ? process->store : NULL;
    if (!process || *out) return STK_OK;
    if (!process->may_pass)
        return stk_fail(STK_UNSUPPORTED, "this process's MPI is for one thread alone: ranks have no store of keys");
    stk_store *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_RETURN_IF_ERROR(begin(process, s)); /* MPI may hold what it was given. */
    *out = process->store = s;
    return STK_OK;
}

int stk_store_rank(const stk_store *store)
{
    return store->process->rank;
}

int stk_store_n_ranks(const stk_store *store)
{
    return store->process->n_ranks;
}

void stk_store_flush(stk_store *s)
{
    stk_patience patience = {0};
    if (!s) return;
    stk_mutex_lock(&s->lock);
    while (s->is_sending && !stk_patience_is_over(&patience, FLUSH_MS)) {
        (void)stk_cond_wait_ms(&s->changed, &s->lock, REST_MS);
        stk_patience_look(&patience, stk_clock_ns());
    }
    stk_mutex_unlock(&s->lock);
}

void stk_store_end(stk_store *s)
{
    int done = 0;
    if (!s || !s->thread.started) return;
    const stk_mpi *m = s->process->mpi;
    stk_mutex_lock(&s->lock);
    s->ends = true;
    fail_store(s, STK_LOST, "the process ends");
    stk_cond_signal(&s->is_put);
    stk_mutex_unlock(&s->lock);
    stk_thread_join(&s->thread);
    if (!s->receiving || m->Cancel(&s->receiving) != 0) return;
    while (!done && m->Test(&s->receiving, &done, m->ignore_status) == 0)
        (void)0;
    s->receiving = NULL;
}

/* --- putting and getting --- */

/* Takes the entry. The lock is held. */
static void put(stk_store *s, entry *e)
{
    add(s, e);
    add_to_send(s, e);
}

stk_status stk_store_put(stk_store *s, stk_bytes key, stk_bytes value)
{
    entry *e = new_entry(s->process->rank, key.n, value.n);
    stk_status status = STK_OK;
    if (!e) return stk_fail_memory(key.n + value.n);
    memcpy(e->data, key.data, key.n);
    if (value.n > 0) memcpy(e->data + key.n, value.data, value.n);
    stk_mutex_lock(&s->lock);
    if (s->failed != STK_OK)
        status = stk_fail(s->failed, "%s", s->why);
    else if (key.n == 0)
        status = stk_fail(STK_INVALID, "a key has at least one byte");
    else if (find(s, key))
        status = stk_fail(STK_INVALID, "the key '%.*s' was put before", (int)smaller(key.n, 200), (char *)e->data);
    else
        put(s, e);
    stk_mutex_unlock(&s->lock);
    if (status != STK_OK) free(e);
    return status;
}

void stk_store_abort(stk_store *s, const char *why)
{
    char text[WHY_BYTES];
    if (!s) return;
    int n = snprintf(text, sizeof(text), "rank %d failed: %.500s", s->process->rank, why);
    entry *e = new_entry(s->process->rank, 0, (size_t)n);
    stk_mutex_lock(&s->lock);
    bool is_first = s->failed == STK_OK;
    if (e && is_first) {
        memcpy(e->data, text, (size_t)n);
        put(s, e);
    }
    fail_store(s, STK_LOST, text);
    stk_mutex_unlock(&s->lock);
    if (!is_first) free(e);
}

/* A rank of which fewer keys have come than of others is the one to look at. The lock is held. */
static stk_status fail_missing(const stk_store *s, stk_bytes key, int timeout_ms)
{
    int n_ranks = s->process->n_ranks, last = 0, most = 0, *n = calloc((size_t)n_ranks, sizeof(*n));
    if (!n) return stk_fail_memory((size_t)n_ranks * sizeof(*n));
    for (const entry *e = s->first; e; e = e->next)
        n[e->rank]++;
    for (int r = 0; r < n_ranks; r++) {
        last = n[r] < n[last] ? r : last;
        most = n[r] > n[most] ? r : most;
    }
    char counts[128];
    if (n[last] == n[most])
        snprintf(counts, sizeof(counts), "each rank has put %d so far", n[most]);
    else
        snprintf(counts, sizeof(counts), "rank %d has put %d so far, and rank %d %d: see what rank %d does", most,
                 n[most], last, n[last], last);
    stk_fail(STK_NOT_FOUND, "nobody has put the key '%.*s' within %d ms; %s", (int)smaller(key.n, 200),
             (const char *)key.data, timeout_ms, counts);
    free(n);
    return STK_NOT_FOUND;
}

stk_status stk_store_get(stk_store *s, stk_bytes key, int timeout_ms, void **value, size_t *bytes)
{
    stk_patience patience = {0};
    stk_status status = STK_OK;
    const entry *e;
    *value = NULL;
    stk_mutex_lock(&s->lock);
    while (!(e = find(s, key)) && s->failed == STK_OK && timeout_ms > 0 &&
           !stk_patience_is_over(&patience, timeout_ms)) {
        stk_patience_look(&patience, stk_clock_ns());
        (void)stk_cond_wait_ms(&s->changed, &s->lock, timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS);
        stk_patience_look(&patience, stk_clock_ns());
    }
    if (!e)
        status = s->failed != STK_OK ? stk_fail(s->failed, "%s", s->why) : fail_missing(s, key, timeout_ms);
    else if (!(*value = malloc(e->value_bytes + 1)))
        status = stk_fail_memory(e->value_bytes);
    if (status == STK_OK) {
        memcpy(*value, e->data + e->key_bytes, e->value_bytes + 1);
        *bytes = e->value_bytes;
    }
    stk_mutex_unlock(&s->lock);
    return status;
}
