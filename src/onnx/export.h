/* Writes a graph as an ONNX model, opset 17: the ops of export_list in onnx/export_ops.c. The other way is
 * stoker/files/onnx.h.
 *
 * Graphs have channels last, ONNX channels first: convolutions, pooling and batch norm work on [N,C,H,W], and what lies
 * between two of them stays so; the image is transposed once. Inputs and outputs keep graph's layout and names.
 * Initialisers have the variables' names; weights of convolutions are stored as ONNX wants them.
 *
 * Format: onnx.ai, onnx.proto. Threads: one at a time for each call.
 */
#ifndef STK_ONNX_EXPORT_H
#define STK_ONNX_EXPORT_H

#include "graph/graph.h"
#include "stoker/files/onnx.h"

/* Who wrote it, in the file: such models have their channels last, as values have here. */
#define STK_ONNX_PRODUCER "stoker"
/* What the names of numbers that scale pixels begin with, and where the stages stand that these are from. */
#define STK_ONNX_PIXELS "pixels."
#define STK_ONNX_STAGES "stoker.stages"

/* An input that is u8 in the model, and becomes x * a[c] + b[c] before the graph sees it. */
typedef struct stk_onnx_pixels {
    const char *input; /* of the graph: f32 [..., n] */
    float a[4], b[4];
    int n; /* channels */
} stk_onnx_pixels;

typedef struct stk_onnx_export {
    const char *name;              /* of the graph in the model */
    const char *const *metadata;   /* metadata_props: keys and values in turn, ended by NULL */
    const stk_onnx_pixels *pixels; /* NULL: none */
    int64_t inside_bytes;          /* weights of more bytes than this in all go to PATH.data; 0: 1 GiB */
    /* The content of a variable, of its dtype and shape, borrowed until the export ends. */
    stk_status (*weight)(void *user, const char *name, const void **data);
    void *user;
} stk_onnx_export;

enum { STK_ONNX_TEXT = 1024 };

typedef struct stk_onnx_export_report {
    int64_t n_nodes, n_weights, weight_bytes;
    bool external; /* the weights are in PATH.data */
    /* "image u8 [N,28,28,1]", comma-separated, as many as there is room for; N is a batch that is open. */
    char inputs[STK_ONNX_TEXT], outputs[STK_ONNX_TEXT];
} stk_onnx_export_report;

/* graph: for inference, its batch open or not; batch norm is by its running statistics, dropout left out. PATH appears
 * whole or not at all. STK_UNSUPPORTED names the op that ONNX has no counterpart for. */
stk_status stk_onnx_save(const stk_graph *graph, const stk_onnx_export *options, const char *path,
                         stk_onnx_export_report *report);

#endif
