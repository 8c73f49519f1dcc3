#include "weights/checkpoint_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int (*stk_checkpoint_fault)(const char *call, const char *path);

static int fault(const char *call, const char *path)
{
    return stk_checkpoint_fault ? stk_checkpoint_fault(call, path) : 0;
}

static stk_status fail_call(const char *doing, const char *path, int error)
{
    return stk_fail(STK_IO, "cannot %s '%s': %s", doing, path, stk_errno_text(error));
}

stk_status stk_out_open(const char *path, stk_out_file *out)
{
    int error = fault("open", path);
    *out = (stk_out_file){.fd = -1, .path = path};
    if (!error) {
        out->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (out->fd < 0) error = errno;
    }
    return error ? fail_call("create", path, error) : STK_OK;
}

stk_status stk_out_write(stk_out_file *file, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        size_t part = n < (size_t)1 << 30 ? n : (size_t)1 << 30;
        int error = fault("write", file->path);
        ssize_t r = error ? -1 : write(file->fd, p, part);
        if (r < 0 && !error) error = errno;
        if (error == EINTR) continue;
        if (error) return fail_call("write", file->path, error);
        p += r;
        n -= (size_t)r;
        file->n_bytes += (uint64_t)r;
    }
    return STK_OK;
}

stk_status stk_out_finish(stk_out_file *file)
{
    int error = fault("fsync", file->path);
    if (!error && fsync(file->fd) < 0) error = errno;
    if (error) {
        stk_out_abandon(file);
        return fail_call("write", file->path, error);
    }
    error = fault("close", file->path);
    if (close(file->fd) < 0 && !error) error = errno;
    file->fd = -1;
    return error ? fail_call("write", file->path, error) : STK_OK;
}

void stk_out_abandon(stk_out_file *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

stk_status stk_io_mkdir(const char *path)
{
    int error = fault("mkdir", path);
    if (!error && mkdir(path, 0777) < 0) error = errno;
    return error ? fail_call("make folder", path, error) : STK_OK;
}

stk_status stk_io_rename(const char *from, const char *to)
{
    int error = fault("rename", to);
    if (!error && rename(from, to) < 0) error = errno;
    return error ? fail_call("rename a folder to", to, error) : STK_OK;
}

stk_status stk_io_sync_dir(const char *path)
{
    int error = fault("open", path), fd = -1;
    if (!error && (fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) error = errno;
    if (!error) error = fault("fsync", path);
    /* Some file systems cannot sync a folder and say EINVAL. */
    if (!error && fsync(fd) < 0 && errno != EINVAL) error = errno;
    if (fd >= 0) close(fd);
    return error ? fail_call("sync folder", path, error) : STK_OK;
}
