/* Tensors of numbers: from their messages, and by element. */
#include <string.h>

#include "onnx/model.h"

enum { MOST_ELEMENTS = 1 << 30 };

stk_status stk_onnx_dtype(int32_t onnx, stk_dtype *out)
{
    switch (onnx) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT: *out = STK_F32; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE: *out = STK_F64; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16: *out = STK_F16; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16: *out = STK_BF16; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64: *out = STK_I64; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT32: *out = STK_I32; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT8: *out = STK_I8; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8: *out = STK_U8; return STK_OK;
    case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL: *out = STK_BOOL; return STK_OK;
    default: return stk_fail(STK_UNSUPPORTED, "ONNX's element type number %d is not known here", (int)onnx);
    }
}

static stk_status read_shape(const Onnx__TensorProto *proto, stk_shape *out, int64_t *n)
{
    *out = (stk_shape){.rank = (int32_t)proto->n_dims};
    *n = 1;
    if (proto->n_dims > STK_MAX_RANK)
        return stk_fail(STK_UNSUPPORTED, "a tensor has %zu dimensions, and can have %d", proto->n_dims, STK_MAX_RANK);
    for (size_t i = 0; i < proto->n_dims; i++) {
        if (proto->dims[i] < 0 || (*n > 0 && proto->dims[i] > MOST_ELEMENTS / *n))
            return stk_fail(STK_CORRUPT, "a tensor's dimension %zu is %lld", i, (long long)proto->dims[i]);
        out->dim[i] = proto->dims[i];
        *n *= proto->dims[i];
    }
    return STK_OK;
}

/* Small types travel one in an int32. */
static void copy_int32s(const Onnx__TensorProto *proto, stk_dtype dtype, int64_t n, void *dst)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t x = proto->int32_data[i];
        if (dtype == STK_I32)
            ((int32_t *)dst)[i] = x;
        else if (dtype == STK_F16 || dtype == STK_BF16)
            ((uint16_t *)dst)[i] = (uint16_t)x;
        else
            ((uint8_t *)dst)[i] = (uint8_t)x;
    }
}

/* The memory is taken when the message is known to have the numbers. */
static stk_status copy_data(stk_arena *arena, const Onnx__TensorProto *proto, stk_dtype dtype, int64_t n, void **out)
{
    size_t bytes = (size_t)n * stk_dtype_bytes(dtype), n_field = 0;
    const void *field = NULL;
    if (proto->has_raw_data) {
        if (proto->raw_data.len != bytes)
            return stk_fail(STK_CORRUPT, "a tensor of %zu bytes has %zu", bytes, proto->raw_data.len);
        field = proto->raw_data.data;
    } else {
        switch (dtype) {
        case STK_F32: field = proto->float_data, n_field = proto->n_float_data; break;
        case STK_F64: field = proto->double_data, n_field = proto->n_double_data; break;
        case STK_I64: field = proto->int64_data, n_field = proto->n_int64_data; break;
        default: n_field = proto->n_int32_data; break;
        }
        if (n_field != (size_t)n)
            return stk_fail(STK_CORRUPT, "a tensor of %lld elements has %zu", (long long)n, n_field);
    }
    if (!(*out = stk_arena_alloc(arena, bytes + 1))) return stk_fail_memory(bytes);
    if (bytes && field)
        memcpy(*out, field, bytes);
    else if (bytes)
        copy_int32s(proto, dtype, n, *out);
    return STK_OK;
}

stk_status stk_onnx_read_tensor(stk_arena *arena, const char *folder, const Onnx__TensorProto *proto, const char *name,
                                stk_onnx_tensor *out)
{
    int64_t n;
    *out = (stk_onnx_tensor){.name = name};
    STK_RETURN_IF_ERROR(stk_onnx_dtype(proto->data_type, &out->dtype));
    STK_RETURN_IF_ERROR(read_shape(proto, &out->shape, &n));
    void *data = NULL;
    stk_status status = proto->n_external_data ? stk_onnx_read_external(arena, folder, proto,
                                                                        (size_t)n * stk_dtype_bytes(out->dtype), &data)
                                               : copy_data(arena, proto, out->dtype, n, &data);
    out->data = data;
    /* Kernels compare truth values as bytes, and count on 0 and 1. */
    for (int64_t i = 0; i < n && status == STK_OK && out->dtype == STK_BOOL; i++)
        ((uint8_t *)data)[i] = ((uint8_t *)data)[i] != 0;
    return status;
}

const stk_onnx_tensor *stk_onnx_new_tensor(stk_arena *arena, stk_dtype dtype, stk_shape shape, const void *data)
{
    size_t bytes = (size_t)stk_shape_count(shape) * stk_dtype_bytes(dtype);
    stk_onnx_tensor *tensor = stk_arena_alloc(arena, sizeof(*tensor));
    void *copy = stk_arena_alloc(arena, bytes + 1);
    if (!tensor || !copy) return NULL;
    if (data && bytes) memcpy(copy, data, bytes);
    if (!data) memset(copy, 0, bytes + 1);
    *tensor = (stk_onnx_tensor){NULL, dtype, shape, copy};
    return tensor;
}

static double half_number(uint16_t bits)
{
    double size = bits & 0x3ff, sign = bits >> 15 ? -1 : 1;
    int exponent = bits >> 10 & 31;
    if (exponent == 31) return bits & 0x3ff ? __builtin_nan("") : sign * __builtin_inf();
    size = exponent ? size + 1024 : size;
    for (int i = exponent ? exponent : 1; i < 25; i++)
        size /= 2;
    for (int i = 25; i < exponent; i++)
        size *= 2;
    return sign * size;
}

static double brain_number(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, 4);
    return (double)x;
}

double stk_onnx_number(const stk_onnx_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case STK_F32: return (double)((const float *)t->data)[i];
    case STK_F64: return ((const double *)t->data)[i];
    case STK_F16: return half_number(((const uint16_t *)t->data)[i]);
    case STK_BF16: return brain_number(((const uint16_t *)t->data)[i]);
    case STK_I64: return (double)((const int64_t *)t->data)[i];
    case STK_I32: return ((const int32_t *)t->data)[i];
    case STK_I8: return ((const int8_t *)t->data)[i];
    default: return ((const uint8_t *)t->data)[i];
    }
}
