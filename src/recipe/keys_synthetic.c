/* Keys of the source of random samples. */
#include "recipe/keys.h"

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
    END};
static const stk_key field_key = {.name = "field",
                                  .type = STK_KEY_MAP,
                                  .keys = field_keys,
                                  .doc = "Numbers with a fraction are uniform with mean 0 and deviation 1."};
const stk_key stk_synthetic_keys[] = {
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
    END};
