/* For pool2d_isa.c, once for each T. A window of four taps, the usual 2 x 2, has loops of its own. */

/* The first maximum wins, and a NaN over all numbers. */
static inline T NAME(greater)(T best, T x)
{
    T larger = x > best ? x : best; /* one selection at a time: both together are not vectorised */
    return x != x ? x : larger;
}

static void NAME(max)(int64_t n_channels, const stk_pool_taps *taps, const void *src, void *dst)
{
    const T *x = src;
    T *y = dst;
    if (taps->n == 4) {
        const T *a = x + taps->offset[0], *b = x + taps->offset[1], *c = x + taps->offset[2], *d = x + taps->offset[3];
#pragma omp simd
        for (int64_t i = 0; i < n_channels; i++)
            y[i] = NAME(greater)(NAME(greater)(a[i], b[i]), NAME(greater)(c[i], d[i]));
        return;
    }
    if (taps->n == 0)
        for (int64_t i = 0; i < n_channels; i++)
            y[i] = -(T)INFINITY;
    for (int tap = 0; tap < taps->n; tap++) {
        const T *a = x + taps->offset[tap], *best = tap ? y : a;
#pragma omp simd
        for (int64_t i = 0; i < n_channels; i++)
            y[i] = NAME(greater)(best[i], a[i]);
    }
}

static void NAME(avg)(int64_t n_channels, const stk_pool_taps *taps, const void *src, void *dst)
{
    const T *x = src;
    T *y = dst, factor = taps->n ? 1 / (T)taps->n : 0;
    for (int64_t i = 0; i < n_channels; i++)
        y[i] = 0;
    for (int tap = 0; tap < taps->n; tap++) {
        const T *a = x + taps->offset[tap];
#pragma omp simd
        for (int64_t i = 0; i < n_channels; i++)
            y[i] += a[i];
    }
#pragma omp simd
    for (int64_t i = 0; i < n_channels; i++)
        y[i] *= factor;
}

/* True where x is the maximum y: equal, or both NaN. */
static inline int NAME(is_max)(T x, T y)
{
    return (x == y) | ((x != x) & (y != y));
}

static void NAME(max_grad)(int64_t n_channels, const stk_pool_taps *taps, const void *src_x, const void *src_y,
                           const void *src_dy, void *dst, bool alone)
{
    enum { TILE = 64 };
    const T *y = src_y, *dy = src_dy;
    for (int64_t at = 0; at < n_channels; at += TILE, y += TILE, dy += TILE) {
        int n = n_channels - at < TILE ? (int)(n_channels - at) : TILE;
        MASK left[TILE]; /* 1 where no maximum has been found yet */
        for (int i = 0; i < n; i++)
            left[i] = 1;
        for (int tap = 0; tap < taps->n; tap++) {
            const T *x = (const T *)src_x + taps->offset[tap] + at;
            T *dx = (T *)dst + taps->offset[tap] + at;
            if (alone) {
#pragma omp simd
                for (int i = 0; i < n; i++) {
                    MASK hit = left[i] & NAME(is_max)(x[i], y[i]);
                    T g = dy[i];
                    dx[i] = hit ? g : 0;
                    left[i] ^= hit;
                }
            } else {
#pragma omp simd
                for (int i = 0; i < n; i++) {
                    MASK hit = left[i] & NAME(is_max)(x[i], y[i]);
                    T g = dy[i];
                    dx[i] += hit ? g : 0;
                    left[i] ^= hit;
                }
            }
        }
    }
}

static void NAME(avg_grad)(int64_t n_channels, const stk_pool_taps *taps, const void *src, void *dst, bool alone)
{
    const T *dy = src;
    T factor = taps->n ? 1 / (T)taps->n : 0;
    for (int tap = 0; tap < taps->n; tap++) {
        T *dx = (T *)dst + taps->offset[tap];
        if (alone) {
#pragma omp simd
            for (int64_t i = 0; i < n_channels; i++)
                dx[i] = dy[i] * factor;
        } else {
#pragma omp simd
            for (int64_t i = 0; i < n_channels; i++)
                dx[i] += dy[i] * factor;
        }
    }
}
