/* For conv2d_winograd_isa.c, once for each S that inputs, outputs and weights are stored in: LOAD and STORE turn a
 * vector of them into f32 and back. */

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
        const S *image = x + t.image * w->in_h * w->in_w * w->c_in, *from[POSITIONS];
        float *to = v + row / s.rows * s.step + row % s.rows * s.width;
        int64_t y0 = 2 * t.y - w->pad_y, x0 = 2 * t.x - w->pad_x;
        for (int j = 0; j < POSITIONS; j++)
            from[j] = NAME(pixel)(image, y0 + j / 4, x0 + j % 4, w->in_h, w->in_w, w->c_in);
        for (int64_t first = 0; first < w->c_in; first += s.width, to += s.rows * s.width)
            for (int64_t c = first; c < w->c_in && c < first + s.width; c += LANES) {
                vec d[4][4];
#pragma GCC unroll 16
                for (int j = 0; j < POSITIONS; j++)
                    d[j / 4][j % 4] = LOAD(from[j] + c);
                transform_input(d);
#pragma GCC unroll 16
                for (int j = 0; j < POSITIONS; j++)
                    *(vec *)(to + j * step + c - first) = d[j / 4][j % 4];
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
        const S *image = grad_dst + t.image * w->out_h * w->out_w * w->c_out, *from[4];
        float *to = d + row / s.rows * s.step + row % s.rows * s.width;
        for (int j = 0; j < 4; j++)
            from[j] = NAME(pixel)(image, 2 * t.y + j / 2, 2 * t.x + j % 2, w->out_h, w->out_w, w->c_out);
        for (int64_t first = 0; first < w->c_out; first += s.width, to += s.rows * s.width)
            for (int64_t c = first; c < w->c_out && c < first + s.width; c += LANES) {
                vec g[2][2], out[4][4];
                for (int j = 0; j < 4; j++)
                    g[j / 2][j % 2] = LOAD(from[j] + c);
                transform_grad(g, out);
#pragma GCC unroll 16
                for (int j = 0; j < POSITIONS; j++)
                    *(vec *)(to + j * step + c - first) = out[j / 4][j % 4];
            }
    }
}

static void NAME(gather_output)(const stk_winograd *w, const float *m, const float *bias, int64_t begin, int64_t end,
                                S *y)
{
    int64_t step = m_step(w);
    tile_at t = find_tile(w, begin);
    for (int64_t i = begin; i < end; i++, next_tile(w, &t), m += row_of(w->c_out)) {
        S *to = y + ((t.image * w->out_h + 2 * t.y) * w->out_w + 2 * t.x) * w->c_out;
        int64_t row = w->out_w * w->c_out;
        bool has_right = 2 * t.x + 1 < w->out_w, has_below = 2 * t.y + 1 < w->out_h;
        for (int64_t c = 0; c < w->c_out; c += LANES) {
            vec in[4][4], out[2][2];
#pragma GCC unroll 16
            for (int j = 0; j < POSITIONS; j++)
                in[j / 4][j % 4] = *(const vec *)(m + j * step + c);
            transform_output(in, out);
            finish_output(out, bias ? bias + c : NULL, w->has_relu);
            STORE(to + c, out[0][0]);
            if (has_right) STORE(to + w->c_out + c, out[0][1]);
            if (has_below) STORE(to + row + c, out[1][0]);
            if (has_right && has_below) STORE(to + row + w->c_out + c, out[1][1]);
        }
    }
}

/* --- weights --- */

/* U of LANES channels side by side in memory, from `weight` on, whose taps are `tap` apart. */
static inline __attribute__((always_inline)) void NAME(weight_at)(const S *weight, int64_t tap, vec u[4][4])
{
    vec g[3][3];
    for (int i = 0; i < 9; i++)
        g[i / 3][i % 3] = LOAD(weight + i * tap);
    transform_weight(g, u);
}

/* weight [O,3,3,C]: input channels lie side by side, U wants output channels so. A group of LANES input channels. */
static void NAME(pack_forward)(const stk_winograd *w, const S *weight, int64_t panel, int64_t c, float *to)
{
    float turned[POSITIONS][COLS * LANES] __attribute__((aligned(64)));
    vec u[4][4];
    for (int j = 0; j < COLS; j++) {
        int64_t o = panel * COLS + j;
        if (o < w->c_out)
            NAME(weight_at)(weight + o * 9 * w->c_in + c, w->c_in, u);
        else
            memset(u, 0, sizeof(u));
        for (int i = 0; i < POSITIONS; i++)
            *(vec *)(turned[i] + j * LANES) = u[i / 4][i % 4];
    }
    to += (panel * w->c_in + c) * COLS;
    for (int i = 0; i < POSITIONS; i++, to += u_step(w))
        for (int l = 0; l < LANES; l += 4)
            for (int j = 0; j < COLS; j += 4)
                transpose4(turned[i] + j * LANES + l, LANES, to + l * COLS + j, COLS);
}

/* weight [c_in,3,3,c_out], turned by half a turn. LANES input channels from k on. */
static void NAME(pack_data)(const stk_winograd *w, const S *weight, int64_t panel, int64_t k, float *to)
{
    vec u[4][4];
    to += (panel * w->c_in + k) * COLS;
    for (int64_t l = k; l < k + LANES; l++, to += COLS)
        for (int j = 0; j < COLS; j += LANES) {
            int64_t c = panel * COLS + j;
            if (c < w->c_out)
                NAME(weight_at)(weight + (l * 9 + 8) * w->c_out + c, -w->c_out, u);
            else
                memset(u, 0, sizeof(u));
            for (int i = 0; i < POSITIONS; i++)
                *(vec *)(to + i * u_step(w) + j) = u[i / 4][i % 4];
        }
}

static void NAME(pack_share)(const stk_winograd *w, const void *weight, float *shared, int i_part, int n_parts)
{
    int64_t begin, end, n = w->c_in / LANES;
    stk_cpu_share(panels_of(w->c_out) * n, 1, i_part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        if (w->pass == STK_CONV_FORWARD)
            NAME(pack_forward)(w, weight, i / n, i % n * LANES, shared);
        else
            NAME(pack_data)(w, weight, i / n, i % n * LANES, shared);
}

/* --- all --- */

static void NAME(run_block)(const stk_winograd *w, const void *x, const float *shared, const float *bias, void *y,
                            int64_t begin, int64_t end, float *own)
{
    float *v = own, *m = own + POSITIONS * v_step(w);
    NAME(spread_input)(w, x, begin, end, 0, v);
    for (int i = 0; i < POSITIONS; i++)
        multiply_position(w, end - begin, v + i * v_step(w), shared + i * u_step(w), m + i * m_step(w));
    NAME(gather_output)(w, m, bias, begin, end, y);
}

static void NAME(spread_share)(const stk_winograd *w, const void *x, const void *grad_dst, int64_t begin, int64_t end,
                               float *own, int i_part, int n_parts)
{
    int64_t first, last;
    stk_cpu_share(end - begin, 1, i_part, n_parts, &first, &last);
    NAME(spread_input)(w, x, begin + first, begin + last, first, own);
    NAME(spread_grad)(w, grad_dst, begin + first, begin + last, first, own + POSITIONS * v_step(w));
}
