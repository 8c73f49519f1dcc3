/* Every stage, once, in the order of docs/recipe.md: its file's descriptor is stk_stage_<name>. See
 * docs/adding-a-stage.md. */
#ifndef STK_DATA_STAGE_STAGE_LIST_H
#define STK_DATA_STAGE_STAGE_LIST_H

#include "data/stage/stage.h"

#define STK_STAGE_LIST(X)                                                                                              \
    X(decode_mask)                                                                                                     \
    X(decode)                                                                                                          \
    X(resize)                                                                                                          \
    X(center_crop)                                                                                                     \
    X(random_crop)                                                                                                     \
    X(random_resized_crop)                                                                                             \
    X(random_flip)                                                                                                     \
    X(color_jitter)                                                                                                    \
    X(random_grayscale)                                                                                                \
    X(gaussian_blur)                                                                                                   \
    X(random_erasing)                                                                                                  \
    X(random_rotation)                                                                                                 \
    X(random_affine)                                                                                                   \
    X(randaugment)                                                                                                     \
    X(pad)                                                                                                             \
    X(clip)                                                                                                            \
    X(layout)                                                                                                          \
    X(cast)                                                                                                            \
    X(scale)                                                                                                           \
    X(normalize)                                                                                                       \
    X(tokenize)                                                                                                        \
    X(one_hot)

#define X(stage) extern const stk_stage_class stk_stage_##stage;
STK_STAGE_LIST(X)
#undef X

/* NULL when there is none of that name. */
const stk_stage_class *stk_stage_find(const char *name);

/* For plans: refuses all but images [H,W,C] of u8 (or f32). */
stk_status stk_stage_needs_image(const stk_field_type *in, bool u8_only);
/* For plans: refuses all but u8 images of one channel or three. */
stk_status stk_stage_needs_colors(const stk_field_type *in);

#endif
