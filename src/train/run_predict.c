/* Prediction for image files. See stoker/run.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/codec/image.h"
#include "data/dataset.h"
#include "stoker/loader.h"
#include "tensor/shape.h"
#include "train/build.h"
#include "train/run_state.h"

/* The data whose stages are those of evaluation. */
static const stk_dataset *find_dataset(const stk_run *run, int *i_part)
{
    *i_part = run->test ? STK_PART_TEST : run->valid ? STK_PART_VALID : STK_PART_TRAIN;
    return run->test ? run->test : run->valid ? run->valid : run->train;
}

static stk_status make_room(stk_run *run, const stk_dataset *dataset, int64_t *n_out)
{
    stk_tensor_desc desc;
    stk_value output = stk_model_get_output(run->model);
    if (output.id < 0) return stk_fail(STK_INVALID, "the model has no output to predict with");
    stk_shape shape = stk_value_shape(output);
    *n_out = shape.rank == 2 ? shape.dim[1] : 0;
    if (*n_out < 1) return stk_fail(STK_UNSUPPORTED, "the model's output is no row of numbers");
    if (run->sample) return STK_OK;
    STK_RETURN_IF_ERROR(stk_dataset_field(dataset, "image", true, &desc.dtype, &desc.shape));
    run->sample_bytes = stk_desc_bytes(desc);
    run->probability = calloc((size_t)*n_out, sizeof(*run->probability));
    run->sample = malloc(run->sample_bytes ? run->sample_bytes : 1);
    if (run->sample && run->probability) return STK_OK;
    free(run->sample);
    free(run->probability);
    run->sample = NULL;
    run->probability = NULL;
    return stk_fail_memory(run->sample_bytes);
}

/* --- sources of plain pixels, as IDX --- */

/* The source's own image, where it is one of pixels; NULL for encoded images. */
static const stk_source_field *find_pixels(const stk_dataset *dataset)
{
    for (int i = 0; i < dataset->source->n_fields; i++) {
        const stk_source_field *field = &dataset->source->field[i];
        if (!strcmp(field->name, "image") && field->type.kind == STK_FIELD_ARRAY) return field;
    }
    return NULL;
}

/* Decodes a file to what the source gives: pixels of one size, which is not changed here in silence. */
static stk_status decode_as(stk_span bytes, stk_tensor_desc want, uint8_t **out)
{
    int64_t height, width;
    char text[STK_SHAPE_TEXT_BYTES];
    if (want.dtype != STK_U8 || want.shape.rank != 3 || (want.shape.dim[2] != 1 && want.shape.dim[2] != 3))
        return stk_fail(STK_UNSUPPORTED, "the network learned from %s, which no image file gives",
                        stk_desc_text(want, text));
    STK_RETURN_IF_ERROR(stk_image_size(bytes, &height, &width));
    if (height != want.shape.dim[0] || width != want.shape.dim[1])
        return stk_fail(STK_MISMATCH, "the image is %lld x %lld pixels, the network learned from %lld x %lld",
                        (long long)height, (long long)width, (long long)want.shape.dim[0],
                        (long long)want.shape.dim[1]);
    if (!(*out = malloc(stk_desc_bytes(want)))) return stk_fail_memory(stk_desc_bytes(want));
    return stk_image_decode(bytes, (int)want.shape.dim[2], *out);
}

static stk_status transform_pixels(stk_run *run, int i_part, const stk_source_field *field, stk_span bytes)
{
    stk_status status;
    uint8_t *pixels = NULL;
    stk_dataset *single = NULL;
    stk_loader *loader = NULL;
    stk_loader_config config = stk_loader_config_default();
    config.n_threads = 1;
    config.n_slots = 2;
    config.n_epochs = 1;
    STK_TRY(decode_as(bytes, field->type.desc, &pixels));
    STK_TRY(stk_build_single(run->recipe, i_part, pixels, field->type.desc.shape, &single));
    STK_TRY(stk_loader_open(single, &config, &loader));
    const stk_batch *batch = stk_loader_next(loader);
    if (!batch) STK_TRY(stk_loader_status(loader));
    const void *sample = batch ? stk_batch_data(batch, "image") : NULL;
    if (!sample) STK_TRY(stk_fail(STK_INTERNAL, "the stages gave no image"));
    memcpy(run->sample, sample, run->sample_bytes);
    stk_batch_release(batch);
done:
    stk_loader_close(loader);
    stk_dataset_free(single);
    free(pixels);
    return status;
}

/* --- all sources --- */

static void take_top(stk_run *run, const stk_dataset *dataset, int64_t n_classes, stk_prediction *out, int n_top,
                     int *n_out)
{
    const char *const *names = NULL;
    int64_t n_names = stk_dataset_classes(dataset, &names);
    for (; *n_out < n_top && *n_out < n_classes; ++*n_out) {
        int64_t best = 0;
        for (int64_t c = 1; c < n_classes; c++)
            if (run->probability[c] > run->probability[best]) best = c;
        out[*n_out] = (stk_prediction){.class_number = best,
                                       .class_name = best < n_names ? names[best] : NULL,
                                       .probability = (double)run->probability[best]};
        run->probability[best] = -1e30f; /* Taken; the next prediction writes it anew. */
    }
}

stk_status stk_run_predict(stk_run *run, const char *file, stk_prediction *out, int n_top, int *n_out)
{
    stk_status status;
    stk_span bytes = {0};
    int i_part;
    const stk_dataset *dataset = find_dataset(run, &i_part);
    const stk_source_field *pixels = find_pixels(dataset);
    int64_t n_classes = 0;
    *n_out = 0;
    STK_TRY(make_room(run, dataset, &n_classes));
    STK_TRY(stk_file_map(file, &bytes));
    status = pixels ? transform_pixels(run, i_part, pixels, bytes)
                    : stk_dataset_transform(dataset, bytes.data, bytes.n, run->sample);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "cannot predict '%s': ", file));
    STK_TRY(stk_trainer_predict(run->trainer, run->sample, run->probability, n_classes));
    take_top(run, dataset, n_classes, out, n_top, n_out);
done:
    stk_file_unmap(bytes);
    return status;
}
