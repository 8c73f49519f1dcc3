/* Samples made of samples, from a recipe. */
#include <stdlib.h>
#include <string.h>

#include "recipe/build.h"
#include "stoker/data/regroup.h"

enum { MOST_FIELDS = 64 };

static void pack(const stk_yaml_node *node, stk_dataset *dataset)
{
    const char *names[MOST_FIELDS];
    const stk_yaml_node *fields = stk_yaml_get(node, "fields");
    stk_packing packing = {.length = stk_yaml_get(node, "length")->integer,
                           .cut = stk_yaml_get(node, "cut")->truth,
                           .value = stk_yaml_get(node, "value")->real};
    for (const stk_yaml_node *field = fields ? fields->child : NULL; field && packing.n_fields < MOST_FIELDS;
         field = field->next)
        names[packing.n_fields++] = field->text;
    packing.fields = packing.n_fields ? names : NULL;
    stk_dataset_pack_sequences(dataset, &packing);
}

static void make_windows(const stk_yaml_node *node, stk_dataset *dataset)
{
    const stk_yaml_node *shift = stk_yaml_get(node, "shift");
    stk_dataset_window(dataset,
                       (stk_windows){.size = stk_yaml_get(node, "size")->integer,
                                     .shift = shift ? shift->integer : 0,
                                     .stride = stk_yaml_get(node, "stride")->integer,
                                     .drop_remainder = !strcmp(stk_yaml_get(node, "remainder")->text, "drop")});
}

void stk_build_regroup(const stk_recipe_part *part, stk_dataset *dataset)
{
    if (part->unbatch) stk_dataset_unbatch(dataset);
    if (part->windows) make_windows(part->windows, dataset);
    if (part->pack) pack(part->pack, dataset);
}
