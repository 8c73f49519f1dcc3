/* Loaded before the program (LD_PRELOAD) to make happen what seldom does: an allocation that fails, a disk that is
 * slow, the end of the process in the middle of a write.
 *
 * - STK_FAIL_AT=N: the N-th allocation of the program's own code fails;
 * - STK_FAIL_MANY=N: and N in all from there on;
 * - STK_FAIL_WITHIN=A-B: only those count that the code from A to B of the program's file makes, or what it calls;
 * - STK_FAIL_COUNT=F: at the end the number of such allocations is written to the file F;
 * - STK_FAIL_STACK=1: the failing one tells where it was made, on standard error;
 * - STK_HOLD_SYNC=F: fsync waits for as long as the file F exists;
 * - STK_KILL_UNDER=P: calls that change files whose path begins with P are counted (kills.h);
 * - STK_KILL_AT=N: the N-th of them ends the process with SIGKILL;
 * - STK_KILL_COUNT=F: at the end the number of such calls is written to the file F.
 *
 * Allocations are those that the program's file, jansson and libyaml make, and calls to libc that allocate for them
 * (strdup, fopen, opendir, open_memstream, vasprintf). Those of oneDNN and OpenMP are left alone: they end the process.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KILLS_HAS_FSYNC
#include "kills.h"

#define API __attribute__((visibility("default")))

enum { MOST_PARTS = 16 };
static struct {
    uintptr_t from, to;
} part[MOST_PARTS]; /* of the address space, whose allocations count */
static int n_parts;

static uintptr_t base, within_from, within_to; /* of the program's file; both 0: all counts */

static atomic_llong n_made;
static long long fail_at, fail_many = 1;
static bool tells;
static const char *count_file, *hold_file, *kill_count_file;

static int add_parts(struct dl_phdr_info *info, size_t bytes, void *user)
{
    const char *name = strrchr(info->dlpi_name, '/');
    bool *is_first = user; /* the program itself */
    (void)bytes;
    if (*is_first) base = info->dlpi_addr;
    *is_first = false;
    name = name ? name + 1 : info->dlpi_name;
    if (name[0] && strncmp(name, "libjansson.", 11) && strncmp(name, "libyaml", 7) && strncmp(name, "libstoker.", 10))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && n_parts < MOST_PARTS; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        part[n_parts].from = info->dlpi_addr + p->p_vaddr;
        part[n_parts++].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("STK_FAIL_AT"), *many = getenv("STK_FAIL_MANY"), *within = getenv("STK_FAIL_WITHIN");
    bool is_first = true;
    tells = getenv("STK_FAIL_STACK") != NULL;
    count_file = getenv("STK_FAIL_COUNT");
    hold_file = getenv("STK_HOLD_SYNC");
    kill_count_file = getenv("STK_KILL_COUNT");
    const char *under = getenv("STK_KILL_UNDER"), *kill_at = getenv("STK_KILL_AT");
    if (under) kills_begin(under, kill_at ? atoll(kill_at) : 0);
    if (many) fail_many = atoll(many);
    if (tells || within) {
        void *unused[1];
        backtrace(unused, 1); /* Its first call allocates. */
    }
    if (within) {
        char *end;
        within_from = strtoul(within, &end, 16);
        within_to = strtoul(end + 1, NULL, 16);
    }
    dl_iterate_phdr(add_parts, &is_first);
    if (at) fail_at = atoll(at);
}

static void write_count(const char *path, long long count)
{
    char text[32];
    if (!path) return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int n = snprintf(text, sizeof(text), "%lld\n", count);
    if (fd >= 0 && write(fd, text, (size_t)n) != n) abort();
    if (fd >= 0) close(fd);
}

__attribute__((destructor)) static void end(void)
{
    long long n_calls = kills.n;
    write_count(count_file, n_made);
    write_count(kill_count_file, n_calls);
}

static void tell(void)
{
    void *frame[24];
    int n = backtrace(frame, 24);
    backtrace_symbols_fd(frame, n, STDERR_FILENO);
}

static bool is_within(void)
{
    void *frame[48];
    int n = within_to ? backtrace(frame, 48) : 0;
    for (int i = 0; i < n; i++)
        if ((uintptr_t)frame[i] - base > within_from && (uintptr_t)frame[i] - base <= within_to) return true;
    return within_to == 0;
}

/* Counts one from that caller; true: it is to fail. */
static bool fails(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    bool counts = false;
    for (int i = 0; i < n_parts; i++)
        counts = counts || (at >= part[i].from && at < part[i].to);
    if (!counts || !is_within()) return false;
    long long n = atomic_fetch_add(&n_made, 1) + 1;
    if (fail_at == 0 || n < fail_at || n >= fail_at + fail_many) return false;
    if (tells) tell();
    errno = ENOMEM;
    return true;
}

/* The next definition of a function: the sanitizer's, or libc's. */
#define NEXT(name) ((__typeof__(&name))next_of(#name))
static void *next_of(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* dlsym may allocate, so that these are found once, by a first call that does not count. */
#define ALLOCATOR(type, name, parameters, arguments)                                                                   \
    API type name parameters                                                                                           \
    {                                                                                                                  \
        static __typeof__(&name) next;                                                                                 \
        if (!next) next = NEXT(name);                                                                                  \
        return fails(__builtin_return_address(0)) ? NULL : next arguments;                                             \
    }

ALLOCATOR(void *, malloc, (size_t n), (n))
ALLOCATOR(void *, calloc, (size_t n, size_t each), (n, each))
ALLOCATOR(void *, realloc, (void *p, size_t n), (p, n))
ALLOCATOR(void *, aligned_alloc, (size_t to, size_t n), (to, n))
ALLOCATOR(char *, strdup, (const char *text), (text))
ALLOCATOR(char *, strndup, (const char *text, size_t n), (text, n))
ALLOCATOR(FILE *, fopen, (const char *path, const char *how), (path, how))
ALLOCATOR(FILE *, fdopen, (int fd, const char *how), (fd, how))
ALLOCATOR(FILE *, open_memstream, (char **data, size_t *n), (data, n))
ALLOCATOR(DIR *, opendir, (const char *path), (path))
ALLOCATOR(char *, realpath, (const char *path, char *out), (path, out))

API int posix_memalign(void **out, size_t to, size_t n)
{
    static __typeof__(&posix_memalign) next;
    if (!next) next = NEXT(posix_memalign);
    return fails(__builtin_return_address(0)) ? ENOMEM : next(out, to, n);
}

API int vasprintf(char **out, const char *format, va_list args)
{
    static __typeof__(&vasprintf) next;
    if (!next) next = NEXT(vasprintf);
    return fails(__builtin_return_address(0)) ? -1 : next(out, format, args);
}

API int asprintf(char **out, const char *format, ...)
{
    va_list args;
    if (fails(__builtin_return_address(0))) return -1;
    va_start(args, format);
    int n = vasprintf(out, format, args);
    va_end(args);
    return n;
}

API int fsync(int fd)
{
    static __typeof__(&fsync) next;
    if (!next) next = NEXT(fsync);
    if (kills_fd(fd)) kills_now();
    while (hold_file && access(hold_file, F_OK) == 0)
        usleep(5000);
    return next(fd);
}
