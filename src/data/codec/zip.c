/* See codec/zip.h. The list of members lies at the end of the file and is found from there. */
#include "data/codec/zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/little.h"

enum { END_BYTES = 22, END64_BYTES = 56, LOCATOR_BYTES = 20, ENTRY_BYTES = 46, LOCAL_BYTES = 30, BLOCK_BYTES = 65536 };
enum { MOST_LIST_BYTES = 64 << 20 }; /* of the list of members */

static stk_status fail_damaged(const char *what)
{
    return stk_fail(STK_CORRUPT, "its ZIP %s is damaged", what);
}

/* The list of members: its place and size. */
typedef struct list_place {
    uint64_t at, n;
} list_place;

/* A file with large members has a second end record before the first, and a locator between the two. */
static stk_status find_list64(const stk_input *input, uint64_t end_at, list_place *out)
{
    uint8_t locator[LOCATOR_BYTES], end[END64_BYTES];
    if (end_at < LOCATOR_BYTES) return STK_OK;
    STK_RETURN_IF_ERROR(stk_input_read(input, end_at - LOCATOR_BYTES, locator, sizeof(locator)));
    if (stk_little32(locator) != 0x07064b50) return STK_OK;
    STK_RETURN_IF_ERROR(stk_input_read(input, stk_little64(locator + 8), end, sizeof(end)));
    if (stk_little32(end) != 0x06064b50) return fail_damaged("end record");
    *out = (list_place){.at = stk_little64(end + 48), .n = stk_little64(end + 40)};
    return STK_OK;
}

static stk_status find_list(const stk_input *input, list_place *out)
{
    uint8_t tail[END_BYTES + 65535]; /* a comment may follow the end record */
    uint64_t n = input->n_bytes < sizeof(tail) ? input->n_bytes : sizeof(tail);
    if (n < END_BYTES) return stk_fail(STK_CORRUPT, "it is no ZIP file (.npz): too short");
    STK_RETURN_IF_ERROR(stk_input_read(input, input->n_bytes - n, tail, n));
    for (uint64_t at = n - END_BYTES + 1; at-- > 0;) {
        if (stk_little32(tail + at) != 0x06054b50) continue;
        *out = (list_place){.at = stk_little32(tail + at + 16), .n = stk_little32(tail + at + 12)};
        STK_RETURN_IF_ERROR(find_list64(input, input->n_bytes - n + at, out));
        if (out->at > input->n_bytes || out->n > input->n_bytes - out->at) return fail_damaged("end record");
        return STK_OK;
    }
    return stk_fail(STK_CORRUPT, "it is no ZIP file (.npz), or its end is missing");
}

/* Values above 32 bits stand in an extra field, in this order, those only that are all ones in their usual place. */
static stk_status read_extra64(const uint8_t *p, size_t n, stk_zip_member *member)
{
    uint64_t *const values[] = {&member->n, &member->packed, &member->header_at};
    for (size_t at = 0; n - at >= 4;) {
        size_t id = stk_little16(p + at), size = stk_little16(p + at + 2);
        at += 4;
        if (size > n - at) return fail_damaged("list of members");
        if (id == 1) {
            for (int i = 0; i < 3; i++) {
                if (*values[i] != UINT32_MAX) continue;
                if (size < 8) return fail_damaged("list of members");
                *values[i] = stk_little64(p + at);
                at += 8;
                size -= 8;
            }
            return STK_OK;
        }
        at += size;
    }
    return STK_OK;
}

/* One entry of the list; *used: its bytes. */
static stk_status read_entry(const stk_input *input, const uint8_t *p, size_t n, stk_zip_member *member, size_t *used)
{
    if (n < ENTRY_BYTES || stk_little32(p) != 0x02014b50) return fail_damaged("list of members");
    size_t n_name = stk_little16(p + 28), n_extra = stk_little16(p + 30), n_comment = stk_little16(p + 32);
    *used = ENTRY_BYTES + n_name + n_extra + n_comment;
    if (*used > n) return fail_damaged("list of members");
    int method = stk_little16(p + 10);
    member->crc = stk_little32(p + 16);
    member->packed = stk_little32(p + 20);
    member->n = stk_little32(p + 24);
    member->header_at = stk_little32(p + 42);
    member->deflated = method == 8;
    STK_RETURN_IF_ERROR(read_extra64(p + ENTRY_BYTES + n_name, n_extra, member));
    const char *name = (const char *)p + ENTRY_BYTES;
    if (memchr(name, 0, n_name)) return fail_damaged("list of members");
    if (!(member->name = strndup(name, n_name))) return stk_fail_memory(n_name);
    if (stk_little16(p + 8) & 1) return stk_fail(STK_UNSUPPORTED, "its member '%.80s' is encrypted", member->name);
    if (method != 0 && method != 8)
        return stk_fail(STK_UNSUPPORTED, "its member '%.80s' is compressed by method %d; stored and deflated are read",
                        member->name, method);
    if (member->packed > input->n_bytes || (!member->deflated && member->packed != member->n))
        return fail_damaged("list of members");
    /* Deflate never shrinks by more, so that a size above is a lie. */
    if (member->n / 1032 > member->packed) return fail_damaged("list of members");
    return STK_OK;
}

stk_status stk_zip_open(const stk_input *input, stk_zip *out)
{
    list_place place;
    stk_status status;
    uint8_t *list = NULL;
    *out = (stk_zip){0};
    STK_RETURN_IF_ERROR(find_list(input, &place));
    if (place.n > MOST_LIST_BYTES)
        return stk_fail(STK_CORRUPT, "its list of members has %llu bytes, which cannot be right; %d are the most",
                        (unsigned long long)place.n, MOST_LIST_BYTES);
    list = malloc(place.n ? place.n : 1);
    if (!list) return stk_fail_memory(place.n);
    STK_TRY(stk_input_read(input, place.at, list, place.n));
    size_t most = place.n / ENTRY_BYTES + 1; /* the last may be a damaged one */
    out->member = calloc(most, sizeof(*out->member));
    if (!out->member) STK_TRY(stk_fail_memory(most * sizeof(*out->member)));
    for (size_t at = 0, used = 0; at < place.n; at += used)
        STK_TRY(read_entry(input, list + at, place.n - at, &out->member[out->n_members++], &used));
done:
    free(list);
    return status;
}

void stk_zip_free(stk_zip *zip)
{
    for (size_t i = 0; i < zip->n_members; i++)
        free(zip->member[i].name);
    free(zip->member);
    *zip = (stk_zip){0};
}

stk_status stk_zip_locate(const stk_input *input, const stk_zip_member *member, uint64_t *at)
{
    uint8_t local[LOCAL_BYTES];
    STK_RETURN_IF_ERROR(stk_input_read(input, member->header_at, local, sizeof(local)));
    if (stk_little32(local) != 0x04034b50) return fail_damaged("header of a member");
    *at = member->header_at + LOCAL_BYTES + stk_little16(local + 26) + stk_little16(local + 28);
    if (*at > input->n_bytes || member->packed > input->n_bytes - *at)
        return stk_fail(STK_CORRUPT, "its member '%.80s' is cut short", member->name);
    return STK_OK;
}

static uint32_t sum(const uint8_t *p, uint64_t n)
{
    uLong crc = crc32(0, NULL, 0);
    for (uint64_t at = 0; at < n; at += 1 << 30)
        crc = crc32(crc, p + at, n - at < 1 << 30 ? (uInt)(n - at) : 1u << 30);
    return (uint32_t)crc;
}

static stk_status inflate_member(const stk_input *input, const stk_zip_member *member, uint64_t at, uint8_t *dst)
{
    stk_status status = STK_OK;
    z_stream z = {0};
    uint8_t block[BLOCK_BYTES], nothing;
    uint64_t n_in = member->packed, n_out = 0;
    if (inflateInit2(&z, -15) != Z_OK) return stk_fail_memory(1 << 16);
    for (int result = Z_OK; result != Z_STREAM_END;) {
        if (z.avail_in == 0 && n_in > 0) {
            z.avail_in = n_in < BLOCK_BYTES ? (uInt)n_in : BLOCK_BYTES;
            STK_TRY(stk_input_read(input, at, block, z.avail_in));
            z.next_in = block;
            at += z.avail_in;
            n_in -= z.avail_in;
        }
        uint64_t room = member->n - n_out;
        z.avail_out = room == 0 ? 1 : room < 1 << 30 ? (uInt)room : 1u << 30;
        z.next_out = room == 0 ? &nothing : dst + n_out;
        uInt before = z.avail_out;
        result = inflate(&z, Z_NO_FLUSH);
        n_out += before - z.avail_out;
        bool ended = z.avail_in == 0 && n_in == 0 && z.avail_out > 0;
        if (n_out > member->n || (result != Z_OK && result != Z_STREAM_END) || (result == Z_OK && ended))
            STK_TRY(stk_fail(STK_CORRUPT, "its member '%.80s' is damaged: it does not inflate to %llu bytes",
                             member->name, (unsigned long long)member->n));
    }
    if (n_out != member->n)
        status = stk_fail(STK_CORRUPT, "its member '%.80s' inflates to %llu bytes, not %llu", member->name,
                          (unsigned long long)n_out, (unsigned long long)member->n);
done:
    inflateEnd(&z);
    return status;
}

stk_status stk_zip_read(const stk_input *input, const stk_zip_member *member, uint8_t *dst)
{
    uint64_t at;
    STK_RETURN_IF_ERROR(stk_zip_locate(input, member, &at));
    if (member->deflated)
        STK_RETURN_IF_ERROR(inflate_member(input, member, at, dst));
    else
        STK_RETURN_IF_ERROR(stk_input_read(input, at, dst, member->n));
    if (sum(dst, member->n) == member->crc) return STK_OK;
    return stk_fail(STK_CORRUPT, "the CRC of its member '%.80s' is wrong", member->name);
}
