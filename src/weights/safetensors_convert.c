/* Elements of one type to another, and axes in another order. See weights/safetensors.h. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "weights/safetensors.h"

/* One element on its way: floats in f64, which holds every f32 and 16-bit float exactly; integers in 64 bits. */
typedef struct element {
    bool is_float, is_large; /* is_large: u64 above the largest i64 */
    double real;
    int64_t integer;
} element;

typedef element (*load_fn)(const uint8_t *p);

#define LOAD_FLOAT(name, type, expression)                                                                             \
    static element load_##name(const uint8_t *p)                                                                       \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, p, sizeof(x));                                                                                      \
        return (element){.is_float = true, .real = (double)(expression)};                                              \
    }
#define LOAD_INTEGER(name, type)                                                                                       \
    static element load_##name(const uint8_t *p)                                                                       \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, p, sizeof(x));                                                                                      \
        return (element){.integer = (int64_t)x, .real = (double)x};                                                    \
    }

/* A float of 8 bits: sign, exponent, and `bits` of fraction. E4M3 has no infinity, and one NaN; Micikevicius et al.
 * 2022. */
static float float_of_8(uint8_t x, int bits, int bias, bool has_infinity)
{
    int exponent = (x & 0x7f) >> bits, fraction = x & ((1 << bits) - 1), top = 0x7f >> bits;
    float sign = x & 0x80 ? -1.0f : 1.0f;
    if (has_infinity && exponent == top) return fraction ? NAN : sign * INFINITY;
    if (!has_infinity && (x & 0x7f) == 0x7f) return NAN;
    if (exponent == 0) return sign * ldexpf((float)fraction, 1 - bias - bits);
    return sign * ldexpf((float)(fraction + (1 << bits)), exponent - bias - bits);
}

LOAD_FLOAT(f32, float, x)
LOAD_FLOAT(f64, double, x)
LOAD_FLOAT(bf16, uint16_t, stk_bf16_to_f32(x))
LOAD_FLOAT(f16, uint16_t, stk_f16_to_f32(x))
LOAD_FLOAT(e4m3, uint8_t, float_of_8(x, 3, 7, false))
LOAD_FLOAT(e5m2, uint8_t, float_of_8(x, 2, 15, true))
LOAD_INTEGER(i64, int64_t)
LOAD_INTEGER(i32, int32_t)
LOAD_INTEGER(i16, int16_t)
LOAD_INTEGER(i8, int8_t)
LOAD_INTEGER(u32, uint32_t)
LOAD_INTEGER(u16, uint16_t)
LOAD_INTEGER(u8, uint8_t)

static element load_u64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    return (element){.integer = (int64_t)x, .real = (double)x, .is_large = x > INT64_MAX};
}

static element load_bool(const uint8_t *p)
{
    return (element){.integer = p[0] != 0, .real = p[0] != 0};
}

static const struct {
    const char *type;
    load_fn load;
    size_t bytes;
} loads[] = {{"F32", load_f32, 4},   {"BF16", load_bf16, 2},    {"F16", load_f16, 2},     {"F64", load_f64, 8},
             {"I64", load_i64, 8},   {"I32", load_i32, 4},      {"I16", load_i16, 2},     {"I8", load_i8, 1},
             {"U64", load_u64, 8},   {"U32", load_u32, 4},      {"U16", load_u16, 2},     {"U8", load_u8, 1},
             {"BOOL", load_bool, 1}, {"F8_E4M3", load_e4m3, 1}, {"F8_E5M2", load_e5m2, 1}};
enum { N_LOADS = sizeof(loads) / sizeof(loads[0]) };

/* The whole number that e is; false where it is none, or does not fit. */
static bool whole(element e, int64_t low, int64_t high, int64_t *out)
{
    if (e.is_float) {
        if (!(e.real >= -0x1p63 && e.real < 0x1p63) || e.real != trunc(e.real)) return false;
        e.integer = (int64_t)e.real;
    }
    *out = e.integer;
    return !e.is_large && e.integer >= low && e.integer <= high;
}

#define STORE_INTEGER(type, low, high)                                                                                 \
    {                                                                                                                  \
        if (!whole(e, low, high, &integer)) return false;                                                              \
        type x = (type)integer;                                                                                        \
        memcpy(p, &x, sizeof(x));                                                                                      \
        return true;                                                                                                   \
    }

static bool store(uint8_t *p, stk_dtype dtype, element e)
{
    int64_t integer;
    float f = (float)e.real;
    uint16_t half;
    switch (dtype) {
    case STK_F32: memcpy(p, &f, sizeof(f)); return true;
    case STK_F64: memcpy(p, &e.real, sizeof(e.real)); return true;
    case STK_BF16: half = stk_f32_to_bf16(f); break;
    case STK_F16: half = stk_f32_to_f16(f); break;
    case STK_I64: STORE_INTEGER(int64_t, INT64_MIN, INT64_MAX)
    case STK_I32: STORE_INTEGER(int32_t, INT32_MIN, INT32_MAX)
    case STK_I8: STORE_INTEGER(int8_t, INT8_MIN, INT8_MAX)
    case STK_U8: STORE_INTEGER(uint8_t, 0, UINT8_MAX)
    case STK_BOOL: STORE_INTEGER(uint8_t, 0, 1)
    default: return false;
    }
    memcpy(p, &half, sizeof(half));
    return true;
}

/* The walk over dst's elements in order: at is the element's place in src. */
typedef struct walk {
    int rank;
    int64_t dim[STK_MAX_RANK], stride[STK_MAX_RANK], index[STK_MAX_RANK], at;
} walk;

static walk begin(stk_shape shape, const int32_t *permutation)
{
    walk w = {.rank = shape.rank};
    for (int i = 0; i < shape.rank; i++) {
        int axis = permutation ? permutation[i] : i;
        w.dim[i] = shape.dim[axis];
        w.stride[i] = stk_shape_product(shape, axis + 1, shape.rank);
    }
    return w;
}

static void advance(walk *w)
{
    for (int i = w->rank - 1; i >= 0; i--) {
        w->at += w->stride[i];
        if (++w->index[i] < w->dim[i]) return;
        w->at -= w->stride[i] * w->dim[i];
        w->index[i] = 0;
    }
}

static bool is_identity(int rank, const int32_t *permutation)
{
    for (int i = 0; permutation && i < rank; i++)
        if (permutation[i] != i) return false;
    return true;
}

static stk_status check_permutation(const char *name, int rank, const int32_t *permutation)
{
    uint32_t seen = 0;
    for (int i = 0; permutation && i < rank; i++)
        if (permutation[i] >= 0 && permutation[i] < rank) seen |= 1u << permutation[i];
    if (permutation && seen != (1u << rank) - 1)
        return stk_fail(STK_INVALID, "tensor '%s' has %d axes, and the new order is no order of them", name, rank);
    return STK_OK;
}

stk_status stk_safetensors_convert_part(const char *name, const char *type, stk_shape shape, const void *src,
                                        int64_t i_first, stk_dtype dtype, const int32_t *permutation, void *dst)
{
    const uint8_t *from = src;
    uint8_t *to = dst;
    int kind = 0;
    int64_t n = stk_shape_count(shape);
    STK_RETURN_IF_ERROR(check_permutation(name, shape.rank, permutation));
    if ((unsigned)dtype >= STK_N_DTYPES) return stk_fail(STK_INVALID, "tensor '%s': no such dtype", name);
    while (kind < N_LOADS && strcmp(loads[kind].type, type))
        kind++;
    if (kind == N_LOADS) return stk_fail(STK_UNSUPPORTED, "tensor '%s' is %s, which is not supported", name, type);
    size_t bytes = loads[kind].bytes, step = stk_dtype_bytes(dtype);
    bool same = !strcmp(stk_safetensors_type(dtype), type);
    if (n == 0) return STK_OK;
    if (same && is_identity(shape.rank, permutation)) {
        memcpy(dst, src, bytes * (size_t)n);
        return STK_OK;
    }
    walk w = begin(shape, permutation);
    for (int64_t i = 0; i < n; i++, to += step, advance(&w)) {
        const uint8_t *p = from + (size_t)w.at * bytes;
        if (same)
            memcpy(to, p, bytes);
        else if (!store(to, dtype, loads[kind].load(p)))
            return stk_fail(STK_UNSUPPORTED, "tensor '%s' is %s, and element %lld is no %s", name, type,
                            (long long)(i_first + w.at), stk_dtype_name(dtype));
    }
    return STK_OK;
}

stk_status stk_safetensors_convert(const char *name, const char *type, stk_shape shape, const void *src,
                                   stk_dtype dtype, const int32_t *permutation, void *dst)
{
    return stk_safetensors_convert_part(name, type, shape, src, 0, dtype, permutation, dst);
}
