/* See comm/shared.h. */
#include "comm/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/patience.h"
#include "comm/sum.h"

/* Bytes of a rank's chunk: two of them and two of sums stay in a second-level cache. */
enum { CHUNK = 256 << 10, LINE = 128, N_BUFFERS = 2 };

/* What one rank alone writes. */
typedef struct place {
    _Alignas(LINE) _Atomic uint64_t laid_out; /* chunks */
    _Alignas(LINE) _Atomic uint64_t done;
    _Alignas(LINE) _Atomic int64_t pid; /* 0: has not joined */
    _Atomic uint64_t call_hash[2];      /* of the last two calls: all must have the same */
} place;

typedef struct head {
    int32_t n_ranks;
    _Atomic int32_t failed; /* 1: somebody writes the text; 2: it is there */
    char error[512];
    place place[];
} head;

struct stk_shared {
    head *head;
    size_t bytes;
    int rank, n;
    bool yields;          /* more ranks than cores */
    const stk_pace *pace; /* of the call */
    uint64_t n_chunks, n_calls;
    char *buffer; /* [n][N_BUFFERS][CHUNK] laid out, then [N_BUFFERS][n][CHUNK / n] sums */
};

static size_t head_bytes(int n)
{
    return (sizeof(head) + (size_t)n * sizeof(place) + 4095) / 4096 * 4096;
}

static size_t all_bytes(int n)
{
    return head_bytes(n) + ((size_t)n + 1) * N_BUFFERS * CHUNK;
}

/* --- opening --- */

static stk_status map(int file, int n, stk_shared **out)
{
    size_t bytes = all_bytes(n);
    stk_shared *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (p == MAP_FAILED) {
        free(s);
        return stk_fail(STK_NO_MEMORY, "cannot map %zu bytes that ranks share: %s", bytes, strerror(errno));
    }
    *s = (stk_shared){.head = p, .bytes = bytes, .n = n, .buffer = (char *)p + head_bytes(n)};
    *out = s;
    return STK_OK;
}

stk_status stk_shared_make(int n_ranks, char name[STK_SHARED_NAME_BYTES], stk_shared **out)
{
    if (n_ranks < 1 || n_ranks > STK_MOST_SHARED)
        return stk_fail(STK_UNSUPPORTED, "%d ranks on one host: at most %d are possible", n_ranks, STK_MOST_SHARED);
    snprintf(name, STK_SHARED_NAME_BYTES, "/stoker-%lld-%llx", (long long)getpid(),
             (unsigned long long)stk_clock_ns() & 0xffffff);
    int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return stk_fail(STK_IO, "cannot make memory that ranks share: %s", strerror(errno));
    int error = posix_fallocate(file, 0, (off_t)all_bytes(n_ranks));
    stk_status status =
        error ? stk_fail(STK_NO_MEMORY, "cannot make %zu bytes of memory that ranks share in /dev/shm: %s",
                         all_bytes(n_ranks), strerror(error))
              : map(file, n_ranks, out);
    close(file);
    if (status != STK_OK) (void)shm_unlink(name);
    if (status == STK_OK) (*out)->head->n_ranks = n_ranks;
    return status;
}

stk_status stk_shared_join(const char *name, int rank, int n_ranks, stk_shared **out)
{
    if (!*out) {
        int file = shm_open(name, O_RDWR | O_CLOEXEC, 0600);
        if (file < 0) return stk_fail(STK_IO, "cannot open memory that ranks share: %s", strerror(errno));
        stk_status status = map(file, n_ranks, out);
        close(file);
        STK_RETURN_IF_ERROR(status);
    }
    (*out)->rank = rank;
    (*out)->yields = n_ranks > (int)sysconf(_SC_NPROCESSORS_ONLN);
    atomic_store(&(*out)->head->place[rank].pid, (int64_t)getpid());
    return STK_OK;
}

void stk_shared_unlink(const char *name)
{
    (void)shm_unlink(name);
}

void stk_shared_close(stk_shared *s)
{
    if (!s) return;
    munmap(s->head, s->bytes);
    free(s);
}

/* --- waiting --- */

/* The first text stays. */
static void set_failure(stk_shared *s, const char *text)
{
    int32_t none = 0;
    if (!atomic_compare_exchange_strong(&s->head->failed, &none, 1)) return;
    snprintf(s->head->error, sizeof(s->head->error), "%s", text);
    atomic_store_explicit(&s->head->failed, 2, memory_order_release);
}

void stk_shared_abort(stk_shared *s, const char *why)
{
    char text[512];
    snprintf(text, sizeof(text), "replica %d failed: %.450s", s->rank, why);
    set_failure(s, text);
}

static stk_status failure_of(const stk_shared *s)
{
    if (atomic_load_explicit(&s->head->failed, memory_order_acquire) != 2) return STK_OK;
    return stk_fail(STK_LOST, "%s", s->head->error);
}

static bool is_gone(const stk_shared *s, int rank)
{
    int64_t pid = atomic_load(&s->head->place[rank].pid);
    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Names those whose counter is below until: where processes are gone, only these, as the others may wait as well. */
static stk_status fail_absent(stk_shared *s, const stk_comm_call *call, size_t counter, uint64_t until, int waited_ms)
{
    stk_text absent = {0};
    bool any_gone = false;
    for (int r = 0; r < s->n; r++)
        any_gone |= is_gone(s, r);
    for (int r = 0; r < s->n; r++) {
        const _Atomic uint64_t *have = (const _Atomic uint64_t *)((const char *)&s->head->place[r] + counter);
        if (any_gone ? !is_gone(s, r) : atomic_load(have) >= until) continue;
        stk_text_add(&absent, "%s%d (process %lld)", absent.n ? ", " : "", r,
                     (long long)atomic_load(&s->head->place[r].pid));
    }
    stk_fail(STK_LOST, "rank %s %s: rank %d waited %d ms in %s number %llu", stk_text_get(&absent),
             any_gone ? "is gone" : "did not come", s->rank, waited_ms, stk_collective_name(call->kind),
             (unsigned long long)s->n_calls);
    stk_text_free(&absent);
    set_failure(s, stk_error_text());
    return STK_LOST;
}

static inline void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

enum { N_SPINS = 2000 };

/* Whether a process is gone is looked at ten times a second. */
static stk_status await(stk_shared *s, const stk_comm_call *call, size_t counter, uint64_t until, int timeout_ms)
{
    stk_patience patience = {0};
    int64_t looked = 0;
    for (int r = 0; r < s->n; r++) {
        const _Atomic uint64_t *have = (const _Atomic uint64_t *)((const char *)&s->head->place[r] + counter);
        for (int64_t i = 0; atomic_load_explicit(have, memory_order_acquire) < until; i++) {
            bool is_eager = stk_pace_is_eager(s->pace);
            if (i < N_SPINS && !s->yields && is_eager) {
                pause_a_little();
                continue;
            }
            if (atomic_load_explicit(&s->head->failed, memory_order_relaxed) == 2) return failure_of(s);
            if (atomic_load_explicit(&s->pace->is_over, memory_order_relaxed))
                return stk_fail(STK_LOST, "the training has ended before its sums");
            int64_t now = stk_clock_ns();
            stk_patience_look(&patience, now);
            if (!looked) looked = now;
            if (now - looked > STK_PATIENCE_LOOK_NS) {
                looked = now;
                if (is_gone(s, r) && atomic_load(have) < until)
                    return fail_absent(s, call, counter, until, (int)(patience.waited_ns / 1000000));
            }
            if (stk_patience_is_over(&patience, timeout_ms)) return fail_absent(s, call, counter, until, timeout_ms);
            if (patience.waited_ns < 2000000 && is_eager)
                sched_yield();
            else
                stk_pace_rest();
        }
    }
    return STK_OK;
}

#define AWAIT(member) await(s, call, offsetof(place, member), s->n_chunks, timeout_ms)

static void tell(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, n, memory_order_release);
}

int stk_shared_count(const stk_shared *s, const _Atomic uint64_t *counter[2])
{
    counter[0] = &s->head->place[s->rank].laid_out;
    counter[1] = &s->head->place[s->rank].done;
    return 2;
}

/* --- the work --- */

static char *laid_out(const stk_shared *s, int rank)
{
    return s->buffer + ((size_t)rank * N_BUFFERS + s->n_chunks % N_BUFFERS) * CHUNK;
}

static char *sums(const stk_shared *s)
{
    return s->buffer + ((size_t)s->n * N_BUFFERS + s->n_chunks % N_BUFFERS) * CHUNK;
}

/* Elements of a chunk that part p begins with. */
static int64_t part_begin(const stk_shared *s, int64_t n, int p)
{
    return n * p / s->n;
}

/* Adds part own of all ranks, which begins `at` elements into what they have laid out; own: this rank's. */
static void add_part(const stk_shared *s, const stk_comm_call *call, const void *own, int64_t at, int64_t n, void *dst)
{
    const void *src[STK_MOST_SHARED];
    size_t element = stk_dtype_bytes(call->dtype);
    for (int r = 0; r < s->n; r++)
        src[r] = r == s->rank ? own : laid_out(s, r) + (size_t)at * element;
    stk_comm_sum(call->dtype, dst, src, s->n, n, call->mean);
}

static stk_status reduce_chunk(stk_shared *s, const stk_comm_call *call, int64_t at, int64_t n, int timeout_ms)
{
    size_t element = stk_dtype_bytes(call->dtype);
    const char *src = (const char *)call->src + (size_t)at * element;
    char *dst = (char *)call->dst + (size_t)at * element;
    int64_t begin = part_begin(s, n, s->rank), end = part_begin(s, n, s->rank + 1);
    size_t b = (size_t)begin * element, e = (size_t)end * element, all = (size_t)n * element;
    s->n_chunks++;
    memcpy(laid_out(s, s->rank), src, b);
    memcpy(laid_out(s, s->rank) + e, src + e, all - e);
    tell(&s->head->place[s->rank].laid_out, s->n_chunks);
    STK_RETURN_IF_ERROR(AWAIT(laid_out));
    add_part(s, call, src + b, begin, end - begin, sums(s) + b);
    tell(&s->head->place[s->rank].done, s->n_chunks);
    memcpy(dst + b, sums(s) + b, e - b);
    STK_RETURN_IF_ERROR(AWAIT(done));
    memcpy(dst, sums(s), b);
    memcpy(dst + e, sums(s) + e, all - e);
    return STK_OK;
}

/* n elements of each rank's part. */
static stk_status scatter_chunk(stk_shared *s, const stk_comm_call *call, int64_t at, int64_t n, int timeout_ms)
{
    size_t element = stk_dtype_bytes(call->dtype), bytes = (size_t)n * element;
    const char *src = (const char *)call->src + (size_t)at * element;
    size_t part = (size_t)call->n * element;
    s->n_chunks++;
    for (int r = 0; r < s->n; r++)
        memcpy(laid_out(s, s->rank) + (size_t)r * bytes, src + (size_t)r * part, bytes);
    tell(&s->head->place[s->rank].laid_out, s->n_chunks);
    STK_RETURN_IF_ERROR(AWAIT(laid_out));
    add_part(s, call, laid_out(s, s->rank) + (size_t)s->rank * bytes, s->rank * n, n,
             (char *)call->dst + (size_t)at * element);
    tell(&s->head->place[s->rank].done, s->n_chunks);
    return AWAIT(done);
}

static stk_status gather_chunk(stk_shared *s, const stk_comm_call *call, int64_t at, int64_t n, int timeout_ms)
{
    size_t element = stk_dtype_bytes(call->dtype), bytes = (size_t)n * element;
    s->n_chunks++;
    memcpy(laid_out(s, s->rank), (const char *)call->src + (size_t)at * element, bytes);
    tell(&s->head->place[s->rank].laid_out, s->n_chunks);
    STK_RETURN_IF_ERROR(AWAIT(laid_out));
    for (int r = 0; r < s->n; r++)
        memcpy((char *)call->dst + (size_t)(r * call->n + at) * element, laid_out(s, r), bytes);
    tell(&s->head->place[s->rank].done, s->n_chunks);
    return AWAIT(done);
}

static stk_status broadcast_chunk(stk_shared *s, const stk_comm_call *call, int64_t at, int64_t n, int timeout_ms)
{
    size_t element = stk_dtype_bytes(call->dtype), bytes = (size_t)n * element;
    char *dst = (char *)call->dst + (size_t)at * element;
    const char *src = (const char *)call->src + (size_t)at * element;
    bool is_root = s->rank == call->root;
    s->n_chunks++;
    if (is_root) memcpy(laid_out(s, s->rank), src, bytes);
    tell(&s->head->place[s->rank].laid_out, s->n_chunks);
    STK_RETURN_IF_ERROR(AWAIT(laid_out));
    if (!is_root || dst != src) memcpy(dst, laid_out(s, call->root), bytes);
    tell(&s->head->place[s->rank].done, s->n_chunks);
    return AWAIT(done);
}

static stk_status barrier_chunk(stk_shared *s, const stk_comm_call *call, int64_t at, int64_t n, int timeout_ms)
{
    (void)at;
    (void)n;
    s->n_chunks++;
    tell(&s->head->place[s->rank].laid_out, s->n_chunks);
    tell(&s->head->place[s->rank].done, s->n_chunks);
    return AWAIT(done);
}

/* After its first chunk: where ranks are at different calls, the first to see it says so. None is two calls ahead. */
static stk_status check_same(stk_shared *s, const stk_comm_call *call)
{
    const place *places = s->head->place;
    uint64_t own = atomic_load_explicit(&places[s->rank].call_hash[s->n_calls % 2], memory_order_relaxed);
    for (int r = 0; r < s->n; r++) {
        if (atomic_load_explicit(&places[r].call_hash[s->n_calls % 2], memory_order_relaxed) == own) continue;
        stk_fail(STK_MISMATCH, "call number %llu is %s of %lld %s on rank %d and another one on rank %d",
                 (unsigned long long)s->n_calls, stk_collective_name(call->kind), (long long)call->n,
                 stk_dtype_name(call->dtype), s->rank, r);
        set_failure(s, stk_error_text());
        return STK_MISMATCH;
    }
    return STK_OK;
}

stk_status stk_shared_run(stk_shared *s, const stk_comm_call *call, int timeout_ms, const stk_pace *pace)
{
    static stk_status (*const run[])(stk_shared *, const stk_comm_call *, int64_t, int64_t, int) = {
        [STK_COLLECTIVE_all_reduce] = reduce_chunk, [STK_COLLECTIVE_reduce_scatter] = scatter_chunk,
        [STK_COLLECTIVE_all_gather] = gather_chunk, [STK_COLLECTIVE_broadcast] = broadcast_chunk,
        [STK_COLLECTIVE_barrier] = barrier_chunk,
    };
    size_t element = call->kind == STK_COLLECTIVE_barrier ? 1 : stk_dtype_bytes(call->dtype);
    int64_t most = (int64_t)(CHUNK / element), n = call->kind == STK_COLLECTIVE_barrier ? 1 : call->n;
    if (call->kind == STK_COLLECTIVE_reduce_scatter) most /= s->n;
    STK_RETURN_IF_ERROR(failure_of(s));
    s->pace = pace;
    s->n_calls++;
    atomic_store_explicit(&s->head->place[s->rank].call_hash[s->n_calls % 2], stk_comm_call_hash(call),
                          memory_order_relaxed);
    if (n == 0) { /* Ranks meet all the same: none is to be two calls ahead of another. */
        STK_RETURN_IF_ERROR(barrier_chunk(s, call, 0, 0, timeout_ms));
        return check_same(s, call);
    }
    for (int64_t at = 0; at < n; at += most) {
        STK_RETURN_IF_ERROR(run[call->kind](s, call, at, n - at < most ? n - at : most, timeout_ms));
        if (at == 0) STK_RETURN_IF_ERROR(check_same(s, call));
    }
    return STK_OK;
}
