/* See cudnn.h: descriptors of all kinds. A value is taken as it is, and looked at when the descriptor is finalized. */
#include "device/play/cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 0x646e6e21, ONE = 1, SIDES = 3, RANK = 5, MANY = 1 << 20, OPTIONAL = 0, REQUIRED = 1 };

/* What a kind of descriptor takes; of an attribute at most so many elements. */
static const struct {
    int kind, attribute, type, most, is_required;
} rules[] = {
#define RULE(kind, attribute, type, most, need)                                                                        \
    {                                                                                                                  \
        CUDNN_BACKEND_##kind##_DESCRIPTOR, CUDNN_ATTR_##attribute, CUDNN_TYPE_##type, most, need                       \
    }
    RULE(TENSOR, TENSOR_UNIQUE_ID, INT64, ONE, REQUIRED),
    RULE(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, ONE, REQUIRED),
    RULE(TENSOR, TENSOR_DIMENSIONS, INT64, RANK, REQUIRED),
    RULE(TENSOR, TENSOR_STRIDES, INT64, RANK, REQUIRED),
    RULE(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, ONE, REQUIRED),
    RULE(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, ONE, OPTIONAL),
    RULE(CONVOLUTION, CONVOLUTION_COMP_TYPE, DATA_TYPE, ONE, REQUIRED),
    RULE(CONVOLUTION, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, ONE, REQUIRED),
    RULE(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, INT64, ONE, REQUIRED),
    RULE(CONVOLUTION, CONVOLUTION_DILATIONS, INT64, SIDES, REQUIRED),
    RULE(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, INT64, SIDES, REQUIRED),
    RULE(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, INT64, SIDES, REQUIRED),
    RULE(CONVOLUTION, CONVOLUTION_POST_PADDINGS, INT64, SIDES, REQUIRED),
    RULE(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, ONE, REQUIRED),
    RULE(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, ONE, REQUIRED),
    RULE(POINTWISE, POINTWISE_NAN_PROPAGATION, NAN_PROPOGATION, ONE, OPTIONAL),
#define PASS(kind, name, x, weight, y)                                                                                 \
    RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##name##_ALPHA, FLOAT, ONE, REQUIRED),                    \
        RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##name##_BETA, FLOAT, ONE, REQUIRED),                 \
        RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##name##_CONV_DESC, BACKEND_DESCRIPTOR, ONE,          \
             REQUIRED),                                                                                                \
        RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##name##_##x, BACKEND_DESCRIPTOR, ONE, REQUIRED),     \
        RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##name##_##weight, BACKEND_DESCRIPTOR, ONE,           \
             REQUIRED),                                                                                                \
        RULE(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##name##_##y, BACKEND_DESCRIPTOR, ONE, REQUIRED)
    PASS(FORWARD, FORWARD, X, W, Y),
    PASS(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    PASS(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, ONE, REQUIRED),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, ONE, REQUIRED),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, ONE, OPTIONAL),
    RULE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, ONE, REQUIRED),
    RULE(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, ONE, REQUIRED),
    RULE(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, SIDES, REQUIRED),
    RULE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, ONE, REQUIRED),
    RULE(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, ONE, REQUIRED),
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, ONE, REQUIRED),
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, ONE, OPTIONAL),
    RULE(EXECUTION_PLAN, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, MANY, OPTIONAL),
    RULE(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, MANY, REQUIRED),
    RULE(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, MANY, REQUIRED),
    RULE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, ONE, REQUIRED),
};
enum { N_RULES = sizeof(rules) / sizeof(rules[0]) };

static size_t bytes_of(int type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4;
    }
}

int dnn_misuse(int code, const char *text)
{
    stk_play_misuse(text);
    return code;
}

/* --- values --- */

const dnn_value *dnn_find(const dnn_descriptor *d, int attribute)
{
    for (int i = 0; i < d->n_values; i++)
        if (d->value[i].attribute == attribute) return &d->value[i];
    return NULL;
}

int64_t dnn_int(const dnn_descriptor *d, int attribute)
{
    const dnn_value *v = dnn_find(d, attribute);
    return v ? *(const int64_t *)v->bytes : 0;
}

int dnn_enum(const dnn_descriptor *d, int attribute)
{
    const dnn_value *v = dnn_find(d, attribute);
    return v ? *(const int *)v->bytes : 0;
}

dnn_descriptor *dnn_other(const dnn_descriptor *d, int attribute, int64_t i)
{
    const dnn_value *v = dnn_find(d, attribute);
    return v && i < v->n ? ((dnn_descriptor **)v->bytes)[i] : NULL;
}

static bool is_whole(const dnn_descriptor *d)
{
    return d && d->mark == MARK && d->is_final;
}

int cudnnBackendSetAttribute(cudnn_descriptor descriptor, int attribute, int type, int64_t n, const void *values)
{
    dnn_descriptor *d = descriptor;
    int rule = 0;
    if (!d || d->mark != MARK) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: no descriptor");
    if (d->is_final) return dnn_misuse(DNN_NOT_INITIALIZED, "cuDNN: an attribute of a descriptor that is final");
    while (rule < N_RULES && (rules[rule].kind != d->kind || rules[rule].attribute != attribute))
        rule++;
    if (rule == N_RULES) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a descriptor has no such attribute");
    if (rules[rule].type != type || n < 1 || n > rules[rule].most || !values)
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: an attribute of another type or number of elements");
    if (dnn_find(d, attribute)) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: an attribute twice");
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++)
        if (!is_whole(((dnn_descriptor *const *)values)[i]))
            return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a descriptor that is not final is part of another");
    dnn_value *v = &d->value[d->n_values++];
    *v = (dnn_value){attribute, type, n, malloc((size_t)n * bytes_of(type))};
    if (!v->bytes) abort();
    memcpy(v->bytes, values, (size_t)n * bytes_of(type));
    return 0;
}

int cudnnBackendGetAttribute(cudnn_descriptor descriptor, int attribute, int type, int64_t n_wanted, int64_t *n,
                             void *out)
{
    dnn_descriptor *d = descriptor;
    (void)type;
    if (!is_whole(d)) return dnn_misuse(DNN_NOT_INITIALIZED, "cuDNN: an attribute of a descriptor that is not final");
    int code = dnn_read(d, attribute, n_wanted, n, out);
    return code >= 0 ? code : dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a value that is not played is read");
}

/* --- from making to destroying --- */

int cudnnBackendCreateDescriptor(int kind, cudnn_descriptor *out)
{
    dnn_descriptor *d = calloc(1, sizeof(*d));
    if (!d) abort();
    d->mark = MARK;
    d->kind = kind;
    d->engine.note = -1;
    *out = d;
    return 0;
}

int cudnnBackendDestroyDescriptor(cudnn_descriptor descriptor)
{
    dnn_descriptor *d = descriptor;
    if (!d || d->mark != MARK) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: no descriptor");
    for (int i = 0; i < d->n_values; i++)
        free(d->value[i].bytes);
    d->mark = 0;
    free(d);
    return 0;
}

int cudnnBackendFinalize(cudnn_descriptor descriptor)
{
    dnn_descriptor *d = descriptor;
    int code = 0;
    if (!d || d->mark != MARK || d->is_final)
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: finalized twice, or no descriptor");
    for (int i = 0; i < N_RULES; i++)
        if (rules[i].kind == d->kind && rules[i].is_required && !dnn_find(d, rules[i].attribute))
            return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: an attribute is missing");
    switch (d->kind) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: code = dnn_finish_operation(d); break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: code = dnn_finish_graph(d); break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: code = dnn_finish_plan(d); break;
    default: break;
    }
    d->is_final = code == 0;
    return code;
}

/* --- the library --- */

size_t cudnnGetVersion(void)
{
    return 92801;
}

size_t cudnnGetCudartVersion(void)
{
    return 13000;
}

const char *cudnnGetErrorString(int code)
{
    return code ? "CUDNN_STATUS_PLAYED" : "CUDNN_STATUS_SUCCESS";
}

void cudnnGetLastErrorString(char *out, size_t n)
{
    if (n) *out = '\0';
}

int cudnnCreate(cudnn_handle *out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? 0 : DNN_NOT_INITIALIZED;
}

int cudnnDestroy(cudnn_handle library)
{
    free(library);
    return 0;
}

int cudnnSetStream(cudnn_handle library, cu_stream stream)
{
    library->stream = stream;
    return 0;
}
