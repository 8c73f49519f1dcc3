/* See conv2d_winograd.h: the 16 products, and the transforms of each dtype.
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
#include "device/cpu/simd/half.h"
#include "device/cpu/simd/half_vec.h"
#include "device/cpu/threads/parallel.h"

enum { POSITIONS = 16, DEPTH = 128, HIGH = 6 * ROWS, CHUNK = 96, GROUP = 48, LINE = 16, SETS = 1024 };

/* --- where things lie, in floats --- */

static int64_t row_of(int64_t channels)
{
    return panels_of(channels) * COLS + LINE;
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
    return w->pass == STK_CONV_GRAD_WEIGHT ? narrow_strips(w->c_in, COLS) : plain_strips(w, w->c_in);
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
    return spread_apart(panels_of(w->c_out) * COLS * w->c_in);
}

/* S is [panel][c_out][COLS]. */
static int64_t s_step(const stk_winograd *w)
{
    return spread_apart(panels_of(w->c_in) * COLS * w->c_out);
}

static int64_t shared_floats(const stk_winograd *w)
{
    return POSITIONS * (w->pass == STK_CONV_GRAD_WEIGHT ? s_step(w) : u_step(w));
}

static int64_t block_floats(const stk_winograd *w)
{
    return POSITIONS * (v_step(w) + m_step(w));
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

/* --- transforms of vectors --- */

/* to = B' d B, where B' is 1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1. */
static inline __attribute__((always_inline)) void transform_input(vec d[4][4])
{
    vec t[4][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[0][j] = d[0][j] - d[2][j];
        t[1][j] = d[1][j] + d[2][j];
        t[2][j] = d[2][j] - d[1][j];
        t[3][j] = d[1][j] - d[3][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        d[i][0] = t[i][0] - t[i][2];
        d[i][1] = t[i][1] + t[i][2];
        d[i][2] = t[i][2] - t[i][1];
        d[i][3] = t[i][1] - t[i][3];
    }
}

/* y = A' m A, where A' is 1 1 1 0, 0 1 -1 -1. */
static inline __attribute__((always_inline)) void transform_output(vec m[4][4], vec y[2][2])
{
    vec t[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[0][j] = m[0][j] + m[1][j] + m[2][j];
        t[1][j] = m[1][j] - m[2][j] - m[3][j];
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        y[i][0] = t[i][0] + t[i][1] + t[i][2];
        y[i][1] = t[i][1] - t[i][2] - t[i][3];
    }
}

static inline __attribute__((always_inline)) void finish_output(vec y[2][2], const float *bias, bool has_relu)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        vec *to = &y[i / 2][i % 2];
        if (bias) *to += *(const vec *)bias;
        if (has_relu) *to = relu_of(*to);
    }
}

/* d = A g A'. */
static inline __attribute__((always_inline)) void transform_grad(vec g[2][2], vec d[4][4])
{
    vec t[4][2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        t[0][j] = g[0][j];
        t[1][j] = g[0][j] + g[1][j];
        t[2][j] = g[0][j] - g[1][j];
        t[3][j] = -g[1][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        d[i][0] = t[i][0];
        d[i][1] = t[i][0] + t[i][1];
        d[i][2] = t[i][0] - t[i][1];
        d[i][3] = -t[i][1];
    }
}

/* u = G g G', where G is 1 0 0, 1/2 1/2 1/2, 1/2 -1/2 1/2, 0 0 1. */
static inline __attribute__((always_inline)) void transform_weight(vec g[3][3], vec u[4][4])
{
    vec t[4][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
        vec outer = 0.5f * (g[0][j] + g[2][j]), inner = 0.5f * g[1][j];
        t[0][j] = g[0][j];
        t[1][j] = outer + inner;
        t[2][j] = outer - inner;
        t[3][j] = g[2][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        vec outer = 0.5f * (t[i][0] + t[i][2]), inner = 0.5f * t[i][1];
        u[i][0] = t[i][0];
        u[i][1] = outer + inner;
        u[i][2] = outer - inner;
        u[i][3] = t[i][2];
    }
}

/* g = G' s G. */
static inline __attribute__((always_inline)) void transform_sums(vec s[4][4], vec g[3][3])
{
    vec t[3][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        vec sum = 0.5f * (s[1][j] + s[2][j]);
        t[0][j] = s[0][j] + sum;
        t[1][j] = 0.5f * (s[1][j] - s[2][j]);
        t[2][j] = s[3][j] + sum;
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        vec sum = 0.5f * (t[i][1] + t[i][2]);
        g[i][0] = t[i][0] + sum;
        g[i][1] = 0.5f * (t[i][1] - t[i][2]);
        g[i][2] = t[i][3] + sum;
    }
}

/* --- products --- */

/* c[height][COLS] (+)= a b over n steps. Element (i, l) of a is at a[i * a_row + l * a_col]; b is a panel. */
static inline __attribute__((always_inline)) void multiply(const int height, int64_t n, const float *a, int64_t a_row,
                                                           int64_t a_col, const float *b, float *c, int64_t c_row,
                                                           bool adds)
{
    vec sum[8][2];
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        sum[i][0] = sum[i][1] = (vec){0};
        __builtin_prefetch(c + i * c_row, 1);
    }
    for (int64_t l = 0; l < n; l++, a += a_col, b += COLS) {
        vec b0 = *(const vec *)b, b1 = *(const vec *)(b + LANES);
#pragma GCC unroll 8
        for (int i = 0; i < height; i++) {
            float v = a[i * a_row];
            sum[i][0] += v * b0;
            sum[i][1] += v * b1;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < height; i++) {
        vec *to = (vec *)(c + i * c_row), *next = (vec *)(c + i * c_row + LANES);
        if (adds) {
            sum[i][0] += *to;
            sum[i][1] += *next;
        }
        *to = sum[i][0];
        *next = sum[i][1];
    }
}

/* Rows of a that lie apart, as tiles do, or side by side, as channels do. */
typedef void (*multiply_fn)(int64_t n, const float *a, int64_t a_step, const float *b, float *c, int64_t c_row,
                            bool adds);

#define X(height)                                                                                                      \
    static void multiply_tiles_##height(int64_t n, const float *a, int64_t a_step, const float *b, float *c,           \
                                        int64_t c_row, bool adds)                                                      \
    {                                                                                                                  \
        multiply(height, n, a, a_step, 1, b, c, c_row, adds);                                                          \
    }                                                                                                                  \
    static void multiply_channels_##height(int64_t n, const float *a, int64_t a_step, const float *b, float *c,        \
                                           int64_t c_row, bool adds)                                                   \
    {                                                                                                                  \
        multiply(height, n, a, 1, a_step, b, c, c_row, adds);                                                          \
    }
STK_CONV_HEIGHTS(X)
#undef X
#define X(height) [height] = multiply_tiles_##height,
static const multiply_fn multiply_tiles[9] = {STK_CONV_HEIGHTS(X)};
#undef X
#define X(height) [height] = multiply_channels_##height,
static const multiply_fn multiply_channels[9] = {STK_CONV_HEIGHTS(X)};
#undef X

/* M = V U of one position, for n tiles. */
static void multiply_position(const stk_winograd *w, int64_t n, const float *v, const float *u, float *m)
{
    int64_t v_row = row_of(w->c_in), m_row = row_of(w->c_out), n_parts = (w->c_in + DEPTH - 1) / DEPTH;
    int64_t depth = ((w->c_in + n_parts - 1) / n_parts + LINE - 1) / LINE * LINE;
    for (int64_t k = 0; k < w->c_in; k += depth) {
        int64_t n_steps = w->c_in - k < depth ? w->c_in - k : depth;
        for (int64_t begin = 0; begin < n; begin += HIGH) {
            int64_t end = n - begin < HIGH ? n : begin + HIGH;
            for (int64_t p = 0; p < panels_of(w->c_out); p++)
                for (int64_t at = begin, height, left; at < end;)
                    for (left = next_tiles(end - at, &height); left > 0; left--, at += height)
                        multiply_tiles[height](n_steps, v + at * v_row + k, v_row, u + (p * w->c_in + k) * COLS,
                                               m + at * m_row + p * COLS, m_row, k > 0);
        }
    }
}

/* S += D' V for a strip of D, CHUNK tiles or what is left of them. */
static void multiply_group(const stk_winograd *w, int64_t n, const float *d, int64_t first, const float *v, float *sums,
                           bool adds)
{
    int64_t end = w->c_out - first < GROUP ? w->c_out : first + GROUP;
    for (int64_t p = 0; p < panels_of(w->c_in); p++) {
        float *to = sums + p * w->c_out * COLS;
        for (int64_t at = first, height, left; at < end;)
            for (left = next_tiles(end - at, &height); left > 0; left--, at += height)
                multiply_channels[height](n, d + at - first, GROUP, v + p * CHUNK * COLS, to + at * COLS, COLS, adds);
    }
}

static void multiply_share(const stk_winograd *w, int64_t n, const float *own, float *shared, bool adds, int i_part,
                           int n_parts)
{
    int64_t begin, end, position = i_part % POSITIONS;
    const float *v = own + position * v_step(w), *d = own + POSITIONS * v_step(w) + position * m_step(w);
    float *sums = shared + position * s_step(w);
    stk_cpu_share(w->c_out, GROUP, i_part / POSITIONS, n_parts / POSITIONS, &begin, &end);
    for (int64_t at = 0; at < n; at += CHUNK, v += strips_of_v(w).step, d += strips_of_m(w).step)
        for (int64_t first = begin; first < end; first += GROUP)
            multiply_group(w, n - at < CHUNK ? n - at : CHUNK, d + first * CHUNK, first, v, sums, adds || at > 0);
}

static void finish_share(const stk_winograd *w, const float *shared, int n_sums, int64_t step, float *grad_weight,
                         int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share(w->c_out, 1, i_part, n_parts, &begin, &end);
    for (int64_t o = begin; o < end; o++)
        for (int64_t c = 0; c < w->c_in; c += LANES) {
            const float *sums = shared + (c / COLS * w->c_out + o) * COLS + c % COLS;
            vec s[4][4], g[3][3];
            for (int i = 0; i < POSITIONS; i++) {
                vec sum = *(const vec *)(sums + i * s_step(w));
                for (int part = 1; part < n_sums; part++)
                    sum += *(const vec *)(sums + part * step + i * s_step(w));
                s[i / 4][i % 4] = sum;
            }
            transform_sums(s, g);
            for (int i = 0; i < 9; i++)
                *(vec *)(grad_weight + (o * 9 + i) * w->c_in + c) = g[i / 3][i % 3];
        }
}

/* --- each dtype --- */

#define S           float
#define LOAD(p)     (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
#define NAME(x)     x##_f32
#include "device/cpu/conv/conv2d_winograd_tmpl.h"
#undef S
#undef LOAD
#undef STORE
#undef NAME

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
        ROWS, shared_floats, block_floats, pack_share_##x, run_block_##x, spread_share_##x, multiply_share,            \
            finish_share                                                                                               \
    }

const stk_winograd_table STK_ISA_NAME(stk_winograd) = {
    .fns = {[STK_F32] = FNS(f32), [STK_BF16] = FNS(bf16), [STK_F16] = FNS(f16)},
};
