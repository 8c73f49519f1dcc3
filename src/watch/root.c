#include "watch/root.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

bool stk_watch_is_hidden(const stk_watch_root *root, const char *path)
{
    for (const char *p = root->without; p && *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        for (const char *at = path; n > 0 && *at; at++)
            if (!strncmp(at, p, n)) return true;
        p += n;
    }
    return false;
}

static int open_path(const stk_watch_root *root, const char *path)
{
    char over[2 * PATH_BYTES];
    if (stk_watch_is_hidden(root, path)) return -1;
    if (root->over) {
        snprintf(over, sizeof(over), "%s%s", root->over, path);
        int fd = open(over, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) return fd;
    }
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool stk_watch_read(const stk_watch_root *root, char *out, size_t bytes, const char *format, ...)
{
    char path[PATH_BYTES];
    size_t n = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    out[0] = 0;
    int fd = open_path(root, path);
    if (fd < 0) return false;
    ssize_t got;
    /* One call gives a whole file of /proc mostly; a short one is its end nearly always, but not in long files. */
    while (n + 1 < bytes && (got = read(fd, out + n, bytes - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    out[n] = 0;
    for (size_t i = 0; i < n; i++)
        if (!out[i]) out[i] = ' ';
    return n > 0;
}

bool stk_watch_read_link(const stk_watch_root *root, char *out, size_t bytes, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    out[0] = 0;
    if (stk_watch_is_hidden(root, path)) return false;
    ssize_t n = readlink(path, out, bytes - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}
