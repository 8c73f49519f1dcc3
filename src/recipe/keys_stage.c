/* The stages of a recipe: those of data/stage/stage_list.h, whose keys are in their files, and `with`, which holds
 * others. */
#include "data/stage/stage_list.h"
#include "recipe/keys.h"

static const stk_key field_name_key = {.name = "name", .type = STK_KEY_TEXT};
static const stk_key with_keys[] = {
    {.name = "fields",
     .type = STK_KEY_LIST,
     .element = &field_name_key,
     .one_is_list = true,
     .required = true,
     .doc = "Their names: mask, or [image, mask]."},
    {.name = "stages",
     .type = STK_KEY_LIST,
     .element = &stk_stage_choice,
     .required = true,
     .doc = "For one field any stages. For several those that move pixels: resize, crops, flips, rotation, affine, "
            "pad; they draw once for all fields, which must be equally large."},
    {.name = "images",
     .type = STK_KEY_INT,
     .default_value = "1",
     .least = 1,
     .most = 8,
     .doc = "How many of the fields are images, from the first on. The others are masks, whose values are never mixed "
            "and whose outside is 0."},
    END};
const stk_key stk_stage_with = {
    .name = "with",
    .type = STK_KEY_MAP,
    .keys = with_keys,
    .no_short = true,
    .doc = "Stages of other fields than the image, or of several with the same random draws.",
};

static const stk_key *const stage_kinds[] = {&stk_stage_with,
#define X(stage) &stk_stage_##stage.key,
                                             STK_STAGE_LIST(X)
#undef X
                                                 NULL};
const stk_key stk_stage_choice = {.name = "stage", .type = STK_KEY_CHOICE, .kinds = stage_kinds};
