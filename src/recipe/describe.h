/* A network described by two texts, from which it is built, fed and read without its data: a small recipe (model, loss
 * and the stages of evaluation) and the record of its data (recipe/data_record.h). Exports carry both as metadata.
 * Threads: any.
 */
#ifndef STK_RECIPE_DESCRIBE_H
#define STK_RECIPE_DESCRIBE_H

#include "recipe/data_record.h"
#include "stoker/files/safetensors.h"

#define STK_RECIPE_KEY "stoker.recipe"
#define STK_DATA_KEY   "stoker.data"

/* The folder of images that such a recipe names, where none is meant. */
#define STK_NO_DATA "images"

typedef struct stk_description {
    stk_text recipe, record; /* both empty: it cannot be told */
} stk_description;

/* i_part: whose stages are those of evaluation; dataset: that part's. */
stk_status stk_describe(const stk_recipe *recipe, int i_part, const stk_dataset *dataset, stk_description *out);
/* An image network by name, as those who publish weights use it: sides of 224 pixels out of 256, ImageNet's mean and
 * deviation; as many classes as the file's last layer has. STK_INVALID names the networks that there are. */
stk_status stk_describe_known(const char *name, const stk_safetensors_file *weights, stk_description *out);
void stk_description_free(stk_description *description);

#endif
