/* See archive/archive.h. */
#include "data/archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "data/codec/inflate.h"
#include "data/codec/tar.h"
#include "data/codec/zip.h"

enum { BLOCK_BYTES = 1 << 20 };
static const uint64_t most_in_memory = UINT64_C(2) << 30; /* of a member that is read as a whole */

typedef struct place {
    char *name;
    uint64_t at, n;
} place;

struct stk_archive {
    const stk_input *input; /* the archive, or unpacked below */
    stk_input unpacked;     /* of a GZIP; fd -1: none */
    bool is_zip;
    stk_zip zip;
    place *place; /* of a tar's members; [n] */
    size_t n, capacity, most_files;
    stk_arena *names; /* of a tar */
};

/* --- opening --- */

static stk_status add_member(void *user, const char *name, uint64_t at, uint64_t n)
{
    stk_archive *a = user;
    if (a->n == a->most_files)
        return stk_fail(STK_CORRUPT, "it holds more than %zu files, which cannot be right", a->most_files);
    if (a->n == a->capacity) {
        size_t grown = a->capacity ? 2 * a->capacity : 256;
        place *p = realloc(a->place, grown * sizeof(*p));
        if (!p) return stk_fail_memory(grown * sizeof(*p));
        a->place = p;
        a->capacity = grown;
    }
    char *copy = stk_arena_text(a->names, name);
    if (!copy) return stk_fail_memory(strlen(name));
    a->place[a->n++] = (place){.name = copy, .at = at, .n = n};
    return STK_OK;
}

/* A file that has no name any more, so that nothing is left over, whatever happens. */
static stk_status unpack_gzip(const stk_input *input, const char *scratch, uint64_t most_bytes, stk_input *out)
{
    char path[4096];
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), scratch, ".unpacking-XXXXXX"));
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) return stk_fail(STK_IO, "cannot create a file in '%s': %s", scratch, stk_errno_text(errno));
    (void)unlink(path);
    STK_TRY(stk_inflate_to(input, fd, path, most_bytes));
    off_t n = lseek(fd, 0, SEEK_END);
    if (n < 0) STK_TRY(stk_fail(STK_IO, "cannot read '%s': %s", path, stk_errno_text(errno)));
    char *name = strdup(path);
    if (!name) STK_TRY(stk_fail_memory(strlen(path)));
    *out = (stk_input){.path = name, .n_bytes = (uint64_t)n, .fd = fd};
    fd = -1;
done:
    if (fd >= 0) close(fd);
    return status;
}

static stk_status open_zip(stk_archive *a)
{
    STK_RETURN_IF_ERROR(stk_zip_open(a->input, &a->zip));
    if (a->zip.n_members > a->most_files)
        return stk_fail(STK_CORRUPT, "it holds more than %zu files, which cannot be right", a->most_files);
    return STK_OK;
}

static stk_status open_tar(stk_archive *a)
{
    a->names = stk_arena_new();
    if (!a->names) return stk_fail_memory(1 << 12);
    return stk_tar_scan(a->input, add_member, a);
}

stk_status stk_archive_open(const stk_input *input, const char *scratch, stk_archive_limits limits, stk_archive **out)
{
    uint8_t begin[4] = {0};
    stk_status status = STK_OK;
    *out = NULL;
    stk_archive *a = calloc(1, sizeof(*a));
    if (!a) return stk_fail_memory(sizeof(*a));
    a->input = input;
    a->unpacked.fd = -1;
    a->most_files = limits.most_files;
    if (input->n_bytes < sizeof(begin)) STK_TRY(stk_fail(STK_CORRUPT, "it is no archive: too short"));
    STK_TRY(stk_input_read(input, 0, begin, sizeof(begin)));
    a->is_zip = !memcmp(begin, "PK\3\4", 4) || !memcmp(begin, "PK\5\6", 4);
    if (begin[0] == 0x1f && begin[1] == 0x8b) {
        STK_TRY(unpack_gzip(input, scratch, limits.most_bytes, &a->unpacked));
        a->input = &a->unpacked;
    }
    STK_TRY(a->is_zip ? open_zip(a) : open_tar(a));
    *out = a;
    a = NULL;
done:
    stk_archive_close(a);
    return status;
}

void stk_archive_close(stk_archive *archive)
{
    if (!archive) return;
    stk_zip_free(&archive->zip);
    stk_input_close(&archive->unpacked);
    stk_arena_free(archive->names);
    free(archive->place);
    free(archive);
}

/* --- members --- */

size_t stk_archive_count(const stk_archive *archive)
{
    return archive->is_zip ? archive->zip.n_members : archive->n;
}

stk_archive_member stk_archive_at(const stk_archive *archive, size_t i)
{
    if (archive->is_zip)
        return (stk_archive_member){.name = archive->zip.member[i].name, .n_bytes = archive->zip.member[i].n};
    return (stk_archive_member){.name = archive->place[i].name, .n_bytes = archive->place[i].n};
}

stk_status stk_archive_read(const stk_archive *archive, size_t i, uint8_t **out)
{
    stk_archive_member member = stk_archive_at(archive, i);
    *out = NULL;
    if (member.n_bytes > most_in_memory)
        return stk_fail(STK_UNSUPPORTED, "its member '%.200s' has %llu bytes; up to %llu are read at once", member.name,
                        (unsigned long long)member.n_bytes, (unsigned long long)most_in_memory);
    uint8_t *bytes = malloc(member.n_bytes ? member.n_bytes : 1);
    if (!bytes) return stk_fail_memory(member.n_bytes);
    stk_status status = archive->is_zip ? stk_zip_read(archive->input, &archive->zip.member[i], bytes)
                                        : stk_input_read(archive->input, archive->place[i].at, bytes, member.n_bytes);
    if (status == STK_OK)
        *out = bytes;
    else
        free(bytes);
    return status;
}

/* Block by block, where the bytes lie as they are. */
static stk_status copy_stored(const stk_input *input, const place *p, int fd, const char *path)
{
    stk_status status = STK_OK;
    size_t n_block = p->n < BLOCK_BYTES ? p->n : BLOCK_BYTES;
    uint8_t *block = malloc(n_block ? n_block : 1);
    if (!block) return stk_fail_memory(n_block);
    for (uint64_t done = 0; done < p->n; done += n_block) {
        if (n_block > p->n - done) n_block = p->n - done;
        STK_TRY(stk_input_read(input, p->at + done, block, n_block));
        STK_TRY(stk_write_all(fd, path, block, n_block));
    }
done:
    free(block);
    return status;
}

stk_status stk_archive_copy(const stk_archive *archive, size_t i, int fd, const char *path)
{
    uint8_t *bytes;
    if (!archive->is_zip) return copy_stored(archive->input, &archive->place[i], fd, path);
    STK_RETURN_IF_ERROR(stk_archive_read(archive, i, &bytes));
    stk_status status = stk_write_all(fd, path, bytes, archive->zip.member[i].n);
    free(bytes);
    return status;
}
