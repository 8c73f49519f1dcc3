/* See base/new_file.h. */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

typedef enum judgement { OURS, ANOTHER, UNREADABLE } judgement;

/* OURS: nothing, an empty file, or those bytes in a regular one. UNREADABLE: errno tells why. */
static judgement judge(const char *path, int flags, size_t at, const void *magic, size_t n)
{
    char found[128];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0) return errno == ENOENT ? OURS : UNREADABLE;
    judgement result = ANOTHER;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && n <= sizeof(found)) {
        ssize_t n_read = pread(fd, found, n, (off_t)at);
        if (n_read < 0)
            result = UNREADABLE;
        else if (info.st_size == 0 || (n_read == (ssize_t)n && !memcmp(found, magic, n)))
            result = OURS;
    }
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

bool stk_new_file_may_replace(const char *path, const void *magic, size_t n)
{
    return judge(path, O_NOFOLLOW, 0, magic, n) == OURS;
}

stk_status stk_new_file_check_kind(const char *path, const char *kind, size_t at, const void *magic, size_t n)
{
    struct stat info;
    judgement result = judge(path, 0, at, magic, n);
    int error = errno;
    /* What is no regular file has a message of its own. */
    if (result == OURS || stat(path, &info) < 0 || !S_ISREG(info.st_mode)) return STK_OK;
    if (result == UNREADABLE)
        return stk_fail(STK_IO,
                        "'%s' is there and cannot be read (%s): it is not replaced; name another file, or remove it",
                        path, stk_errno_text(error));
    return stk_fail(STK_BUSY, "'%s' is there and is not %s: it is not replaced; name another file, or remove it", path,
                    kind);
}

stk_status stk_new_file_check_regular(const char *path)
{
    struct stat info;
    if (stat(path, &info) < 0 || S_ISREG(info.st_mode)) return STK_OK;
    return S_ISDIR(info.st_mode) ? stk_fail(STK_IO, "cannot write '%s': it is a folder", path)
                                 : stk_fail(STK_IO, "cannot write '%s': it is there and is no regular file", path);
}

stk_status stk_new_file_begin(stk_new_file *f, const char *path)
{
    f->path = path;
    f->fd = -1;
    f->temporary[0] = 0;
    STK_RETURN_IF_ERROR(stk_new_file_check_regular(path));
    return stk_temporary_file(path, f->temporary, &f->fd);
}

stk_status stk_new_file_finish(stk_new_file *f, bool sync)
{
    if (sync && fsync(f->fd) < 0) return stk_fail(STK_IO, "cannot write '%s': %s", f->path, stk_errno_text(errno));
    if (rename(f->temporary, f->path) < 0)
        return stk_fail(STK_IO, "cannot rename a temporary file to '%s': %s", f->path, stk_errno_text(errno));
    f->temporary[0] = 0;
    return STK_OK;
}

void stk_new_file_end(stk_new_file *f)
{
    if (f->fd < 0) return;
    if (f->temporary[0]) (void)unlink(f->temporary);
    close(f->fd);
    f->fd = -1;
}
