/* A model's inputs and outputs as text, for people who are to feed it. See onnx/writer.h. */
#include <stdio.h>
#include <string.h>

#include "onnx/model.h"
#include "onnx/writer.h"
#include "tensor/shape.h"

/* Nothing where there is no room; the text then ends before. */
static size_t add(char out[STK_ONNX_TEXT], size_t at, const char *text)
{
    size_t n = strlen(text);
    if (at + n >= STK_ONNX_TEXT) return at;
    memcpy(out + at, text, n + 1);
    return at + n;
}

static size_t add_shape(char out[STK_ONNX_TEXT], size_t at, const Onnx__TensorShapeProto *shape)
{
    char number[24];
    at = add(out, at, "[");
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        bool known = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (known) snprintf(number, sizeof(number), "%lld", (long long)dim->dim_value);
        at = add(out, at, i > 0 ? "," : "");
        at = add(out, at, known ? number : dim->dim_param);
    }
    return add(out, at, "]");
}

void stk_onnx_describe_values(Onnx__ValueInfoProto *const *list, size_t n, char out[STK_ONNX_TEXT])
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const Onnx__TypeProto__Tensor *tensor = list[i]->type->tensor_type;
        stk_dtype dtype = STK_F32;
        (void)stk_onnx_dtype(tensor->elem_type, &dtype); /* It is stk_onnx_type's. */
        at = add(out, at, i > 0 ? ", " : "");
        at = add(out, at, list[i]->name);
        at = add(out, at, " ");
        at = add(out, at, stk_dtype_name(dtype));
        at = add(out, at, " ");
        at = add_shape(out, at, tensor->shape);
    }
}
