/* i32 class number -> f32 [n_classes], 1 at the class and 0 elsewhere. */
#include <string.h>

#include "base/error.h"
#include "data/stage/stage_list.h"

typedef struct one_hot_params {
    int64_t n_classes;
} one_hot_params;

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const one_hot_params *p = params;
    char text[STK_SHAPE_TEXT_BYTES];
    if (in->kind != STK_FIELD_ARRAY || in->desc.dtype != STK_I32 || in->desc.shape.rank != 0)
        return stk_fail(STK_INVALID, "needs class numbers i32 [], not %s",
                        in->kind == STK_FIELD_ARRAY ? stk_desc_text(in->desc, text) : "encoded bytes");
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(STK_F32, STK_SHAPE(p->n_classes))};
    return STK_OK;
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const one_hot_params *p = params;
    int32_t label;
    (void)key;
    (void)scratch;
    memcpy(&label, in->data, sizeof(label));
    if (label < 0 || label >= p->n_classes)
        return stk_fail(STK_CORRUPT, "class number %d is outside of the %lld classes", (int)label,
                        (long long)p->n_classes);
    memset(out->data, 0, (size_t)p->n_classes * sizeof(float));
    ((float *)out->data)[label] = 1;
    return STK_OK;
}

static const stk_key keys[] = {{.name = "classes",
                                .type = STK_KEY_INT,
                                .least = 1,
                                .most = 1000000,
                                .required = true,
                                .doc = "The length of the label's vector."},
                               STK_KEY_END};

static stk_status build(const stk_yaml_node *settings, stk_stage **out)
{
    *out = stk_one_hot(stk_yaml_int(settings, "classes", 0));
    return STK_OK;
}

const stk_stage_class stk_stage_one_hot = {.key = {.name = "one_hot",
                                                   .type = STK_KEY_MAP,
                                                   .keys = keys,
                                                   .doc = "Class numbers to vectors; works on the label."},
                                           .build = build,
                                           .field = "label",
                                           .params_bytes = sizeof(one_hot_params),
                                           .plan = plan,
                                           .run = run,
                                           .plain = true};

stk_stage *stk_one_hot(int64_t n_classes)
{
    if (n_classes < 1 || n_classes > INT32_MAX)
        return stk_stage_new_failed(STK_INVALID, "one_hot: %lld classes cannot be right", (long long)n_classes);
    return stk_stage_new(&stk_stage_one_hot, &(one_hot_params){n_classes});
}
