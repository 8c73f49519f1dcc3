/* See source/tar_samples.h. WebDataset's rule: the key is everything before the first dot of the file name, and members
 * with one key that follow one another are a sample. Names like __this__, hidden ones, and those without a dot are left
 * out. An index holds the members, "u64 at, u64 bytes, u32 length, name" each, so that it knows no rule.
 */
#include "data/source/tar_samples.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/little.h"
#include "base/text.h"
#include "data/codec/tar.h"
#include "data/common/side_file.h"

enum { ENTRY_BYTES = 20, MOST_PARTS = 4096 /* of a sample: each is compared with those before */ };

/* --- members to samples --- */

/* Room for one more of *n things of `bytes` bytes. */
static stk_status grow(void **array, int64_t n, int64_t *capacity, size_t bytes)
{
    if (n < *capacity) return STK_OK;
    int64_t grown = 2 * *capacity + 256;
    void *p = realloc(*array, (size_t)grown * bytes);
    if (!p) return stk_fail_memory((size_t)grown * bytes);
    *array = p;
    *capacity = grown;
    return STK_OK;
}

static stk_status add_text(stk_tar_samples *s, const char *text, size_t n, size_t *at)
{
    if (s->n_names + n + 1 > s->names_capacity) {
        size_t grown = 2 * s->names_capacity + n + 4096;
        char *p = realloc(s->names, grown);
        if (!p) return stk_fail_memory(grown);
        s->names = p;
        s->names_capacity = grown;
    }
    *at = s->n_names;
    memcpy(s->names + s->n_names, text, n);
    s->names[s->n_names + n] = 0;
    s->n_names += n + 1;
    return STK_OK;
}

/* Extensions are few and come again and again: one text serves all that are equal to one of the sample before. */
static stk_status add_extension(stk_tar_samples *s, const char *extension, size_t *at)
{
    char lower[64];
    size_t n = strlen(extension);
    if (n >= sizeof(lower)) n = sizeof(lower) - 1; /* no field is asked for by such a name */
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)tolower((unsigned char)extension[i]);
    lower[n] = 0;
    for (int64_t i = s->n_parts - 1; i >= 0 && i >= s->n_parts - 16; i--) {
        *at = s->part[i].extension_at;
        if (!strcmp(s->names + *at, lower)) return STK_OK;
    }
    STK_RETURN_IF_ERROR(add_text(s, lower, n, at));
    return *at <= UINT32_MAX ? STK_OK : stk_fail(STK_UNSUPPORTED, "its names need more than 4 GiB");
}

static stk_status start_sample(stk_tar_samples *s, const char *key, size_t n)
{
    size_t at = 0;
    STK_RETURN_IF_ERROR(add_text(s, key, n, &at));
    STK_RETURN_IF_ERROR(grow((void **)&s->sample, s->n_samples + 1, &s->sample_capacity, sizeof(*s->sample)));
    s->sample[s->n_samples++] = (stk_tar_sample){at, s->n_parts};
    return STK_OK;
}

static stk_status add_member(void *user, const char *name, uint64_t at, uint64_t n_bytes)
{
    stk_tar_samples *s = user;
    size_t extension_at = 0, n_name = strlen(name);
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strchr(base, '.');
    bool is_meta = n_name > 4 && !strncmp(base, "__", 2) && !strcmp(name + n_name - 2, "__");
    if (!dot || dot == base || is_meta) return STK_OK;
    size_t n_key = (size_t)(dot - name);
    const char *last = s->n_samples ? s->names + s->sample[s->n_samples - 1].key_at : NULL;
    if (!last || strncmp(last, name, n_key) || last[n_key]) STK_RETURN_IF_ERROR(start_sample(s, name, n_key));
    STK_RETURN_IF_ERROR(add_extension(s, dot + 1, &extension_at));
    const char *extension = s->names + extension_at;
    if (s->n_parts - s->sample[s->n_samples - 1].i_part == MOST_PARTS)
        return stk_fail(STK_UNSUPPORTED,
                        "sample '%.200s' has more than %d files: those whose names agree up to the first dot are one "
                        "sample",
                        s->names + s->sample[s->n_samples - 1].key_at, MOST_PARTS);
    for (int64_t i = s->sample[s->n_samples - 1].i_part; i < s->n_parts; i++)
        if (!strcmp(s->names + s->part[i].extension_at, extension))
            return stk_fail(STK_CORRUPT, "sample '%.200s' has two files '.%s'",
                            s->names + s->sample[s->n_samples - 1].key_at, extension);
    STK_RETURN_IF_ERROR(grow((void **)&s->part, s->n_parts, &s->part_capacity, sizeof(*s->part)));
    s->part[s->n_parts++] = (stk_tar_part){(uint32_t)extension_at, at, n_bytes};
    return STK_OK;
}

/* --- the index --- */

typedef struct listing {
    stk_tar_samples *samples;
    stk_text index;
} listing;

static stk_status list_member(void *user, const char *name, uint64_t at, uint64_t n_bytes)
{
    listing *l = user;
    uint8_t entry[ENTRY_BYTES];
    size_t n = strlen(name);
    stk_put_little64(entry, at);
    stk_put_little64(entry + 8, n_bytes);
    stk_put_little32(entry + 16, (uint32_t)n);
    stk_text_add_bytes(&l->index, entry, sizeof(entry));
    stk_text_add_bytes(&l->index, name, n);
    return add_member(l->samples, name, at, n_bytes);
}

static stk_status end_samples(stk_tar_samples *s)
{
    STK_RETURN_IF_ERROR(grow((void **)&s->sample, s->n_samples, &s->sample_capacity, sizeof(*s->sample)));
    s->sample[s->n_samples] = (stk_tar_sample){.i_part = s->n_parts};
    return STK_OK;
}

static stk_status fail_index(void)
{
    return stk_fail(STK_CORRUPT, "the index is damaged");
}

stk_status stk_tar_samples_parse(const stk_input *file, stk_span index, stk_tar_samples *out)
{
    const uint8_t *p = index.data;
    size_t n = index.n;
    char name[65536 + 1]; /* as long as the longest that is read from an archive */
    *out = (stk_tar_samples){0};
    while (n > 0) {
        if (n < ENTRY_BYTES) return fail_index();
        uint64_t at = stk_little64(p), n_bytes = stk_little64(p + 8);
        uint32_t n_name = stk_little32(p + 16);
        if (n_name > n - ENTRY_BYTES || n_name >= sizeof(name)) return fail_index();
        if (at > file->n_bytes || n_bytes > file->n_bytes - at) return fail_index();
        memcpy(name, p + ENTRY_BYTES, n_name);
        name[n_name] = 0;
        STK_RETURN_IF_ERROR(add_member(out, name, at, n_bytes));
        p += ENTRY_BYTES + n_name;
        n -= ENTRY_BYTES + n_name;
    }
    return end_samples(out);
}

stk_status stk_tar_samples_open(const stk_input *file, stk_tar_samples *out, bool *stale)
{
    uint8_t *payload;
    size_t n;
    stk_status status;
    *out = (stk_tar_samples){0};
    STK_RETURN_IF_ERROR(stk_index_read(file, STK_INDEX_TAR, &payload, &n, stale));
    if (payload) {
        status = stk_tar_samples_parse(file, (stk_span){payload, n}, out);
        free(payload);
        if (status == STK_OK || status == STK_NO_MEMORY) return status;
        stk_tar_samples_free(out);
        *stale = true;
    }
    listing l = {.samples = out};
    status = stk_tar_scan(file, list_member, &l);
    if (status == STK_OK) status = end_samples(out);
    if (status == STK_OK && !l.index.failed) stk_index_write(file, STK_INDEX_TAR, stk_text_get(&l.index), l.index.n);
    stk_text_free(&l.index);
    return status;
}

void stk_tar_samples_free(stk_tar_samples *samples)
{
    free(samples->names);
    free(samples->part);
    free(samples->sample);
    *samples = (stk_tar_samples){0};
}

const stk_tar_part *stk_tar_samples_find(const stk_tar_samples *samples, int64_t i, const char *extension, size_t n)
{
    for (int64_t k = samples->sample[i].i_part; k < samples->sample[i + 1].i_part; k++) {
        const char *own = samples->names + samples->part[k].extension_at;
        if (!strncmp(own, extension, n) && !own[n]) return &samples->part[k];
    }
    return NULL;
}
