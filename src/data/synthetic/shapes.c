/* Pictures of one to three shapes on a coloured ground, with noise, and masks: 0 ground, 1 disc, 2 box, 3 triangle. A
 * shape that is drawn later lies above. shapes/train/images/00000.png belongs to shapes/train/masks/00000.png.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "data/codec/image.h"
#include "data/synthetic/synthetic.h"

enum { SIDE = 48, MOST_SHAPES = 3, N_KINDS = 3 };

static float draw_between(stk_rng *rng, float low, float high)
{
    return low + (high - low) * stk_rng_uniform(rng);
}

/* Whether the point (x, y), in units of the shape's radius and turned to it, is inside. */
static bool is_inside(int kind, float x, float y)
{
    if (kind == 1) return x * x + y * y <= 1;
    if (kind == 2) return fabsf(x) <= 0.8f && fabsf(y) <= 0.8f;
    return y >= -0.6f && y <= 1 - 1.7f * fabsf(x);
}

static void draw_shape(stk_rng *rng, uint8_t *image, uint8_t *mask, const float ground[3])
{
    int kind = 1 + (int)stk_rng_below(rng, N_KINDS);
    float radius = draw_between(rng, 8, 13), angle = draw_between(rng, -0.5f, 0.5f);
    float at_x = draw_between(rng, 8, SIDE - 8), at_y = draw_between(rng, 8, SIDE - 8);
    float c = cosf(angle) / radius, s = sinf(angle) / radius, colour[3];
    for (int k = 0; k < 3; k++) /* never near the ground's */
        colour[k] = ground[k] < 128 ? draw_between(rng, 150, 230) : draw_between(rng, 25, 100);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            float dx = (float)x - at_x, dy = (float)y - at_y;
            if (!is_inside(kind, c * dx + s * dy, c * dy - s * dx)) continue;
            mask[y * SIDE + x] = (uint8_t)kind;
            for (int k = 0; k < 3; k++)
                image[3 * (y * SIDE + x) + k] = (uint8_t)colour[k];
        }
}

static void add_noise(stk_rng *rng, uint8_t *image)
{
    for (int i = 0; i < SIDE * SIDE * 3; i++) {
        float value = (float)image[i] + 8 * stk_rng_normal(rng);
        image[i] = (uint8_t)fminf(fmaxf(value, 0), 255);
    }
}

static stk_status write_png(const stk_synthetic *made, const char *part, const char *folder, int64_t i,
                            const uint8_t *pixels, int channels)
{
    char name[64];
    uint8_t *png = NULL;
    size_t n = 0;
    snprintf(name, sizeof(name), "%s/%s/%05lld.png", part, folder, (long long)i);
    stk_status status = stk_png_encode(pixels, SIDE, SIDE, channels, &png, &n);
    if (status == STK_OK) status = stk_synthetic_file(made, name, png, n);
    free(png);
    return status;
}

static stk_status write_one(const stk_synthetic *made, int part, int64_t i)
{
    uint8_t image[3 * SIDE * SIDE], mask[SIDE * SIDE] = {0};
    float ground[3];
    stk_rng rng = stk_synthetic_rng(made, part, i);
    for (int k = 0; k < 3; k++)
        ground[k] = stk_rng_below(&rng, 2) ? draw_between(&rng, 25, 100) : draw_between(&rng, 150, 230);
    for (int p = 0; p < 3 * SIDE * SIDE; p++)
        image[p] = (uint8_t)ground[p % 3];
    for (int n = 1 + (int)stk_rng_below(&rng, MOST_SHAPES); n > 0; n--)
        draw_shape(&rng, image, mask, ground);
    add_noise(&rng, image);
    STK_RETURN_IF_ERROR(write_png(made, stk_synthetic_part[part], "images", i, image, 3));
    return write_png(made, stk_synthetic_part[part], "masks", i, mask, 1);
}

stk_status stk_synthetic_shapes(stk_synthetic *made)
{
    static const char *const folders[] = {"images", "masks"};
    char path[4200];
    for (int part = 0; part < 2; part++) {
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof(path), "%s/%s/%s", made->folder, stk_synthetic_part[part], folders[k]);
            STK_RETURN_IF_ERROR(stk_dir_make(path));
        }
        for (int64_t i = 0; i < made->n[part]; i++)
            STK_RETURN_IF_ERROR(write_one(made, part, i));
    }
    stk_text_add(&made->note,
                 "masks: 0 ground, 1 disc, 2 box, 3 triangle; source: {pairs: {image: shapes/train/images, mask: "
                 "shapes/train/masks}}.\n");
    return STK_OK;
}
