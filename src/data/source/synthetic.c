/* Random samples, recomputed whenever they are read: nothing is kept. See stoker/data/random.h. */
#include "stoker/data/random.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"
#include "data/source/fields.h"
#include "data/source/keys.h"
#include "data/source/records.h"
#include "data/source/source_list.h"
#include "tensor/shape.h"

typedef struct synthetic_source {
    stk_source base;
    uint64_t seed;
    uint32_t below[STK_MAX_FIELDS];
} synthetic_source;

/* --- elements --- */

/* Uniform in +-sqrt(3): mean 0, deviation 1. */
static float draw_real(stk_rng *rng)
{
    return (stk_rng_uniform(rng) - 0.5f) * 3.4641016f;
}

static void fill_reals(stk_rng *rng, stk_dtype dtype, int64_t n, void *out)
{
    for (int64_t i = 0; i < n; i++) {
        float x = draw_real(rng);
        switch (dtype) {
        case STK_F64: ((double *)out)[i] = (double)x; break;
        case STK_F16: ((uint16_t *)out)[i] = stk_f32_to_f16(x); break;
        case STK_BF16: ((uint16_t *)out)[i] = stk_f32_to_bf16(x); break;
        default: ((float *)out)[i] = x;
        }
    }
}

static void fill_whole(stk_rng *rng, stk_dtype dtype, uint32_t below, int64_t n, void *out)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = stk_rng_below(rng, below);
        switch (dtype) {
        case STK_I64: ((int64_t *)out)[i] = (int64_t)x; break;
        case STK_I32: ((int32_t *)out)[i] = (int32_t)x; break;
        default: ((uint8_t *)out)[i] = (uint8_t)x; /* u8, i8 and bool, none of them below 0 */
        }
    }
}

/* --- the source --- */

static stk_status read_record(const stk_source *source, int64_t i_record, stk_scratch *scratch, stk_item *item)
{
    const synthetic_source *s = (const synthetic_source *)source;
    for (int f = 0; f < source->n_fields; f++) {
        stk_tensor_desc desc = source->field[f].type.desc;
        size_t bytes = stk_desc_bytes(desc);
        void *out = stk_scratch_get(&scratch[f], bytes);
        if (!out) return STK_NO_MEMORY;
        stk_rng rng = stk_rng_make(s->seed, 0, (uint64_t)i_record, (uint64_t)f);
        if (stk_dtype_is_float(desc.dtype))
            fill_reals(&rng, desc.dtype, stk_shape_count(desc.shape), out);
        else
            fill_whole(&rng, desc.dtype, s->below[f], stk_shape_count(desc.shape), out);
        item[f] = (stk_item){.type = source->field[f].type, .data = out, .n_bytes = bytes};
    }
    return STK_OK;
}

static void name_record(const stk_source *source, int64_t i_record, char *out, size_t out_bytes)
{
    (void)source;
    snprintf(out, out_bytes, "synthetic sample %lld", (long long)i_record);
}

static void close_source(stk_source *source)
{
    free(source);
}

static const stk_source_class class_synthetic = {
    .name = "synthetic", .read = read_record, .name_record = name_record, .close = close_source};

/* What a type has from 0 on; 0 for floats. */
static int64_t most_below(stk_dtype dtype)
{
    switch (dtype) {
    case STK_BOOL: return 2;
    case STK_I8: return 128;
    case STK_U8: return 256;
    case STK_I32:
    case STK_I64: return INT64_C(1) << 31;
    default: return 0;
    }
}

static stk_status set_below(const stk_synthetic_field *field, uint32_t *out)
{
    int64_t most = most_below(field->dtype);
    if (field->below != 0 && most == 0)
        return stk_fail(STK_INVALID, "field '%s' is %s, which has no 'below': that is for whole numbers", field->name,
                        stk_dtype_name(field->dtype));
    if (field->below < 0 || field->below > most)
        return stk_fail(STK_INVALID, "field '%s': 'below' is %lld, and must be 1 to %lld for %s", field->name,
                        (long long)field->below, (long long)most, stk_dtype_name(field->dtype));
    *out = (uint32_t)(field->below ? field->below : most);
    return STK_OK;
}

stk_status stk_source_open_synthetic(int64_t n_samples, const stk_synthetic_field *fields, int n_fields, uint64_t seed,
                                     stk_source **out)
{
    stk_array_field array[STK_MAX_FIELDS];
    stk_status status;
    for (int f = 0; fields && f < n_fields && f < STK_MAX_FIELDS; f++)
        array[f] = (stk_array_field){fields[f].name, fields[f].dtype, fields[f].sample, NULL};
    synthetic_source *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    STK_TRY(stk_source_set_fields(&s->base, n_samples, fields ? array : NULL, n_fields));
    for (int f = 0; f < n_fields; f++)
        STK_TRY(set_below(&fields[f], &s->below[f]));
    s->seed = seed;
    s->base.class = &class_synthetic;
    s->base.is_random = true;
    *out = &s->base;
    return STK_OK;
done:
    free(s);
    return status;
}

/* --- settings --- */

static const char *const dtype_words[] = {"u8", "i8", "bool", "i32", "i64", "f16", "bf16", "f32", "f64", NULL};
static const stk_key side_key = {.name = "side", .type = STK_KEY_INT, .least = 1, .most = 1e12};
static const stk_key field_keys[] = {
    {.name = "shape",
     .type = STK_KEY_LIST,
     .element = &side_key,
     .default_value = "[]",
     .doc = "Of one sample's array; [] is a single number."},
    {.name = "dtype",
     .type = STK_KEY_WORD,
     .words = dtype_words,
     .doc = "The element type. Default: i32 where there is 'below', else f32."},
    {.name = "below",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483648.0,
     .doc = "Whole numbers are 0 to one less than this. Default: all that the type has from 0 on."},
    STK_KEY_END};
static const stk_key field_key = {.name = "field",
                                  .type = STK_KEY_MAP,
                                  .keys = field_keys,
                                  .doc = "Numbers with a fraction are uniform with mean 0 and deviation 1."};
static const stk_key keys[] = {
    {.name = "fields",
     .type = STK_KEY_NAMED,
     .element = &field_key,
     .required = true,
     .doc = "The fields of a sample and their shapes: {image: [32, 32, 3]}, {tokens: {shape: [256], below: 50257}}."},
    {.name = "classes",
     .type = STK_KEY_INT,
     .least = 1,
     .most = 2147483647,
     .doc = "A field 'label', a class number below this. Default: there is none."},
    {.name = "samples",
     .type = STK_KEY_INT,
     .default_value = "1000000",
     .least = 1,
     .most = 1e15,
     .doc = "How many samples an epoch has."},
    {.name = "seed",
     .type = STK_KEY_INT,
     .default_value = "0",
     .least = 0,
     .most = 9e15,
     .doc = "Of the random numbers."},
    STK_KEY_END};

static stk_status read_field(const stk_yaml_node *node, stk_synthetic_field *out)
{
    const stk_yaml_node *dtype = stk_yaml_get(node, "dtype"), *below = stk_yaml_get(node, "below");
    const stk_yaml_node *shape = stk_yaml_get(node, "shape");
    *out = (stk_synthetic_field){
        .name = node->key, .dtype = below ? STK_I32 : STK_F32, .below = below ? below->integer : 0};
    if (dtype) stk_dtype_from_name(dtype->text, &out->dtype);
    if (shape->n_children > STK_MAX_RANK)
        return stk_yaml_fail(shape, "more than %d dimensions are not possible", STK_MAX_RANK);
    for (const stk_yaml_node *side = shape->child; side; side = side->next)
        out->sample.dim[out->sample.rank++] = side->integer;
    return STK_OK;
}

static stk_status open_settings(const stk_yaml_node *settings, stk_source **out)
{
    const stk_yaml_node *fields = stk_yaml_get(settings, "fields"), *classes = stk_yaml_get(settings, "classes");
    stk_synthetic_field field[STK_MAX_FIELDS + 1];
    int n = 0;
    if (fields->n_children > STK_MAX_FIELDS) return stk_yaml_fail(fields, "more than %d fields", STK_MAX_FIELDS);
    for (const stk_yaml_node *node = fields->child; node; node = node->next)
        STK_RETURN_IF_ERROR(read_field(node, &field[n++]));
    if (classes) field[n++] = (stk_synthetic_field){.name = "label", .dtype = STK_I32, .below = classes->integer};
    return stk_yaml_locate(settings, stk_source_open_synthetic(stk_yaml_int(settings, "samples", 0), field, n,
                                                               (uint64_t)stk_yaml_int(settings, "seed", 0), out));
}

const stk_source_kind stk_source_kind_synthetic = {
    .key = {.name = "synthetic",
            .type = STK_KEY_MAP,
            .keys = keys,
            .no_short = true,
            .doc = "Random numbers, for measuring: without stages one batch is made and delivered again and again, at "
                   "no cost."},
    .open = open_settings};
