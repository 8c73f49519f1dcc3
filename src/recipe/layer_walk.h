/* A `layers:` list while it is built: what has names, which ends are open. For the layers that name, join and hold
 * others. Threads: one at a time for each list.
 */
#ifndef STK_RECIPE_LAYER_WALK_H
#define STK_RECIPE_LAYER_WALK_H

#include "nn/layer_list.h"
#include "nn/model_list.h"
#include "recipe/build.h"

enum { STK_MOST_NAMES = 256 };

/* A value that a `from` left behind, by the last layer before it. */
typedef struct stk_branch_end {
    const stk_yaml_node *layer;
    stk_value value;
} stk_branch_end;

typedef struct stk_layer_walk {
    const stk_model_data *data; /* borrowed */
    struct {
        const char *name;
        stk_value value;
    } named[STK_MOST_NAMES];
    int n_named;
    const stk_yaml_node *before; /* the layer whose value a list begins with; NULL: a field of the data */
    stk_branch_end *end;         /* free() */
    int n_ends, n_room;
    int n_layers; /* built so far: blocks in blocks multiply */
} stk_layer_walk;

/* An entry of a list. */
extern const stk_key stk_layer_key;
/* What comes before under that name, or a field of the data. Errors are about node. */
stk_status stk_layer_walk_find(const stk_layer_walk *walk, const stk_yaml_node *node, const char *name, stk_value *out);
/* The layers of a list, NULL for none, on *x. Errors name the line, the layer and the shapes. */
stk_status stk_layer_walk_list(stk_layer_walk *walk, const stk_yaml_node *layers, stk_value *x);

#endif
