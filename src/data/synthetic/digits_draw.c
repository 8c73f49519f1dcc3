/* See data/synthetic/digits_draw.h.
 *
 *   template -> each point moved a little -> smooth curve -> scale, shear, rotation -> elastic field, shift
 *            -> pen of varying width (distance to the line) -> blur -> ink, ground, noise -> u8
 *
 * The pen works on distances, so that edges are smooth at any size without drawing larger first.
 */
#include "data/synthetic/digits_draw.h"

#include <math.h>
#include <string.h>

#include "data/synthetic/digits_strokes.h"

enum {
    STEPS = 6, /* pieces of line between two points of a template */
    GRID = 4,  /* of the elastic field, each way */
    MAX_DOTS = STK_GLYPH_MAX_POINTS * STEPS + 1
};

typedef struct dot {
    float x, y, radius; /* pixels */
    int starts;         /* a stroke begins here: no line leads to it */
} dot;

/* One picture's hand. Lengths are in pixels. */
typedef struct hand {
    float a, b, c, d;       /* box of 0..1 around its centre -> pixels */
    float shift_x, shift_y; /* where the centre lies */
    float radius, swell, swell_phase;
    float jitter; /* of the template's points, in its box of 0..1 */
    float field[GRID + 3][GRID + 3][2];
} hand;

static float between(stk_rng *rng, float low, float high)
{
    return low + (high - low) * stk_rng_uniform(rng);
}

static hand make_hand(stk_rng *rng, int size)
{
    hand h;
    float unit = (float)size / 28.0f; /* the figures below are for pictures of 28 x 28 */
    float angle = 0.15f * stk_rng_normal(rng), shear = 0.08f + 0.20f * stk_rng_normal(rng);
    float width = between(rng, 12.0f, 19.0f) * unit, height = between(rng, 16.0f, 22.0f) * unit;
    float cosine = cosf(angle), sine = sinf(angle);
    /* rotation * shear * scale; y points down, so that a positive shear leans to the right. */
    h.a = cosine * width;
    h.b = (-sine - cosine * shear) * height;
    h.c = sine * width;
    h.d = (cosine - sine * shear) * height;
    h.shift_x = 0.5f * (float)size + between(rng, -1.8f, 1.8f) * unit;
    h.shift_y = 0.5f * (float)size + between(rng, -1.8f, 1.8f) * unit;
    h.radius = between(rng, 0.75f, 1.75f) * unit;
    h.swell = between(rng, 0.0f, 0.3f);
    h.swell_phase = between(rng, 0.0f, 6.2831853f);
    h.jitter = between(rng, 0.01f, 0.045f);
    float amplitude = between(rng, 0.4f, 1.5f) * unit;
    for (int i = 0; i < GRID + 3; i++)
        for (int j = 0; j < GRID + 3; j++)
            for (int k = 0; k < 2; k++)
                h.field[i][j][k] = amplitude * stk_rng_normal(rng);
    return h;
}

/* Weights of the uniform cubic B-spline at t in [0,1]: smooth, and never beyond the given values. */
static void weigh_spline(float t, float weight[4])
{
    float s = 1.0f - t;
    weight[0] = s * s * s / 6.0f;
    weight[1] = (3.0f * t * t * t - 6.0f * t * t + 4.0f) / 6.0f;
    weight[2] = (3.0f * s * s * s - 6.0f * s * s + 4.0f) / 6.0f;
    weight[3] = t * t * t / 6.0f;
}

/* Moves (*x, *y) by the elastic field. */
static void displace(const hand *h, int size, float *x, float *y)
{
    float u = fminf(fmaxf(*x / (float)size, 0.0f), 0.999f) * GRID;
    float v = fminf(fmaxf(*y / (float)size, 0.0f), 0.999f) * GRID;
    int i = (int)v, j = (int)u;
    float wu[4], wv[4];
    weigh_spline(u - (float)j, wu);
    weigh_spline(v - (float)i, wv);
    for (int p = 0; p < 4; p++)
        for (int q = 0; q < 4; q++) {
            *x += wv[p] * wu[q] * h->field[i + p][j + q][0];
            *y += wv[p] * wu[q] * h->field[i + p][j + q][1];
        }
}

/* Between p[1] and p[2], t in [0,1] (Catmull-Rom). */
static float curve(const float p[4], float t)
{
    return p[1] +
           0.5f * t *
               (p[2] - p[0] + t * (2 * p[0] - 5 * p[1] + 4 * p[2] - p[3] + t * (3 * (p[1] - p[2]) + p[3] - p[0])));
}

/* Adds the place (x, y) of the template's box as a dot in pixels. */
static void add_dot(const hand *h, int size, float x, float y, int starts, dot *dots, int *n_dots)
{
    float px = h->a * x + h->b * y + h->shift_x, py = h->c * x + h->d * y + h->shift_y;
    displace(h, size, &px, &py);
    float radius = h->radius * (1.0f + h->swell * sinf(h->swell_phase + 0.12f * (float)*n_dots));
    dots[(*n_dots)++] = (dot){px, py, radius, starts};
}

/* The glyph's strokes as dots to be joined by lines. Returns how many. */
static int trace_strokes(const stk_glyph *glyph, const hand *h, stk_rng *rng, int size, dot *dots)
{
    float x[STK_GLYPH_MAX_POINTS], y[STK_GLYPH_MAX_POINTS];
    int n_dots = 0;
    for (int i = 0; i < glyph->n_points; i++) {
        const stk_glyph_point *p = &glyph->point[i];
        /* A corner's two points stay one. */
        int corner = i > 0 && p->x == p[-1].x && p->y == p[-1].y;
        x[i] = corner ? x[i - 1] : (float)p->x / 100.0f - 0.5f + h->jitter * stk_rng_normal(rng);
        y[i] = corner ? y[i - 1] : (float)p->y / 100.0f - 0.5f + h->jitter * stk_rng_normal(rng);
    }
    for (int first = 0, end; first < glyph->n_points; first = end + 1) {
        for (end = first; glyph->point[end].x != STK_PEN_UP;)
            end++;
        add_dot(h, size, x[first], y[first], 1, dots, &n_dots);
        for (int i = first; i + 1 < end; i++) {
            int before = i > first ? i - 1 : i, after = i + 2 < end ? i + 2 : i + 1;
            float px[4] = {x[before], x[i], x[i + 1], x[after]}, py[4] = {y[before], y[i], y[i + 1], y[after]};
            if (px[1] == px[2] && py[1] == py[2]) continue;
            for (int s = 1; s <= STEPS; s++) {
                float t = (float)s / STEPS;
                add_dot(h, size, curve(px, t), curve(py, t), 0, dots, &n_dots);
            }
        }
    }
    return n_dots;
}

/* Raises cover [size,size] to the share of each pixel under a pen drawn from one dot to the next. */
static void draw_line(const dot *from, const dot *to, int size, float *cover)
{
    float reach = fmaxf(from->radius, to->radius) + 1.0f;
    int x0 = (int)floorf(fminf(from->x, to->x) - reach), x1 = (int)ceilf(fmaxf(from->x, to->x) + reach);
    int y0 = (int)floorf(fminf(from->y, to->y) - reach), y1 = (int)ceilf(fmaxf(from->y, to->y) + reach);
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 > size - 1) x1 = size - 1;
    if (y1 > size - 1) y1 = size - 1;
    float dx = to->x - from->x, dy = to->y - from->y;
    float per_length2 = 1.0f / (dx * dx + dy * dy + 1e-12f);
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            float rx = (float)x + 0.5f - from->x, ry = (float)y + 0.5f - from->y;
            float t = fminf(fmaxf((rx * dx + ry * dy) * per_length2, 0.0f), 1.0f);
            float ex = rx - t * dx, ey = ry - t * dy;
            float radius = from->radius + t * (to->radius - from->radius);
            float share = fminf(radius + 0.5f - sqrtf(ex * ex + ey * ey), 1.0f);
            float *pixel = &cover[y * size + x];
            if (share > *pixel) *pixel = share;
        }
}

/* Three-tap blur both ways with weight `side` for each neighbour; the edge is dark. */
static void blur(float *cover, float *scratch, float side, int size)
{
    float middle = 1.0f - 2.0f * side;
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            const float *p = &cover[y * size + x];
            scratch[y * size + x] = middle * *p + side * ((x > 0 ? p[-1] : 0) + (x + 1 < size ? p[1] : 0));
        }
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            const float *p = &scratch[y * size + x];
            cover[y * size + x] = middle * *p + side * ((y > 0 ? p[-size] : 0) + (y + 1 < size ? p[size] : 0));
        }
}

void stk_digit_draw(int digit, stk_rng *rng, int size, uint8_t *dst, float *scratch)
{
    dot dots[MAX_DOTS];
    int n_variants, n_pixels = size * size;
    const stk_glyph *glyphs = stk_glyphs_of(digit, &n_variants);
    const stk_glyph *glyph = &glyphs[stk_rng_below(rng, (uint32_t)n_variants)];
    hand h = make_hand(rng, size);
    float ink = between(rng, 140.0f, 255.0f), ground = between(rng, 0.0f, 30.0f);
    float noise = between(rng, 0.0f, 14.0f), side = between(rng, 0.0f, 0.22f);
    int n_dots = trace_strokes(glyph, &h, rng, size, dots);

    memset(scratch, 0, (size_t)n_pixels * sizeof(*scratch));
    for (int i = 1; i < n_dots; i++)
        if (!dots[i].starts) draw_line(&dots[i - 1], &dots[i], size, scratch);
    blur(scratch, scratch + n_pixels, side, size);
    for (int i = 0; i < n_pixels; i++) {
        /* The sum of four even bytes is near a bell curve with deviation 147.8, and cheap. */
        uint32_t r = stk_rng_u32(rng);
        float bell = (float)((r & 255) + (r >> 8 & 255) + (r >> 16 & 255) + (r >> 24)) - 510.0f;
        float value = ground + (ink - ground) * scratch[i] + noise / 147.8f * bell;
        dst[i] = (uint8_t)(fminf(fmaxf(value, 0.0f), 255.0f) + 0.5f);
    }
}
