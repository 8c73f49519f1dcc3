/* See base/input.h. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"

static stk_status fail_read(const char *path, int error)
{
    stk_status status = error == ENOENT || error == ENOTDIR ? STK_NOT_FOUND : STK_IO;
    return stk_fail(status, "cannot read '%s': %s", path, stk_errno_text(error));
}

/* O_NONBLOCK: a pipe among the files must not hang. O_NOATIME, which only a file's owner may ask for: noting the time
 * of each read takes longer than many a read. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOATIME);
    return fd < 0 && errno == EPERM ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : fd;
}

stk_status stk_input_open(const char *path, bool keep_open, stk_input *out)
{
    struct stat info;
    stk_status status = STK_OK;
    *out = (stk_input){.fd = -1};
    int fd = open_file(path);
    if (fd < 0) return fail_read(path, errno);
    if (fstat(fd, &info) < 0) STK_TRY(fail_read(path, errno));
    if (S_ISDIR(info.st_mode)) STK_TRY(stk_fail(STK_IO, "cannot read '%s': it is a folder", path));
    if (!S_ISREG(info.st_mode)) STK_TRY(stk_fail(STK_IO, "cannot read '%s': not a regular file", path));
    out->n_bytes = (uint64_t)info.st_size;
    out->mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    out->ctime_ns = (int64_t)info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec;
    out->path = strdup(path);
    if (!out->path) STK_TRY(stk_fail_memory(strlen(path)));
    if (keep_open) {
        out->fd = fd;
        fd = -1;
    }
done:
    if (fd >= 0) close(fd);
    return status;
}

int64_t stk_time_stamp(int64_t mtime_ns, int64_t ctime_ns)
{
    return ctime_ns ? (int64_t)stk_mix64((uint64_t)mtime_ns ^ stk_mix64((uint64_t)ctime_ns)) : mtime_ns;
}

int64_t stk_input_stamp(const stk_input *input)
{
    return stk_time_stamp(input->mtime_ns, input->ctime_ns);
}

stk_input stk_input_of_memory(stk_span bytes)
{
    static const uint8_t nothing[1];
    return (stk_input){.n_bytes = bytes.n, .fd = -1, .memory = bytes.data ? bytes.data : nothing};
}

static stk_status fail_short(const stk_input *input, uint64_t at, size_t n)
{
    if (at > input->n_bytes || n > input->n_bytes - at)
        return stk_fail(STK_CORRUPT, "%s is cut short: %zu bytes should follow at byte %llu, but it has %llu",
                        input->path ? "the file" : "it", n, (unsigned long long)at, (unsigned long long)input->n_bytes);
    return stk_fail(STK_CORRUPT, "the file has become shorter while it was in use: no %zu bytes at byte %llu", n,
                    (unsigned long long)at);
}

static stk_status read_all(const stk_input *input, int fd, uint64_t at, uint8_t *dst, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = pread(fd, dst + got, n - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return fail_read(input->path, errno);
        if (r == 0) return fail_short(input, at, n);
        got += (size_t)r;
    }
    return STK_OK;
}

stk_status stk_input_read(const stk_input *input, uint64_t at, void *dst, size_t n)
{
    if (n == 0) return STK_OK;
    if (at > input->n_bytes || n > input->n_bytes - at) return fail_short(input, at, n);
    if (input->memory) {
        memcpy(dst, input->memory + at, n);
        return STK_OK;
    }
    if (input->backend) return input->backend->read(input->backend_self, at, dst, n);
    if (input->fd >= 0) return read_all(input, input->fd, at, dst, n);
    int fd = open_file(input->path);
    if (fd < 0 && errno == ENOENT) return stk_fail(STK_IO, "'%s' has gone while it was in use", input->path);
    if (fd < 0) return fail_read(input->path, errno);
    stk_status status = read_all(input, fd, at, dst, n);
    close(fd);
    return status;
}

bool stk_input_fetch(const stk_input *input, uint64_t at, size_t n)
{
    if (n == 0 || at > input->n_bytes || n > input->n_bytes - at || input->memory) return true;
    if (input->backend) return !input->backend->fetch || input->backend->fetch(input->backend_self, at, n);
    int fd = input->fd >= 0 ? input->fd : open_file(input->path);
    if (fd >= 0) (void)posix_fadvise(fd, (off_t)at, (off_t)n, POSIX_FADV_WILLNEED);
    if (fd >= 0 && fd != input->fd) close(fd);
    return true;
}

void stk_input_close(stk_input *input)
{
    if (input->backend)
        input->backend->close(input->backend_self);
    else if (input->path && input->fd >= 0)
        close(input->fd);
    free(input->path);
    *input = (stk_input){.fd = -1};
}
