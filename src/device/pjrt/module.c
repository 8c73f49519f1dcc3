/* See module.h. */
#include "device/pjrt/module.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void pjrt_module_free(pjrt_module *m)
{
    stk_text_free(&m->body);
    free(m->check);
    free(m->found);
    *m = (pjrt_module){0};
}

/* --- texts --- */

static const char *dtype_text(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F32: return "f32";
    case STK_F64: return "f64";
    case STK_BF16: return "bf16";
    case STK_F16: return "f16";
    case STK_I64: return "i64";
    case STK_I32: return "i32";
    case STK_I8: return "i8";
    case STK_U8: return "ui8";
    default: return "i1";
    }
}

const char *pjrt_type_text(stk_tensor_desc desc, char out[PJRT_TYPE_TEXT])
{
    int n = snprintf(out, PJRT_TYPE_TEXT, "tensor<");
    for (int i = 0; i < desc.shape.rank; i++)
        n += snprintf(out + n, PJRT_TYPE_TEXT - (size_t)n, "%" PRId64 "x", desc.shape.dim[i]);
    snprintf(out + n, PJRT_TYPE_TEXT - (size_t)n, "%s>", dtype_text(desc.dtype));
    return out;
}

const char *pjrt_list_text(const int64_t *x, int n, char out[PJRT_LIST_TEXT])
{
    int at = snprintf(out, PJRT_LIST_TEXT, "[");
    for (int i = 0; i < n; i++)
        at += snprintf(out + at, PJRT_LIST_TEXT - (size_t)at, "%s%" PRId64, i ? ", " : "", x[i]);
    snprintf(out + at, PJRT_LIST_TEXT - (size_t)at, "]");
    return out;
}

pjrt_value pjrt_new_value(pjrt_module *m, stk_tensor_desc desc)
{
    return (pjrt_value){m->n_values++, desc};
}

/* --- constants --- */

/* As a cast of floats to that dtype has it. */
static int64_t clamp_to(stk_dtype dtype, double x)
{
    int bits = (int)stk_dtype_bytes(dtype) * 8;
    bool is_unsigned = dtype == STK_U8;
    double high = ldexp(1, is_unsigned ? bits : bits - 1), low = is_unsigned ? 0 : -high;
    if (isnan(x)) return 0;
    if (dtype == STK_BOOL) return x != 0;
    if (x < low) x = low;
    if (x >= high) return high >= 0x1p63 ? INT64_MAX : (int64_t)high - 1;
    return (int64_t)x;
}

pjrt_value pjrt_constant(pjrt_module *m, stk_tensor_desc desc, double x)
{
    char type[PJRT_TYPE_TEXT], number[64];
    pjrt_value y = pjrt_new_value(m, desc);
    if (!stk_dtype_is_float(desc.dtype)) {
        m->n_values--;
        return pjrt_integer(m, desc, clamp_to(desc.dtype, x));
    }
    bool is_wide = desc.dtype == STK_F64;
    if (isfinite(x)) {
        snprintf(number, sizeof(number), "%.17e", is_wide ? x : (double)(float)x);
        if (!is_wide && isinf((float)x)) x = (double)(float)x;
    }
    if (!isfinite(x)) { /* By its bits. */
        uint64_t infinity = desc.dtype == STK_F64    ? 0x7FF0000000000000u
                            : desc.dtype == STK_F32  ? 0x7F800000u
                            : desc.dtype == STK_BF16 ? 0x7F80u
                                                     : 0x7C00u;
        int digits = desc.dtype == STK_F64 ? 16 : desc.dtype == STK_F32 ? 8 : 4;
        uint64_t sign = (uint64_t)1 << (digits * 4 - 1), quiet = infinity | infinity >> 1;
        uint64_t bits = isnan(x) ? quiet & (sign - 1) : x < 0 ? infinity | sign : infinity;
        snprintf(number, sizeof(number), "0x%0*" PRIX64, digits, bits);
    }
    stk_text_add(&m->body, "%%%d = stablehlo.constant dense<%s> : %s\n", y.id, number, pjrt_type_text(desc, type));
    return y;
}

pjrt_value pjrt_integer(pjrt_module *m, stk_tensor_desc desc, int64_t x)
{
    char type[PJRT_TYPE_TEXT];
    if (stk_dtype_is_float(desc.dtype)) return pjrt_constant(m, desc, (double)x);
    pjrt_value y = pjrt_new_value(m, desc);
    if (desc.dtype == STK_BOOL)
        stk_text_add(&m->body, "%%%d = stablehlo.constant dense<%s> : %s\n", y.id, x ? "true" : "false",
                     pjrt_type_text(desc, type));
    else
        stk_text_add(&m->body, "%%%d = stablehlo.constant dense<%" PRId64 "> : %s\n", y.id, x,
                     pjrt_type_text(desc, type));
    return y;
}

/* --- element by element --- */

pjrt_value pjrt_unary(pjrt_module *m, const char *name, pjrt_value x)
{
    char type[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, x.desc);
    stk_text_add(&m->body, "%%%d = stablehlo.%s %%%d : %s\n", y.id, name, x.id, pjrt_type_text(x.desc, type));
    return y;
}

pjrt_value pjrt_binary(pjrt_module *m, const char *name, pjrt_value a, pjrt_value b)
{
    char type[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, a.desc);
    stk_text_add(&m->body, "%%%d = stablehlo.%s %%%d, %%%d : %s\n", y.id, name, a.id, b.id,
                 pjrt_type_text(a.desc, type));
    return y;
}

pjrt_value pjrt_compare(pjrt_module *m, const char *direction, pjrt_value a, pjrt_value b)
{
    char in[PJRT_TYPE_TEXT], out[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, stk_desc_make(STK_BOOL, a.desc.shape));
    const char *kind = stk_dtype_is_float(a.desc.dtype)                     ? "FLOAT"
                       : a.desc.dtype == STK_U8 || a.desc.dtype == STK_BOOL ? "UNSIGNED"
                                                                            : "SIGNED";
    stk_text_add(&m->body, "%%%d = stablehlo.compare %s, %%%d, %%%d, %s : (%s, %s) -> %s\n", y.id, direction, a.id,
                 b.id, kind, pjrt_type_text(a.desc, in), in, pjrt_type_text(y.desc, out));
    return y;
}

pjrt_value pjrt_select(pjrt_module *m, pjrt_value condition, pjrt_value a, pjrt_value b)
{
    char type[PJRT_TYPE_TEXT], predicate[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, a.desc);
    stk_text_add(&m->body, "%%%d = stablehlo.select %%%d, %%%d, %%%d : %s, %s\n", y.id, condition.id, a.id, b.id,
                 pjrt_type_text(condition.desc, predicate), pjrt_type_text(a.desc, type));
    return y;
}

/* An operation whose result has another type. */
static pjrt_value change(pjrt_module *m, const char *name, pjrt_value x, const char *more, stk_tensor_desc desc)
{
    char in[PJRT_TYPE_TEXT], out[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, desc);
    stk_text_add(&m->body, "%%%d = stablehlo.%s %%%d%s : (%s) -> %s\n", y.id, name, x.id, more,
                 pjrt_type_text(x.desc, in), pjrt_type_text(desc, out));
    return y;
}

pjrt_value pjrt_convert(pjrt_module *m, pjrt_value x, stk_dtype dtype)
{
    return x.desc.dtype == dtype ? x : change(m, "convert", x, "", stk_desc_make(dtype, x.desc.shape));
}

/* --- moving elements --- */

pjrt_value pjrt_reshape(pjrt_module *m, pjrt_value x, stk_shape shape)
{
    if (stk_shape_equal(x.desc.shape, shape)) return x;
    return change(m, "reshape", x, "", stk_desc_make(x.desc.dtype, shape));
}

pjrt_value pjrt_broadcast(pjrt_module *m, pjrt_value x, const int64_t *axes, stk_shape shape)
{
    char list[PJRT_LIST_TEXT], more[PJRT_LIST_TEXT + 16];
    snprintf(more, sizeof(more), ", dims = %s", pjrt_list_text(axes, x.desc.shape.rank, list));
    return change(m, "broadcast_in_dim", x, more, stk_desc_make(x.desc.dtype, shape));
}

pjrt_value pjrt_transpose(pjrt_module *m, pjrt_value x, const int64_t *permutation)
{
    char list[PJRT_LIST_TEXT], more[PJRT_LIST_TEXT + 16];
    stk_shape shape = x.desc.shape;
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = x.desc.shape.dim[permutation[i]];
    snprintf(more, sizeof(more), ", dims = %s", pjrt_list_text(permutation, shape.rank, list));
    return change(m, "transpose", x, more, stk_desc_make(x.desc.dtype, shape));
}

pjrt_value pjrt_slice(pjrt_module *m, pjrt_value x, const int64_t *start, const int64_t *stop, const int64_t *step)
{
    char more[512];
    int n = snprintf(more, sizeof(more), " [");
    stk_shape shape = x.desc.shape;
    if (shape.rank == 0) return x;
    for (int i = 0; i < shape.rank; i++) {
        int64_t end = stop[i] < x.desc.shape.dim[i] ? stop[i] : x.desc.shape.dim[i];
        n += snprintf(more + n, sizeof(more) - (size_t)n, "%s%" PRId64 ":%" PRId64 ":%" PRId64, i ? ", " : "", start[i],
                      end, step[i]);
        shape.dim[i] = end > start[i] ? (end - start[i] + step[i] - 1) / step[i] : 0;
    }
    snprintf(more + n, sizeof(more) - (size_t)n, "]");
    return change(m, "slice", x, more, stk_desc_make(x.desc.dtype, shape));
}

pjrt_value pjrt_take_rows(pjrt_module *m, pjrt_value x, pjrt_value start, int64_t n)
{
    char sizes[PJRT_LIST_TEXT], in[PJRT_TYPE_TEXT], index[PJRT_TYPE_TEXT], out[PJRT_TYPE_TEXT];
    stk_shape shape = x.desc.shape;
    pjrt_value zero = start;
    if (shape.rank > 1) zero = pjrt_integer(m, start.desc, 0);
    shape.dim[0] = n;
    pjrt_value y = pjrt_new_value(m, stk_desc_make(x.desc.dtype, shape));
    pjrt_type_text(start.desc, index);
    stk_text_add(&m->body, "%%%d = stablehlo.dynamic_slice %%%d", y.id, x.id);
    for (int i = 0; i < shape.rank; i++)
        stk_text_add(&m->body, ", %%%d", i ? zero.id : start.id);
    stk_text_add(&m->body, ", sizes = %s : (%s", pjrt_list_text(shape.dim, shape.rank, sizes),
                 pjrt_type_text(x.desc, in));
    for (int i = 0; i < shape.rank; i++)
        stk_text_add(&m->body, ", %s", index);
    stk_text_add(&m->body, ") -> %s\n", pjrt_type_text(y.desc, out));
    return y;
}

pjrt_value pjrt_reverse(pjrt_module *m, pjrt_value x, const int64_t *axes, int n_axes)
{
    char list[PJRT_LIST_TEXT], type[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, x.desc);
    stk_text_add(&m->body, "%%%d = stablehlo.reverse %%%d, dims = %s : %s\n", y.id, x.id,
                 pjrt_list_text(axes, n_axes, list), pjrt_type_text(x.desc, type));
    return y;
}

pjrt_value pjrt_iota(pjrt_module *m, stk_tensor_desc desc, int axis)
{
    char type[PJRT_TYPE_TEXT];
    pjrt_value y = pjrt_new_value(m, desc);
    stk_text_add(&m->body, "%%%d = stablehlo.iota dim = %d : %s\n", y.id, axis, pjrt_type_text(desc, type));
    return y;
}

/* --- over axes --- */

pjrt_value pjrt_reduce(pjrt_module *m, const char *name, pjrt_value x, pjrt_value init, uint32_t axes)
{
    char in[PJRT_TYPE_TEXT], scalar[PJRT_TYPE_TEXT], out[PJRT_TYPE_TEXT], list[PJRT_LIST_TEXT];
    int64_t axis[STK_MAX_RANK];
    int n_axes = 0;
    stk_shape shape = {0};
    for (int i = 0; i < x.desc.shape.rank; i++) {
        if (axes >> i & 1)
            axis[n_axes++] = i;
        else
            shape.dim[shape.rank++] = x.desc.shape.dim[i];
    }
    pjrt_value y = pjrt_new_value(m, stk_desc_make(x.desc.dtype, shape));
    stk_text_add(&m->body,
                 "%%%d = stablehlo.reduce(%%%d init: %%%d) applies stablehlo.%s across dimensions = %s : "
                 "(%s, %s) -> %s\n",
                 y.id, x.id, init.id, name, pjrt_list_text(axis, n_axes, list), pjrt_type_text(x.desc, in),
                 pjrt_type_text(init.desc, scalar), pjrt_type_text(y.desc, out));
    return y;
}

/* --- what must hold --- */

static bool add_check(pjrt_module *m, pjrt_value found, int64_t limit)
{
    size_t n = (size_t)m->n_checks + 1;
    pjrt_check *check = realloc(m->check, n * sizeof(*check));
    if (check) m->check = check;
    pjrt_value *value = realloc(m->found, n * sizeof(*value));
    if (value) m->found = value;
    if (!check || !value) return false;
    check[m->n_checks] = (pjrt_check){limit, m->op};
    value[m->n_checks++] = found;
    return true;
}

void pjrt_check_ids(pjrt_module *m, pjrt_value ids, int64_t limit)
{
    stk_tensor_desc one = {STK_I32, {.rank = 1, .dim = {1}}}, scalar = {STK_I32, {0}};
    if (stk_shape_count(ids.desc.shape) == 0) return;
    pjrt_value none = pjrt_integer(m, ids.desc, PJRT_NO_BAD_ID);
    pjrt_value low = pjrt_compare(m, "LT", ids, pjrt_integer(m, ids.desc, 0));
    pjrt_value high = pjrt_compare(m, "GE", ids, pjrt_integer(m, ids.desc, limit < INT32_MAX ? limit : INT32_MAX));
    pjrt_value bad = pjrt_select(m, pjrt_binary(m, "or", low, high), ids, none);
    pjrt_value worst = bad;
    if (ids.desc.shape.rank > 0)
        worst =
            pjrt_reduce(m, "maximum", bad, pjrt_integer(m, scalar, PJRT_NO_BAD_ID), (1u << ids.desc.shape.rank) - 1);
    if (!add_check(m, pjrt_reshape(m, worst, one.shape), limit) && m->status == STK_OK)
        m->status = stk_fail_memory(sizeof(pjrt_check));
}
