/* What a job did in each interval between two samples, as shares and rates. Bounded memory: when it is full, each two
 * neighbouring rows become one. Threads: one at a time. */
#ifndef STK_WATCH_HISTORY_H
#define STK_WATCH_HISTORY_H

#include "watch/facts.h"
#include "watch/sample.h"

/* A core that is busy all the time counts 1; NaN: not known. "trainer": the processes that hold a GPU, or else the
 * first one that computes; "workers": the job's other processes. */
#define STK_WATCH_ROW_FIELDS(X)                                                                                        \
    X(gpu_busy)  /* mean over GPUs in use; 0 to 1 */                                                                   \
    X(gpu_least) /* the least busy GPU in use */                                                                       \
    X(gpu_most)                                                                                                        \
    X(gpus_used)                                                                                                       \
    X(gpus_free)      /* neither the job's nor another's */                                                            \
    X(power)          /* share of the limit */                                                                         \
    X(clock)          /* share of the highest */                                                                       \
    X(hot)            /* 1: clocks are low because of heat */                                                          \
    X(capped)         /* 1: because of the power limit */                                                              \
    X(sm)             /* GPM */                                                                                        \
    X(tensor)         /* GPM */                                                                                        \
    X(gpu_memory)     /* share of the GPU's memory that is taken */                                                    \
    X(own_memory)     /* share that the job's processes took */                                                        \
    X(other_memory)   /* share that other processes took */                                                            \
    X(other_gpu_busy) /* by other processes */                                                                         \
    X(unowned_memory) /* share that is taken by no living process */                                                   \
    X(pcie_mbs)                                                                                                        \
    X(link) /* share of the PCIe link's lanes times generation */                                                      \
    X(mig)                                                                                                             \
    X(far_node)       /* 1: the trainer runs on another memory node than its GPU's */                                  \
    X(cores)          /* that the job uses */                                                                          \
    X(main)           /* the trainer's first thread */                                                                 \
    X(top)            /* the busiest thread of all */                                                                  \
    X(top_ready)      /* the same with the time that it waited for a core */                                           \
    X(shared_threads) /* threads of the trainer between 8 and 80 % of a core */                                        \
    X(trainer)        /* cores of the trainer, all its threads */                                                      \
    X(workers)        /* mean over workers, with the time that they wait for a core */                                 \
    X(n_workers)                                                                                                       \
    X(waiting)     /* threads that could run and wait for a core, on average */                                        \
    X(waited)      /* share of ready time that threads waited for a core */                                            \
    X(disk_wait)   /* share of the threads that feed which wait for a disk */                                          \
    X(remote_wait) /* for a network's or a program's file system */                                                    \
    X(swap_wait)                                                                                                       \
    X(asked_mbs)    /* read by calls, from memory or disk */                                                           \
    X(read_mbs)     /* from disks */                                                                                   \
    X(put_mbs)      /* written to files */                                                                             \
    X(sent_mbs)     /* to pipes and sockets */                                                                         \
    X(faults)       /* pages a second that came from a disk */                                                         \
    X(swapping)     /* pages a second, whole machine */                                                                \
    X(net_mbs)      /* from the network, whole machine */                                                              \
    X(locked)       /* 1: the trainer's first thread waits for a lock, another process or the GPU */                   \
    X(outside)      /* 1: for a pipe that no process of the job fills */                                               \
    X(beside_busy)  /* cores that all other threads run on or wait for */                                              \
    X(beside_ready) /* of these, those that they wait for */                                                           \
    X(beside_own)   /* of these, threads of the driving process */                                                     \
    X(beside_feeds) /* of these, in code that is not JAX's or TensorFlow's, when they are asked where they are */      \
    X(beside_top)   /* the busiest of them */                                                                          \
    X(spins)        /* cores on which OpenMP's threads of the trainer only wait for work */                            \
    X(beside_net)   /* 1: one of them sleeps so */                                                                     \
    X(beside_disk)                                                                                                     \
    X(beside_remote)                                                                                                   \
    X(beside_timer)                                                                                                    \
    X(beside_file_lock)                                                                                                \
    X(turns)       /* 1: threads wait for a lock that they take turns at */                                            \
    X(at_gil)      /* 1: the driving thread waits for Python's lock */                                                 \
    X(n_fed)       /* children of the driver that have worked */                                                       \
    X(unseen)      /* cores of children too short-lived to be seen */                                                  \
    X(huge_faults) /* pages of 2 MB a second, whole machine */                                                         \
    X(own_mb)      /* resident, without what is a file's where that is known */                                        \
    X(resident_mb)                                                                                                     \
    X(free_mb)  /* memory that the job may still take */                                                               \
    X(code_kbs) /* growth of what is mapped to be executed */                                                          \
    X(psi_io)                                                                                                          \
    X(psi_memory)                                                                                                      \
    X(throttled) /* share of the quota's periods */                                                                    \
    X(quota)     /* cores */                                                                                           \
    X(allowed)   /* cores that the trainer may use */                                                                  \
    X(machine_cores)                                                                                                   \
    X(machine_busy) /* cores */                                                                                        \
    X(stolen)       /* cores that the host gave to others while they were wanted here */                               \
    X(memory_full)  /* used share of the memory, or of the group's limit */                                            \
    X(limit_hits)   /* a second */                                                                                     \
    X(oom_kills)                                                                                                       \
    X(compilers)    /* processes */                                                                                    \
    X(n_ranks)      /* processes with one parent that talk to each other */                                            \
    X(rank_most)    /* cores that the one of them uses that has used most so far */                                    \
    X(rank_least)   /* likewise, least */                                                                              \
    X(lagging_rank) /* 1: NCCL says that there is one */                                                               \
    X(late_rank)    /* its number */

/* What a thread is for: the one that drives the step; others of its process; threads of processes that this one has
 * started, and of the job's other ones; and those, wherever they are, that write files. */
typedef enum stk_watch_role {
    STK_WATCH_ROLE_DRIVER,
    STK_WATCH_ROLE_HELPERS,
    STK_WATCH_ROLE_WORKERS,
    STK_WATCH_ROLE_FEEDERS,
    STK_WATCH_ROLE_WRITERS,
    STK_WATCH_ROLES
} stk_watch_role;

/* What it is at. It sleeps from DISK on. */
typedef enum stk_watch_state {
    STK_WATCH_STATE_USER,
    STK_WATCH_STATE_FAULTS,
    STK_WATCH_STATE_SYSTEM,
    STK_WATCH_STATE_READY,
    STK_WATCH_STATE_DISK,
    STK_WATCH_STATE_WRITE,
    STK_WATCH_STATE_REMOTE,
    STK_WATCH_STATE_NET,
    STK_WATCH_STATE_PIPE,
    STK_WATCH_STATE_OUTPUT,
    STK_WATCH_STATE_LOCK,
    STK_WATCH_STATE_FILE_LOCK,
    STK_WATCH_STATE_CHILD,
    STK_WATCH_STATE_TIMER,
    STK_WATCH_STATE_DEVICE,
    STK_WATCH_STATE_OTHER,
    STK_WATCH_STATES
} stk_watch_state;

#define X(name) double name;
/* Doubles only. */
typedef struct stk_watch_row {
    double at_s, length_s; /* of its end */
    STK_WATCH_ROW_FIELDS(X)
    double role_threads[STK_WATCH_ROLES]; /* sums over the threads of a role: roles.h */
    double role_faults[STK_WATCH_ROLES];  /* pages a second */
    double role[STK_WATCH_ROLES][STK_WATCH_STATES];
} stk_watch_row;
#undef X

enum {
    STK_WATCH_ROWS = 8192,
    STK_WATCH_CREDITS = 64,
    STK_WATCH_WORDS = 16,
    STK_WATCH_WRITERS = 16,
    STK_WATCH_RUNS = 256
};

/* A lock that a thread has waited for with a limit, and whether another one has, too. */
typedef struct stk_watch_word {
    int64_t process, word, thread;
    bool is_shared;
} stk_watch_word;

/* When a thread used a core last. */
typedef struct stk_watch_run {
    int64_t thread;
    double at_s;
} stk_watch_run;

/* A thread of the driving process that waited for files to be written, and how often that was seen. */
typedef struct stk_watch_writer {
    int64_t thread;
    int n; /* 0: none */
} stk_watch_writer;

/* What processes that are gone had when they were seen last: their parents' counters grow by it once they are waited
 * for, and it has been counted already. */
typedef struct stk_watch_credit {
    int64_t parent, cpu_us, asked_kb, read_kb, put_kb, written_kb;
} stk_watch_credit;

typedef struct stk_watch_history {
    stk_watch_sample last;
    bool has_last;
    stk_watch_row *row; /* STK_WATCH_ROWS */
    size_t n;
    int n_merged; /* rows that make one now */
    stk_watch_row open;
    int n_open;
    int64_t first_pid, driver_pid;
    int64_t drives_pid; /* whose first thread drives the step, by the last sample; 0: none yet */
    stk_watch_word word[STK_WATCH_WORDS];
    stk_watch_run run[STK_WATCH_RUNS]; /* by the thread's number, modulo; of two the last one is there */
    int n_words;
    stk_watch_writer writer[STK_WATCH_WRITERS];
    int n_writers;
    stk_watch_credit credit[STK_WATCH_CREDITS];
    int n_credits;
    double n_gpus;
    double gpu_joules, gpu_joules_s; /* of the GPUs in use, and in how many seconds of a GPU */
} stk_watch_history;

stk_status stk_watch_history_open(stk_watch_history *history);
/* Adds what happened since the last sample. */
stk_status stk_watch_history_add(stk_watch_history *history, const stk_watch_sample *sample);
void stk_watch_history_free(stk_watch_history *history);

#endif
