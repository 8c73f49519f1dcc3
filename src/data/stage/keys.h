/* What the keys of several stages have in common, and how it is read. */
#ifndef STK_DATA_STAGE_KEYS_H
#define STK_DATA_STAGE_KEYS_H

#include "settings/schema.h"
#include "stoker/data/dataset.h"

#define STK_STAGE_SIDES .least = 1, .most = 65536

extern const stk_key stk_stage_number_key; /* of a list */
#define STK_STAGE_RANGE(key_name, range, text)                                                                         \
    {                                                                                                                  \
        .name = key_name, .type = STK_KEY_LIST, .element = &stk_stage_number_key, .default_value = range, .doc = text  \
    }
#define STK_STAGE_CHANCE(range, text)                                                                                  \
    {                                                                                                                  \
        .name = "p", .type = STK_KEY_REAL, .default_value = range, .least = 0, .most = 1, .doc = text                  \
    }

/* In the order of stk_filter. */
extern const char *const stk_stage_filter_words[];
stk_filter stk_stage_read_filter(const stk_yaml_node *settings);
/* size, or height and width. */
stk_status stk_stage_read_sides(const stk_yaml_node *settings, int64_t *height, int64_t *width);

#endif
