/* Writes down which calls change files below a folder, in their order: "fsync step-1", "rename .saving step-1". For the
 * one file of a test that includes this: it defines those functions in libc's place.
 */
#ifndef STK_TESTS_FAULTS_LOG_CALLS_H
#define STK_TESTS_FAULTS_LOG_CALLS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From when `under` is set on; tests wait for the threads that write before they look. */
static struct {
    char under[4096], text[1 << 14];
    size_t n;
} logged;

static void log_begin(const char *under)
{
    if (!realpath(under, logged.under)) logged.under[0] = 0;
    logged.n = 0;
    logged.text[0] = 0;
}

/* Behind the folder's name; "." for the folder; NULL: it lies elsewhere. */
static const char *log_short(const char *path)
{
    size_t n = strlen(logged.under);
    if (!n || strncmp(path, logged.under, n)) return NULL;
    return path[n] == '/' ? path + n + 1 : path[n] ? NULL : ".";
}

static void log_call(const char *call, const char *path, const char *other)
{
    const char *name = log_short(path), *to = other ? log_short(other) : "";
    if (!name || !to || logged.n >= sizeof(logged.text)) return;
    logged.n += (size_t)snprintf(logged.text + logged.n, sizeof(logged.text) - logged.n, "%s %s%s%s\n", call, name,
                                 *to ? " " : "", to);
}

static void log_fd(const char *call, int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0) return;
    path[n] = 0;
    log_call(call, path, NULL);
}

int fsync(int fd)
{
    log_fd("fsync", fd);
    return (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
    log_fd("syncfs", fd);
    return (int)syscall(SYS_syncfs, fd);
}

int rename(const char *from, const char *to)
{
    log_call("rename", from, to);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

#endif
