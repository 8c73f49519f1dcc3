/* See data/source/volume_file.h. A window is read plane by plane: of each plane of the file one read from the window's
 * first voxel to its last, which is less than opening the file and far less than the volume. */
#include "data/source/volume_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/npy.h"
#include "data/source/fields.h"
#include "data/source/shards.h"

/* --- opening --- */

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n > m && !strcmp(path + n - m, end);
}

/* Assigns each of the file's axes to the direction of the body that it is nearest to, the clearest first. */
static void turn_to_canonical(const double affine[3][4], stk_volume_file *v)
{
    bool has_axis[3] = {false}, has_side[3] = {false};
    for (int n = 0; n < 3; n++) {
        double most = -1;
        int axis = 0, side = 0;
        for (int k = 0; k < 3; k++) {
            double length =
                sqrt(affine[0][k] * affine[0][k] + affine[1][k] * affine[1][k] + affine[2][k] * affine[2][k]);
            for (int i = 0; i < 3; i++) {
                double part = length > 0 ? fabs(affine[i][k]) / length : 0;
                /* x is axis and side number 2: the last. */
                if (has_axis[2 - k] || has_side[2 - i] || !(part > most)) continue;
                most = part;
                axis = 2 - k;
                side = 2 - i;
            }
        }
        if (most < 0) break; /* no numbers: as it is stored */
        has_axis[axis] = has_side[side] = true;
        v->axis[side] = axis;
        v->turned[side] = affine[2 - side][2 - axis] < 0;
    }
}

static stk_status take_nifti(stk_span start, uint64_t n_bytes, bool canonical, stk_volume_file *v)
{
    stk_nifti h;
    STK_RETURN_IF_ERROR(stk_nifti_parse(start, n_bytes, &h));
    v->number = h.number;
    v->swapped = h.swapped;
    v->n_channels = h.n_channels;
    v->data_at = h.data_at;
    v->slope = h.slope;
    v->inter = h.inter;
    memcpy(v->affine, h.affine, sizeof(v->affine));
    memcpy(v->file_side, h.side, sizeof(v->file_side));
    if (canonical) turn_to_canonical((const double(*)[4])h.affine, v);
    return STK_OK;
}

static stk_status take_npy(stk_span start, uint64_t n_bytes, stk_volume_file *v)
{
    static const signed char numbers[STK_N_DTYPES] = {[STK_F32] = STK_NUMBER_F32, [STK_BF16] = -1,
                                                      [STK_F16] = STK_NUMBER_F16, [STK_F64] = STK_NUMBER_F64,
                                                      [STK_I64] = STK_NUMBER_I64, [STK_I32] = STK_NUMBER_I32,
                                                      [STK_I8] = STK_NUMBER_I8,   [STK_U8] = STK_NUMBER_U8,
                                                      [STK_BOOL] = STK_NUMBER_U8};
    stk_tensor_desc desc;
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_npy_parse(start, n_bytes, &desc, &v->data_at, NULL));
    if ((desc.shape.rank != 3 && desc.shape.rank != 4) || stk_shape_count(desc.shape) == 0 || numbers[desc.dtype] < 0)
        return stk_fail(STK_INVALID, "it is %s, and no volume [D,H,W] or [D,H,W,C]", stk_desc_text(desc, text));
    v->number = (stk_number)numbers[desc.dtype];
    memcpy(v->file_side, desc.shape.dim, sizeof(v->file_side));
    v->n_channels = desc.shape.rank == 4 ? desc.shape.dim[3] : 1;
    v->channels_last = true;
    v->affine[0][0] = v->affine[1][1] = v->affine[2][2] = 1;
    return STK_OK;
}

static stk_status read_start(const char *place, bool is_npy, bool canonical, stk_volume_file *v)
{
    stk_input input = {0};
    stk_status status;
    size_t most = is_npy ? STK_NPY_MOST_HEADER : STK_NIFTI_HEADER;
    uint8_t *start = malloc(most);
    if (!start) return stk_fail_memory(most);
    STK_TRY(stk_record_open(place, &input));
    size_t n = input.n_bytes < most ? (size_t)input.n_bytes : most;
    STK_TRY(stk_input_read(&input, 0, start, n));
    status = is_npy ? take_npy((stk_span){start, n}, input.n_bytes, v)
                    : take_nifti((stk_span){start, n}, input.n_bytes, canonical, v);
done:
    stk_input_close(&input);
    free(start);
    return status;
}

static stk_status unpack(const char *path, char **place)
{
    stk_input packed = {0};
    STK_RETURN_IF_ERROR(stk_record_open(path, &packed));
    stk_status status = stk_unpack_to_cache(&packed, place);
    stk_input_close(&packed);
    return status;
}

stk_status stk_volume_open(const char *path, bool canonical, stk_volume_file *out)
{
    stk_status status = STK_OK;
    bool is_gz = ends_in(path, ".nii.gz"), is_npy = ends_in(path, ".npy");
    *out = (stk_volume_file){.slope = 1, .axis = {0, 1, 2}, .path = strdup(path)};
    if (!out->path) return stk_fail_memory(strlen(path));
    if (!is_gz && !is_npy && !ends_in(path, ".nii"))
        STK_TRY(stk_fail(STK_UNSUPPORTED, "volumes are .nii, .nii.gz or .npy"));
    if (is_gz) STK_TRY(unpack(path, &out->place));
    if (!is_gz && !(out->place = strdup(path))) STK_TRY(stk_fail_memory(strlen(path)));
    STK_TRY(read_start(out->place, is_npy, canonical, out));
    for (int i = 0; i < 3; i++)
        out->side[i] = out->file_side[out->axis[i]];
    return STK_OK;
done:
    if (!strstr(stk_error_text(), path)) stk_fail_prefix(status, "'%s': ", path);
    stk_volume_close(out);
    return status;
}

void stk_volume_close(stk_volume_file *volume)
{
    free(volume->path);
    free(volume->place);
    *volume = (stk_volume_file){0};
}

/* --- reading --- */

typedef struct box {
    int64_t from[3], size[3]; /* in the file's order */
    int64_t step[3], first; /* elements of dst from one voxel of the file to the next, by its axes; of the first one */
} box;

static box find_box(const stk_volume_file *v, const int64_t from[3], const int64_t size[3])
{
    box b = {.first = 0};
    int64_t step = v->n_channels;
    for (int i = 2; i >= 0; step *= size[i--]) {
        int axis = v->axis[i];
        b.size[axis] = size[i];
        b.from[axis] = v->turned[i] ? v->side[i] - from[i] - size[i] : from[i];
        b.step[axis] = v->turned[i] ? -step : step;
        if (v->turned[i]) b.first += step * (size[i] - 1);
    }
    return b;
}

/* One row of numbers to dst, `step` elements apart. */
static stk_status write_row(const stk_volume_file *v, const double *row, int64_t n, stk_dtype dtype, void *dst,
                            int64_t at, int64_t step)
{
    double low = dtype == STK_U8 ? 0 : INT32_MIN, high = dtype == STK_U8 ? 255 : INT32_MAX;
    if (dtype == STK_F32) {
        float *x = (float *)dst + at;
        for (int64_t i = 0; i < n; i++)
            x[i * step] = (float)(row[i] * v->slope + v->inter);
        return STK_OK;
    }
    for (int64_t i = 0; i < n; i++, at += step) {
        double x = row[i] * v->slope + v->inter;
        int32_t whole = x >= low && x <= high ? (int32_t)x : 0;
        if ((double)whole != x) return stk_fail(STK_CORRUPT, "it holds %g, which is no %s", x, stk_dtype_name(dtype));
        if (dtype == STK_U8)
            ((uint8_t *)dst)[at] = (uint8_t)whole;
        else
            ((int32_t *)dst)[at] = whole;
    }
    return STK_OK;
}

static stk_status read_plane(const stk_volume_file *v, const stk_input *input, const box *b, int64_t z, int64_t channel,
                             stk_dtype dtype, uint8_t *bytes, double *row, void *dst)
{
    const int64_t *side = v->file_side;
    int64_t n_inner = v->channels_last ? v->n_channels : 1; /* numbers of a voxel that lie together */
    size_t number = stk_number_bytes(v->number), row_bytes = (size_t)(side[2] * n_inner) * number;
    int64_t volume = v->channels_last ? 0 : channel * side[0];
    uint64_t plane_at =
        (uint64_t)((((volume + b->from[0] + z) * side[1] + b->from[1]) * side[2] + b->from[2]) * n_inner) * number;
    size_t n = (size_t)(b->size[1] - 1) * row_bytes + (size_t)(b->size[2] * n_inner) * number;
    STK_RETURN_IF_ERROR(stk_input_read(input, v->data_at + plane_at, bytes, n));
    for (int64_t y = 0; y < b->size[1]; y++) {
        int64_t at = b->first + z * b->step[0] + y * b->step[1] + channel;
        stk_number_read(v->number, v->swapped, bytes + (size_t)y * row_bytes, b->size[2] * n_inner, row);
        /* Channels that lie together only come from files whose axes are as they are given out. */
        STK_RETURN_IF_ERROR(write_row(v, row, b->size[2] * n_inner, dtype, dst, at, n_inner > 1 ? 1 : b->step[2]));
    }
    return STK_OK;
}

stk_status stk_volume_read(const stk_volume_file *v, const int64_t from[3], const int64_t size[3], stk_dtype dtype,
                           stk_scratch *scratch, void *dst)
{
    box b = find_box(v, from, size);
    int64_t n_inner = v->channels_last ? v->n_channels : 1;
    size_t row = (size_t)(b.size[2] * n_inner) * sizeof(double);
    size_t plane = (size_t)(b.size[1] * v->file_side[2] * n_inner) * stk_number_bytes(v->number);
    uint8_t *bytes = stk_scratch_get(scratch, row + plane);
    stk_input input = {0};
    stk_status status = STK_OK;
    if (!bytes) return STK_NO_MEMORY;
    STK_TRY(stk_record_open(v->place, &input));
    for (int64_t channel = 0; channel < (v->channels_last ? 1 : v->n_channels); channel++)
        for (int64_t z = 0; z < b.size[0]; z++)
            STK_TRY(read_plane(v, &input, &b, z, channel, dtype, bytes + row, (double *)(void *)bytes, dst));
done:
    stk_input_close(&input);
    return status;
}
