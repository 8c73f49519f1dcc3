#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

const char *stk_dtype_name(stk_dtype dtype)
{
    static const char *const names[] = {
#define X(name, text, bytes) text,
        STK_DTYPE_LIST(X)
#undef X
    };
    return (unsigned)dtype < STK_N_DTYPES ? names[dtype] : "?";
}

size_t stk_dtype_bytes(stk_dtype dtype)
{
    static const unsigned char sizes[] = {
#define X(name, text, bytes) bytes,
        STK_DTYPE_LIST(X)
#undef X
    };
    return (unsigned)dtype < STK_N_DTYPES ? sizes[dtype] : 0;
}

stk_shape stk_shape_make(const int64_t *dim, int32_t rank)
{
    stk_shape shape = {.rank = rank};
    for (int32_t i = 0; i < rank && i < STK_MAX_RANK; i++)
        shape.dim[i] = dim[i];
    return shape;
}

bool stk_dtype_from_name(const char *name, stk_dtype *out)
{
    for (int d = 0; d < STK_N_DTYPES; d++) {
        if (strcmp(name, stk_dtype_name((stk_dtype)d))) continue;
        *out = (stk_dtype)d;
        return true;
    }
    return false;
}

bool stk_dtype_is_float(stk_dtype dtype)
{
    return dtype == STK_F32 || dtype == STK_BF16 || dtype == STK_F16 || dtype == STK_F64;
}

bool stk_shape_equal(stk_shape a, stk_shape b)
{
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

bool stk_shape_known(stk_shape shape)
{
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] == STK_ANY) return false;
    return true;
}

int64_t stk_dim_times(int64_t a, int64_t b)
{
    int64_t most = INT64_C(1) << 60, n;
    return __builtin_mul_overflow(a, b, &n) || n > most ? most : n;
}

int64_t stk_shape_product(stk_shape shape, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= shape.dim[i];
    return n;
}

int64_t stk_shape_count(stk_shape shape)
{
    return stk_shape_product(shape, 0, shape.rank);
}

stk_tensor_desc stk_desc_make(stk_dtype dtype, stk_shape shape)
{
    for (int i = shape.rank < 0 ? 0 : shape.rank; i < STK_MAX_RANK; i++)
        shape.dim[i] = 0;
    return (stk_tensor_desc){dtype, shape};
}

stk_status stk_desc_check(stk_tensor_desc desc)
{
    if ((unsigned)desc.dtype >= STK_N_DTYPES) return stk_fail(STK_INVALID, "no such dtype: %d", (int)desc.dtype);
    if (desc.shape.rank < 0 || desc.shape.rank > STK_MAX_RANK)
        return stk_fail(STK_INVALID, "a shape has rank %d; at most %d are possible", (int)desc.shape.rank,
                        STK_MAX_RANK);
    int64_t limit = INT64_C(1) << 47, n = (int64_t)stk_dtype_bytes(desc.dtype);
    for (int i = 0; i < desc.shape.rank; i++) {
        int64_t d = desc.shape.dim[i];
        if (d == STK_ANY) continue;
        if (d < 0) return stk_fail(STK_INVALID, "dimension %d of a shape is %lld", i, (long long)d);
        if (d > 0 && n > limit / d) {
            char text[STK_SHAPE_TEXT_BYTES];
            return stk_fail(STK_INVALID, "a tensor %s is too large", stk_desc_text(desc, text));
        }
        if (d > 0) n *= d;
    }
    return STK_OK;
}

size_t stk_desc_bytes(stk_tensor_desc desc)
{
    return (size_t)stk_shape_count(desc.shape) * stk_dtype_bytes(desc.dtype);
}

const char *stk_shape_text(stk_shape shape, char out[STK_SHAPE_TEXT_BYTES])
{
    size_t n = 0;
    out[n++] = '[';
    for (int i = 0; i < shape.rank && i < STK_MAX_RANK; i++) {
        if (i) out[n++] = ',';
        if (shape.dim[i] == STK_ANY)
            out[n++] = '?';
        else
            n += (size_t)snprintf(out + n, 21, "%lld", (long long)shape.dim[i]);
    }
    out[n++] = ']';
    out[n] = 0;
    return out;
}

const char *stk_desc_text(stk_tensor_desc desc, char out[STK_SHAPE_TEXT_BYTES])
{
    char shape[STK_SHAPE_TEXT_BYTES];
    snprintf(out, STK_SHAPE_TEXT_BYTES, "%s%.180s", stk_dtype_name(desc.dtype), stk_shape_text(desc.shape, shape));
    return out;
}

stk_status stk_shape_broadcast(stk_shape a, stk_shape b, stk_shape *out)
{
    stk_shape r = {.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int i = 0; i < r.rank; i++) {
        int ia = i - (r.rank - a.rank), ib = i - (r.rank - b.rank);
        int64_t da = ia < 0 ? 1 : a.dim[ia], db = ib < 0 ? 1 : b.dim[ib];
        if (da != db && da != 1 && db != 1) {
            char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
            return stk_fail(STK_INVALID, "shapes %s and %s do not fit together", stk_shape_text(a, ta),
                            stk_shape_text(b, tb));
        }
        r.dim[i] = da == 1 ? db : da;
    }
    *out = r;
    return STK_OK;
}
