/* See codec/tar.h. */
#include "data/codec/tar.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/window.h"

enum { BLOCK_BYTES = 512, MOST_NAME = 64 << 10 /* of a long name or pax records: whole paths are 4 KiB at most */ };

/* What a header may say about the member after it. */
typedef struct extension {
    char *name; /* NULL: as in the header */
    bool has_size;
    uint64_t size;
} extension;

static bool is_zero(const uint8_t *block)
{
    for (int i = 0; i < BLOCK_BYTES; i++)
        if (block[i]) return false;
    return true;
}

/* Octal with spaces and zeros around it, or binary where the first bit is set. */
static bool parse_number(const uint8_t *p, int n, uint64_t *out)
{
    uint64_t x = 0;
    int i = 0;
    if (p[0] & 0x80) {
        for (i = n > 8 ? n - 8 : 0; i < n; i++)
            x = x << 8 | p[i];
        for (int k = 1; k < n - 8; k++)
            if (p[k]) return false;
        *out = x;
        return p[0] == 0x80;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        x = x << 3 | (uint64_t)(p[i] - '0');
    *out = x;
    return i == n || p[i] == ' ' || p[i] == 0;
}

static bool has_right_sum(const uint8_t *header)
{
    uint64_t wanted, sum = 0;
    int64_t signed_sum = 0; /* as old programs on some machines had it */
    if (!parse_number(header + 148, 8, &wanted)) return false;
    for (int i = 0; i < BLOCK_BYTES; i++) {
        uint8_t byte = i >= 148 && i < 156 ? ' ' : header[i];
        sum += byte;
        signed_sum += (int8_t)byte;
    }
    return wanted == sum || (int64_t)wanted == signed_sum;
}

/* The name that the header itself has. out: 257 bytes. */
static void get_name(const uint8_t *header, char out[257])
{
    size_t n = 0;
    if (!memcmp(header + 257, "ustar\0", 6) && header[345]) {
        n = strnlen((const char *)header + 345, 155);
        memcpy(out, header + 345, n);
        out[n++] = '/';
    }
    size_t n_name = strnlen((const char *)header, 100);
    memcpy(out + n, header, n_name);
    out[n + n_name] = 0;
}

/* --- extensions --- */

/* The records "length key=value\n" of a pax header. */
static stk_status parse_pax(const char *text, size_t n, extension *next)
{
    for (size_t at = 0; at < n && text[at];) {
        size_t length = 0, i = at;
        for (; i < n && text[i] >= '0' && text[i] <= '9' && length < MOST_NAME; i++)
            length = 10 * length + (size_t)(text[i] - '0');
        if (i == at || i == n || text[i] != ' ' || length > n - at || length < i - at + 3 ||
            text[at + length - 1] != '\n')
            return stk_fail(STK_CORRUPT, "its pax header is damaged");
        const char *key = text + i + 1, *end = text + at + length - 1, *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals) return stk_fail(STK_CORRUPT, "its pax header is damaged");
        size_t n_key = (size_t)(equals - key), n_value = (size_t)(end - equals) - 1;
        if (n_key >= 10 && !memcmp(key, "GNU.sparse", 10))
            return stk_fail(STK_UNSUPPORTED, "it is a sparse file, which is not supported");
        if (n_key == 4 && !memcmp(key, "path", 4)) {
            free(next->name);
            if (!(next->name = strndup(equals + 1, n_value))) return stk_fail_memory(n_value);
        }
        if (n_key == 4 && !memcmp(key, "size", 4)) {
            next->size = 0;
            next->has_size = n_value > 0;
            for (const char *p = equals + 1; p < end; p++)
                if (*p < '0' || *p > '9' || __builtin_mul_overflow(next->size, 10, &next->size) ||
                    __builtin_add_overflow(next->size, (uint64_t)(*p - '0'), &next->size))
                    return stk_fail(STK_CORRUPT, "its pax header is damaged");
        }
        at += length;
    }
    return STK_OK;
}

/* A member that only says something about the next one: types x and L. */
static stk_status read_extension(stk_window *w, char type, uint64_t at, uint64_t n, extension *next)
{
    const uint8_t *bytes;
    if (n > MOST_NAME)
        return stk_fail(STK_CORRUPT, "its long name of %llu bytes cannot be right; %d are the most",
                        (unsigned long long)n, MOST_NAME);
    STK_RETURN_IF_ERROR(stk_window_get(w, at, (size_t)n, false, &bytes));
    if (type == 'x') return parse_pax((const char *)bytes, (size_t)n, next);
    free(next->name);
    next->name = strndup((const char *)bytes, (size_t)n);
    return next->name ? STK_OK : stk_fail_memory((size_t)n);
}

/* --- members --- */

static bool is_regular(char type)
{
    return type == '0' || type == 0 || type == '7';
}

/* Links, devices, folders and pipes have no data, whatever their size says. */
static bool has_no_data(char type)
{
    return type >= '1' && type <= '6';
}

/* The member whose header lies at *at, which moves on behind it. */
static stk_status read_member(stk_window *w, uint64_t *at, const uint8_t *header, extension *next, stk_tar_member_fn fn,
                              void *user)
{
    char own_name[257], type = (char)header[156];
    uint64_t n, data_at = *at + BLOCK_BYTES, n_left = w->input->n_bytes - data_at;
    if (!has_right_sum(header)) return stk_fail(STK_CORRUPT, "the checksum of a tar header is wrong");
    if (!parse_number(header + 124, 12, &n)) return stk_fail(STK_CORRUPT, "the size in a tar header is damaged");
    if (type == 'S') return stk_fail(STK_UNSUPPORTED, "it is a sparse file, which is not supported");
    get_name(header, own_name);
    bool extends = type == 'x' || type == 'L';
    if (!extends && next->has_size) n = next->size;
    if (has_no_data(type)) n = 0;
    if (n > n_left)
        return stk_fail(STK_CORRUPT, "'%.200s' is cut short: it has %llu bytes, and %llu are left",
                        next->name && !extends ? next->name : own_name, (unsigned long long)n,
                        (unsigned long long)n_left);
    uint64_t n_blocks = (n + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    if (n_blocks > n_left)
        return stk_fail(STK_CORRUPT, "the archive is cut short behind '%.200s': the rest of its last block is missing",
                        next->name && !extends ? next->name : own_name);
    if (extends) {
        STK_RETURN_IF_ERROR(read_extension(w, type, data_at, n, next));
    } else if (type != 'g' && type != 'K') { /* about all members, and about a link's target */
        stk_status status = is_regular(type) ? fn(user, next->name ? next->name : own_name, data_at, n) : STK_OK;
        free(next->name);
        *next = (extension){0};
        STK_RETURN_IF_ERROR(status);
    }
    *at = data_at + n_blocks;
    return STK_OK;
}

stk_status stk_tar_scan(const stk_input *input, stk_tar_member_fn fn, void *user)
{
    stk_window w;
    extension next = {0};
    stk_status status = STK_OK;
    STK_RETURN_IF_ERROR(stk_window_open(input, &w));
    for (uint64_t at = 0, before = 0; at < input->n_bytes;) {
        const uint8_t *header;
        bool far = at - before > STK_WINDOW_BYTES / 4;
        if (input->n_bytes - at < BLOCK_BYTES)
            STK_TRY(stk_fail(STK_CORRUPT, "at byte %llu: it is cut short in a tar header", (unsigned long long)at));
        STK_TRY(stk_window_get(&w, at, BLOCK_BYTES, far, &header));
        if (is_zero(header)) break;
        before = at;
        status = read_member(&w, &at, header, &next, fn, user);
        if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "at byte %llu: ", (unsigned long long)before));
    }
    if (next.name || next.has_size) status = stk_fail(STK_CORRUPT, "it is cut short after a long name");
done:
    free(next.name);
    stk_window_close(&w);
    return status;
}
