/* A model while it is read. Every value of it has a name and is one of: a tensor of numbers known now, a value of the
 * graph, or both.
 *
 *   read.c      bytes -> messages (protobuf-c)            tensor.c    numbers
 *   model.c     inputs, nodes in order, outputs           evaluate.c  what a value is, where that is known now
 *   table.c     op -> the function that builds it         build_*.c   those functions
 *   attributes.c  which attributes a node may have
 *   external.c  numbers that lie in another file          apply.c     a model as a part of another network
 *   batch.c     the size of its batch, which is not known yet
 *
 * Threads: one at a time.
 */
#ifndef STK_ONNX_MODEL_H
#define STK_ONNX_MODEL_H

#include <onnx.pb-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/name_table.h"
#include "graph/graph.h"
#include "stoker/files/onnx.h"

typedef struct stk_device stk_device;
typedef struct stk_onnx_value {
    const char *name;
    const stk_onnx_tensor *tensor; /* NULL: not known */
    stk_value value;               /* id -1: not made yet */
    bool is_input;
    bool is_fixed;    /* floats that a node's attributes say: no parameters */
    bool nhwc;        /* value is stored [N,H,W,C] or [N,D,H,W,C], though the model says [N,C,...] */
    bool holds_batch; /* whole numbers, of which some stand for the batch's size: batch.c */
} stk_onnx_value;

struct stk_onnx {
    stk_graph *graph;
    stk_arena *arena; /* names, tensors */
    stk_onnx_value *value;
    stk_onnx_tensor *weight;
    stk_name_table by_name;        /* of value */
    stk_name_table weight_by_name; /* of weight */
    int n_values, capacity, n_weights, weight_capacity, n_made, n_evaluated;
    int64_t n_ids;                   /* of all lists of indices */
    const stk_onnx_options *options; /* while it is read */
    const char *folder;              /* of the file, while it is read; NULL: read from memory */
    const char *open_name;           /* of an input's dimension that stayed open; NULL: none, or it has no name */
    stk_device *reference;           /* NULL until a value has to be evaluated; closed with the model */
    bool borrows_graph;              /* it is a network's, which keeps the model */
    bool is_pytorchs;                /* PyTorch exported it */
    bool trains_batch_norm;          /* and not as in inference */
};

/* One node to be built. */
typedef struct stk_build {
    stk_onnx *model;
    const Onnx__NodeProto *node;
    int64_t opset;
    bool carries_batch; /* its outputs hold the batch's size, since inputs do */
} stk_build;

typedef stk_status (*stk_build_fn)(stk_build *b);

/* --- parts of a model: model.c --- */
/* Did Stoker write it? */
bool stk_onnx_is_ours(const Onnx__ModelProto *proto);
stk_status stk_onnx_add_initializers(stk_onnx *model, const Onnx__ModelProto *proto);
stk_status stk_onnx_add_node(stk_onnx *model, const Onnx__NodeProto *node, int64_t opset);
/* STK_UNSUPPORTED where it is newer than what is known here. */
stk_status stk_onnx_opset(const Onnx__ModelProto *proto, int64_t *out);
/* The whole model. */
stk_status stk_onnx_import(stk_onnx *model, const Onnx__ModelProto *proto);
/* --- read.c --- */
/* Reads the file, and gives its messages to `take`. */
typedef stk_status (*stk_onnx_take_fn)(const Onnx__ModelProto *proto, const char *folder, void *context);
stk_status stk_onnx_read_bytes(stk_span bytes, stk_onnx_take_fn take, void *context);
stk_status stk_onnx_read_file(const char *path, stk_onnx_take_fn take, void *context);
stk_onnx *stk_onnx_new(stk_graph *graph);

/* stk_onnx_apply_with, a model in memory. */
stk_value stk_onnx_apply_bytes(stk_value x, stk_span bytes, const stk_onnx_part *part);

/* Attributes that the list (build_list.h) lacks, or other values than it has: STK_UNSUPPORTED, or STK_INVALID. */
stk_status stk_onnx_check_attributes(const stk_build *b, const char *list);
/* Builds one node by table.c. STK_UNSUPPORTED for an op that is not in it. */
stk_status stk_onnx_build_node(stk_build *b);

/* --- the batch's size: batch.c --- */
/* Stands for it among whole numbers. Its multiples are known as such; squares are none of them. */
#define STK_ONNX_BATCH ((INT64_C(1) << 40) + 15)
/* May the node take what holds the batch's size, and does it go on? STK_UNSUPPORTED where it may not. */
stk_status stk_onnx_settle_batch(stk_build *b);
/* Is a number of a shape the batch's size, or some of its multiples? */
bool stk_onnx_is_batch(int64_t n);
/* The open axis of x, as such a number. */
stk_status stk_onnx_size_by_batch(stk_value x, int axis, int64_t *out);
/* Is the batch's size in no axis of a shape but the first? STK_UNSUPPORTED where not. */
stk_status stk_onnx_check_open(const int64_t *list, int n);

/* --- values --- */
stk_onnx_value *stk_onnx_find(stk_onnx *model, const char *name);
/* Adds or replaces. The name is copied. */
stk_status stk_onnx_put(stk_onnx *model, const char *name, stk_onnx_value value);
/* Makes a variable or constant of a tensor that is no value yet. */
void stk_onnx_make(stk_onnx *model, stk_onnx_value *value);
/* The graph's value in the model's own layout; makes a variable or constant of a tensor. id -1 after an error. */
stk_value stk_onnx_plain(stk_onnx *model, stk_onnx_value *value);

/* --- tensors --- */
/* Reads one; data is copied or converted into the arena. folder: where files with numbers lie; may be NULL. */
stk_status stk_onnx_read_tensor(stk_arena *arena, const char *folder, const Onnx__TensorProto *proto, const char *name,
                                stk_onnx_tensor *out);
/* n bytes of a tensor whose numbers lie in another file, into the arena. */
stk_status stk_onnx_read_external(stk_arena *arena, const char *folder, const Onnx__TensorProto *proto, size_t n,
                                  void **out);
stk_status stk_onnx_dtype(int32_t onnx, stk_dtype *out);
/* A copy of data in the arena, or zeros where data is NULL. */
const stk_onnx_tensor *stk_onnx_new_tensor(stk_arena *arena, stk_dtype dtype, stk_shape shape, const void *data);
/* Element i of an integer or float tensor. */
double stk_onnx_number(const stk_onnx_tensor *t, int64_t i);
/* What the value is, computed on the reference device where all that it depends on is known. STK_UNSUPPORTED where not.
 */
stk_status stk_onnx_evaluate(stk_onnx *model, stk_onnx_value *value, const stk_onnx_tensor **out);

/* --- for the functions of build_*.c --- */
int stk_onnx_n_inputs(const stk_build *b);
bool stk_onnx_has_input(const stk_build *b, int i); /* given, and not left empty */
stk_value stk_onnx_input(stk_build *b,
                         int i); /* in the model's layout; no value after an error, which the graph keeps */
stk_onnx_value *stk_onnx_input_entry(stk_build *b, int i); /* NULL: there is none */
/* Integers of an input that must be known: *n of them in the arena. */
stk_status stk_onnx_input_ints(stk_build *b, int i, const int64_t **out, int *n);
stk_status stk_onnx_input_tensor(stk_build *b, int i, const stk_onnx_tensor **out);
stk_status stk_onnx_output(stk_build *b, int i, stk_value value);
stk_status stk_onnx_output_nhwc(stk_build *b, int i, stk_value value);
stk_status stk_onnx_output_tensor(stk_build *b, int i, stk_dtype dtype, stk_shape shape, const void *data);
bool stk_onnx_has_output(const stk_build *b, int i);
/* STK_UNSUPPORTED or STK_INVALID with a text; "node 'name' (Op): " is put before it by the caller. */
const Onnx__AttributeProto *stk_onnx_attribute(const stk_build *b, const char *name);
int64_t stk_onnx_attribute_int(const stk_build *b, const char *name, int64_t default_value);
double stk_onnx_attribute_float(const stk_build *b, const char *name, double default_value);
bool stk_onnx_attribute_is(const stk_build *b, const char *name, const char *text);
const int64_t *stk_onnx_attribute_ints(const stk_build *b, const char *name, int *n); /* NULL: not there */
/* axis, negative from the end, as 0 .. rank-1. */
stk_status stk_onnx_settle_axis(int64_t axis, int rank, int *out);
/* Axes by attribute "axes" or, from some opset on, input number i; all where there are none and `all`. */
stk_status stk_onnx_settle_axes(stk_build *b, int i, int rank, bool all, uint32_t *out);
/* A scalar constant of x's dtype. */
stk_value stk_onnx_like(stk_value x, double value);
/* Elements start .. start + size - 1 along the axis. */
stk_value stk_onnx_cut(stk_value x, int axis, int64_t start, int64_t size);
/* x with axis moved to the end, and back. */
stk_value stk_onnx_axis_to_end(stk_value x, int axis);
stk_value stk_onnx_axis_from_end(stk_value x, int axis);
/* Room for n indices. STK_UNSUPPORTED where a model's lists become too long together. */
stk_status stk_onnx_new_ids(stk_build *b, int64_t n, int32_t **out);
/* Those of ids, as a gatherable value. */
stk_value stk_onnx_index_value(stk_build *b, const int32_t *ids, int64_t n);
/* Numbers that are no parameters, whatever their dtype; data is copied. */
stk_value stk_onnx_fixed_value(stk_build *b, stk_dtype dtype, stk_shape shape, const void *data);
/* Indices of one axis as places in a value of that shape laid flat; the other axes' are the element's own. */
stk_value stk_onnx_place_of_elements(stk_value ids, stk_shape shape, int axis);
/* Index vectors [..., n] as places [...] in *rows, which is x with its first n axes laid flat. */
stk_status stk_onnx_place_of_vectors(stk_value x, stk_value ids, stk_value *rows, stk_value *place);
/* The layouts of images, of rank 4. */
stk_value stk_onnx_to_nhwc(stk_value x);
/* ids i32 as they are, where all are from 0 to n - 1; a run in which one is not ends with an error. */
stk_value stk_onnx_within(stk_value ids, int64_t n);
stk_value stk_onnx_to_nchw(stk_value x);
stk_value stk_onnx_log_softmax_of(stk_value x, int axis);

#endif
