/* What the doctor sees at one moment: plain counters, as the kernel and the driver give them, and nothing derived.
 * Recording writes them, replaying reads them back, and judging uses nothing else, so that a replayed run is judged
 * as the live one was. All are int64 and -1 where they could not be read. One list makes struct, writer and reader.
 * Threads: one at a time.
 */
#ifndef STK_WATCH_SAMPLE_H
#define STK_WATCH_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

/* The machine, and the control group of the job. Times since boot; kb: KiB. */
#define STK_WATCH_MACHINE_FIELDS(X)                                                                                    \
    X(n_cpus)                                                                                                          \
    X(busy_ms)                                                                                                         \
    X(iowait_ms)                                                                                                       \
    X(steal_ms)                                                                                                        \
    X(n_runnable)                                                                                                      \
    X(memory_kb)                                                                                                       \
    X(available_kb)                                                                                                    \
    X(cached_kb)                                                                                                       \
    X(swap_kb)                                                                                                         \
    X(swap_free_kb)                                                                                                    \
    X(swapped_in_pages)                                                                                                \
    X(swapped_out_pages)                                                                                               \
    X(oom_kills)                                                                                                       \
    X(refaults)                                                                                                        \
    X(psi_cpu_us)                                                                                                      \
    X(psi_io_us)                                                                                                       \
    X(psi_memory_us)                                                                                                   \
    X(disk_read_kb)                                                                                                    \
    X(disk_written_kb)                                                                                                 \
    X(disk_busy_ms)                                                                                                    \
    X(net_received_kb)                                                                                                 \
    X(net_sent_kb)                                                                                                     \
    X(n_allowed_cpus)                                                                                                  \
    X(quota_millicores)                                                                                                \
    X(n_periods)                                                                                                       \
    X(n_throttled)                                                                                                     \
    X(throttled_us)                                                                                                    \
    X(limit_kb)                                                                                                        \
    X(used_kb)                                                                                                         \
    X(n_limit_hits)                                                                                                    \
    X(group_oom_kills)                                                                                                 \
    X(ras_lagging_rank)                                                                                                \
    X(n_compilers)                                                                                                     \
    X(huge_faults)

/* A GPU. permille: thousandths; mask: NVML's clock event reasons; own: of the job's processes; mj: millijoules since
 * the driver was loaded. */
#define STK_WATCH_GPU_FIELDS(X)                                                                                        \
    X(busy_permille)                                                                                                   \
    X(memory_busy_permille)                                                                                            \
    X(memory_mb)                                                                                                       \
    X(memory_used_mb)                                                                                                  \
    X(own_mb)                                                                                                          \
    X(n_own)                                                                                                           \
    X(other_mb)                                                                                                        \
    X(n_other)                                                                                                         \
    X(other_busy_permille)                                                                                             \
    X(power_mw)                                                                                                        \
    X(power_limit_mw)                                                                                                  \
    X(clock_mhz)                                                                                                       \
    X(clock_most_mhz)                                                                                                  \
    X(celsius)                                                                                                         \
    X(slowdown_mask)                                                                                                   \
    X(pcie_sent_kbs)                                                                                                   \
    X(pcie_received_kbs)                                                                                               \
    X(pcie_generation)                                                                                                 \
    X(pcie_most_generation)                                                                                            \
    X(pcie_width)                                                                                                      \
    X(pcie_most_width)                                                                                                 \
    X(sm_permille)                                                                                                     \
    X(tensor_permille)                                                                                                 \
    X(dram_permille)                                                                                                   \
    X(mig)                                                                                                             \
    X(numa_node)                                                                                                       \
    X(energy_mj)

/* A process of the job. wait: of the kernel's kind in stk_watch_wait. main: of its first thread. is_active: it did
 * something of late, and is read at every tick; others are read once a second. children: that ended and were waited
 * for. Bytes are those of such children, too (the kernel's do_io_accounting). New fields go to the end, so that old
 * recordings stay readable. code_kb: mapped to be executed, which grows where code is made or loaded. anonymous_kb:
 * resident and no file's. talks: 1 where it has a network's connection with another process of the job. gpu_mb: memory
 * on all GPUs; gpu_busy_permille: of the time of one, summed over all. */
#define STK_WATCH_PROCESS_FIELDS(X)                                                                                    \
    X(parent)                                                                                                          \
    X(start_ticks)                                                                                                     \
    X(state)                                                                                                           \
    X(wait)                                                                                                            \
    X(n_threads)                                                                                                       \
    X(cpu_us)                                                                                                          \
    X(main_us)                                                                                                         \
    X(main_waited_us)                                                                                                  \
    X(major_faults)                                                                                                    \
    X(resident_kb)                                                                                                     \
    X(swapped_kb)                                                                                                      \
    X(asked_kb)                                                                                                        \
    X(read_kb)                                                                                                         \
    X(put_kb)                                                                                                          \
    X(written_kb)                                                                                                      \
    X(voluntary)                                                                                                       \
    X(involuntary)                                                                                                     \
    X(last_cpu)                                                                                                        \
    X(numa_node)                                                                                                       \
    X(n_allowed_cpus)                                                                                                  \
    X(holds_gpu)                                                                                                       \
    X(is_active)                                                                                                       \
    X(children_us)                                                                                                     \
    X(minor_faults)                                                                                                    \
    X(system_us)                                                                                                       \
    X(code_kb)                                                                                                         \
    X(anonymous_kb)                                                                                                    \
    X(talks)                                                                                                           \
    X(gpu_mb)                                                                                                          \
    X(gpu_busy_permille)

/* A thread of the job. is_active: it ran between the last two thorough readings, which are a second apart. is_asleep: 1
 * or 0, at this sample; -1: it was not looked at. peer: a process of the job that has the other end of the pipe that it
 * waits for; 0: none has; -1: not known. word: where the lock lies that it waits for with a limit, or -1. n_looks: how
 * often it was asked where it is in its program while it ran, n_spins: how often that was where OpenMP waits, and
 * n_feeds: how often, in a process of JAX or TensorFlow, in code that is not the framework's. at_gil: 1: that lock is
 * the one of its Python's interpreter (GIL). */
#define STK_WATCH_THREAD_FIELDS(X)                                                                                     \
    X(process)                                                                                                         \
    X(state)                                                                                                           \
    X(wait)                                                                                                            \
    X(is_active)                                                                                                       \
    X(cpu_us)                                                                                                          \
    X(waited_us)                                                                                                       \
    X(system_us)                                                                                                       \
    X(minor_faults)                                                                                                    \
    X(is_asleep)                                                                                                       \
    X(peer)                                                                                                            \
    X(word)                                                                                                            \
    X(n_looks)                                                                                                         \
    X(n_spins)                                                                                                         \
    X(n_feeds)                                                                                                         \
    X(at_gil)

/* What a sleeping thread waits for, as far as the kernel tells. */
typedef enum stk_watch_wait {
    STK_WATCH_WAIT_UNKNOWN,
    STK_WATCH_WAIT_DISK,
    STK_WATCH_WAIT_REMOTE, /* a file system behind a network or a user's program */
    STK_WATCH_WAIT_SWAP,
    STK_WATCH_WAIT_LOCK, /* a futex: a lock, a condition, a queue between threads */
    STK_WATCH_WAIT_PEER, /* somebody, and more is not known */
    STK_WATCH_WAIT_SLEEP,
    STK_WATCH_WAIT_DEVICE,
    STK_WATCH_WAIT_NET,      /* a socket of a network, be it the machine's own */
    STK_WATCH_WAIT_PIPE_IN,  /* a pipe, FIFO or local socket that gives nothing */
    STK_WATCH_WAIT_PIPE_OUT, /* one that takes nothing more, or a terminal */
    STK_WATCH_WAIT_CHILD,    /* the end of a child */
    STK_WATCH_WAIT_FILE_LOCK,
    STK_WATCH_WAIT_DISK_OUT, /* a disk that is written to */
    STK_WATCH_WAITS,
} stk_watch_wait;

#define X(name) int64_t name;
typedef struct stk_watch_machine {
    STK_WATCH_MACHINE_FIELDS(X)
} stk_watch_machine;
typedef struct stk_watch_gpu {
    int64_t id; /* NVML's index */
    STK_WATCH_GPU_FIELDS(X)
} stk_watch_gpu;
typedef struct stk_watch_process {
    int64_t id;
    STK_WATCH_PROCESS_FIELDS(X)
} stk_watch_process;
typedef struct stk_watch_thread {
    int64_t id;
    STK_WATCH_THREAD_FIELDS(X)
} stk_watch_thread;
#undef X

/* Entries of one kind, sorted by id. */
typedef struct stk_watch_list {
    void *data;
    size_t n, capacity, entry_bytes;
} stk_watch_list;

enum { STK_WATCH_KINDS = 3 }; /* of lists in a sample */

typedef struct stk_watch_sample {
    int64_t time_us; /* since watching began */
    stk_watch_machine machine;
    stk_watch_list gpus, processes, threads;
} stk_watch_sample;

/* Empty; nothing is allocated yet. */
void stk_watch_sample_init(stk_watch_sample *sample);
void stk_watch_sample_free(stk_watch_sample *sample);
/* dst becomes what src is. */
stk_status stk_watch_sample_copy(stk_watch_sample *dst, const stk_watch_sample *src);

/* The entry of that id, or NULL. */
void *stk_watch_list_find(const stk_watch_list *list, int64_t id);
/* The entry of that id; a new one has -1 in all fields. NULL: out of memory. Pointers got before become invalid. */
void *stk_watch_list_add(stk_watch_list *list, int64_t id);
void stk_watch_list_remove(stk_watch_list *list, int64_t id);
/* dst becomes what src is. */
stk_status stk_watch_list_copy(stk_watch_list *dst, const stk_watch_list *src);

/* Typed access. */
static inline stk_watch_gpu *stk_watch_gpu_at(const stk_watch_sample *sample, size_t i)
{
    return (stk_watch_gpu *)sample->gpus.data + i;
}
static inline stk_watch_process *stk_watch_process_at(const stk_watch_sample *sample, size_t i)
{
    return (stk_watch_process *)sample->processes.data + i;
}
static inline stk_watch_thread *stk_watch_thread_at(const stk_watch_sample *sample, size_t i)
{
    return (stk_watch_thread *)sample->threads.data + i;
}

#endif
