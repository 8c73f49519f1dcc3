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

int stk_watch_open_path(const stk_watch_root *root, const char *path)
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

void stk_watch_end_text(char *text, size_t n)
{
    for (char *zero = text; (zero = memchr(zero, 0, (size_t)(text + n - zero)));)
        *zero++ = ' ';
    text[n] = 0;
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
    int fd = stk_watch_open_path(root, path);
    if (fd < 0) return false;
    ssize_t got;
    /* Long files come in pieces, though there is room for more. */
    while (n + 1 < bytes && (got = read(fd, out + n, bytes - 1 - n)) > 0) {
        n += (size_t)got;
        if (bytes <= STK_WATCH_SHORT) break;
    }
    close(fd);
    stk_watch_end_text(out, n);
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
    ssize_t n = -1;
    if (root->over) {
        char over[2 * PATH_BYTES];
        snprintf(over, sizeof(over), "%s%s", root->over, path);
        n = readlink(over, out, bytes - 1);
    }
    if (n < 0) n = readlink(path, out, bytes - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}
