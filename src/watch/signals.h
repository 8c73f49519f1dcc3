/* What the rules look at: one number each, over the part of the run that counts. The account's parts (by_*) are summed
 * up in signals_account.c. Threads: any. */
#ifndef STK_WATCH_SIGNALS_H
#define STK_WATCH_SIGNALS_H

#include "watch/facts.h"
#include "watch/history.h"
#include "watch/span.h"

/* X(name, unit, evidence): unit "%" prints a share in per cent. "device" is the GPUs in use, or the cores where no GPU
 * is. "fill" is how much of the device's idle time something took: 1 where it was busy whenever the device was idle. */
#define STK_WATCH_SIGNAL_LIST(X)                                                                                       \
    X(gpus, "", "%s GPUs in the machine")                                                                              \
    X(gpus_used, "", "the job uses %s GPUs")                                                                           \
    X(gpus_idle, "%", "of the GPUs that nobody else uses %s are not used")                                             \
    X(gpu_used, "", "the job's processes are in the GPU's list: %s (1: yes)")                                          \
    X(framework, "", "a training framework is loaded: %s (1: yes)")                                                    \
    X(gpu_busy, "%", "GPU busy %s of the time")                                                                        \
    X(idle, "%", "the device is idle %s of the time")                                                                  \
    X(swing, "%", "GPU utilisation swings by %s")                                                                      \
    X(period_s, "s", "GPU utilisation comes in bursts every %s")                                                       \
    X(power, "%", "GPU power %s of its limit")                                                                         \
    X(power_busy, "%", "power while the GPU is busy: %s of its limit")                                                 \
    X(sm, "%", "SMs active %s (GPM)")                                                                                  \
    X(tensor, "%", "tensor cores active %s (GPM)")                                                                     \
    X(clock_low, "%", "GPU clocks %s below their maximum while busy")                                                  \
    X(hot, "%", "slowed down for heat %s of the time")                                                                 \
    X(capped, "%", "slowed down by the power limit %s of the time")                                                    \
    X(gpu_memory, "%", "GPU memory %s taken")                                                                          \
    X(own_memory, "%", "the job holds %s of the GPU's memory")                                                         \
    X(unowned_memory, "%", "%s of a GPU's memory is taken and no process owns it")                                     \
    X(other_busy, "%", "other processes keep the GPU busy %s of the time")                                             \
    X(other_memory, "%", "other processes hold %s of its memory")                                                      \
    X(imbalance, "%", "the busiest and the idlest GPU differ by %s")                                                   \
    X(busiest, "%", "the busiest GPU is busy %s of the time")                                                          \
    X(works, "%", "the GPU does something in %s of the time")                                                          \
    X(unused, "%", "%s of the GPU's ability is not used")                                                              \
    X(pcie_mbs, "MB/s", "PCIe traffic %s")                                                                             \
    X(link_low, "%", "the PCIe link runs %s below what it could while the GPU works")                                  \
    X(mig, "", "the GPU is cut into parts by MIG: %s (1: yes)")                                                        \
    X(far_node, "%", "the process runs on another memory node than its GPU's %s of the time")                          \
    X(cores, "cores", "the job uses %s")                                                                               \
    X(cores_share, "%", "the job uses %s of the cores it may use")                                                     \
    X(spins, "cores", "threads of OpenMP spin on %s while they wait for work")                                         \
    X(works_share, "%", "it works on %s of the cores that it may use")                                                 \
    X(wanted, "%", "it runs, or is ready to run, on %s of the cores that it may use")                                  \
    X(machine_cores, "cores", "the machine has %s")                                                                    \
    X(allowed_share, "%", "it may run on %s of the machine's cores")                                                   \
    X(main, "%", "the main thread runs %s of the time")                                                                \
    X(main_fill, "%", "the main thread works in %s of the device's idle time")                                         \
    X(overlap, "%", "the main thread works during %s of the time alongside a busy GPU")                                \
    X(top, "%", "the busiest thread runs %s of the time")                                                              \
    X(top_fill, "%", "one thread works in %s of the device's idle time")                                               \
    X(beside_top, "cores", "all other threads together work on %s")                                                    \
    X(workers, "", "%s workers")                                                                                       \
    X(workers_busy, "%", "each worker is busy, or ready and waiting for a core, %s of the time")                       \
    X(workers_fill, "%", "workers are at it in %s of the device's idle time")                                          \
    X(waited, "%", "threads that could run wait for a core %s of that time")                                           \
    X(waiting, "threads", "on average %s wait for a core")                                                             \
    X(contention, "%", "other programs use %s of the machine's cores")                                                 \
    X(stolen, "%", "the host gives %s of this machine's cores to others")                                              \
    X(throttled, "%", "the control group's CPU quota stops the job in %s of its periods")                              \
    X(quota, "cores", "the quota grants %s")                                                                           \
    X(disk_fill, "%", "those who feed wait for a disk in %s of the device's idle time")                                \
    X(remote_fill, "%", "those who feed wait for remote files in %s of the device's idle time")                        \
    X(remote, "", "files are open on a remote file system: %s (1: yes)")                                               \
    X(asked_mbs, "MB/s", "the job reads %s")                                                                           \
    X(read_mbs, "MB/s", "it gets %s from disks")                                                                       \
    X(cache_hit, "%", "%s of what it reads is in memory already")                                                      \
    X(net_mbs, "MB/s", "the network brings %s")                                                                        \
    X(psi_io, "%", "tasks stall for input and output %s of the time (PSI)")                                            \
    X(psi_memory, "%", "tasks stall for memory %s of the time (PSI)")                                                  \
    X(faults, "/s", "%s page faults that read a disk")                                                                 \
    X(swapping, "/s", "%s pages swapped")                                                                              \
    X(memory_short, "", "%s signs of short memory")                                                                    \
    X(limit_hits, "/s", "the group's memory limit is met %s")                                                          \
    X(memory_full, "%", "memory is %s full at most")                                                                   \
    X(oom_kills, "", "%s processes killed for want of memory")                                                         \
    X(oom_in_s, "s", "at this rate memory ends in %s")                                                                 \
    X(growth_mbs, "MB/s", "its memory grows by %s")                                                                    \
    X(full_in_s, "s", "at this rate nothing is left in %s")                                                            \
    X(write_fill, "%", "the job writes files in %s of the device's idle time")                                         \
    X(put_mbs, "MB/s", "the job writes %s")                                                                            \
    X(compiling, "%", "compilers run %s of the time after the start")                                                  \
    X(code_growing, "%", "code is added to it in %s of the time")                                                      \
    X(python, "", "it is a Python process: %s (1: yes)")                                                               \
    X(shared_threads, "", "%s threads of the trainer take turns")                                                      \
    X(trainer, "cores", "together the trainer's threads use %s")                                                       \
    X(trainer_fill, "%", "the trainer's threads work in %s of the device's idle time")                                 \
    X(stuck_s, "s", "nothing moves for the last %s")                                                                   \
    X(stuck, "%", "that is %s of the run")                                                                             \
    X(locked, "%", "meanwhile the main thread waits for a lock, another process or the GPU %s of the time")            \
    X(spinning, "%", "meanwhile the GPU is busy %s of the time, at low power and without traffic")                     \
    X(account, "", "the driving thread was looked at: %s (1: yes)")                                                    \
    X(missing_cores, "%", "on all of the machine's cores it could save %s of the time at best")                        \
    X(spare, "%", "on all its cores it could save %s of the time at best")                                             \
    X(by_device, "%", "the GPU works in %s of the time")                                                               \
    X(by_compute, "%", "it computes in %s of the time")                                                                \
    X(by_host, "%", "the run works around its steps in %s of the time")                                                \
    X(by_faults, "%", "page faults take %s")                                                                           \
    X(by_kernel, "%", "other work of the kernel takes %s")                                                             \
    X(by_ready, "%", "it could run and waits for a core in %s")                                                        \
    X(by_disk, "%", "it, or who feeds it, waits for a disk in %s")                                                     \
    X(by_write, "%", "it waits for files to be written in %s")                                                         \
    X(by_remote, "%", "for remote files in %s")                                                                        \
    X(by_net, "%", "it, or who feeds it, waits for a network socket in %s")                                            \
    X(by_output, "%", "for somebody to take its output in %s")                                                         \
    X(by_timer, "%", "it, or who feeds it, sleeps in a timer in %s")                                                   \
    X(by_file_lock, "%", "for the lock of a file in %s")                                                               \
    X(by_thread, "%", "one thread works while all waits for it in %s")                                                 \
    X(by_workers, "%", "for several that work in %s")                                                                  \
    X(by_turns, "%", "threads that take turns hold it in %s")                                                          \
    X(by_balance, "%", "threads that share its work wait for each other in %s")                                        \
    X(by_pool, "%", "it waits for threads of its own process, which compute or prepare data, in %s")                   \
    X(by_outside, "%", "for a pipe that no process of the job fills in %s")                                            \
    X(by_children, "%", "for children that run for a moment in %s")                                                    \
    X(by_compiling, "%", "compilers work in about %s")                                                                 \
    X(by_unknown, "%", "asleep, and for whom cannot be seen: %s")                                                      \
    X(feeds, "cores", "its threads prepare data in Python on %s")                                                      \
    X(own_threads, "", "%s threads of the job want each core")                                                         \
    X(fed, "", "%s processes feed the driving one")                                                                    \
    X(worker_runs, "%", "each works %s of the time")                                                                   \
    X(ended, "", "the job ended by itself: %s (1: yes)")                                                               \
    X(ranks, "", "%s ranks, which are connected with each other")                                                      \
    X(rank_most, "%", "the busiest rank works %s of the time")                                                         \
    X(rank_gap, "%", "that is %s of the time more than the idlest one")                                                \
    X(lagging, "%", "NCCL says that a rank lags behind, %s of the time")                                               \
    X(late_rank, "", "that is rank %s")

typedef enum stk_watch_signal {
#define X(name, unit, text) STK_WATCH_##name,
    STK_WATCH_SIGNAL_LIST(X)
#undef X
        STK_WATCH_SIGNALS
} stk_watch_signal;

typedef struct stk_watch_signals {
    double value[STK_WATCH_SIGNALS]; /* NaN: not known */
    double begin_s, end_s;           /* of the part that counts */
    bool idle_by_run;                /* idle is the run's own word, of all its time */
    /* Threads of each role, and each part of the time of one of them: roles.h. */
    double role_threads[STK_WATCH_ROLES], role[STK_WATCH_ROLES][STK_WATCH_STATES];
} stk_watch_signals;

const char *stk_watch_signal_name(stk_watch_signal signal);
const char *stk_watch_signal_unit(stk_watch_signal signal);
/* Its sentence with its value into out, with "N" for one that is NaN. */
enum { STK_WATCH_SENTENCE = 160 };
void stk_watch_signal_tell(const stk_watch_signals *signals, stk_watch_signal signal, char out[STK_WATCH_SENTENCE]);

/* Fills the account's parts, where the driving thread was looked at; the signals of cores and of memory are there
 * already. */
void stk_watch_account_sum(const stk_watch_span *s, const stk_watch_facts *facts, double *out);
void stk_watch_signals_find(const stk_watch_history *history, const stk_watch_facts *facts, stk_watch_signals *out);

#endif
