/* From an op's name to the function that builds it. */
#include <string.h>

#include "onnx/build_list.h"

static const struct {
    const char *op;
    stk_build_fn build;
} ops[] = {
#define X(name) {#name, stk_onnx_build_##name},
    STK_ONNX_OPS(X)
#undef X
};

static stk_build_fn find(const char *op)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (!strcmp(ops[i].op, op)) return ops[i].build;
    return NULL;
}

stk_status stk_onnx_build_node(stk_build *b)
{
    const char *domain = b->node->domain;
    bool is_ours = !domain || !domain[0] || !strcmp(domain, "ai.onnx");
    stk_build_fn build = is_ours && b->node->op_type ? find(b->node->op_type) : NULL;
    return build ? build(b) : stk_fail(STK_UNSUPPORTED, "the op is not known here; docs/onnx.md tells which are");
}
