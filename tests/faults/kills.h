/* Kills at a counted write. Calls that change files below a folder are counted, and the N-th one ends the process with
 * SIGKILL in its middle: write has written half, the others nothing. For the one file of a program, or of a library
 * that is loaded before it, that includes this: it defines those functions in libc's place.
 */
#ifndef STK_TESTS_FAULTS_KILLS_H
#define STK_TESTS_FAULTS_KILLS_H

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define KILLS_API __attribute__((visibility("default")))

static struct {
    char under[4096]; /* an absolute path's beginning; "": nothing is counted */
    long long at;     /* 0: none is fatal */
    atomic_llong n;   /* that were made */
} kills;

static void kills_begin(const char *under, long long at)
{
    size_t n = 0;
    if (under[0] != '/' && getcwd(kills.under, sizeof(kills.under) - 1)) {
        n = strlen(kills.under);
        kills.under[n++] = '/';
    }
    snprintf(kills.under + n, sizeof(kills.under) - n, "%s", under);
    kills.at = at;
    atomic_store(&kills.n, 0);
}

static bool kills_counts(const char *path)
{
    char folder[4096];
    if (path[0] == '/') return !strncmp(path, kills.under, strlen(kills.under));
    if (!getcwd(folder, sizeof(folder))) return false;
    size_t n = strlen(folder);
    if (strncmp(kills.under, folder, n) || kills.under[n] != '/') return false;
    return !strncmp(path, kills.under + n + 1, strlen(kills.under + n + 1));
}

/* True: this call is the last one. */
static bool kills_path(const char *path)
{
    if (!kills.under[0] || !kills_counts(path)) return false;
    return atomic_fetch_add(&kills.n, 1) + 1 == kills.at;
}

static bool kills_fd(int fd)
{
    char link[64], path[4096];
    if (!kills.under[0]) return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n < 0) return false;
    path[n] = 0;
    return path[0] == '/' && kills_path(path);
}

static void kills_now(void)
{
    for (;;)
        (void)kill(getpid(), SIGKILL);
}

KILLS_API ssize_t write(int fd, const void *data, size_t n)
{
    if (kills_fd(fd)) {
        (void)syscall(SYS_write, fd, data, n / 2);
        kills_now();
    }
    return syscall(SYS_write, fd, data, n);
}

KILLS_API ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    if (kills_fd(fd)) {
        (void)syscall(SYS_pwrite64, fd, data, n / 2, at);
        kills_now();
    }
    return syscall(SYS_pwrite64, fd, data, n, at);
}

/* A function that changes nothing before the process ends. */
#define KILLS_CALL(name, parameters, fatal, ...)                                                                       \
    KILLS_API int name parameters                                                                                      \
    {                                                                                                                  \
        if (fatal) kills_now();                                                                                        \
        return (int)syscall(__VA_ARGS__);                                                                              \
    }

KILLS_CALL(ftruncate, (int fd, off_t n), kills_fd(fd), SYS_ftruncate, fd, n)
KILLS_CALL(fdatasync, (int fd), kills_fd(fd), SYS_fdatasync, fd)
KILLS_CALL(syncfs, (int fd), kills_fd(fd), SYS_syncfs, fd)
#ifndef KILLS_HAS_FSYNC
KILLS_CALL(fsync, (int fd), kills_fd(fd), SYS_fsync, fd)
#endif
KILLS_CALL(mkdir, (const char *path, mode_t mode), kills_path(path), SYS_mkdirat, AT_FDCWD, path, mode)
KILLS_CALL(unlink, (const char *path), kills_path(path), SYS_unlinkat, AT_FDCWD, path, 0)
KILLS_CALL(rmdir, (const char *path), kills_path(path), SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)
KILLS_CALL(rename, (const char *from, const char *to), kills_path(to), SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)

#endif
