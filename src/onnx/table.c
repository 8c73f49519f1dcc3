/* From an op's name to the function that builds it. */
#include <string.h>

#include "onnx/build_list.h"

typedef struct known_op {
    const char *op;
    stk_build_fn build;
    const char *attributes;
} known_op;

static const known_op ops[] = {
#define X(name, attributes) {#name, stk_onnx_build_##name, attributes},
    STK_ONNX_OPS(X)
#undef X
};

static const known_op *find(const char *op)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (!strcmp(ops[i].op, op)) return &ops[i];
    return NULL;
}

stk_status stk_onnx_build_node(stk_build *b)
{
    const char *domain = b->node->domain;
    bool is_ours = !domain || !domain[0] || !strcmp(domain, "ai.onnx");
    const known_op *known = is_ours && b->node->op_type ? find(b->node->op_type) : NULL;
    if (!known) return stk_fail(STK_UNSUPPORTED, "the op is not known here; docs/onnx.md tells which are");
    STK_RETURN_IF_ERROR(stk_onnx_check_attributes(b, known->attributes));
    return known->build(b);
}
