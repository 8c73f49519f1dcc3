/* See conv2d_winograd.h: the products, and the transforms of each dtype.
 *
 * In products, what is not a panel stays in the L1 cache, and panels pass by in the order of memory, which the
 * processor fetches ahead: 36 rows of V times DEPTH channels, or CHUNK tiles times GROUP channels of D. (With DEPTH
 * 256, where those rows come from L2, tiles run at 75 % of the peak instead of 87 %.)
 *
 * Rows of V and M end in a spare cache line, and positions begin at different sets of the L1 cache: powers of two of
 * channels would make all that a transform writes share a few sets.
 */
#include "device/cpu/conv/conv2d_winograd.h"

#include <string.h>

#include "device/cpu/conv/conv2d_vec.h"
#include "device/cpu/conv/conv2d_winograd_transforms.h"
#include "device/cpu/simd/half.h"
#include "device/cpu/simd/half_vec.h"
#include "device/cpu/threads/parallel.h"

#ifdef __AVX512F__
/* Sums of 6 rows of 4 vectors: fewer loads for each multiply-add than 8 rows of 2. */
enum { TILE_ROWS = 6, VECS = 4, FETCHES = 1 };
#define HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
enum { TILE_ROWS = ROWS, VECS = 2, FETCHES = 0 };
#define HEIGHTS(X) STK_CONV_HEIGHTS(X)
#endif
enum { MOST_ROWS = 8, WIDE = VECS * LANES };
enum { DEPTH = 128, HIGH = 6 * TILE_ROWS, CHUNK = 96, GROUP = 48, LINE = 16, SETS = 1024 };

/* Panels of WIDE channels that n of them fill. */
static int64_t wide_panels(int64_t n)
{
    return (n + WIDE - 1) / WIDE;
}

/* How many tiles of sums come next when m > 0 rows are left, and their height: as few as can be, about equally high. */
static int64_t next_heights(int64_t m, int64_t *height)
{
    int64_t n = (m + TILE_ROWS - 1) / TILE_ROWS;
    *height = (m + n - 1) / n;
    return m - n * (*height - 1);
}

/* --- where things lie, in floats --- */

static int64_t row_of(int64_t channels)
{
    return wide_panels(channels) * WIDE + LINE;
}

/* From one position to the next, where each has n. */
static int64_t spread_apart(int64_t n)
{
    return (n + SETS - 1) / SETS * SETS + 5 * LINE;
}

/* How V, M and D of one position lie in a block: channels in strips, one after the other, each of `rows` tiles times
 * `width` channels; more tiles than that behind all strips. */
typedef struct strips {
    int64_t rows, width, step; /* step: from the first `rows` tiles to the next ones */
} strips;

static strips plain_strips(const stk_winograd *w, int64_t channels)
{
    return (strips){w->block, row_of(channels), w->block * row_of(channels)};
}

static strips narrow_strips(int64_t channels, int64_t width)
{
    return (strips){CHUNK, width, (channels + width - 1) / width * width * CHUNK};
}

static strips strips_of_v(const stk_winograd *w)
{
    return w->pass == STK_CONV_GRAD_WEIGHT ? narrow_strips(w->c_in, WIDE) : plain_strips(w, w->c_in);
}

/* M, or D. */
static strips strips_of_m(const stk_winograd *w)
{
    return w->pass == STK_CONV_GRAD_WEIGHT ? narrow_strips(w->c_out, GROUP) : plain_strips(w, w->c_out);
}

static int64_t strips_step(const stk_winograd *w, strips s)
{
    return spread_apart((w->block + s.rows - 1) / s.rows * s.step);
}

static int64_t v_step(const stk_winograd *w)
{
    return strips_step(w, strips_of_v(w));
}

static int64_t m_step(const stk_winograd *w)
{
    return strips_step(w, strips_of_m(w));
}

static int64_t u_step(const stk_winograd *w)
{
    return spread_apart(wide_panels(w->c_out) * WIDE * w->c_in);
}

/* S is [panel][c_out][WIDE]. */
static int64_t s_step(const stk_winograd *w)
{
    return spread_apart(wide_panels(w->c_in) * WIDE * w->c_out);
}

static int64_t shared_floats(const stk_winograd *w)
{
    return stk_winograd_positions(w) * (w->pass == STK_CONV_GRAD_WEIGHT ? s_step(w) : u_step(w));
}

static int64_t block_floats(const stk_winograd *w)
{
    return stk_winograd_positions(w) * (v_step(w) + m_step(w));
}

/* --- tiles of the image --- */

typedef struct tile_at {
    int64_t image, y, x; /* y, x: counted in tiles */
} tile_at;

static tile_at find_tile(const stk_winograd *w, int64_t i)
{
    return (tile_at){i / w->tiles_x / w->tiles_y, i / w->tiles_x % w->tiles_y, i % w->tiles_x};
}

static void next_tile(const stk_winograd *w, tile_at *t)
{
    if (++t->x < w->tiles_x) return;
    t->x = 0;
    if (++t->y < w->tiles_y) return;
    t->y = 0;
    t->image++;
}

/* Bias and ReLU of a tile's outputs. */
INLINE vec finish_output(vec y, const float *bias, bool has_relu)
{
    if (bias) y += *(const vec *)bias;
    return has_relu ? relu_of(y) : y;
}

/* --- products --- */

/* c[height][vecs] (+)= a b over n steps. Element (i, l) of a is at a[i * a_row + l * a_col]; b is a panel. n lines from
 * `ahead` on, of what comes next, are fetched into the second-level cache where FETCHES. */
INLINE void multiply(const int height, const int vecs, int64_t n, const float *a, int64_t a_row, int64_t a_col,
                     const float *b, float *c, int64_t c_row, bool adds, const float *ahead)
{
    const float *rows[2] = {a, height > 3 ? a + 3 * a_row : a};
    vec sum[MOST_ROWS][VECS];
#pragma GCC unroll 8
    for (int i = 0; i < height; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++) {
            sum[i][j] = (vec){0};
            __builtin_prefetch(c + i * c_row + j * LANES, 1);
        }
    for (int64_t l = 0; l < n; l++, b += WIDE) {
        vec of_b[VECS];
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            of_b[j] = *(const vec *)(b + j * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < height; i++) {
            float v = (i < 3 ? rows[0] + i * a_row : rows[1] + (i - 3) * a_row)[0];
#pragma GCC unroll 4
            for (int j = 0; j < vecs; j++)
                sum[i][j] += v * of_b[j];
        }
        if (FETCHES) __builtin_prefetch(ahead, 0, 2);
        ahead += LINE;
        rows[0] += a_col;
        rows[1] += a_col;
        /* Else the compiler keeps a pointer for each row, some of them in memory. */
        __asm__("" : "+r"(rows[0]), "+r"(rows[1]));
    }
#pragma GCC unroll 8
    for (int i = 0; i < height; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++) {
            vec *to = (vec *)(c + i * c_row + j * LANES);
            if (adds) sum[i][j] += *to;
            *to = sum[i][j];
        }
}

/* Rows of a that lie apart, as tiles do, or side by side, as channels do. */
typedef void (*multiply_fn)(int64_t n, const float *a, int64_t a_step, const float *b, float *c, int64_t c_row,
                            bool adds, const float *ahead);

#define TILE(name, height, vecs, a_row, a_col)                                                                         \
    static void name(int64_t n, const float *a, int64_t a_step, const float *b, float *c, int64_t c_row, bool adds,    \
                     const float *ahead)                                                                               \
    {                                                                                                                  \
        multiply(height, vecs, n, a, a_row, a_col, b, c, c_row, adds, ahead);                                          \
    }
#define X(height)                                                                                                      \
    TILE(tiles_##height, height, VECS, a_step, 1)                                                                      \
    TILE(narrow_tiles_##height, height, VECS / 2, a_step, 1)                                                           \
    TILE(channels_##height, height, VECS, 1, a_step)                                                                   \
    TILE(narrow_channels_##height, height, VECS / 2, 1, a_step)
HEIGHTS(X)
#undef X
#undef TILE
/* [whether the panel has no more columns than half a panel] */
#define X(height) [height] = tiles_##height,
#define Y(height) [height] = narrow_tiles_##height,
static const multiply_fn multiply_tiles[2][MOST_ROWS + 1] = {{HEIGHTS(X)}, {HEIGHTS(Y)}};
#undef X
#undef Y
#define X(height) [height] = channels_##height,
#define Y(height) [height] = narrow_channels_##height,
static const multiply_fn multiply_channels[2][MOST_ROWS + 1] = {{HEIGHTS(X)}, {HEIGHTS(Y)}};
#undef X
#undef Y

/* Whether the panel from channel `first` on of n has no more than half of its columns. */
static bool is_narrow(int64_t n, int64_t first)
{
    return n - first <= WIDE / 2;
}

/* M = V U of one position, for n tiles. */
static void multiply_position(const stk_winograd *w, int64_t n, const float *v, const float *u, float *m)
{
    int64_t v_row = row_of(w->c_in), m_row = row_of(w->c_out), n_parts = (w->c_in + DEPTH - 1) / DEPTH;
    int64_t depth = ((w->c_in + n_parts - 1) / n_parts + LINE - 1) / LINE * LINE;
    for (int64_t k = 0; k < w->c_in; k += depth) {
        int64_t n_steps = w->c_in - k < depth ? w->c_in - k : depth;
        for (int64_t begin = 0; begin < n; begin += HIGH) {
            int64_t end = n - begin < HIGH ? n : begin + HIGH;
            for (int64_t p = 0; p < w->c_out; p += WIDE) {
                const float *b = u + p * w->c_in + k * WIDE, *ahead = b + w->c_in * WIDE;
                for (int64_t at = begin, height, left; at < end;)
                    for (left = next_heights(end - at, &height); left > 0;
                         left--, at += height, ahead += n_steps * LINE)
                        multiply_tiles[is_narrow(w->c_out, p)][height](n_steps, v + at * v_row + k, v_row, b,
                                                                       m + at * m_row + p, m_row, k > 0, ahead);
            }
        }
    }
}

/* S += D' V for a strip of D, CHUNK tiles or what is left of them. */
static void multiply_group(const stk_winograd *w, int64_t n, const float *d, int64_t first, const float *v, float *sums,
                           bool adds)
{
    int64_t end = w->c_out - first < GROUP ? w->c_out : first + GROUP;
    for (int64_t p = 0; p < w->c_in; p += WIDE) {
        float *to = sums + p * w->c_out;
        const float *ahead = v + (p + WIDE) * CHUNK;
        for (int64_t at = first, height, left; at < end;)
            for (left = next_heights(end - at, &height); left > 0; left--, at += height, ahead += n * LINE)
                multiply_channels[is_narrow(w->c_in, p)][height](n, d + at - first, GROUP, v + p * CHUNK,
                                                                 to + at * WIDE, WIDE, adds, ahead);
    }
}

static void multiply_share(const stk_winograd *w, int64_t n, const float *own, float *shared, bool adds, int i_part,
                           int n_parts)
{
    int64_t begin, end, n_positions = stk_winograd_positions(w), position = i_part % n_positions;
    const float *v = own + position * v_step(w), *d = own + n_positions * v_step(w) + position * m_step(w);
    float *sums = shared + position * s_step(w);
    stk_cpu_share(w->c_out, GROUP, (int)(i_part / n_positions), (int)(n_parts / n_positions), &begin, &end);
    for (int64_t at = 0; at < n; at += CHUNK, v += strips_of_v(w).step, d += strips_of_m(w).step)
        for (int64_t first = begin; first < end; first += GROUP)
            multiply_group(w, n - at < CHUNK ? n - at : CHUNK, d + first * CHUNK, first, v, sums, adds || at > 0);
}

/* --- each dtype and size of tiles --- */

#define M           2
#define S           float
#define LOAD(p)     (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
#define NAME(x)     x##_f32
#include "device/cpu/conv/conv2d_winograd_tmpl.h"
#undef NAME
#undef M

#define M       4
#define NAME(x) x##_f32_4
#include "device/cpu/conv/conv2d_winograd_tmpl.h"
#undef M
#undef S
#undef LOAD
#undef STORE
#undef NAME

#define M           2
#define S           uint16_t
#define LOAD(p)     load_bf16(p)
#define STORE(p, v) store_bf16(p, v)
#define NAME(x)     x##_bf16
#include "device/cpu/conv/conv2d_winograd_tmpl.h"
#undef LOAD
#undef STORE
#undef NAME

#define LOAD(p)     load_f16(p)
#define STORE(p, v) store_f16(p, v)
#define NAME(x)     x##_f16
#include "device/cpu/conv/conv2d_winograd_tmpl.h"

#define FNS(x)                                                                                                         \
    {                                                                                                                  \
        TILE_ROWS, shared_floats, block_floats, pack_share_##x, run_block_##x, spread_share_##x, multiply_share,       \
            finish_share_##x                                                                                           \
    }

const stk_winograd_table STK_ISA_NAME(stk_winograd) = {
    .fns = {[STK_F32] = FNS(f32), [STK_BF16] = FNS(bf16), [STK_F16] = FNS(f16)},
    .of_4 = FNS(f32_4),
};
