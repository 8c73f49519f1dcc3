/* See base/temporary.h. */
#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

#define PREFIX ".stoker-tmp-"
enum { PREFIX_BYTES = 12, SUM_AT = PREFIX_BYTES + 8 + 1 + 16 + 1 + 16 + 1, NAME_BYTES = SUM_AT + 16, TRIES = 100 };
static const uint64_t seed = 0x73746f6b65722d31;

/* --- names --- */

/* Locks of two machines on one file system may not know of each other. */
static uint32_t hash_of_host(void)
{
    char name[256] = "";
    (void)gethostname(name, sizeof(name) - 1);
    return (uint32_t)stk_hash64(name, strlen(name), seed);
}

static uint64_t draw(void)
{
    static atomic_uint n_drawn;
    uint64_t x;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, &x, sizeof(x));
    if (fd >= 0) close(fd);
    if (n == (ssize_t)sizeof(x)) return x;
    /* In a root without devices; O_EXCL finds those that are there already. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t parts[3] = {(uint64_t)now.tv_nsec, (uint64_t)getpid(), n_drawn++};
    return stk_hash64(parts, sizeof(parts), (uint64_t)now.tv_sec);
}

/* The folder of path with its '/', "" for the present one; path's name goes to *name. */
static size_t split(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    return (size_t)(*name - path);
}

static uint64_t hash_of_target(const char *path)
{
    const char *name;
    (void)split(path, &name);
    return stk_hash64(name, strlen(name), seed);
}

static stk_status make_name(const char *path, char out[STK_TEMPORARY_PATH])
{
    const char *name;
    size_t n_folder = split(path, &name);
    if (n_folder + NAME_BYTES >= STK_TEMPORARY_PATH) return stk_fail(STK_INVALID, "path '%.60s...' is too long", path);
    memcpy(out, path, n_folder);
    char *own = out + n_folder;
    snprintf(own, NAME_BYTES + 1, PREFIX "%08x-%016llx-%016llx-", hash_of_host(),
             (unsigned long long)hash_of_target(path), (unsigned long long)draw());
    snprintf(own + SUM_AT, 17, "%016llx", (unsigned long long)stk_hash64(own, SUM_AT, seed));
    return STK_OK;
}

bool stk_temporary_is_name(const char *name)
{
    char sum[17];
    if (strlen(name) != NAME_BYTES || strncmp(name, PREFIX, PREFIX_BYTES)) return false;
    snprintf(sum, sizeof(sum), "%016llx", (unsigned long long)stk_hash64(name, SUM_AT, seed));
    return !strcmp(name + SUM_AT, sum);
}

static bool is_of_this_host(const char *name)
{
    char host[10];
    snprintf(host, sizeof(host), "%08x-", hash_of_host());
    return !strncmp(name + PREFIX_BYTES, host, 9);
}

/* --- those of others --- */

static int open_any(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 && errno == EISDIR ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : fd;
}

/* True where fd is what lies at path. */
static bool is_at(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

/* Only what is ours, by name and owner, and whose writer is dead: its lock is free. */
static void remove_dead(const char *path)
{
    struct stat info;
    int fd = open_any(path);
    if (fd < 0) return;
    bool ours = fstat(fd, &info) == 0 && info.st_uid == geteuid() && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
    if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, path)) (void)stk_tree_remove(path);
    close(fd);
}

static bool is_locked(const char *path)
{
    int fd = open_any(path);
    if (fd < 0) return false;
    bool locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

/* Calls fn for each of this machine's in the folder of path, until it is true. */
static bool visit(const char *path, bool (*fn)(const char *found, const char *name, const void *user), const void *user)
{
    char found[STK_TEMPORARY_PATH];
    const char *name;
    struct dirent *entry;
    bool is_over = false;
    size_t n = split(path, &name);
    if (n + NAME_BYTES >= sizeof(found)) return false;
    snprintf(found, sizeof(found), "%.*s", (int)n, n ? path : "");
    DIR *dir = opendir(n ? found : ".");
    if (!dir) return false;
    while (!is_over && (entry = readdir(dir))) {
        if (!stk_temporary_is_name(entry->d_name) || !is_of_this_host(entry->d_name)) continue;
        memcpy(found + n, entry->d_name, NAME_BYTES + 1);
        is_over = fn(found, entry->d_name, user);
    }
    closedir(dir);
    return is_over;
}

static bool clear_one(const char *found, const char *name, const void *user)
{
    (void)name, (void)user;
    remove_dead(found);
    return false;
}

/* Once for each folder, as far as the table remembers: folders may hold millions of files. */
static void clear_folder(const char *path)
{
    static _Atomic uint64_t seen[64];
    char folder[STK_TEMPORARY_PATH];
    const char *name;
    struct stat info;
    size_t n = split(path, &name);
    if (n >= sizeof(folder)) return;
    snprintf(folder, sizeof(folder), "%.*s", n ? (int)n : 1, n ? path : ".");
    if (stat(folder, &info) < 0) return;
    uint64_t key[2] = {(uint64_t)info.st_dev, (uint64_t)info.st_ino}, hash = stk_hash64(key, sizeof(key), seed) | 1;
    if (atomic_exchange(&seen[hash >> 58], hash) != hash) (void)visit(path, clear_one, NULL);
}

static bool is_for(const char *found, const char *name, const void *user)
{
    char target[17];
    snprintf(target, sizeof(target), "%016llx", *(const unsigned long long *)user);
    return !strncmp(name + PREFIX_BYTES + 9, target, 16) && is_locked(found);
}

bool stk_temporary_is_written(const char *path)
{
    unsigned long long target = hash_of_target(path);
    return visit(path, is_for, &target);
}

/* --- making one --- */

static int make(const char *path, bool folder)
{
    if (!folder) return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return mkdir(path, 0777) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static stk_status make_locked(const char *path, bool folder, char out[STK_TEMPORARY_PATH], int *out_fd)
{
    int fd = -1, error = EEXIST;
    *out_fd = -1;
    clear_folder(path);
    for (int i = 0; i < TRIES; i++) {
        STK_RETURN_IF_ERROR(make_name(path, out));
        fd = make(out, folder);
        if (fd < 0) {
            error = errno;
            /* One that clears may have taken the folder away before it was locked. */
            if (error == EEXIST || (folder && error == ENOENT && i < 3)) continue;
            break;
        }
        /* A file system without locks is used without. */
        bool taken = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        if (!taken && is_at(fd, out)) {
            *out_fd = fd;
            return STK_OK;
        }
        close(fd);
    }
    stk_status status = error == ENOENT || error == ENOTDIR ? STK_NOT_FOUND : STK_IO;
    return stk_fail(status, "cannot write '%s': %s", path, stk_errno_text(error));
}

stk_status stk_temporary_file(const char *path, char out[STK_TEMPORARY_PATH], int *fd)
{
    return make_locked(path, false, out, fd);
}

stk_status stk_temporary_folder(const char *path, char out[STK_TEMPORARY_PATH], int *fd)
{
    return make_locked(path, true, out, fd);
}
