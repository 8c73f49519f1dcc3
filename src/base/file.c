/* See base/file.h. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/new_file.h"
#include "base/plain_number.h"

static stk_status fail_path(const char *doing, const char *path, int error)
{
    stk_status status = error == ENOENT || error == ENOTDIR ? STK_NOT_FOUND : error == ENOMEM ? STK_NO_MEMORY : STK_IO;
    return stk_fail(status, "cannot %s '%s': %s", doing, path, stk_errno_text(error));
}

/* Opens a regular file for reading. */
static stk_status open_regular(const char *path, int *out_fd, size_t *out_bytes)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_path("open", path, errno);
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        stk_status status = S_ISDIR(info.st_mode) ? stk_fail(STK_IO, "cannot read '%s': it is a folder", path)
                                                  : stk_fail(STK_IO, "cannot read '%s': not a regular file", path);
        close(fd);
        return status;
    }
    *out_fd = fd;
    *out_bytes = (size_t)info.st_size;
    return STK_OK;
}

stk_status stk_file_read(const char *path, uint8_t **buffer, size_t *capacity, size_t *n)
{
    return stk_file_read_small(path, SIZE_MAX, buffer, capacity, n);
}

/* Before a byte of it is read: its size alone may be a mistake, as of a sparse file. */
stk_status stk_file_check_size(const char *path, size_t size, size_t most_bytes)
{
    char whole[STK_PLAIN_TEXT], rest[STK_PLAIN_TEXT];
    size_t left = stk_memory_left(stk_memory_in_use());
    if (size > most_bytes)
        return stk_fail(STK_CORRUPT, "'%s' has %zu bytes, and files of its kind have %zu at most", path, size,
                        most_bytes);
    if (size > left)
        return stk_fail(
            STK_NO_MEMORY,
            "'%s' has %s and is read whole, but %s are left of the pipeline's memory limit: raise the limit", path,
            stk_plain_bytes((double)size, whole), stk_plain_bytes((double)left, rest));
    return STK_OK;
}

stk_status stk_file_read_small(const char *path, size_t most_bytes, uint8_t **buffer, size_t *capacity, size_t *n)
{
    int fd = -1;
    size_t size = 0, got = 0;
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(open_regular(path, &fd, &size));
    STK_TRY(stk_file_check_size(path, size, most_bytes));
    if (size > *capacity || !*buffer) {
        size_t grown = size + size / 4 + 64;
        uint8_t *p = realloc(*buffer, grown);
        if (!p) {
            status = stk_fail_memory(grown);
            goto done;
        }
        *buffer = p;
        *capacity = grown;
    }
    while (got < size) {
        ssize_t r = read(fd, *buffer + got, size - got);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) {
            status = fail_path("read", path, errno);
            goto done;
        }
        if (r == 0)
            STK_TRY(stk_fail(STK_CORRUPT, "'%s' has become shorter while it was read: it ends at byte %zu of %zu", path,
                             got, size));
        got += (size_t)r;
    }
    *n = got;
done:
    close(fd);
    return status;
}

stk_status stk_file_load(const char *path, stk_span *out)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    *out = (stk_span){0};
    stk_status status = stk_file_read(path, &bytes, &capacity, &n);
    if (status == STK_OK && n > 0)
        *out = (stk_span){bytes, n};
    else
        free(bytes);
    return status;
}

void stk_file_unload(stk_span span)
{
    free((void *)span.data);
}

stk_status stk_write_all(int fd, const char *path, const void *data, size_t n)
{
    const uint8_t *p = data;
    while (n > 0) {
        ssize_t r = write(fd, p, n);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return fail_path("write", path, errno);
        p += r;
        n -= (size_t)r;
    }
    return STK_OK;
}

stk_status stk_file_write_durably(const char *path, const void *data, size_t n)
{
    stk_new_file file;
    STK_RETURN_IF_ERROR(stk_new_file_begin(&file, path));
    stk_status status = stk_write_all(file.fd, path, data, n);
    if (status == STK_OK) status = stk_new_file_finish(&file, true);
    stk_new_file_end(&file);
    return status;
}

stk_status stk_dir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_path("open folder", path, errno);
    /* Some file systems cannot sync a folder and say EINVAL. */
    stk_status status = fsync(fd) < 0 && errno != EINVAL ? fail_path("sync folder", path, errno) : STK_OK;
    close(fd);
    return status;
}

stk_status stk_dir_make_new(const char *path, size_t *n_there)
{
    char part[4096];
    size_t n = strlen(path), before = 0;
    *n_there = n;
    if (n == 0 || n >= sizeof(part)) return stk_fail(STK_INVALID, "cannot make folder '%.60s': bad name", path);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != 0) continue;
        char kept = part[i];
        part[i] = 0;
        bool made = mkdir(part, 0777) == 0;
        if (!made && errno != EEXIST) {
            int error = errno;
            stk_dir_take_back(part, *n_there);
            return fail_path("make folder", part, error);
        }
        if (made && *n_there == n) *n_there = before;
        before = i;
        part[i] = kept;
    }
    if (!stk_path_is_dir(path)) return stk_fail(STK_IO, "cannot make folder '%s': a file is in the way", path);
    return STK_OK;
}

void stk_dir_take_back(const char *path, size_t n_there)
{
    char part[4096];
    size_t n = strlen(path);
    if (n >= sizeof(part)) return;
    memcpy(part, path, n + 1);
    while (n > n_there) {
        part[n] = 0;
        if (part[n - 1] != '/' && rmdir(part) < 0 && errno != ENOENT && errno != ENAMETOOLONG) return;
        do
            n--;
        while (n > n_there && part[n] != '/');
    }
}

stk_status stk_dir_make(const char *path)
{
    size_t unused;
    return stk_dir_make_new(path, &unused);
}

/* The folder of path, without its '/'; "": it is the present one or the root. */
static stk_status folder_of(const char *path, char out[4096])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= 4096) return stk_fail(STK_INVALID, "the path '%.80s...' is too long", path);
    memcpy(out, path, n);
    out[n] = 0;
    return STK_OK;
}

stk_status stk_dir_make_for(const char *path, size_t *n_there)
{
    char folder[4096];
    *n_there = strlen(path);
    STK_RETURN_IF_ERROR(folder_of(path, folder));
    return folder[0] ? stk_dir_make_new(folder, n_there) : STK_OK;
}

stk_status stk_dir_check_for(const char *path)
{
    char folder[4096];
    STK_RETURN_IF_ERROR(folder_of(path, folder));
    if (!folder[0] || stk_path_is_dir(folder)) return STK_OK;
    if (stk_path_exists(folder)) return stk_fail(STK_IO, "cannot write '%s': '%s' is no folder", path, folder);
    return stk_fail(STK_NOT_FOUND, "cannot write '%s': there is no folder '%s'", path, folder);
}

void stk_dir_take_back_for(const char *path, size_t n_there)
{
    char folder[4096];
    if (folder_of(path, folder) == STK_OK) stk_dir_take_back(folder, n_there);
}

/* Atomic where kernel and file system know how; else another process may come between. */
static int rename_new(const char *from, const char *to)
{
    struct stat info;
#ifdef SYS_renameat2
    enum { NO_REPLACE = 1 }; /* RENAME_NOREPLACE */
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NO_REPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
    if (lstat(to, &info) == 0) return EEXIST;
    return rename(from, to) < 0 ? errno : 0;
}

stk_status stk_rename_new(const char *from, const char *to)
{
    int error = rename_new(from, to);
    if (error == 0) return STK_OK;
    if (error == EEXIST) return stk_fail(STK_BUSY, "cannot rename '%s': '%s' already exists", from, to);
    return stk_fail(STK_IO, "cannot rename '%s' to '%s': %s", from, to, stk_errno_text(error));
}

stk_status stk_rename_aside(const char *from, const char *to, char out[4096])
{
    enum { MOST = 100000 };
    int error = EEXIST;
    for (int i = 1; error == EEXIST && i <= MOST; i++) {
        int n = i == 1 ? snprintf(out, 4096, "%s", to) : snprintf(out, 4096, "%s-%d", to, i);
        if (n >= 4096) return stk_fail(STK_INVALID, "path '%.60s...' is too long", to);
        error = rename_new(from, out);
    }
    if (error == 0) return STK_OK;
    return stk_fail(STK_IO, "cannot rename '%s' to '%s': %s", from, out, stk_errno_text(error));
}

stk_status stk_tree_remove(const char *path)
{
    struct stat info;
    if (lstat(path, &info) < 0) return errno == ENOENT ? STK_OK : fail_path("remove", path, errno);
    if (!S_ISDIR(info.st_mode)) return unlink(path) < 0 ? fail_path("remove", path, errno) : STK_OK;
    stk_names names;
    stk_status status;
    STK_RETURN_IF_ERROR(stk_dir_list(path, &names));
    for (size_t i = 0; i < names.n; i++) {
        char child[4096];
        STK_TRY(stk_path_join(child, sizeof(child), path, names.name[i]));
        STK_TRY(stk_tree_remove(child));
    }
    status = rmdir(path) < 0 ? fail_path("remove", path, errno) : STK_OK;
done:
    stk_names_free(&names);
    return status;
}

bool stk_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool stk_path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

stk_status stk_path_join(char *out, size_t out_bytes, const char *a, const char *b)
{
    size_t na = strlen(a);
    const char *slash = na && a[na - 1] == '/' ? "" : "/";
    int n =
        b[0] == '/' || na == 0 ? snprintf(out, out_bytes, "%s", b) : snprintf(out, out_bytes, "%s%s%s", a, slash, b);
    if (n < 0 || (size_t)n >= out_bytes) return stk_fail(STK_INVALID, "path '%.60s.../%.60s' is too long", a, b);
    return STK_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

stk_status stk_dir_list(const char *path, stk_names *out)
{
    size_t capacity = 0;
    stk_status status = STK_OK;
    struct dirent *entry;
    *out = (stk_names){0};
    DIR *dir = opendir(path);
    if (!dir) return fail_path("open folder", path, errno);
    while (errno = 0, (entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (out->n == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            char **grown = realloc(out->name, capacity * sizeof(*grown));
            if (!grown) {
                status = stk_fail_memory(capacity * sizeof(*grown));
                goto done;
            }
            out->name = grown;
        }
        char *copy = strdup(entry->d_name);
        if (!copy) {
            status = stk_fail_memory(strlen(entry->d_name));
            goto done;
        }
        out->name[out->n++] = copy;
    }
    if (errno) status = fail_path("list folder", path, errno);
    if (out->n) qsort(out->name, out->n, sizeof(*out->name), compare_names);
done:
    closedir(dir);
    if (status != STK_OK) stk_names_free(out);
    return status;
}

void stk_names_free(stk_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
    *names = (stk_names){0};
}

stk_status stk_cache_folder(char *out, size_t out_bytes)
{
    const char *own = getenv("STOKER_CACHE"), *shared = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = own && own[0]         ? snprintf(out, out_bytes, "%s", own)
            : shared && shared[0] ? snprintf(out, out_bytes, "%s/stoker", shared)
            : home && home[0]     ? snprintf(out, out_bytes, "%s/.cache/stoker", home)
                                  : -1;
    if (n < 0) return stk_fail(STK_NOT_FOUND, "there is no cache folder: set STOKER_CACHE to one");
    if ((size_t)n >= out_bytes) return stk_fail(STK_INVALID, "the path of the cache folder is too long");
    return STK_OK;
}
