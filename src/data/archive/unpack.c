/* An archive's members as files. See archive/archive.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "data/archive/archive.h"

enum { PATH_BYTES = 4096 };

/* The folders that lead to path. last: the one that was made before; files of a folder mostly follow one another. */
static stk_status make_folders(const char *path, char last[PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    size_t n = (size_t)(slash - path);
    if (!strncmp(last, path, n) && last[n] == 0) return STK_OK;
    memcpy(last, path, n);
    last[n] = 0;
    return stk_dir_make(last);
}

static stk_status write_member(const stk_archive *archive, size_t i, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return stk_fail(STK_CORRUPT, "its member '%.200s' comes twice", stk_archive_at(archive, i).name);
    if (fd < 0) return stk_fail(STK_IO, "cannot create '%s': %s", path, stk_errno_text(errno));
    stk_status status = stk_archive_copy(archive, i, fd, path);
    if (close(fd) < 0 && status == STK_OK)
        status = stk_fail(STK_IO, "cannot write '%s': %s", path, stk_errno_text(errno));
    return status;
}

/* Whether the last part of the name begins as one of those that are wanted. */
static bool is_wanted(const char *name, const char *const *keep)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    for (int i = 0; keep && keep[i]; i++)
        if (!strncmp(last, keep[i], strlen(keep[i]))) return true;
    return !keep;
}

/* All names and sizes are looked at before the first file is written. */
static stk_status check_all(const stk_archive *archive, int n_strip, stk_archive_limits limits)
{
    char name[STK_ARCHIVE_NAME];
    uint64_t sum = 0;
    for (size_t i = 0; i < stk_archive_count(archive); i++) {
        stk_archive_member member = stk_archive_at(archive, i);
        STK_RETURN_IF_ERROR(stk_archive_safe_name(member.name, n_strip, name));
        if (__builtin_add_overflow(sum, member.n_bytes, &sum) || sum > limits.most_bytes)
            return stk_fail(STK_CORRUPT, "it unpacks to more than %llu bytes, which cannot be right",
                            (unsigned long long)limits.most_bytes);
    }
    return STK_OK;
}

stk_status stk_archive_unpack(const stk_archive *archive, const char *folder, int n_strip, stk_archive_limits limits,
                              stk_archive_progress_fn progress, void *user, stk_archive_written *out)
{
    char name[STK_ARCHIVE_NAME], path[PATH_BYTES], last[PATH_BYTES] = "";
    size_t n = stk_archive_count(archive);
    *out = (stk_archive_written){0};
    STK_RETURN_IF_ERROR(check_all(archive, n_strip, limits));
    for (size_t i = 0; i < n; i++) {
        stk_archive_member member = stk_archive_at(archive, i);
        STK_RETURN_IF_ERROR(stk_archive_safe_name(member.name, n_strip, name));
        if (progress && i % 64 == 0 && !progress(user, i, n)) return stk_fail(STK_INTERRUPTED, "it was stopped");
        if (!name[0] || !is_wanted(name, limits.keep)) {
            out->n_passed_over++;
            continue;
        }
        STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, name));
        STK_RETURN_IF_ERROR(make_folders(path, last));
        STK_RETURN_IF_ERROR(write_member(archive, i, path));
        out->n_files++;
        out->n_bytes += (int64_t)member.n_bytes;
    }
    if (progress) (void)progress(user, n, n);
    return out->n_files ? STK_OK : stk_fail(STK_CORRUPT, "it holds no files");
}
