/* The graph's inside: nodes and values in arrays, in an order in which every node follows its inputs.
 * The public side, stoker/graph/graph.h, builds it; passes rewrite it.
 */
#ifndef STK_GRAPH_GRAPH_H
#define STK_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/name_table.h"
#include "graph/op.h"

typedef struct stk_node {
    stk_op op;
    int32_t n_in, n_out;
    int32_t *in;       /* value ids */
    int32_t first_out; /* value ids first_out .. first_out + n_out - 1 */
    const char *name;  /* of inputs and variables; else NULL or a hint for people */
    stk_attrs attrs;
    bool barrier;  /* common-subexpression elimination leaves it alone (recomputed nodes) */
    bool keep_f32; /* autocast leaves it in f32: the user said so */
    bool backward; /* made by autodiff */
} stk_node;

typedef struct stk_value_info {
    stk_tensor_desc desc;
    int32_t node;   /* index of the node that makes it */
    int32_t device; /* of the program's; passes/place.h */
} stk_value_info;

typedef struct stk_graph_root {
    const char *name; /* of an output; NULL for an update */
    int32_t value;    /* value id */
    int32_t variable; /* value id of the variable that is updated; -1 for an output */
} stk_graph_root;

/* One level of names. */
typedef struct stk_scope {
    const struct stk_scope *outer; /* NULL: none */
    const char *prefix;            /* of all levels: "layer1.0." */
} stk_scope;

/* Something that lives as long as the graph. */
typedef struct stk_held {
    struct stk_held *next;
    void (*free)(void *thing);
    void *thing;
} stk_held;

struct stk_graph {
    stk_arena *arena; /* names, inputs of nodes, fused programs */
    stk_node *node;
    stk_value_info *value;
    stk_graph_root *root;
    int32_t n_nodes, n_values, n_roots;
    int32_t node_capacity, value_capacity, root_capacity;
    const stk_scope *scope; /* the innermost; NULL outside of all. nn/layer.h; in the arena */
    stk_held *held;         /* in the arena; clones do not have them */
    /* Of the first n_listed nodes: inputs and variables by name, and what stands before a dot in variables' names, with
     * a number N: NAME_1 to NAME_N are there, too. */
    stk_name_table leaf[2], scopes;
    int32_t n_listed;
    int32_t n_keep_f32; /* nodes that are added while it is above 0 are marked keep_f32 */
    stk_status status;
    char error[512];
};

/* Adds a node; infers its outputs' types. attrs is copied. Returns the first output's value, id -1 after an error. */
stk_value stk_graph_add(stk_graph *graph, stk_op op, const stk_attrs *attrs, const stk_value *in, int n_in);
/* Output number i of the node that made x (x being output 0). */
stk_value stk_value_sibling(stk_value x, int i);
/* Output o of a node: where its op says; else where the first input that tells lies; 0 where none does. What is made of
 * nothing (constants, random numbers) tells nothing: a device makes its own. */
int32_t stk_graph_infer_device(const stk_graph *graph, const stk_node *node, int o);
/* Whether a value tells where its reader belongs. */
bool stk_graph_tells_device(const stk_graph *graph, int32_t value);
/* Keeps the first error; returns status. The text is taken from stk_error_text(). */
stk_status stk_graph_keep_error(stk_graph *graph, stk_status status);
stk_value stk_value_none(stk_graph *graph);
/* Frees the thing together with the graph. After an error the thing stays the caller's. */
stk_status stk_graph_hold(stk_graph *graph, void *thing, void (*free_thing)(void *thing));
/* Leaves a variable as it is; of other values nothing. */
void stk_graph_freeze(stk_value variable);
/* What a variable begins with, instead of its stk_init: bytes of its dtype and shape, borrowed until the graph and all
 * of its clones have been freed. */
void stk_graph_set_content(stk_value variable, const void *content);

static inline stk_value stk_value_of(stk_graph *graph, int32_t id)
{
    return (stk_value){graph, id};
}
const stk_node *stk_value_node(stk_value x);
/* The input, variable or output of that name; id -1 when there is none. */
stk_value stk_graph_find(const stk_graph *graph, stk_op leaf, const char *name);
/* The first of NAME, NAME_1, NAME_2, ... that no variable's name has before a dot, in the arena. */
stk_status stk_graph_new_scope(stk_graph *graph, const char *name, const char **out);
/* Where nodes got other numbers. */
void stk_graph_forget_names(stk_graph *graph);
stk_value stk_graph_find_output(const stk_graph *graph, const char *name);

/* The call of node i with its types: in and out must hold n_in and n_out descs. */
stk_op_call stk_graph_call(const stk_graph *graph, int32_t i_node, stk_tensor_desc *in, stk_tensor_desc *out);

/* A copy with every STK_ANY replaced by batch (batch STK_ANY: a plain copy). Returned; NULL when out of memory. Ids
 * stay the same. */
stk_graph *stk_graph_clone(const stk_graph *graph, int64_t batch);

/* An input that comes as u8 where the graph has it as f32 [N,...,n]: x becomes x * a[c] + b[c] in the step. */
typedef struct stk_pixel_scale {
    const char *input;
    int n;
    float a[4], b[4];
} stk_pixel_scale;

/* Rewriting: replace[v] is the value that users of v shall use instead (replace[v] == v: unchanged). Then sorts the
 * nodes so that each follows its inputs (stable), and removes nodes that no root needs. Value ids change: they are
 * renumbered. */
stk_status stk_graph_rewrite(stk_graph *graph, const int32_t *replace);
/* The same; among nodes that may go, the one with the smallest age[] goes first, and not the first in the old order. */
stk_status stk_graph_rewrite_aged(stk_graph *graph, const int32_t *replace, const int32_t *age);
/* Nodes order[0 .. n), each after its inputs, are the graph from now on; others are gone. Values are renumbered. */
stk_status stk_graph_reorder(stk_graph *graph, const int32_t *order, int32_t n);

/* Checks every rule of the format: ids, order, types, unique names. For tests and after passes in debug builds. */
stk_status stk_graph_verify(const stk_graph *graph);

#endif
