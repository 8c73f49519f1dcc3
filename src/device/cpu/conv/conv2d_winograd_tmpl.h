/* For conv2d_winograd_isa.c, once for each size of tiles, M by M outputs, and each S that inputs, outputs and weights
 * are stored in: LOAD and STORE turn a vector of them into f32 and back. */

#define N (M + 2)

/* Pixel (y, x) of an image, or zeros outside it. */
static inline const S *NAME(pixel)(const S *image, int64_t y, int64_t x, int64_t h, int64_t w, int64_t channels)
{
    bool inside = (uint64_t)y < (uint64_t)h && (uint64_t)x < (uint64_t)w;
    return inside ? image + (y * w + x) * channels : (const S *)(const void *)stk_winograd_zeros;
}

/* V of tiles [begin, end), of which the first is number `row` of the block. */
static void NAME(spread_input)(const stk_winograd *w, const S *x, int64_t begin, int64_t end, int64_t row, float *v)
{
    strips s = strips_of_v(w);
    int64_t step = v_step(w);
    tile_at t = find_tile(w, begin);
    for (int64_t i = begin; i < end; i++, next_tile(w, &t), row++) {
        const S *image = x + t.image * w->in_h * w->in_w * w->c_in, *from[N][N];
        float *to = v + row / s.rows * s.step + row % s.rows * s.width;
        int64_t y0 = M * t.y - w->pad_y, x0 = M * t.x - w->pad_x;
        for (int j = 0; j < N * N; j++)
            from[j / N][j % N] = NAME(pixel)(image, y0 + j / N, x0 + j % N, w->in_h, w->in_w, w->c_in);
        for (int64_t first = 0; first < w->c_in; first += s.width, to += s.rows * s.width)
            for (int64_t c = first; c < w->c_in && c < first + s.width; c += LANES) {
                vec d[N][MOST_SIDE], column[MOST_SIDE];
#pragma GCC unroll 6
                for (int j = 0; j < N; j++) {
#pragma GCC unroll 6
                    for (int k = 0; k < N; k++)
                        column[k] = LOAD(from[k][j] + c);
                    transform_input(M, column);
#pragma GCC unroll 6
                    for (int k = 0; k < N; k++)
                        d[k][j] = column[k];
                }
#pragma GCC unroll 6
                for (int k = 0; k < N; k++) {
                    transform_input(M, d[k]);
#pragma GCC unroll 6
                    for (int j = 0; j < N; j++)
                        *(vec *)(to + (k * N + j) * step + c - first) = d[k][j];
                }
            }
    }
}

/* D likewise. */
static void NAME(spread_grad)(const stk_winograd *w, const S *grad_dst, int64_t begin, int64_t end, int64_t row,
                              float *d)
{
    strips s = strips_of_m(w);
    int64_t step = m_step(w);
    tile_at t = find_tile(w, begin);
    for (int64_t i = begin; i < end; i++, next_tile(w, &t), row++) {
        const S *image = grad_dst + t.image * w->out_h * w->out_w * w->c_out, *from[M][M];
        float *to = d + row / s.rows * s.step + row % s.rows * s.width;
        for (int j = 0; j < M * M; j++)
            from[j / M][j % M] = NAME(pixel)(image, M * t.y + j / M, M * t.x + j % M, w->out_h, w->out_w, w->c_out);
        for (int64_t first = 0; first < w->c_out; first += s.width, to += s.rows * s.width)
            for (int64_t c = first; c < w->c_out && c < first + s.width; c += LANES) {
                vec g[N][MOST_OUTPUTS], column[MOST_OUTPUTS], out[MOST_SIDE];
#pragma GCC unroll 4
                for (int j = 0; j < M; j++) {
#pragma GCC unroll 4
                    for (int k = 0; k < M; k++)
                        column[k] = LOAD(from[k][j] + c);
                    transform_grad(M, column, out);
#pragma GCC unroll 6
                    for (int k = 0; k < N; k++)
                        g[k][j] = out[k];
                }
#pragma GCC unroll 6
                for (int k = 0; k < N; k++) {
                    transform_grad(M, g[k], out);
#pragma GCC unroll 6
                    for (int j = 0; j < N; j++)
                        *(vec *)(to + (k * N + j) * step + c - first) = out[j];
                }
            }
    }
}

static void NAME(gather_output)(const stk_winograd *w, const float *m, const float *bias, int64_t begin, int64_t end,
                                S *y)
{
    int64_t step = m_step(w), row = w->out_w * w->c_out;
    tile_at t = find_tile(w, begin);
    for (int64_t i = begin; i < end; i++, next_tile(w, &t), m += row_of(w->c_out)) {
        S *to = y + ((t.image * w->out_h + M * t.y) * w->out_w + M * t.x) * w->c_out;
        int64_t height = w->out_h - M * t.y, width = w->out_w - M * t.x;
        for (int64_t c = 0; c < w->c_out; c += LANES) {
            vec in[M][MOST_SIDE], column[MOST_SIDE], out[MOST_OUTPUTS];
#pragma GCC unroll 6
            for (int j = 0; j < N; j++) {
#pragma GCC unroll 6
                for (int k = 0; k < N; k++)
                    column[k] = *(const vec *)(m + (k * N + j) * step + c);
                transform_output(M, column, out);
#pragma GCC unroll 4
                for (int k = 0; k < M; k++)
                    in[k][j] = out[k];
            }
#pragma GCC unroll 4
            for (int k = 0; k < M; k++) {
                if (k >= height) break;
                transform_output(M, in[k], out);
#pragma GCC unroll 4
                for (int j = 0; j < M; j++)
                    if (j < width)
                        STORE(to + k * row + j * w->c_out + c,
                              finish_output(out[j], bias ? bias + c : NULL, w->has_relu));
            }
        }
    }
}

/* --- weights --- */

/* U of LANES channels side by side in memory, from `weight` on, whose taps are `tap` apart. */
static inline __attribute__((always_inline)) void NAME(weight_at)(const S *weight, int64_t tap, vec u[N][MOST_SIDE])
{
    vec g[N][3], column[3], out[MOST_SIDE];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
        for (int k = 0; k < 3; k++)
            column[k] = LOAD(weight + (3 * k + j) * tap);
        transform_weight(M, column, out);
#pragma GCC unroll 6
        for (int k = 0; k < N; k++)
            g[k][j] = out[k];
    }
#pragma GCC unroll 6
    for (int k = 0; k < N; k++)
        transform_weight(M, g[k], u[k]);
}

/* weight [O,3,3,C]: input channels lie side by side, U wants output channels so. A group of LANES input channels. */
static void NAME(pack_forward)(const stk_winograd *w, const S *weight, int64_t panel, int64_t c, float *to)
{
    float turned[N * N][LANES * LANES] __attribute__((aligned(64)));
    vec u[N][MOST_SIDE];
    to += panel * WIDE * w->c_in + c * WIDE;
    for (int first = 0; first < WIDE; first += LANES) {
        for (int j = 0; j < LANES; j++) {
            int64_t o = panel * WIDE + first + j;
            if (o < w->c_out)
                NAME(weight_at)(weight + o * 9 * w->c_in + c, w->c_in, u);
            else
                memset(u, 0, sizeof(u));
            for (int i = 0; i < N * N; i++)
                *(vec *)(turned[i] + j * LANES) = u[i / N][i % N];
        }
        for (int i = 0; i < N * N; i++)
            for (int l = 0; l < LANES; l += 4)
                for (int j = 0; j < LANES; j += 4)
                    transpose4(turned[i] + j * LANES + l, LANES, to + i * u_step(w) + l * WIDE + first + j, WIDE);
    }
}

/* weight [c_in,3,3,c_out], turned by half a turn. LANES input channels from k on. */
static void NAME(pack_data)(const stk_winograd *w, const S *weight, int64_t panel, int64_t k, float *to)
{
    vec u[N][MOST_SIDE];
    to += panel * WIDE * w->c_in + k * WIDE;
    for (int64_t l = k; l < k + LANES; l++, to += WIDE)
        for (int j = 0; j < WIDE; j += LANES) {
            int64_t c = panel * WIDE + j;
            if (c < w->c_out)
                NAME(weight_at)(weight + (l * 9 + 8) * w->c_out + c, -w->c_out, u);
            else
                memset(u, 0, sizeof(u));
            for (int i = 0; i < N * N; i++)
                *(vec *)(to + i * u_step(w) + j) = u[i / N][i % N];
        }
}

static void NAME(pack_share)(const stk_winograd *w, const void *weight, float *shared, int i_part, int n_parts)
{
    int64_t begin, end, n = w->c_in / LANES;
    stk_cpu_share(wide_panels(w->c_out) * n, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        if (w->pass == STK_CONV_FORWARD)
            NAME(pack_forward)(w, weight, i / n, i % n * LANES, shared);
        else
            NAME(pack_data)(w, weight, i / n, i % n * LANES, shared);
}

static void NAME(finish_share)(const stk_winograd *w, const float *shared, int n_sums, int64_t step, float *grad_weight,
                               int i_part, int n_parts)
{
    int64_t begin, end;
    stk_cpu_share(w->c_out, 1, i_part, n_parts, &begin, &end);
    for (int64_t o = begin; o < end; o++)
        for (int64_t c = 0; c < w->c_in; c += LANES) {
            const float *sums = shared + (c / WIDE * w->c_out + o) * WIDE + c % WIDE;
            vec s[3][MOST_SIDE], column[MOST_SIDE], g[3];
            for (int j = 0; j < N; j++) {
                for (int k = 0; k < N; k++) {
                    const float *from = sums + (k * N + j) * s_step(w);
                    column[k] = *(const vec *)from;
                    for (int part = 1; part < n_sums; part++)
                        column[k] += *(const vec *)(from + part * step);
                }
                transform_sums(M, column, g);
                for (int k = 0; k < 3; k++)
                    s[k][j] = g[k];
            }
            for (int k = 0; k < 3; k++) {
                transform_sums(M, s[k], g);
                for (int j = 0; j < 3; j++)
                    *(vec *)(grad_weight + (o * 9 + 3 * k + j) * w->c_in + c) = g[j];
            }
        }
}

/* --- all --- */

static void NAME(run_block)(const stk_winograd *w, const void *x, const float *shared, const float *bias, void *y,
                            int64_t begin, int64_t end, float *own)
{
    float *v = own, *m = own + N * N * v_step(w);
    NAME(spread_input)(w, x, begin, end, 0, v);
    for (int i = 0; i < N * N; i++)
        multiply_position(w, end - begin, v + i * v_step(w), shared + i * u_step(w), m + i * m_step(w));
    NAME(gather_output)(w, m, bias, begin, end, y);
}

static void NAME(spread_share)(const stk_winograd *w, const void *x, const void *grad_dst, int64_t begin, int64_t end,
                               float *own, int i_part, int n_parts)
{
    int64_t first, last;
    stk_cpu_share(end - begin, 1, i_part, n_parts, &first, &last);
    NAME(spread_input)(w, x, begin + first, begin + last, first, own);
    NAME(spread_grad)(w, grad_dst, begin + first, begin + last, first, own + N * N * v_step(w));
}

#undef N
