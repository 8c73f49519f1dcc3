/* See data/codec/nifti.h. */
#include "data/codec/nifti.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

enum { V1_BYTES = 348, V2_BYTES = 540 };
#define MOST_BYTES ((uint64_t)1 << 47)

/* --- numbers in either byte order --- */

static uint64_t read_word(const uint8_t *p, size_t n, bool swapped)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)p[swapped ? n - 1 - i : i] << (8 * i);
    return x;
}

static double f32_of(uint64_t bits)
{
    float x;
    uint32_t word = (uint32_t)bits;
    memcpy(&x, &word, sizeof(x));
    return (double)x;
}

static double f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double f16_of(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    double x = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return bits >> 15 ? -x : x;
}

size_t stk_number_bytes(stk_number number)
{
    static const unsigned char bytes[] = {1, 1, 2, 2, 4, 4, 8, 4, 8, 2};
    return bytes[number];
}

static double convert(stk_number number, uint64_t word)
{
    switch (number) {
    case STK_NUMBER_U8:
    case STK_NUMBER_U16:
    case STK_NUMBER_U32: return (double)word;
    case STK_NUMBER_I8: return (int8_t)word;
    case STK_NUMBER_I16: return (int16_t)word;
    case STK_NUMBER_I32: return (int32_t)word;
    case STK_NUMBER_I64: return (double)(int64_t)word;
    case STK_NUMBER_F32: return f32_of(word);
    case STK_NUMBER_F16: return f16_of(word);
    case STK_NUMBER_F64: break;
    }
    return f64_of(word);
}

void stk_number_read(stk_number number, bool swapped, const uint8_t *src, int64_t n, double *dst)
{
    size_t bytes = stk_number_bytes(number);
    /* The common types by loops of their own. */
    if (number == STK_NUMBER_U8) {
        for (int64_t i = 0; i < n; i++)
            dst[i] = src[i];
    } else if (number == STK_NUMBER_I16 && !swapped) {
        for (int64_t i = 0; i < n; i++) {
            int16_t x;
            memcpy(&x, src + 2 * i, sizeof(x));
            dst[i] = x;
        }
    } else if (number == STK_NUMBER_F32 && !swapped) {
        for (int64_t i = 0; i < n; i++) {
            float x;
            memcpy(&x, src + 4 * i, sizeof(x));
            dst[i] = (double)x;
        }
    } else {
        for (int64_t i = 0; i < n; i++)
            dst[i] = convert(number, read_word(src + (size_t)i * bytes, bytes, swapped));
    }
}

/* --- the header --- */

/* Where things lie in a header, by version. */
typedef struct layout {
    int dim, dim_bytes, datatype, pixdim, real_bytes, vox_offset, slope, qform, code_bytes, sform, quaternion, offset,
        srow;
} layout;
static const layout v1 = {40, 2, 70, 76, 4, 108, 112, 252, 2, 254, 256, 268, 280};
static const layout v2 = {16, 8, 12, 104, 8, 168, 176, 344, 4, 348, 352, 376, 400};

typedef struct header {
    const uint8_t *p;
    const layout *at;
    bool swapped;
} header;

static int64_t get_int(const header *h, int at, int bytes)
{
    uint64_t word = read_word(h->p + at, (size_t)bytes, h->swapped);
    return bytes == 2 ? (int16_t)word : bytes == 4 ? (int32_t)word : (int64_t)word;
}

static double get_real(const header *h, int at, int i)
{
    uint64_t word = read_word(h->p + at + i * h->at->real_bytes, (size_t)h->at->real_bytes, h->swapped);
    return h->at->real_bytes == 4 ? f32_of(word) : f64_of(word);
}

static stk_status find_version(stk_span start, header *h)
{
    static const char magic2[8] = {'n', '+', '2', 0, '\r', '\n', 032, '\n'};
    if (start.n < V1_BYTES) return stk_fail(STK_CORRUPT, "it is too short for a NIfTI header");
    *h = (header){.p = start.data};
    for (int k = 0; k < 2; k++) {
        h->swapped = k;
        uint64_t size = read_word(start.data, 4, h->swapped);
        if (size == V1_BYTES) h->at = &v1;
        if (size == V2_BYTES) h->at = &v2;
        if (h->at) break;
    }
    if (!h->at) return stk_fail(STK_CORRUPT, "it is no NIfTI file: it does not begin with the header's size");
    if (h->at == &v1 && !memcmp(start.data + 344, "ni1", 4))
        return stk_fail(STK_UNSUPPORTED, "its voxels are in another file: save it as one .nii");
    if (h->at == &v1 ? memcmp(start.data + 344, "n+1", 4) != 0
                     : start.n < V2_BYTES || memcmp(start.data + 4, magic2, 8) != 0)
        return stk_fail(STK_CORRUPT, "it is no NIfTI file of one part");
    return STK_OK;
}

static stk_status find_number(const header *h, stk_number *out)
{
    static const struct {
        int code;
        stk_number number;
    } known[] = {{2, STK_NUMBER_U8},    {4, STK_NUMBER_I16},   {8, STK_NUMBER_I32},
                 {16, STK_NUMBER_F32},  {64, STK_NUMBER_F64},  {256, STK_NUMBER_I8},
                 {512, STK_NUMBER_U16}, {768, STK_NUMBER_U32}, {1024, STK_NUMBER_I64}};
    int code = (int)get_int(h, h->at->datatype, 2);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == code) {
            *out = known[i].number;
            return STK_OK;
        }
    return stk_fail(STK_UNSUPPORTED, "its element type, number %d, is not supported: one whole or real number is",
                    code);
}

static stk_status find_sides(const header *h, uint64_t n_bytes, stk_nifti *out)
{
    int64_t rank = get_int(h, h->at->dim, h->at->dim_bytes);
    uint64_t n = stk_number_bytes(out->number);
    if (rank < 1 || rank > 7) return stk_fail(STK_CORRUPT, "it has %lld dimensions", (long long)rank);
    out->n_channels = 1;
    out->side[0] = out->side[1] = out->side[2] = 1;
    for (int i = 0; i < rank; i++) {
        int64_t side = get_int(h, h->at->dim + (i + 1) * h->at->dim_bytes, h->at->dim_bytes);
        if (side < 1 || n > MOST_BYTES / (uint64_t)side)
            return stk_fail(STK_CORRUPT, "dimension %d is %lld", i + 1, (long long)side);
        n *= (uint64_t)side;
        if (i < 3)
            out->side[2 - i] = side;
        else
            out->n_channels *= side;
    }
    double at = h->at == &v1 ? get_real(h, h->at->vox_offset, 0) : (double)get_int(h, h->at->vox_offset, 8);
    double least = h->at == &v1 ? V1_BYTES : V2_BYTES;
    if (at == 0 && h->at == &v1) at = 352; /* as readers take it */
    if (!(at >= least && at <= (double)n_bytes)) return stk_fail(STK_CORRUPT, "its voxels begin at byte %g", at);
    out->data_at = (uint64_t)at;
    if (n > n_bytes - out->data_at)
        return stk_fail(STK_CORRUPT, "it has %llu bytes, its voxels end at byte %llu", (unsigned long long)n_bytes,
                        (unsigned long long)(out->data_at + n));
    return STK_OK;
}

static stk_status find_scale(const header *h, stk_nifti *out)
{
    out->slope = get_real(h, h->at->slope, 0);
    out->inter = get_real(h, h->at->slope, 1);
    if (out->slope == 0 || !isfinite(out->slope)) {
        out->slope = 1;
        out->inter = 0;
    }
    return isfinite(out->inter) ? STK_OK : stk_fail(STK_CORRUPT, "its scale's intercept is not a number");
}

/* The rotation of a unit quaternion whose first part is left out, with the sides of voxels; the z axis may be turned.
 */
static void set_by_quaternion(const header *h, double affine[3][4])
{
    double b = get_real(h, h->at->quaternion, 0), c = get_real(h, h->at->quaternion, 1),
           d = get_real(h, h->at->quaternion, 2), rest = 1 - (b * b + c * c + d * d), a = rest > 0 ? sqrt(rest) : 0;
    double z_sign = get_real(h, h->at->pixdim, 0) < 0 ? -1 : 1;
    const double r[3][3] = {{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
                            {2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
                            {2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - c * c - b * b}};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            affine[i][k] = r[i][k] * get_real(h, h->at->pixdim, k + 1) * (k == 2 ? z_sign : 1);
        affine[i][3] = get_real(h, h->at->offset, i);
    }
}

static void find_affine(const header *h, stk_nifti *out)
{
    memset(out->affine, 0, sizeof(out->affine));
    if (get_int(h, h->at->sform, h->at->code_bytes) > 0) {
        for (int i = 0; i < 12; i++)
            out->affine[i / 4][i % 4] = get_real(h, h->at->srow, i);
    } else if (get_int(h, h->at->qform, h->at->code_bytes) > 0) {
        set_by_quaternion(h, out->affine);
    } else {
        for (int i = 0; i < 3; i++)
            out->affine[i][i] = get_real(h, h->at->pixdim, i + 1);
    }
}

stk_status stk_nifti_parse(stk_span start, uint64_t n_bytes, stk_nifti *out)
{
    header h = {0};
    *out = (stk_nifti){0};
    STK_RETURN_IF_ERROR(find_version(start, &h));
    STK_RETURN_IF_ERROR(find_number(&h, &out->number));
    out->swapped = h.swapped;
    STK_RETURN_IF_ERROR(find_sides(&h, n_bytes, out));
    STK_RETURN_IF_ERROR(find_scale(&h, out));
    find_affine(&h, out);
    return STK_OK;
}
