/* Volumes u8 [N,16,16,16,1] of a solid in noise, and which one it is, as arrays of NumPy: 0 ball, 1 box, 2 rod, 3
 * shell. All have about as many bright voxels, so that brightness alone does not tell them apart.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/synthetic/synthetic.h"

enum { SIDE = 16, VOXELS = SIDE * SIDE * SIDE, N_KINDS = 4 };

/* d: from the middle, in units of the size. */
static bool is_inside(int kind, const float d[3], int axis)
{
    float r = sqrtf(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    float along = d[axis], across = sqrtf(fmaxf(r * r - along * along, 0));
    switch (kind) {
    case 0: return r <= 1;
    case 1: return fabsf(d[0]) <= 0.8f && fabsf(d[1]) <= 0.8f && fabsf(d[2]) <= 0.8f;
    case 2: return fabsf(along) <= 1.5f && across <= 0.66f;
    default: return r <= 1.2f && r >= 0.9f;
    }
}

static void draw_solid(stk_rng *rng, int kind, uint8_t *out)
{
    float size = 3.6f + 1.2f * stk_rng_uniform(rng), middle[3], d[3];
    int axis = (int)stk_rng_below(rng, 3);
    for (int k = 0; k < 3; k++)
        middle[k] = 6.5f + 2 * stk_rng_uniform(rng);
    for (int v = 0; v < VOXELS; v++) {
        const int at[3] = {v / (SIDE * SIDE), v / SIDE % SIDE, v % SIDE};
        for (int k = 0; k < 3; k++)
            d[k] = ((float)at[k] - middle[k]) / size;
        float value = (is_inside(kind, d, axis) ? 150.0f : 90.0f) + 30 * stk_rng_normal(rng);
        out[v] = (uint8_t)fminf(fmaxf(value, 0), 255);
    }
}

/* The header of a .npy file of version 1.0, padded to a multiple of 64 bytes. */
static void add_header(stk_text *out, const char *dtype, const char *shape)
{
    char dict[128];
    int n = snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, shape);
    int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    const uint8_t start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(padded & 255), (uint8_t)(padded >> 8)};
    stk_text_add_bytes(out, start, sizeof(start));
    stk_text_add(out, "%s%*s\n", dict, padded - n - 1, "");
}

static stk_status write_part(const stk_synthetic *made, int part)
{
    stk_text volumes = {0}, labels = {0};
    char shape[64], name[64];
    uint8_t *voxels = malloc(VOXELS);
    stk_status status;
    if (!voxels) return stk_fail_memory(VOXELS);
    snprintf(shape, sizeof(shape), "%lld, %d, %d, %d, 1", (long long)made->n[part], SIDE, SIDE, SIDE);
    add_header(&volumes, "|u1", shape);
    snprintf(shape, sizeof(shape), "%lld,", (long long)made->n[part]);
    add_header(&labels, "|u1", shape);
    for (int64_t i = 0; i < made->n[part]; i++) {
        if (i % 64 == 0) STK_TRY(stk_synthetic_ask(made));
        const uint8_t kind = (uint8_t)(i % N_KINDS);
        stk_rng rng = stk_synthetic_rng(made, part, i);
        draw_solid(&rng, kind, voxels);
        stk_text_add_bytes(&volumes, voxels, VOXELS);
        stk_text_add_bytes(&labels, &kind, 1);
    }
    STK_TRY(stk_text_status(&volumes));
    STK_TRY(stk_text_status(&labels));
    snprintf(name, sizeof(name), "%s-volumes.npy", stk_synthetic_part[part]);
    STK_TRY(stk_synthetic_file(made, name, volumes.data, volumes.n));
    snprintf(name, sizeof(name), "%s-labels.npy", stk_synthetic_part[part]);
    STK_TRY(stk_synthetic_file(made, name, labels.data, labels.n));
done:
    free(voxels);
    stk_text_free(&volumes);
    stk_text_free(&labels);
    return status;
}

stk_status stk_synthetic_solids(stk_synthetic *made)
{
    stk_text_add(&made->note, "labels: 0 ball, 1 box, 2 rod, 3 shell; volumes u8 [N,16,16,16,1].\n");
    STK_RETURN_IF_ERROR(write_part(made, 0));
    return write_part(made, 1);
}
