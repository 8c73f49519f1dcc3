/* stoker/files/onnx.h in a build without protobuf-c: nothing can be read, and the text says why. */
#include "base/error.h"
#include "graph/graph.h"
#include "onnx/export.h"
#include "stoker/files/onnx.h"

static stk_status complain(void)
{
    return stk_fail(STK_UNSUPPORTED,
                    "this build of Stoker neither reads nor writes ONNX models: it was made without protobuf-c "
                    "(Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)");
}

stk_status stk_onnx_open(const char *path, const stk_onnx_options *options, stk_onnx **out)
{
    (void)path, (void)options, (void)out;
    return complain();
}

stk_status stk_onnx_parse(const void *data, size_t n_bytes, const stk_onnx_options *options, stk_onnx **out)
{
    (void)data, (void)n_bytes, (void)options, (void)out;
    return complain();
}

void stk_onnx_free(stk_onnx *model)
{
    (void)model;
}

stk_value stk_onnx_apply_with(stk_value x, const char *path, const stk_onnx_part *part)
{
    (void)path, (void)part;
    stk_graph_keep_error(x.graph, complain());
    return stk_value_none(x.graph);
}

stk_value stk_onnx_apply(stk_value x, const char *path, const char *output)
{
    (void)output;
    return stk_onnx_apply_with(x, path, NULL);
}

stk_graph *stk_onnx_graph(stk_onnx *model)
{
    (void)model;
    return NULL;
}

int stk_onnx_n_weights(const stk_onnx *model)
{
    (void)model;
    return 0;
}

stk_onnx_tensor stk_onnx_weight(const stk_onnx *model, int i)
{
    (void)model, (void)i;
    return (stk_onnx_tensor){0};
}

stk_status stk_onnx_save(const stk_graph *graph, const stk_onnx_export *options, const char *path,
                         stk_onnx_export_report *report)
{
    (void)graph, (void)options, (void)path, (void)report;
    return complain();
}
