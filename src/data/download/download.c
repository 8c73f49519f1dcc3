/* Fetching the files of a data set. See stoker/data/download.h. */
#include "stoker/data/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/input.h"
#include "base/text.h"
#include "data/download/unpack.h"
#include "data/remote/http.h"

enum { PATH_BYTES = 4096, BLOCK_BYTES = 1 << 20 };

#ifdef STK_HAS_CRYPTO

#include <openssl/evp.h>

/* "md5:..." or "sha256:..." of a file, as the table has them. */
static stk_status checksum_of(const char *path, const char *kind_of, char out[80])
{
    bool md5 = !strncmp(kind_of, "md5:", 4);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    stk_input file = {.fd = -1};
    stk_status status;
    uint8_t *block = malloc(BLOCK_BYTES);
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    STK_TRY(stk_input_open(path, true, &file));
    if (!block || !sum) STK_TRY(stk_fail_memory(BLOCK_BYTES));
    bool ok = EVP_DigestInit_ex(sum, md5 ? EVP_md5() : EVP_sha256(), NULL) == 1;
    for (uint64_t at = 0; at < file.n_bytes && ok; at += BLOCK_BYTES) {
        size_t n_block = file.n_bytes - at < BLOCK_BYTES ? (size_t)(file.n_bytes - at) : BLOCK_BYTES;
        status = stk_input_read(&file, at, block, n_block);
        if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
        ok = EVP_DigestUpdate(sum, block, n_block) == 1;
    }
    if (!ok || EVP_DigestFinal_ex(sum, digest, &n) != 1 || n > 32)
        STK_TRY(stk_fail(STK_INTERNAL, "libcrypto cannot compute a checksum"));
    char *p = out + snprintf(out, 80, md5 ? "md5:" : "sha256:");
    for (unsigned int i = 0; i < n; i++)
        p += snprintf(p, 3, "%02x", digest[i]);
done:
    stk_input_close(&file);
    EVP_MD_CTX_free(sum);
    free(block);
    return status;
}

#else

static stk_status checksum_of(const char *path, const char *kind_of, char out[80])
{
    (void)path, (void)kind_of, (void)out;
    return stk_fail(STK_UNSUPPORTED, "this build of Stoker cannot check what it fetches: it was made without libcrypto "
                                     "(Debian: libssl-dev)");
}

#endif

typedef struct fetch {
    const stk_download_file *file;
    char url[PATH_BYTES], path[PATH_BYTES], part[PATH_BYTES], state[PATH_BYTES];
    int fd;        /* of part */
    bool has_part; /* it is ours, and locked */
    uint64_t at;
    stk_download_fn progress;
    void *user;
} fetch;

static stk_status check(const fetch *f, const char *path, bool *ok)
{
    char sum[80] = "";
    *ok = !f->file->checksum;
    if (*ok) return STK_OK;
    STK_RETURN_IF_ERROR(checksum_of(path, f->file->checksum, sum));
    *ok = !strcmp(sum, f->file->checksum);
    return *ok ? STK_OK
               : stk_fail(STK_CORRUPT, "'%s' has the checksum %s, and should have %s", path, sum, f->file->checksum);
}

/* --- what an earlier attempt left --- */

#define STATE_MARK "stoker part of "

static void print_state(const stk_http_file *remote, char out[320])
{
    snprintf(out, 320, STATE_MARK "%llu %s %s\n", (unsigned long long)remote->n_bytes, remote->etag, remote->modified);
}

static void read_state(const fetch *f, char out[320])
{
    FILE *state = fopen(f->state, "re");
    size_t n = state ? fread(out, 1, 319, state) : 0;
    out[n] = 0;
    if (state) fclose(state);
}

/* Goes on behind what is there, where it is of the file as the server has it now. A part that nothing is known of is
 * somebody's, of another program perhaps. */
static stk_status open_part(fetch *f, const stk_http_file *remote)
{
    char now[320], before[320];
    struct stat info;
    print_state(remote, now);
    f->fd = open(f->part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (f->fd < 0) return stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno));
    if (flock(f->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return stk_fail(STK_BUSY, "another process is fetching '%s'", f->path);
    if (fstat(f->fd, &info) < 0) return stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno));
    read_state(f, before);
    bool ours = !strncmp(before, STATE_MARK, strlen(STATE_MARK));
    if (!ours && (info.st_size > 0 || stk_path_exists(f->state)))
        return stk_fail(STK_BUSY, "'%s' is there and no part that 'stoker get' fetched; move it away",
                        info.st_size > 0 ? f->part : f->state);
    f->has_part = true;
    bool goes_on = !strcmp(now, before) && (remote->etag[0] || remote->modified[0]);
    f->at = goes_on ? (uint64_t)info.st_size : 0;
    if (f->at > remote->n_bytes) return stk_fail(STK_CORRUPT, "'%s' is longer than the file; remove it", f->part);
    STK_RETURN_IF_ERROR(stk_file_write_durably(f->state, now, strlen(now)));
    if ((!goes_on && ftruncate(f->fd, 0) < 0) || lseek(f->fd, 0, SEEK_END) < 0)
        return stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno));
    return STK_OK;
}

/* --- from a server or a folder --- */

static stk_status report(const fetch *f, uint64_t n_all)
{
    if (!f->progress || f->progress(f->user, f->file->name, (int64_t)f->at, (int64_t)n_all)) return STK_OK;
    return stk_fail(STK_INTERRUPTED, "fetching '%s' was stopped", f->path);
}

static stk_status receive(fetch *f)
{
    stk_http_file remote;
    stk_status status;
    uint8_t *block = NULL;
    STK_RETURN_IF_ERROR(stk_http_stat(f->url, &remote));
    if (f->file->n_bytes && (int64_t)remote.n_bytes != f->file->n_bytes)
        return stk_fail(STK_CORRUPT, "'%s' has %llu bytes, and should have %lld", f->url,
                        (unsigned long long)remote.n_bytes, (long long)f->file->n_bytes);
    STK_TRY(open_part(f, &remote));
    block = malloc(BLOCK_BYTES);
    if (!block) STK_TRY(stk_fail_memory(BLOCK_BYTES));
    while (f->at < remote.n_bytes) {
        size_t n = remote.n_bytes - f->at < BLOCK_BYTES ? (size_t)(remote.n_bytes - f->at) : BLOCK_BYTES;
        STK_TRY(stk_http_read(f->url, &remote, f->at, n, block, false, NULL, NULL));
        STK_TRY(stk_write_all(f->fd, f->part, block, n));
        f->at += n;
        STK_TRY(report(f, remote.n_bytes));
    }
    if (fsync(f->fd) < 0) STK_TRY(stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno)));
done:
    free(block);
    return status;
}

static stk_status copy(fetch *f)
{
    stk_input from = {.fd = -1};
    stk_status status;
    uint8_t *block = malloc(BLOCK_BYTES);
    if (!block) STK_TRY(stk_fail_memory(BLOCK_BYTES));
    STK_TRY(stk_input_open(f->url, true, &from));
    STK_TRY(open_part(f, &(stk_http_file){.n_bytes = from.n_bytes}));
    while (f->at < from.n_bytes) {
        size_t n = from.n_bytes - f->at < BLOCK_BYTES ? (size_t)(from.n_bytes - f->at) : BLOCK_BYTES;
        status = stk_input_read(&from, f->at, block, n);
        if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", f->url));
        STK_TRY(stk_write_all(f->fd, f->part, block, n));
        f->at += n;
        STK_TRY(report(f, from.n_bytes));
    }
    if (fsync(f->fd) < 0) STK_TRY(stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno)));
done:
    stk_input_close(&from);
    free(block);
    return status;
}

/* A file of the right checksum gets its name; another one is put aside, so that the next attempt begins again. */
static stk_status finish(fetch *f)
{
    char wrong[PATH_BYTES], aside[PATH_BYTES];
    bool ok;
    stk_status status = check(f, f->part, &ok);
    if (status == STK_CORRUPT && snprintf(wrong, sizeof(wrong), "%s.wrong", f->path) < PATH_BYTES) {
        char why[512];
        snprintf(why, sizeof(why), "%s", stk_error_text());
        STK_RETURN_IF_ERROR(stk_rename_aside(f->part, wrong, aside));
        f->has_part = false;
        (void)unlink(f->state);
        return stk_fail(STK_CORRUPT, "%s; it is kept as '%s'", why, aside);
    }
    STK_RETURN_IF_ERROR(status);
    STK_RETURN_IF_ERROR(stk_rename_new(f->part, f->path));
    f->has_part = false;
    (void)unlink(f->state);
    return STK_OK;
}

/* What was made for nothing goes again. */
static void drop_empty_part(const fetch *f)
{
    struct stat info;
    if (!f->has_part || fstat(f->fd, &info) < 0 || info.st_size > 0) return;
    (void)unlink(f->state);
    (void)unlink(f->part);
}

static stk_status fetch_file(const stk_download_file *file, const char *folder, const char *mirror,
                             stk_download_fn progress, void *user)
{
    fetch f = {.file = file, .fd = -1, .progress = progress, .user = user};
    bool ok;
    stk_status status;
    STK_RETURN_IF_ERROR(stk_path_join(f.path, sizeof(f.path), folder, file->name));
    if (snprintf(f.part, sizeof(f.part), "%s.part", f.path) >= PATH_BYTES ||
        snprintf(f.state, sizeof(f.state), "%s.part.state", f.path) >= PATH_BYTES)
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", f.path);
    if (mirror)
        STK_RETURN_IF_ERROR(stk_path_join(f.url, sizeof(f.url), mirror, file->name));
    else
        snprintf(f.url, sizeof(f.url), "%s", file->url);
    if (stk_path_exists(f.path)) return check(&f, f.path, &ok); /* It is there. */
    STK_TRY(stk_is_remote(f.url) ? receive(&f) : copy(&f));
    STK_TRY(finish(&f));
done:
    if (status != STK_OK) drop_empty_part(&f);
    if (f.fd >= 0) close(f.fd);
    return status;
}

static stk_status fetch_all(const stk_download_set *set, const char *folder, const char *mirror,
                            stk_download_fn progress, void *user)
{
    for (int i = 0; i < set->n_files; i++)
        STK_RETURN_IF_ERROR(fetch_file(&set->file[i], folder, mirror, progress, user));
    return stk_dir_sync(folder);
}

/* The files are what recipes read. After a failure a folder is left only where something is in it. */
static stk_status fetch_to(const stk_download_set *set, const char *folder, const char *mirror,
                           stk_download_fn progress, void *user)
{
    size_t n_there;
    STK_RETURN_IF_ERROR(stk_dir_make_new(folder, &n_there));
    stk_status status = fetch_all(set, folder, mirror, progress, user);
    if (status != STK_OK) stk_dir_take_back(folder, n_there);
    return status;
}

/* --- archives --- */

/* In FOLDER.download, which says by this that it is ours. */
static const char mark_name[] = "stoker-download.txt";

static stk_status mark(const stk_download_set *set, const char *fetched)
{
    char path[PATH_BYTES];
    stk_names names;
    stk_text text = {0};
    stk_status status;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), fetched, mark_name));
    if (stk_path_exists(path)) return STK_OK;
    STK_RETURN_IF_ERROR(stk_dir_list(fetched, &names));
    size_t n = names.n;
    stk_names_free(&names);
    if (n > 0)
        return stk_fail(STK_BUSY, "folder '%s' is there and was not made by 'stoker get'; move it away or name another",
                        fetched);
    stk_text_add(&text, "stoker get %s keeps here what it fetches until it is unpacked, and then removes it.\n",
                 set->name);
    status = stk_text_status(&text);
    if (status == STK_OK) status = stk_file_write_durably(path, text.data, text.n);
    stk_text_free(&text);
    return status;
}

/* Of a marked folder: the archives where they are unpacked, and the folder where nothing else is in it. */
static stk_status clear(const stk_download_set *set, const char *fetched, bool unpacked)
{
    char path[PATH_BYTES];
    stk_names names;
    for (int i = 0; unpacked && i < set->n_files; i++) {
        STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), fetched, set->file[i].name));
        if (unlink(path) < 0 && errno != ENOENT)
            return stk_fail(STK_IO, "cannot remove '%s': %s", path, stk_errno_text(errno));
    }
    STK_RETURN_IF_ERROR(stk_dir_list(fetched, &names));
    bool is_empty = names.n == 0 || (names.n == 1 && !strcmp(names.name[0], mark_name));
    stk_names_free(&names);
    if (!is_empty) return STK_OK;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), fetched, mark_name));
    if ((unlink(path) < 0 && errno != ENOENT) || rmdir(fetched) < 0)
        return stk_fail(STK_IO, "cannot remove '%s': %s", fetched, stk_errno_text(errno));
    return STK_OK;
}

static stk_status fetch_and_unpack(const stk_download_set *set, const char *fetched, const char *folder,
                                   const char *mirror, stk_download_fn progress, void *user)
{
    char why[1024];
    size_t n_there;
    stk_status status;
    STK_RETURN_IF_ERROR(stk_dir_make_new(fetched, &n_there));
    STK_TRY(mark(set, fetched));
    STK_TRY(fetch_all(set, fetched, mirror, progress, user));
    STK_TRY(stk_download_unpack(set, fetched, folder, progress, user));
    return clear(set, fetched, true);
done:
    snprintf(why, sizeof(why), "%s", stk_error_text());
    if (n_there < strlen(fetched)) {
        (void)clear(set, fetched, false);
        stk_dir_take_back(fetched, n_there);
    }
    return stk_fail(status, "%s", why);
}

stk_status stk_download(const stk_download_set *set, const char *folder, const char *mirror, stk_download_fn progress,
                        void *user)
{
    STK_NEED(set);
    STK_NEED(folder);
    char fetched[PATH_BYTES];
    bool is_there = false;
    if (set->form == STK_DOWNLOAD_FILES) return fetch_to(set, folder, mirror, progress, user);
    STK_RETURN_IF_ERROR(stk_download_is_unpacked(set, folder, &is_there));
    if (is_there) return STK_OK;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    if (snprintf(fetched, sizeof(fetched), "%.*s.download", (int)n, folder) >= PATH_BYTES)
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", folder);
    return fetch_and_unpack(set, fetched, folder, mirror, progress, user);
}
