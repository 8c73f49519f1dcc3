/* A source of "encoded" images and a few stages, small enough to check by hand. An encoded image is two bytes, height
 * and width, and its pixels. Include after cmocka.h.
 */
#ifndef TESTS_DATA_FAKE_H
#define TESTS_DATA_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset/dataset.h"

typedef struct fake_source {
    stk_source base;
    bool varied;                    /* every third image is one row higher */
    int64_t bad_every, bad_at;      /* records with i % bad_every == bad_at are corrupt; 0: none */
    int64_t out_of_memory_at;       /* that read fails as no record's fault; -1: none */
    void (*before_read)(int64_t i); /* may be NULL */
} fake_source;

static stk_status read_fake(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const fake_source *fake = (const fake_source *)source;
    if (fake->before_read) fake->before_read(i_record);
    if (i_record == fake->out_of_memory_at) return stk_fail(STK_NO_MEMORY, "no memory for this");
    if (fake->bad_every && i_record % fake->bad_every == fake->bad_at) return stk_fail(STK_CORRUPT, "truncated fake");
    unsigned char h = fake->varied && i_record % 3 == 2 ? 5 : 4, w = 4;
    size_t n = 2 + (size_t)h * w;
    unsigned char *p = stk_scratch_get(&scratch[0], n);
    int32_t *label = stk_scratch_get(&scratch[1], sizeof(*label));
    if (!p || !label) return stk_fail_memory(n);
    p[0] = h;
    p[1] = w;
    for (size_t i = 2; i < n; i++)
        p[i] = (unsigned char)(i_record * 31 + (int64_t)i);
    *label = (int32_t)i_record;
    item[0] = (stk_item){.type = source->field[0].type, .data = p, .n_bytes = n};
    item[1] = (stk_item){.type = source->field[1].type, .data = label, .n_bytes = sizeof(*label)};
    return STK_OK;
}

static void name_fake(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    (void)source;
    snprintf(out, out_bytes, "'%lld.fake'", (long long)i_record);
}

static void close_fake(stk_source *source)
{
    free(source);
}

static const stk_source_class fake_class = {
    .name = "fake", .read = read_fake, .name_record = name_fake, .close = close_fake};

/* The data set takes what is returned; *out points into it. */
static stk_dataset *make_fake(int64_t n_records, fake_source **out)
{
    fake_source *fake = calloc(1, sizeof(*fake));
    fake->base = (stk_source){.class = &fake_class, .n_records = n_records, .n_fields = 2};
    fake->base.field[0] = (stk_source_field){.name = "image", .type = {.kind = STK_FIELD_ENCODED}};
    fake->base.field[1] = (stk_source_field){.name = "label", .type = {.desc = {.dtype = STK_I32}}};
    fake->out_of_memory_at = -1;
    if (out) *out = fake;
    return stk_dataset_make(STK_OK, &fake->base);
}

/* --- decode: encoded -> u8 [?,?,1] --- */

static stk_status plan_decode(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    char text[STK_SHAPE_TEXT_BYTES];
    if (in->kind != STK_FIELD_ENCODED)
        return stk_fail(STK_INVALID, "needs encoded images, not %s", stk_desc_text(in->desc, text));
    *out = (stk_field_type){.desc = stk_desc_make(STK_U8, STK_SHAPE(STK_ANY, STK_ANY, 1))};
    return STK_OK;
}

static stk_status measure_decode(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    (void)params, (void)key;
    const unsigned char *p = in->data;
    *out = (stk_field_type){.desc = stk_desc_make(STK_U8, STK_SHAPE(p[0], p[1], 1))};
    return STK_OK;
}

static stk_status run_decode(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                             stk_scratch *scratch)
{
    (void)params, (void)key, (void)scratch;
    memcpy(out->data, (const unsigned char *)in->data + 2, out->n_bytes);
    return STK_OK;
}

static const stk_stage_class fake_decode_class = {
    .key = {.name = "decode"}, .plan = plan_decode, .measure = measure_decode, .run = run_decode};

/* --- fit: the first four rows, u8 [?,?,1] -> u8 [4,4,1] --- */

static stk_status plan_fit(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    if (in->kind != STK_FIELD_ARRAY || in->desc.shape.rank != 3) return stk_fail(STK_INVALID, "needs images");
    *out = (stk_field_type){.desc = stk_desc_make(STK_U8, STK_SHAPE(4, 4, 1))};
    return STK_OK;
}

static stk_status run_fit(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                          stk_scratch *scratch)
{
    (void)params, (void)key, (void)scratch;
    memcpy(out->data, in->data, out->n_bytes);
    return STK_OK;
}

static const stk_stage_class fake_fit_class = {.key = {.name = "fit"}, .plan = plan_fit, .run = run_fit};

/* --- noise: adds random bytes, in place where asked --- */

static stk_status plan_noise(const void *params, const stk_field_type *in, stk_field_type *out)
{
    (void)params;
    if (in->kind != STK_FIELD_ARRAY || in->desc.dtype != STK_U8) return stk_fail(STK_INVALID, "needs u8");
    *out = *in;
    return STK_OK;
}

static stk_status run_noise(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                            stk_scratch *scratch)
{
    (void)params, (void)scratch;
    stk_rng rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
    const unsigned char *src = in->data;
    unsigned char *dst = out->data;
    for (size_t i = 0; i < out->n_bytes; i++)
        dst[i] = (unsigned char)(src[i] + stk_rng_below(&rng, 4));
    return STK_OK;
}

static const stk_stage_class fake_noise_class = {
    .key = {.name = "noise"}, .plan = plan_noise, .run = run_noise, .random = true, .in_place = true};

/* --- widen: u8 -> f32 --- */

static stk_status plan_widen(const void *params, const stk_field_type *in, stk_field_type *out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    (void)params;
    if (in->kind != STK_FIELD_ARRAY || in->desc.dtype != STK_U8)
        return stk_fail(STK_INVALID, "needs u8, not %s",
                        in->kind == STK_FIELD_ARRAY ? stk_desc_text(in->desc, text) : "encoded images");
    *out = *in;
    out->desc.dtype = STK_F32;
    return STK_OK;
}

static stk_status run_widen(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                            stk_scratch *scratch)
{
    (void)params, (void)key, (void)scratch;
    for (size_t i = 0; i < in->n_bytes; i++)
        ((float *)out->data)[i] = ((const unsigned char *)in->data)[i];
    return STK_OK;
}

static const stk_stage_class fake_widen_class = {.key = {.name = "widen"}, .plan = plan_widen, .run = run_widen};

static inline stk_stage *fake_decode(void)
{
    return stk_stage_new(&fake_decode_class, NULL);
}

static inline stk_stage *fake_fit(void)
{
    return stk_stage_new(&fake_fit_class, NULL);
}

static inline stk_stage *fake_noise(void)
{
    return stk_stage_new(&fake_noise_class, NULL);
}

static inline stk_stage *fake_widen(void)
{
    return stk_stage_new(&fake_widen_class, NULL);
}

#endif
