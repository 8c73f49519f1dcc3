/* Takes samples of a job: a process, its descendants, the machine, its control group and its GPUs. As an ordinary user,
 * and from outside: nothing in the job changes. Threads: one at a time. */
#ifndef STK_WATCH_SAMPLER_H
#define STK_WATCH_SAMPLER_H

#include "watch/facts.h"
#include "watch/nvml.h"
#include "watch/root.h"
#include "watch/sample.h"

typedef struct stk_watch_config {
    int64_t pid;         /* the job's first process */
    bool is_ours;        /* orphans of the job become children of this process (PR_SET_CHILD_SUBREAPER) */
    int64_t interval_us; /* wanted; longer where sampling would take more than 0.5 % of a core */
    const char *nvml;    /* the library; NULL: the driver's */
    stk_watch_root root;
} stk_watch_config;

typedef struct stk_watch_sampler {
    stk_watch_config config;
    stk_watch_sample sample; /* the last one */
    stk_watch_facts facts;
    stk_watch_nvml nvml;
    int64_t begin_us, slow_us, scan_us, files_us, own_cpu_us, own_at_us; /* when last done */
    int64_t *stranger;                                                   /* ids that are not the job's, sorted */
    size_t n_strangers, stranger_capacity;
    int64_t group_us; /* when the control group was looked up */
    char groups[1024], group_folder[2][1024];
    int ras_fd; /* of a talk with NCCL's service, or -1 */
    bool ras_asked;
    char *text; /* for files */
} stk_watch_sampler;

stk_status stk_watch_sampler_open(stk_watch_sampler *sampler, const stk_watch_config *config);
/* Errors: out of memory. Nothing left of the job: sampler->sample.processes.n is 0. */
stk_status stk_watch_sampler_take(stk_watch_sampler *sampler);
/* The share of one core that this process has taken since the sampler was opened. */
double stk_watch_sampler_overhead(const stk_watch_sampler *sampler);
void stk_watch_sampler_close(stk_watch_sampler *sampler);

/* --- parts --- */
enum { STK_WATCH_TEXT = 65536 };
/* sampler_tree.c: which processes belong to the job. */
stk_status stk_watch_scan_tree(stk_watch_sampler *sampler);
/* sampler_process.c: counters of processes and threads. */
stk_status stk_watch_read_processes(stk_watch_sampler *sampler, bool is_slow);
/* sampler_words.c: the framework, the file systems of open files. */
stk_status stk_watch_read_words(stk_watch_sampler *sampler);
/* How many of the job's processes are compilers now. */
int64_t stk_watch_count_compilers(stk_watch_sampler *sampler);
/* sampler_machine.c: the machine and the control group. */
stk_status stk_watch_read_machine(stk_watch_sampler *sampler, bool is_slow);
/* ras.c: NCCL's service on this machine, asked once a second without waiting for it. */
void stk_watch_read_ras(stk_watch_sampler *sampler);

#endif
