/* Copies to, from and between devices, and sums over replicas of one process: bench/part.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "bench/part.h"
#include "comm/comm.h"
#include "device/queue.h"

/* --- copy --- */

typedef enum way { WAY_IN, WAY_OUT, WAY_ON, WAY_TO, N_WAYS } way;

typedef struct copy {
    stk_device *device, *other; /* other: of WAY_TO, where the copies go */
    stk_queue *queue;
    void *host, *here, *there; /* there: on other, or a second piece of the device's own memory */
    size_t bytes;
    way way;
} copy;

static stk_status copy_once(void *user, double *amount)
{
    const copy *c = user;
    *amount = (double)c->bytes * 1e-9;
    switch (c->way) {
    case WAY_IN: return stk_queue_copy_now(c->queue, c->here, c->host, c->bytes, STK_COPY_TO_DEVICE);
    case WAY_OUT: return stk_queue_copy_now(c->queue, c->host, c->here, c->bytes, STK_COPY_TO_HOST);
    default: return stk_queue_copy_now(c->queue, c->there, c->here, c->bytes, STK_COPY_ON_DEVICE);
    }
}

/* The host's side lies where the device's copies are fastest. */
static stk_status open_copy(copy *c, const stk_bench_part_setting *setting)
{
    const stk_device_config config = {.n_threads = setting->n_threads};
    STK_RETURN_IF_ERROR(stk_device_open(setting->device ? setting->device : "cpu", &config, &c->device));
    const stk_device_class *class = c->device->class;
    if (c->way == WAY_TO) {
        STK_RETURN_IF_ERROR(stk_device_open(setting->other, &config, &c->other));
        if (c->other->class != class || !class->queues->reach)
            return stk_fail(STK_UNSUPPORTED, "devices '%s' and '%s' do not copy to each other", class->name,
                            c->other->class->name);
        if (c->other->number == c->device->number)
            return stk_fail(STK_INVALID, "'%s' is the device itself: --to names another one", setting->other);
        STK_RETURN_IF_ERROR(class->queues->reach(c->device, c->other));
    }
    STK_RETURN_IF_ERROR(class->queues->open(c->device, &c->queue));
    STK_RETURN_IF_ERROR(class->alloc(c->device, c->bytes, STK_MEMORY_ZEROED, &c->here));
    if (c->way == WAY_ON || c->way == WAY_TO) {
        stk_device *of = c->other ? c->other : c->device;
        return class->alloc(of, c->bytes, STK_MEMORY_ZEROED, &c->there);
    }
    if (class->alloc_host) return class->alloc_host(c->device, c->bytes, &c->host);
    c->host = malloc(c->bytes);
    if (!c->host) return stk_fail_memory(c->bytes);
    memset(c->host, 0, c->bytes);
    return STK_OK;
}

static void close_copy(copy *c)
{
    if (!c->device) return;
    const stk_device_class *class = c->device->class;
    if (c->queue) class->queues->close(c->queue);
    if (c->host && class->alloc_host) class->free_host(c->device, c->host, c->bytes);
    if (c->host && !class->alloc_host) free(c->host);
    if (c->there) class->free(c->other ? c->other : c->device, c->there, c->bytes);
    if (c->here) class->free(c->device, c->here, c->bytes);
    stk_device_close(c->other);
    stk_device_close(c->device);
}

static stk_status run_copy(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure)
{
    static const char *const names[N_WAYS] = {[WAY_IN] = "in", [WAY_OUT] = "out", [WAY_ON] = "on", [WAY_TO] = "to"};
    copy c = {.way = WAY_IN};
    int64_t mib;
    if (n != 1 && n != 2) return stk_fail(STK_INVALID, "copy takes a size in MiB, and one of in, out, on, to");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[0], 1, &mib));
    while (n == 2 && c.way < N_WAYS && strcmp(argument[1], names[c.way]) != 0)
        c.way++;
    if (c.way == N_WAYS) return stk_fail(STK_INVALID, "'%s' is not one of in, out, on, to", argument[1]);
    if ((c.way == WAY_TO) != (setting->other != NULL))
        return stk_fail(STK_INVALID, "'copy MIB to' and the other device, --to, go together");
    c.bytes = (size_t)mib << 20;
    stk_status status = open_copy(&c, setting);
    if (status == STK_OK) status = stk_bench_part_repeat(setting->seconds, copy_once, &c, figure);
    close_copy(&c);
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
    "copy", "MIB [in|out|on|to]", "into a device's memory, out of it, within it, or to that of another device, --to",
    "GB/s", run_copy};
const stk_bench_part stk_bench_part_all_reduce = {
    "allreduce", "MIB", "numbers of so many MiB of each replica added up, a replica for each of --threads", "GB/s",
    run_all_reduce};
