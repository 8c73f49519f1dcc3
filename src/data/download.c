/* Fetching the files of a data set. See stoker/download.h. */
#include "stoker/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "data/download_unpack.h"
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
    stk_span bytes = {0};
    STK_RETURN_IF_ERROR(stk_file_map(path, &bytes));
    int done = EVP_Digest(bytes.data ? bytes.data : digest, bytes.n, digest, &n, md5 ? EVP_md5() : EVP_sha256(), NULL);
    stk_file_unmap(bytes);
    if (done != 1 || n > 32) return stk_fail(STK_INTERNAL, "libcrypto cannot compute a checksum");
    char *p = out + snprintf(out, 80, md5 ? "md5:" : "sha256:");
    for (unsigned int i = 0; i < n; i++)
        p += snprintf(p, 3, "%02x", digest[i]);
    return STK_OK;
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
    int fd; /* of part */
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

static void print_state(const stk_http_file *remote, char out[320])
{
    snprintf(out, 320, "%llu %s %s\n", (unsigned long long)remote->n_bytes, remote->etag, remote->modified);
}

/* Goes on behind what is there, where it is of the file as the server has it now. */
static stk_status open_part(fetch *f, const stk_http_file *remote)
{
    char now[320], before[320] = "";
    struct stat info;
    print_state(remote, now);
    FILE *state = fopen(f->state, "re");
    if (state) {
        size_t n = fread(before, 1, sizeof(before) - 1, state);
        before[n] = 0;
        fclose(state);
    }
    bool goes_on = !strcmp(now, before) && (remote->etag[0] || remote->modified[0]);
    f->fd = open(f->part, O_WRONLY | O_CREAT | O_CLOEXEC | (goes_on ? 0 : O_TRUNC), 0666);
    if (f->fd < 0 || fstat(f->fd, &info) < 0)
        return stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno));
    f->at = (uint64_t)info.st_size;
    if (f->at > remote->n_bytes) return stk_fail(STK_CORRUPT, "'%s' is longer than the file; remove it", f->part);
    if (lseek(f->fd, 0, SEEK_END) < 0) return stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno));
    return stk_file_write_durably(f->state, now, strlen(now));
}

/* --- from a server or a folder --- */

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
        if (f->progress) f->progress(f->user, f->file->name, (int64_t)f->at, (int64_t)remote.n_bytes);
    }
    if (fsync(f->fd) < 0) STK_TRY(stk_fail(STK_IO, "cannot write '%s': %s", f->part, stk_errno_text(errno)));
done:
    free(block);
    return status;
}

static stk_status copy(fetch *f)
{
    stk_span bytes = {0};
    STK_RETURN_IF_ERROR(stk_file_map(f->url, &bytes));
    stk_status status = stk_file_write_durably(f->part, bytes.data, bytes.n);
    if (status == STK_OK && f->progress) f->progress(f->user, f->file->name, (int64_t)bytes.n, (int64_t)bytes.n);
    stk_file_unmap(bytes);
    return status;
}

/* A file of the right checksum gets its name; another one is put aside, so that the next attempt begins anew. */
static stk_status finish(fetch *f)
{
    char wrong[PATH_BYTES];
    bool ok;
    stk_status status = check(f, f->part, &ok);
    if (status == STK_CORRUPT && snprintf(wrong, sizeof(wrong), "%s.wrong", f->path) < PATH_BYTES) {
        char why[512];
        snprintf(why, sizeof(why), "%s", stk_error_text());
        if (rename(f->part, wrong) == 0) (void)unlink(f->state);
        return stk_fail(STK_CORRUPT, "%s; it is kept as '%s'", why, wrong);
    }
    STK_RETURN_IF_ERROR(status);
    if (rename(f->part, f->path) < 0) return stk_fail(STK_IO, "cannot rename '%s': %s", f->part, stk_errno_text(errno));
    (void)unlink(f->state);
    return STK_OK;
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
    if (f.fd >= 0) close(f.fd);
    return status;
}

static stk_status fetch_all(const stk_download_set *set, const char *folder, const char *mirror,
                            stk_download_fn progress, void *user)
{
    STK_RETURN_IF_ERROR(stk_dir_make(folder));
    for (int i = 0; i < set->n_files; i++)
        STK_RETURN_IF_ERROR(fetch_file(&set->file[i], folder, mirror, progress, user));
    return stk_dir_sync(folder);
}

stk_status stk_download(const stk_download_set *set, const char *folder, const char *mirror, stk_download_fn progress,
                        void *user)
{
    char fetched[PATH_BYTES];
    bool is_there = false;
    if (set->form == STK_DOWNLOAD_FILES) return fetch_all(set, folder, mirror, progress, user);
    STK_RETURN_IF_ERROR(stk_download_is_unpacked(set, folder, &is_there));
    if (is_there) return STK_OK;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    if (snprintf(fetched, sizeof(fetched), "%.*s.download", (int)n, folder) >= PATH_BYTES)
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", folder);
    STK_RETURN_IF_ERROR(fetch_all(set, fetched, mirror, progress, user));
    STK_RETURN_IF_ERROR(stk_download_unpack(set, fetched, folder, progress, user));
    return stk_tree_remove(fetched);
}
