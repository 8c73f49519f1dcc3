/* For pool2d_isa.c, once for each S that numbers are stored in: LOAD makes a vector of LANES of them f32, STORE puts
 * one back that needs no rounding. Max pooling where each window lies inside the image and no two overlap: a row of
 * windows at a time, in registers. Windows of 2 x 2 have loops of their own.
 */

/* n channels, or a whole vector. Lanes beyond them are 0. */
static inline __attribute__((always_inline)) vec NAME(load_some)(const S *from, int64_t n, const bool is_whole)
{
    return is_whole ? LOAD(from) : LOAD_PART(from, n);
}

static inline __attribute__((always_inline)) void NAME(store_some)(S *to, vec x, int64_t n, const bool is_whole)
{
    if (is_whole)
        STORE(to, x);
    else
        STORE_PART(to, x, n);
}

static inline __attribute__((always_inline)) void NAME(max_window)(const int h, const int w, const stk_pool_row *r,
                                                                   const S *x, S *y, int64_t n, const bool is_whole)
{
    vec best = NAME(load_some)(x, n, is_whole);
    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++) {
            vec v = NAME(load_some)(x + i * r->row + j * r->c, n, is_whole);
            vec_bits is_larger = wins(v, best);
            best = vec_of((is_larger & bits_in(v)) | (~is_larger & bits_in(best)));
        }
    NAME(store_some)(y, best, n, is_whole);
}

static inline __attribute__((always_inline)) void NAME(max_grad_window)(const int h, const int w, const stk_pool_row *r,
                                                                        const S *x, const S *y, const S *dy, S *dx,
                                                                        int64_t n, const bool is_whole)
{
    vec most = NAME(load_some)(y, n, is_whole);
    vec_bits d = bits_in(NAME(load_some)(dy, n, is_whole)), is_nan = (vec_bits)(most != most), left = ~(vec_bits){0};
    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++) {
            int64_t at = i * r->row + j * r->c;
            vec v = NAME(load_some)(x + at, n, is_whole);
            vec_bits hit = left & ((vec_bits)(v == most) | ((vec_bits)(v != v) & is_nan));
            NAME(store_some)(dx + at, vec_of(hit & d), n, is_whole);
            left &= ~hit;
        }
}

static inline __attribute__((always_inline)) void NAME(max_windows)(const int h, const int w, const stk_pool_row *r,
                                                                    const S *x, S *y)
{
    for (int64_t i = 0; i < r->n; i++, x += r->step, y += r->c) {
        int64_t c = 0;
        for (; c + LANES <= r->c; c += LANES)
            NAME(max_window)(h, w, r, x + c, y + c, LANES, true);
        if (c < r->c) NAME(max_window)(h, w, r, x + c, y + c, r->c - c, false);
    }
}

static inline __attribute__((always_inline)) void
NAME(max_grad_windows)(const int h, const int w, const stk_pool_row *r, const S *x, const S *y, const S *dy, S *dx)
{
    for (int64_t i = 0; i < r->n; i++, x += r->step, dx += r->step, y += r->c, dy += r->c) {
        int64_t c = 0;
        for (; c + LANES <= r->c; c += LANES)
            NAME(max_grad_window)(h, w, r, x + c, y + c, dy + c, dx + c, LANES, true);
        if (c < r->c) NAME(max_grad_window)(h, w, r, x + c, y + c, dy + c, dx + c, r->c - c, false);
    }
}

static void NAME(max_row)(const stk_pool_row *r, const void *x, void *y)
{
    if (r->h == 2 && r->w == 2)
        NAME(max_windows)(2, 2, r, x, y);
    else
        NAME(max_windows)(r->h, r->w, r, x, y);
}

static void NAME(max_grad_row)(const stk_pool_row *r, const void *x, const void *y, const void *dy, void *dx)
{
    if (r->h == 2 && r->w == 2)
        NAME(max_grad_windows)(2, 2, r, x, y, dy, dx);
    else
        NAME(max_grad_windows)(r->h, r->w, r, x, y, dy, dx);
}
