/* Keys of fine-tuning. */
#include "recipe/keys.h"

static const stk_key name_key = {.name = "name", .type = STK_KEY_TEXT};
const stk_key stk_init_keys[] = {
    {.name = "weights",
     .type = STK_KEY_TEXT,
     .is_path = true,
     .required = true,
     .doc = "A file in safetensors with PyTorch's names or Stoker's, or the folder of a run."},
    {.name = "leave",
     .type = STK_KEY_LIST,
     .element = &name_key,
     .one_is_list = true,
     .doc = "Parts of names of tensors that keep their first content, as a new head: [fc]. Default: none."},
    END};
static const stk_key group_keys[] = {
    {.name = "match",
     .type = STK_KEY_LIST,
     .element = &name_key,
     .one_is_list = true,
     .required = true,
     .doc = "Whole names, parts at their start (layer1), or patterns ('*.bias')."},
    {.name = "lr",
     .type = STK_KEY_REAL,
     .default_value = "1",
     .least = 0,
     .most = 1e6,
     .doc = "A factor of the learning rate."},
    {.name = "weight_decay", .type = STK_KEY_REAL, .least = 0, .most = 1, .doc = "Default: the optimiser's."},
    {.name = "until",
     .type = STK_KEY_REAL,
     .least = 0,
     .most = 1e6,
     .above = true,
     .doc = "Epochs, after which the rate is 0. Default: to the end."},
    END};
const stk_key stk_group_key = {.name = "group", .type = STK_KEY_MAP, .keys = group_keys, .no_short = true};
