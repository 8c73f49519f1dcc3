/* Takes samples of a job: a process, its descendants, the machine, its control group and its GPUs. As an ordinary user,
 * and from outside: nothing in the job changes (sampler_spin.c says what comes closest to that). Threads: one at a
 * time. */
#ifndef STK_WATCH_SAMPLER_H
#define STK_WATCH_SAMPLER_H

#include "watch/driver.h"
#include "watch/facts.h"
#include "watch/keep.h"
#include "watch/parse.h"
#include "watch/root.h"
#include "watch/sample.h"

typedef struct stk_watch_config {
    int64_t pid;         /* the job's first process */
    bool is_ours;        /* orphans of the job become children of this process (PR_SET_CHILD_SUBREAPER) */
    int64_t interval_us; /* wanted; longer where sampling would take more than half a per cent of a core */
    bool each_whole;     /* each sample has everything, whatever it costs: the caller keeps the pace */
    const char *nvml;    /* the library; NULL: the driver's */
    stk_watch_root root;
} stk_watch_config;

/* Something done now and then: the more of a core it takes, the more seldom. */
typedef struct stk_watch_pace {
    double share; /* of a core, at most */
    int64_t least_us, most_us, every_us, cost_us, done_us;
} stk_watch_pace;

/* What a descriptor was when it was looked at. */
typedef struct stk_watch_seen_file {
    int64_t key, at_us, wait, peer;
} stk_watch_seen_file;
enum { STK_WATCH_SEEN_FILES = 64 };

/* Where the data of a process's Python lie; end 0: it has none, as far as was seen then. */
typedef struct stk_watch_interpreter {
    int64_t process, at_us;
    uint64_t begin, end;
} stk_watch_interpreter;
enum { STK_WATCH_INTERPRETERS = 64 };

/* Where OpenMP's code lies in a process whose threads are asked where they are, and Python's with what feeds a
 * framework (sampler_spin.c). */
enum { STK_WATCH_CODES = 4, STK_WATCH_FEEDING_CODES = 512 };
typedef struct stk_watch_spin {
    int64_t process, maps_us, looked_us;
    int64_t stopping; /* a thread that was told to stop and has not yet; 0: none */
    size_t next;      /* of the threads, whom to ask first */
    stk_watch_code code[STK_WATCH_CODES], feeding[STK_WATCH_FEEDING_CODES];
    int n_codes, n_feeding;
    bool is_refused;
} stk_watch_spin;

typedef struct stk_watch_sampler {
    stk_watch_config config;
    stk_watch_sample sample; /* the last one */
    stk_watch_facts facts;
    stk_watch_driver *driver; /* NULL: no thread was to be had */
    stk_watch_keeper keeper;
    stk_watch_pace fast, slow, scan, words;
    int64_t begin_us, left_cpu_us, own_pid;
    int64_t tool_pid;                                 /* a child that is not the job's; 0: none */
    int64_t n_forks, n_scanned_forks, n_listed_forks; /* on the machine since boot; -1: not known */
    int n_scans;
    int64_t *stranger; /* ids that are not the job's, sorted */
    size_t n_strangers, stranger_capacity;
    size_t n_next_idle; /* threads that do nothing are read in turn */
    bool has_nodes;     /* of memory: more than one */
    int64_t group_us;   /* when the control group was looked up */
    char groups[1024], group_folder[2][1024];
    stk_watch_seen_file seen_file[STK_WATCH_SEEN_FILES];
    stk_watch_interpreter interpreter[STK_WATCH_INTERPRETERS];
    stk_watch_spin spin;
    int ras_fd; /* of a talk with NCCL's service, or -1 */
    bool ras_asked;
    int n_ras_misses;
    char *text; /* for files */
} stk_watch_sampler;

stk_status stk_watch_sampler_open(stk_watch_sampler *sampler, const stk_watch_config *config);
/* Errors: out of memory. Nothing left of the job: sampler->sample.processes.n is 0. */
stk_status stk_watch_sampler_take(stk_watch_sampler *sampler);
/* When to take the next one: so long after the last one began. */
int64_t stk_watch_sampler_interval_us(const stk_watch_sampler *sampler);
/* How many processes were killed for want of memory since the last sample, by what the job's control group says, or
 * the machine where there is no group. */
int64_t stk_watch_sampler_last_kills(stk_watch_sampler *sampler);
/* The share of one core that this process has taken since the sampler was opened. */
double stk_watch_sampler_overhead(const stk_watch_sampler *sampler);
void stk_watch_sampler_close(stk_watch_sampler *sampler);

/* --- parts --- */
enum { STK_WATCH_TEXT = 65536 };
/* sampler_tree.c: which processes belong to the job. */
stk_status stk_watch_scan_tree(stk_watch_sampler *sampler);
/* Notes what a process is called, which changes when it becomes another program. */
stk_status stk_watch_name(stk_watch_sampler *sampler, int64_t process);
/* sampler_process.c: counters of processes and threads. */
stk_status stk_watch_read_processes(stk_watch_sampler *sampler, bool is_slow);
/* sampler_spin.c: whether threads of OpenMP work or wait, and those of JAX and TensorFlow compute or prepare data,
 * asked now and then, and the end of that. */
void stk_watch_read_spins(stk_watch_sampler *sampler);
void stk_watch_end_spins(stk_watch_sampler *sampler);
/* sampler_wait.c: what a thread sleeps for; peer, word and at_gil as in stk_watch_thread. */
typedef struct stk_watch_asleep {
    int64_t wait, peer, word, at_gil;
    bool is_awake; /* it runs, or could */
} stk_watch_asleep;
stk_watch_asleep stk_watch_read_wait(stk_watch_sampler *sampler, int64_t process, int64_t thread);
/* sampler_process.c: notes that something of a process could not be read, unless it has ended. */
void stk_watch_miss(stk_watch_sampler *sampler, int64_t process, const char *text);
/* sampler_words.c: the framework, the file systems of open files. */
stk_status stk_watch_read_words(stk_watch_sampler *sampler);
/* sampler_talk.c: which processes of the job are connected with each other. */
void stk_watch_read_talks(stk_watch_sampler *sampler);
/* Whether a process of that name compiles, as frameworks let others do it for a step. */
bool stk_watch_is_compiler(const char *name);
/* sampler_machine.c: the machine and the control group. */
void stk_watch_read_machine(stk_watch_sampler *sampler);
void stk_watch_read_cores(stk_watch_sampler *sampler);
/* Memory alone, of the machine and of the group as it was found last: the job may have ended. */
void stk_watch_read_kills(stk_watch_sampler *sampler);
/* ras.c: NCCL's service on this machine, asked once a second without waiting for it. */
void stk_watch_read_ras(stk_watch_sampler *sampler);

#endif
