#include "watch/keep.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct kept_file {
    int64_t key, fd;
} kept_file;

enum { MOST_FILES = 512, PATH_BYTES = 1024 };

void stk_watch_keeper_open(stk_watch_keeper *keeper, const stk_watch_root *root)
{
    struct rlimit limit;
    memset(keeper, 0, sizeof(*keeper));
    keeper->root = root;
    keeper->files.entry_bytes = sizeof(kept_file);
    keeper->most = MOST_FILES;
    /* Half of what a process may open is left to all others, and to NVIDIA's library. */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < keeper->most) keeper->most = limit.rlim_cur / 2;
}

static bool read_kept(const kept_file *file, char *out, size_t bytes)
{
    ssize_t n = pread((int)file->fd, out, bytes - 1, 0);
    stk_watch_end_text(out, n > 0 ? (size_t)n : 0);
    return n > 0;
}

bool stk_watch_read_kept(stk_watch_keeper *keeper, int64_t key, char *out, size_t bytes, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    kept_file *file = stk_watch_list_find(&keeper->files, key);
    if (file && read_kept(file, out, bytes)) return true;
    /* What cannot be read any more may have been another process's. */
    if (file) stk_watch_keeper_drop(keeper, key, key);
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    int fd = stk_watch_open_path(keeper->root, path);
    kept_file here = {key, fd};
    bool good = fd >= 0 && read_kept(&here, out, bytes);
    if (fd < 0) out[0] = 0;
    file = good && keeper->files.n < keeper->most ? stk_watch_list_add(&keeper->files, key) : NULL;
    if (file)
        file->fd = fd;
    else if (fd >= 0)
        close(fd);
    return good;
}

void stk_watch_keeper_drop(stk_watch_keeper *keeper, int64_t first, int64_t last)
{
    stk_watch_list *files = &keeper->files;
    size_t n_left = 0;
    for (size_t i = 0; i < files->n; i++) {
        kept_file *file = (kept_file *)files->data + i;
        if (file->key >= first && file->key <= last)
            close((int)file->fd);
        else
            ((kept_file *)files->data)[n_left++] = *file;
    }
    files->n = n_left;
}

void stk_watch_keeper_close(stk_watch_keeper *keeper)
{
    stk_watch_keeper_drop(keeper, INT64_MIN, INT64_MAX);
    free(keeper->files.data);
    memset(keeper, 0, sizeof(*keeper));
}
