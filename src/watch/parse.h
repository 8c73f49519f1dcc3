/* Readers of the kernel's texts (proc(5), cgroups(7), Documentation/accounting/psi.rst): pure functions that take any
 * text, ended by 0, and say false or -1 where it is not what they expect. Threads: any. */
#ifndef STK_WATCH_PARSE_H
#define STK_WATCH_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/sample.h"

enum { STK_WATCH_NAME = 24, STK_WATCH_PATH = 512 };

/* /proc/PID/stat and /proc/PID/task/TID/stat. */
typedef struct stk_watch_stat {
    char name[STK_WATCH_NAME], state;
    int64_t pid, parent, group, session, minor_faults, major_faults, cpu_ticks, system_ticks, children_ticks, n_threads,
        start_ticks, resident_pages, last_cpu;
} stk_watch_stat;
bool stk_watch_parse_stat(const char *text, stk_watch_stat *out);

/* /proc/PID/schedstat: nanoseconds on a core, and ready but waiting for one. */
bool stk_watch_parse_schedstat(const char *text, int64_t *run_ns, int64_t *waited_ns);

/* The number of a line "key number" or "key: number kB", as in status, io, meminfo, vmstat, cpu.stat and
 * memory.events; -1: no such line. */
int64_t stk_watch_parse_key(const char *text, const char *key);

/* A file that is one number; "max" and huge ones are -1. */
int64_t stk_watch_parse_number(const char *text);

/* The line `kind` ("some") of /proc/pressure/x: total microseconds, or -1. */
int64_t stk_watch_parse_pressure(const char *text, const char *kind);

/* /proc/stat: ticks of all cores since boot that were busy, waiting for disks, and stolen by a hypervisor; the number
 * of cores; how many processes and threads were started. */
typedef struct stk_watch_cpu_times {
    int64_t busy, iowait, steal, n_cpus, n_runnable, n_forks;
} stk_watch_cpu_times;
bool stk_watch_parse_cpu_times(const char *text, stk_watch_cpu_times *out);

/* /proc/diskstats: sums over whole disks. */
typedef struct stk_watch_disks {
    int64_t read_sectors, written_sectors, busy_ms;
} stk_watch_disks;
bool stk_watch_parse_disks(const char *text, stk_watch_disks *out);

/* /proc/net/dev: sums over all interfaces but lo. */
bool stk_watch_parse_net(const char *text, int64_t *received_bytes, int64_t *sent_bytes);

/* A list of cores such as "0-3,8": how many (-1: not a list), and whether `cpu` is one of them. */
int64_t stk_watch_parse_cpu_list(const char *text, int64_t cpu, bool *has);

/* /proc/PID/mountinfo: file-system type and mount point of a path. */
bool stk_watch_parse_mount(const char *text, const char *path, char type[STK_WATCH_PATH], char point[STK_WATCH_PATH]);
/* Whether files of that type lie behind a network or a user's program. */
bool stk_watch_is_remote(const char *type);

/* /proc/PID/syscall: the call's number and its first arguments; false while the thread runs, or sleeps in no call. */
typedef struct stk_watch_call {
    int64_t number, argument[4];
} stk_watch_call;
bool stk_watch_parse_call(const char *text, stk_watch_call *out);

/* A line of /proc/net/tcp or tcp6: the socket's inode, and both ends as address (the last 32 bits) times 65536 and
 * port; false: no line of an established connection. */
typedef struct stk_watch_connection {
    int64_t here, there;
} stk_watch_connection;
bool stk_watch_parse_connection(const char *line, int64_t *inode, stk_watch_connection *out);

/* /proc/PID/wchan, the kernel function that a thread sleeps in. */
stk_watch_wait stk_watch_parse_wchan(const char *text);

/* Which framework a process uses, by /proc/PID/maps or its command line (0 between words is read as a blank): "torch",
 * "tensorflow", "jax", "stoker", or NULL. */
const char *stk_watch_parse_framework(const char *maps);
bool stk_watch_is_python(const char *maps);

/* Where the code of OpenMP's libraries (GCC's, LLVM's, Intel's) lies, by /proc/PID/maps. Returns how many pieces there
 * are, at most `most`. */
typedef struct stk_watch_code {
    uint64_t begin, end;
} stk_watch_code;
int stk_watch_parse_openmp(const char *maps, stk_watch_code *out, int most);
/* Likewise, in a process of JAX or TensorFlow, the code that does not compute for them: Python's interpreter, extension
 * modules and libraries that are not theirs. */
int stk_watch_parse_feeding(const char *maps, stk_watch_code *out, int most);
/* Where the data of Python's interpreter lie, which its lock is a part of: of the library, or of a program that has it
 * in itself. False: there is none. */
bool stk_watch_parse_interpreter(const char *maps, stk_watch_code *out);

/* NCCL's answer to VERBOSE STATUS (docs of NCCL 2.24, RAS): the rank that lags behind the others, -1 where none does
 * or nothing is said. */
int64_t stk_watch_parse_ras(const char *text);

#endif
