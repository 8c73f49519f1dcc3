/* Source text to loaded code, by way of CACHE/codegen, a folder of this user's alone:
 *
 *   KEY.c    the source, for people
 *   KEY.so   what the compiler made of it, "stkcode1", u64 XXH64 of all before
 *
 * KEY is a hash of the source, the flags, the compiler and its version. Files appear whole, under their names; one that
 * is cut, damaged, or another user's is made anew.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "device/cpu/codegen/codegen.h"

enum { KEY_TEXT = 33, NAME_TEXT = 80, MOST_BYTES = 64 << 20 };

typedef struct trailer {
    char magic[8];
    uint64_t hash;
} trailer;
static const char magic[8] = {'s', 't', 'k', 'c', 'o', 'd', 'e', '1'};

typedef struct folder {
    char path[PATH_MAX];
    int fd; /* -1: not open */
} folder;

/* --- the folder --- */

/* True where nobody but this user, or the system, could have written it. */
static bool is_ours(const struct stat *about)
{
    return (about->st_uid == geteuid() || about->st_uid == 0) && !(about->st_mode & (S_IWGRP | S_IWOTH));
}

static stk_status open_folder(folder *f)
{
    char cache[PATH_MAX];
    struct stat about;
    f->fd = -1;
    STK_RETURN_IF_ERROR(stk_cache_folder(cache, sizeof(cache)));
    STK_RETURN_IF_ERROR(stk_path_join(f->path, sizeof(f->path), cache, "codegen"));
    int made = mkdir(f->path, 0700);
    if (made < 0 && errno == ENOENT) {
        STK_RETURN_IF_ERROR(stk_dir_make(cache));
        made = mkdir(f->path, 0700);
    }
    if (made < 0 && errno != EEXIST)
        return stk_fail(STK_IO, "cannot make the cache folder '%s': %s; set STOKER_CACHE to a folder of yours", f->path,
                        stk_errno_text(errno));
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0)
        return stk_fail(STK_IO, "cannot open the cache folder '%s': %s; set STOKER_CACHE to a folder of yours", f->path,
                        stk_errno_text(errno));
    if (fstat(f->fd, &about) == 0 && is_ours(&about)) return STK_OK;
    close(f->fd);
    f->fd = -1;
    return stk_fail(STK_INVALID,
                    "code is not loaded from '%s', which other users may write to: chmod it to 0700 if it is yours, or "
                    "set STOKER_CACHE to a folder of yours",
                    f->path);
}

/* --- reading --- */

static bool read_all(int fd, uint8_t *to, size_t n)
{
    for (ssize_t got; n > 0; to += got, n -= (size_t)got) {
        got = read(fd, to, n);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got <= 0)
            return false;
    }
    return true;
}

/* The n bytes of an open file; NULL where they cannot be read. */
static uint8_t *read_file(int fd, size_t *n)
{
    struct stat about;
    if (fstat(fd, &about) < 0 || !S_ISREG(about.st_mode) || !is_ours(&about) || about.st_size > MOST_BYTES) return NULL;
    *n = (size_t)about.st_size;
    uint8_t *data = malloc(*n + 1);
    if (data && lseek(fd, 0, SEEK_SET) == 0 && read_all(fd, data, *n)) return data;
    free(data);
    return NULL;
}

/* True where the file is there, ours, and as it was written. */
static bool is_whole(const folder *f, const char *name)
{
    trailer end;
    size_t n = 0;
    int fd = openat(f->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    uint8_t *data = fd >= 0 ? read_file(fd, &n) : NULL;
    bool whole = data && n > sizeof(end);
    if (whole) {
        memcpy(&end, data + n - sizeof(end), sizeof(end));
        whole = !memcmp(end.magic, magic, sizeof(magic)) && end.hash == stk_hash64(data, n - sizeof(end), 0);
    }
    free(data);
    if (fd >= 0) close(fd);
    return whole;
}

/* By way of the open folder, so that it is the one that was looked at. The loader knows files by their paths, and two
 * of one path have one key. */
static stk_status load(const folder *f, const char *name, void **handle)
{
    char path[NAME_TEXT + 64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", f->fd, name);
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle) return STK_OK;
    const char *why = dlerror(), *reason = why ? strstr(why, ": ") : NULL; /* behind the path */
    return stk_fail(STK_IO, "cannot load '%s/%s': %s; set STOKER_CACHE to a folder that programs may be run from",
                    f->path, name, reason ? reason + 2 : "no reason given");
}

/* --- making --- */

static stk_status write_source(const folder *f, const char *name, const char *source)
{
    int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return stk_fail(STK_IO, "cannot write to '%s': %s; set STOKER_CACHE to a folder of yours", f->path,
                        stk_errno_text(errno));
    stk_status status = stk_write_all(fd, name, source, strlen(source));
    close(fd);
    return status;
}

/* Puts the trailer behind what the compiler made, and all of it on the disk. */
static stk_status seal(const folder *f, const char *name)
{
    trailer end;
    size_t n;
    memcpy(end.magic, magic, sizeof(magic));
    int fd = openat(f->fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return stk_fail(STK_IO, "the compiler made no '%s/%s'", f->path, name);
    /* The linker goes by the umask, which may let a group write. */
    uint8_t *data = fchmod(fd, 0700) == 0 ? read_file(fd, &n) : NULL;
    stk_status status = data ? STK_OK : stk_fail(STK_IO, "cannot read '%s/%s' back", f->path, name);
    if (data) {
        end.hash = stk_hash64(data, n, 0);
        status = stk_write_all(fd, name, &end, sizeof(end));
    }
    free(data);
    if (status == STK_OK && fsync(fd) < 0)
        status = stk_fail(STK_IO, "cannot write '%s/%s': %s", f->path, name, stk_errno_text(errno));
    close(fd);
    return status;
}

static stk_status rename_in(const folder *f, const char *from, const char *to)
{
    if (renameat(f->fd, from, f->fd, to) == 0) return STK_OK;
    return stk_fail(STK_IO, "cannot rename '%s' in '%s': %s", from, f->path, stk_errno_text(errno));
}

/* Compiles under names of this process and renames: whoever comes last wins, with the same content. */
static stk_status make(const folder *f, const stk_compiler *compiler, const char *flags, const char *source,
                       const char *key)
{
    static atomic_int n_made;
    char base[NAME_TEXT], c[NAME_TEXT + 4], so[NAME_TEXT + 4], c_name[NAME_TEXT], so_name[NAME_TEXT];
    char c_path[PATH_MAX], so_path[PATH_MAX];
    stk_status status = STK_OK;
    snprintf(base, sizeof(base), "%s.%ld.%d", key, (long)getpid(), atomic_fetch_add(&n_made, 1));
    snprintf(c, sizeof(c), "%s.c", base);
    snprintf(so, sizeof(so), "%s.so", base);
    snprintf(c_name, sizeof(c_name), "%s.c", key);
    snprintf(so_name, sizeof(so_name), "%s.so", key);
    STK_RETURN_IF_ERROR(stk_path_join(c_path, sizeof(c_path), f->path, c));
    STK_RETURN_IF_ERROR(stk_path_join(so_path, sizeof(so_path), f->path, so));
    STK_TRY(write_source(f, c, source));
    STK_TRY(stk_compiler_run(compiler, flags, c_path, so_path));
    STK_TRY(seal(f, so));
    STK_TRY(rename_in(f, c, c_name));
    STK_TRY(rename_in(f, so, so_name));
    (void)fsync(f->fd);
done:
    if (status != STK_OK) {
        unlinkat(f->fd, c, 0);
        unlinkat(f->fd, so, 0);
    }
    return status;
}

/* --- both --- */

static void make_key(const char *source, const char *flags, const stk_compiler *compiler, char key[KEY_TEXT])
{
    uint64_t half[2];
    for (uint64_t i = 0; i < 2; i++) {
        half[i] = stk_hash64(source, strlen(source), i);
        half[i] = stk_hash64(flags, strlen(flags), half[i]);
        for (int w = 0; w < compiler->n_words; w++)
            half[i] = stk_hash64(compiler->word[w], strlen(compiler->word[w]), half[i]);
        half[i] = stk_hash64(stk_text_get(&compiler->version), compiler->version.n, half[i]);
    }
    snprintf(key, KEY_TEXT, "%016" PRIx64 "%016" PRIx64, half[0], half[1]);
}

stk_status stk_code_open(const char *source, const char *flags, stk_code_library **out, int64_t *compile_ns)
{
    char key[KEY_TEXT], name[NAME_TEXT];
    folder f = {.fd = -1};
    stk_compiler compiler = {0};
    stk_status status = STK_OK;
    stk_code_library *library = calloc(1, sizeof(*library));
    *compile_ns = 0;
    if (!library) return stk_fail_memory(sizeof(*library));
    STK_TRY(open_folder(&f));
    STK_TRY(stk_compiler_find(&compiler));
    make_key(source, flags, &compiler, key);
    snprintf(name, sizeof(name), "%s.so", key);
    if (!is_whole(&f, name)) {
        int64_t start_ns = stk_clock_ns();
        STK_TRY(make(&f, &compiler, flags, source, key));
        *compile_ns = stk_clock_ns() - start_ns;
    }
    STK_TRY(load(&f, name, &library->handle));
    *out = library;
    library = NULL;
done:
    stk_compiler_free(&compiler);
    if (f.fd >= 0) close(f.fd);
    free(library);
    return status;
}

void stk_code_close(stk_code_library *libraries)
{
    while (libraries) {
        stk_code_library *next = libraries->next;
        dlclose(libraries->handle);
        free(libraries);
        libraries = next;
    }
}
