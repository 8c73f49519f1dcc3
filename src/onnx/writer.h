/* A model while it is written. Every value of the graph gets a name in one or both of two layouts: plain, as the graph
 * has it, and first, with the channels behind the batch. The first error is kept; later calls do nothing and give NULL.
 *
 *   export.c        values, layouts, initialisers, the walk over the graph
 *   export_ops.c    one function for each op
 *   export_values.c inputs and outputs as text
 *   export_file.c   messages to bytes, weights next to the model
 */
#ifndef STK_ONNX_WRITER_H
#define STK_ONNX_WRITER_H

#include <onnx.pb-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "onnx/export.h"

typedef struct stk_form {
    const char *plain, *first;
    Onnx__NodeProto *maker; /* of first, where it is a convolution */
    int n_uses;
} stk_form;

typedef struct stk_writer {
    const stk_graph *graph;
    const stk_onnx_export *options;
    stk_arena *arena;
    stk_form *form; /* [n_values] */
    Onnx__NodeProto **node;
    Onnx__TensorProto **initializer;
    int n_nodes, node_capacity, n_initializers, initializer_capacity, n_made;
    int64_t weight_bytes;
    int n_weights;
    stk_status status; /* the text is stk_error_text()'s */
} stk_writer;

/* --- errors and memory --- */
bool stk_writer_ok(const stk_writer *w);
void stk_writer_fail(stk_writer *w, stk_status status);
/* Fails with the op and, where it is in one, the layer. why: "with two open dimensions", "" for the op as such. */
void stk_writer_refuse(stk_writer *w, const stk_node *node, const char *why);
void *stk_writer_alloc(stk_writer *w, size_t bytes);
const char *stk_writer_text(stk_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- nodes; attributes go to the last one --- */
/* Adds a node with one output, whose name is made here, and returns that. */
const char *stk_writer_put(stk_writer *w, const char *op, int n_in, const char *const *in);
#define STK_WRITER_PUT(w, op, ...)                                                                                     \
    stk_writer_put(w, op, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})
void stk_writer_put_int(stk_writer *w, const char *name, int64_t value);
void stk_writer_put_ints(stk_writer *w, const char *name, const int64_t *values, int n);
void stk_writer_put_float(stk_writer *w, const char *name, double value);

/* --- initialisers --- */
const char *stk_writer_put_list(stk_writer *w, const int64_t *values, int n); /* i64 [n] */
const char *stk_writer_put_number(stk_writer *w, stk_dtype dtype, double value);
/* Each element's index along the axis. */
const char *stk_writer_put_indices(stk_writer *w, stk_dtype dtype, stk_shape shape, int axis);
/* data: borrowed until the model is written, or in the arena. */
const char *stk_writer_put_tensor(stk_writer *w, const char *name, stk_dtype dtype, stk_shape shape, const void *data);
int32_t stk_onnx_type(stk_dtype dtype);

/* --- values --- */
stk_shape stk_writer_shape_of(const stk_writer *w, int32_t value);
stk_dtype stk_writer_dtype_of(const stk_writer *w, int32_t value);
const stk_node *stk_writer_maker_of(const stk_writer *w, int32_t value);
const char *stk_writer_plain(stk_writer *w, int32_t value);
/* rank 3 and more. */
const char *stk_writer_first(stk_writer *w, int32_t value);
/* Value as one of the inputs of an op that broadcasts as numpy does. */
const char *stk_writer_operand(stk_writer *w, int32_t value, bool first);
/* A variable's axes in that order at once; anything else through a Transpose. */
const char *stk_writer_turned(stk_writer *w, int32_t value, const int32_t *permutation);
/* What the value is broadcast from; itself where it is not. */
int32_t stk_writer_source_of(const stk_writer *w, int32_t value);
void stk_writer_set_plain(stk_writer *w, int32_t value, const char *name);
void stk_writer_set_first(stk_writer *w, int32_t value, const char *name);

/* export_ops.c: what a node becomes. */
void stk_writer_put_node(stk_writer *w, const stk_node *node);
/* export_values.c: "tokens i32 [N,128], segments i32 [N,128]"; values are complete. */
void stk_onnx_describe_values(Onnx__ValueInfoProto *const *list, size_t n, char out[STK_ONNX_TEXT]);
/* export_file.c */
stk_status stk_writer_save(stk_writer *w, Onnx__ModelProto *model, const char *path, bool *external);

#endif
