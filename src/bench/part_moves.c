/* Copies to a device, and sums over replicas of one process: bench/part.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "bench/part.h"
#include "comm/comm.h"
#include "stoker/graph/session.h"

static bool is_on_host(const char *device)
{
    return !device || !strncmp(device, "cpu", 3) || !strncmp(device, "reference", 9);
}

/* --- copy --- */

typedef struct copy {
    stk_session_step *step;
    const float *numbers;
    double bytes;
} copy;

static stk_status run_step(void *user, double *amount)
{
    copy *c = user;
    *amount = c->bytes * 1e-9;
    /* Set anew, as a batch is: it is copied anew. */
    stk_session_input(c->step, "x", c->numbers);
    return stk_session_run(c->step);
}

static stk_status copy_to_device(const stk_bench_part_setting *setting, const float *numbers, int64_t mib,
                                 double *figure)
{
    copy c = {.numbers = numbers, .bytes = (double)mib * (1 << 20)};
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "x", STK_F32, STK_SHAPE(mib * 256, 1024));
    /* One row of it is used, so that the copy is what takes time. */
    const int64_t start[2] = {0, 0}, stop[2] = {1, 1024}, step[2] = {1, 1};
    stk_graph_output(graph, "row", stk_slice(x, start, stop, step));
    stk_session *session = stk_session_new(setting->device, setting->n_threads, 1);
    c.step = stk_session_compile(session, graph, false);
    stk_status status = stk_session_status(session);
    if (status == STK_OK) status = stk_bench_part_repeat(setting->seconds, run_step, &c, figure);
    stk_session_free(session);
    return status;
}

typedef struct block {
    char *dst;
    const char *src;
    size_t n;
} block;

static stk_status run_memcpy(void *user, double *amount)
{
    const block *b = user;
    memcpy(b->dst, b->src, b->n);
    *amount = (double)b->n * 1e-9;
    return STK_OK;
}

static stk_status run_copy(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure)
{
    int64_t mib;
    if (n != 1) return stk_fail(STK_INVALID, "copy takes a size in MiB");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[0], 1, &mib));
    size_t bytes = (size_t)mib << 20;
    char *memory = malloc(2 * bytes);
    if (!memory) return stk_fail_memory(2 * bytes);
    memset(memory, 0, 2 * bytes);
    block b = {memory + bytes, memory, bytes};
    stk_status status = is_on_host(setting->device) ? stk_bench_part_repeat(setting->seconds, run_memcpy, &b, figure)
                                                    : copy_to_device(setting, (const float *)memory, mib, figure);
    free(memory);
    return status;
}

/* --- all-reduce --- */

typedef struct rank {
    stk_comm *comm;
    stk_thread thread;
    float *numbers;
    int64_t n;
    const stk_bench_part_setting *setting;
    double figure;
    stk_status status;
    char error[256];

} rank;

static stk_status reduce_once(void *user, double *amount)
{
    rank *r = user;
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce,
                          .dtype = STK_F32,
                          .n = r->n,
                          .src = r->numbers,
                          .dst = r->numbers,
                          .mean = true};
    *amount = (double)r->n * sizeof(float) * 1e-9;
    return stk_comm_run(r->comm, &call, 0);
}

/* All ranks make equally many calls: a fixed number, since their clocks differ. */
static void run_rank(void *user)
{
    enum { CALLS = 6 };
    rank *r = user;
    double unused;
    r->status = STK_OK;
    if (r->comm->rank == 0) {
        /* The repeat's own: one that does not count and five that do. */
        r->status = stk_bench_part_repeat(0, reduce_once, r, &r->figure);
    } else {
        for (int i = 0; i < CALLS && r->status == STK_OK; i++)
            r->status = reduce_once(r, &unused);
    }
    if (r->status != STK_OK) snprintf(r->error, sizeof(r->error), "%.250s", stk_error_text());
}

static stk_status run_all_reduce(const stk_bench_part_setting *setting, int n, const char *const *argument,
                                 double *figure)
{
    enum { MOST = 64 };
    int64_t mib;
    int n_ranks = setting->n_threads > 0 ? setting->n_threads : stk_n_cores();
    stk_comm *comm[MOST];
    rank ranks[MOST];
    stk_status status = STK_OK;
    memset(ranks, 0, sizeof(ranks));
    if (n != 1) return stk_fail(STK_INVALID, "allreduce takes a size in MiB");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[0], 1, &mib));
    if (n_ranks > MOST) return stk_fail(STK_INVALID, "allreduce is for %d replicas at most, not %d", MOST, n_ranks);
    size_t bytes = (size_t)mib << 20;
    float *memory = calloc((size_t)n_ranks, bytes);
    if (!memory) return stk_fail_memory((size_t)n_ranks * bytes);
    memset(memory, 1, (size_t)n_ranks * bytes);
    STK_TRY(stk_comm_open_local(n_ranks, comm));
    for (int i = 0; i < n_ranks; i++) {
        ranks[i] = (rank){.comm = comm[i],
                          .numbers = memory + (size_t)i * bytes / sizeof(float),
                          .n = (int64_t)(bytes / sizeof(float)),
                          .setting = setting};
        if (i > 0 && status == STK_OK) status = stk_thread_start(&ranks[i].thread, "rank", false, run_rank, &ranks[i]);
    }
    if (status != STK_OK)
        stk_comm_abort(comm[0], "a thread could not be started");
    else
        run_rank(&ranks[0]);
    for (int i = 0; i < n_ranks; i++) {
        stk_thread_join(&ranks[i].thread);
        if (status == STK_OK && ranks[i].status != STK_OK) status = stk_fail(ranks[i].status, "%s", ranks[i].error);
    }
    *figure = ranks[0].figure;
    for (int i = 0; i < n_ranks; i++)
        stk_comm_close(comm[i]);
done:
    free(memory);
    return status;
}

const stk_bench_part stk_bench_part_copy = {
    "copy", "MIB", "from the host's memory to a device; on a device of the host, within memory", "GB/s", run_copy};
const stk_bench_part stk_bench_part_all_reduce = {
    "allreduce", "MIB", "numbers of so many MiB of each replica added up, a replica for each of --threads", "GB/s",
    run_all_reduce};
