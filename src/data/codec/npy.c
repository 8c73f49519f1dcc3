/* See codec/npy.h. The header is a Python dict; it is read as the grammar has it, whatever the order of its keys. */
#include "data/codec/npy.h"

#include <string.h>

#include "base/error.h"

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t'))
        c->p++;
}

static bool take(cursor *c, char wanted)
{
    skip_space(c);
    if (c->p == c->end || *c->p != wanted) return false;
    c->p++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n)) return false;
    c->p += n;
    return true;
}

/* A text in single or double quotes, without escapes. */
static bool take_text(cursor *c, char out[32])
{
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) return false;
    const char *start = c->p + 1, *stop = memchr(start, *c->p, (size_t)(c->end - start));
    if (!stop || stop - start >= 32) return false;
    memcpy(out, start, (size_t)(stop - start));
    out[stop - start] = 0;
    c->p = stop + 1;
    return true;
}

static stk_status fail_header(void)
{
    return stk_fail(STK_CORRUPT, "its .npy header is damaged");
}

/* stored: as in stk_npy_parse. */
static stk_status parse_descr(cursor *c, stk_dtype *out, stk_npy_stored *stored)
{
    static const struct {
        const char *descr;
        stk_dtype dtype;
        stk_npy_stored stored;
    } known[] = {{"f4", STK_F32, STK_NPY_AS_IS}, {"f2", STK_F16, STK_NPY_AS_IS},  {"f8", STK_F64, STK_NPY_AS_IS},
                 {"i8", STK_I64, STK_NPY_AS_IS}, {"i4", STK_I32, STK_NPY_AS_IS},  {"i1", STK_I8, STK_NPY_AS_IS},
                 {"u1", STK_U8, STK_NPY_AS_IS},  {"b1", STK_BOOL, STK_NPY_AS_IS}, {"i2", STK_I32, STK_NPY_I16},
                 {"u2", STK_I32, STK_NPY_U16},   {"u4", STK_I64, STK_NPY_U32},    {"u8", STK_I64, STK_NPY_U64}};
    char text[32];
    skip_space(c);
    if (c->p < c->end && *c->p == '[')
        return stk_fail(STK_UNSUPPORTED, "it holds records of several fields (a structured array), which are not "
                                         "supported: save each field as an array of its own");
    if (!take_text(c, text) || !text[0]) return fail_header();
    bool has_order = strchr("<>|=", text[0]) != NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(text + has_order, known[i].descr) || (known[i].stored != STK_NPY_AS_IS && !stored)) continue;
        if (text[0] == '>' && known[i].descr[1] != '1')
            return stk_fail(STK_UNSUPPORTED, "its elements '%s' are big-endian; save it with astype('<%s')", text,
                            known[i].descr);
        *out = known[i].dtype;
        if (stored) *stored = known[i].stored;
        return STK_OK;
    }
    return stk_fail(STK_UNSUPPORTED, "element type '%s' is not supported; f2, f4, f8, i1, %si4, i8, u1%s and b1 are",
                    text, stored ? "i2, " : "", stored ? ", u2, u4, u8" : "");
}

/* A tuple of sizes: (3, 4), (3,) or (). Old files have 3L. */
static stk_status parse_shape(cursor *c, stk_shape *out)
{
    *out = (stk_shape){0};
    if (!take(c, '(')) return fail_header();
    while (!take(c, ')')) {
        int64_t dim = 0;
        int n_digits = 0;
        skip_space(c);
        for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, n_digits++)
            if (__builtin_mul_overflow(dim, 10, &dim) || __builtin_add_overflow(dim, *c->p - '0', &dim))
                return stk_fail(STK_CORRUPT, "a dimension in its .npy header cannot be right");
        if (n_digits == 0) return fail_header();
        if (out->rank == STK_MAX_RANK) return stk_fail(STK_UNSUPPORTED, "it has more than %d dimensions", STK_MAX_RANK);
        out->dim[out->rank++] = dim;
        take(c, 'L');
        if (take(c, ',')) continue;
        if (!take(c, ')')) return fail_header();
        break;
    }
    return STK_OK;
}

static stk_status parse_dict(cursor *c, stk_tensor_desc *desc, stk_npy_stored *stored)
{
    bool has_descr = false, has_order = false, has_shape = false;
    char key[32];
    if (!take(c, '{')) return fail_header();
    while (!take(c, '}')) {
        if (!take_text(c, key) || !take(c, ':')) return fail_header();
        if (!strcmp(key, "descr") && !has_descr) {
            STK_RETURN_IF_ERROR(parse_descr(c, &desc->dtype, stored));
            has_descr = true;
        } else if (!strcmp(key, "fortran_order") && !has_order) {
            if (take_word(c, "True"))
                return stk_fail(STK_UNSUPPORTED, "it is in Fortran order; save it with numpy.ascontiguousarray");
            if (!take_word(c, "False")) return fail_header();
            has_order = true;
        } else if (!strcmp(key, "shape") && !has_shape) {
            STK_RETURN_IF_ERROR(parse_shape(c, &desc->shape));
            has_shape = true;
        } else {
            return fail_header();
        }
        if (take(c, ',')) continue;
        if (!take(c, '}')) return fail_header();
        break;
    }
    skip_space(c);
    return has_descr && has_order && has_shape && c->p == c->end ? STK_OK : fail_header();
}

/* The elements must be exactly the rest. */
static stk_status check_size(const stk_tensor_desc *desc, stk_npy_stored stored, uint64_t n_left)
{
    uint64_t n = stk_npy_stored_bytes(stored, desc->dtype);
    for (int i = 0; i < desc->shape.rank; i++)
        if (__builtin_mul_overflow(n, (uint64_t)desc->shape.dim[i], &n))
            return stk_fail(STK_CORRUPT, "the shape in its .npy header cannot be right");
    if (n == n_left) return STK_OK;
    char text[STK_SHAPE_TEXT_BYTES];
    return stk_fail(STK_CORRUPT, "it has %llu bytes of elements, its .npy header says %llu for %s",
                    (unsigned long long)n_left, (unsigned long long)n, stk_desc_text(*desc, text));
}

size_t stk_npy_stored_bytes(stk_npy_stored stored, stk_dtype dtype)
{
    size_t n = stk_dtype_bytes(dtype);
    return stored == STK_NPY_AS_IS || stored == STK_NPY_U64 ? n : n / 2;
}

#define WIDEN(from_type, to_type)                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        from_type x;                                                                                                   \
        memcpy(&x, (const char *)from + (size_t)i * sizeof(x), sizeof(x));                                             \
        to_type wide = (to_type)x;                                                                                     \
        memcpy((char *)to + (size_t)i * sizeof(wide), &wide, sizeof(wide));                                            \
        if (sizeof(x) == sizeof(wide) && wide < 0)                                                                     \
            return stk_fail(STK_CORRUPT, "element %lld is too large for i64", (long long)i);                           \
    }

stk_status stk_npy_widen(stk_npy_stored stored, const void *from, int64_t n, void *to)
{
    switch (stored) {
    case STK_NPY_I16: WIDEN(int16_t, int32_t) break;
    case STK_NPY_U16: WIDEN(uint16_t, int32_t) break;
    case STK_NPY_U32: WIDEN(uint32_t, int64_t) break;
    case STK_NPY_U64: WIDEN(uint64_t, int64_t) break;
    case STK_NPY_AS_IS: break;
    }
    return STK_OK;
}

stk_status stk_npy_parse(stk_span start, uint64_t n_bytes, stk_tensor_desc *desc, uint64_t *data_at,
                         stk_npy_stored *stored)
{
    const uint8_t *p = start.data;
    if (start.n < 10 || memcmp(p, "\x93NUMPY", 6)) return stk_fail(STK_CORRUPT, "it is no .npy file");
    if (p[6] < 1 || p[6] > 3)
        return stk_fail(STK_UNSUPPORTED, "it is a .npy file of version %d; 1 to 3 are supported", p[6]);
    size_t at = p[6] == 1 ? 10 : 12, n = (size_t)p[8] | (size_t)p[9] << 8;
    if (start.n < at) return stk_fail(STK_CORRUPT, "its .npy header is cut short");
    if (p[6] > 1) n |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (n > STK_NPY_MOST_HEADER - at)
        return stk_fail(STK_CORRUPT, "its .npy header of %zu bytes cannot be right; %d are the most", n,
                        STK_NPY_MOST_HEADER - (int)at);
    if (n > start.n - at) return stk_fail(STK_CORRUPT, "its .npy header is cut short");
    cursor c = {(const char *)p + at, (const char *)p + at + n};
    *desc = (stk_tensor_desc){0};
    STK_RETURN_IF_ERROR(parse_dict(&c, desc, stored));
    *data_at = at + n;
    return check_size(desc, stored ? *stored : STK_NPY_AS_IS, n_bytes - at - n);
}
