/* See infer/predict_image.h. */
#include "infer/predict_image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "data/stage/any_size.h"
#include "nn/loss_list.h"
#include "recipe/build.h"
#include "stoker/data/loader.h"
#include "tensor/shape.h"

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

/* Decodes a file to what the source gives: pixels of one size. */
static stk_status decode_as(stk_span bytes, const stk_field_type *want, uint8_t **out, bool *fitted)
{
    char text[STK_SHAPE_TEXT_BYTES];
    stk_tensor_desc desc = want->desc;
    stk_field_type encoded = {.kind = STK_FIELD_ENCODED};
    stk_chain chain;
    stk_status status;
    if (desc.dtype != STK_U8 || desc.shape.rank != 3 || (desc.shape.dim[2] != 1 && desc.shape.dim[2] != 3))
        return stk_fail(STK_UNSUPPORTED, "the network learned from %s, which no image file gives",
                        stk_desc_text(desc, text));
    stk_chain_init(&chain, "image", "file", &encoded);
    stk_stage *decode = stk_decode_channels((int)desc.shape.dim[2]);
    STK_TRY(stk_chain_add(&chain, decode));
    if (!(*out = malloc(stk_desc_bytes(desc)))) STK_TRY(stk_fail_memory(stk_desc_bytes(desc)));
    STK_TRY(stk_chain_run_any_size(&chain, bytes, want, *out, fitted));
done:
    stk_stage_free(decode);
    return status;
}

static stk_status transform_pixels(const stk_recipe *recipe, int i_part, const stk_source_field *field, stk_span bytes,
                                   size_t n_dst, void *dst, bool *fitted)
{
    stk_status status;
    uint8_t *pixels = NULL;
    stk_dataset *single = NULL;
    stk_loader *loader = NULL;
    stk_loader_config config = stk_loader_config_default();
    config.n_threads = 1;
    config.n_slots = 2;
    config.n_epochs = 1;
    STK_TRY(decode_as(bytes, &field->type, &pixels, fitted));
    STK_TRY(stk_build_single(recipe, i_part, pixels, field->type.desc.shape, &single));
    STK_TRY(stk_loader_open(single, &config, &loader));
    const stk_batch *batch = stk_loader_next(loader);
    if (!batch) STK_TRY(stk_loader_status(loader));
    const void *sample = batch ? stk_batch_data(batch, "image") : NULL;
    if (!sample) STK_TRY(stk_fail(STK_INTERNAL, "the stages gave no image"));
    memcpy(dst, sample, n_dst);
    stk_batch_release(batch);
done:
    stk_loader_close(loader);
    stk_dataset_free(single);
    free(pixels);
    return status;
}

/* --- all sources --- */

static const stk_chain *find_chain(const stk_dataset *dataset)
{
    for (int i = 0; i < dataset->source->n_fields; i++)
        if (!strcmp(dataset->chain[i].field, "image") && dataset->chain[i].type[0].kind == STK_FIELD_ENCODED)
            return &dataset->chain[i];
    return NULL;
}

stk_status stk_predict_image(const stk_recipe *recipe, int i_part, const stk_dataset *dataset, stk_span bytes,
                             void *dst, bool *fitted)
{
    stk_field_type want = {.kind = STK_FIELD_ARRAY};
    const stk_source_field *pixels = find_pixels(dataset);
    const stk_chain *chain = find_chain(dataset);
    *fitted = false;
    if (!pixels && !chain) return stk_dataset_transform(dataset, bytes.data, bytes.n, dst); /* which says why not */
    STK_RETURN_IF_ERROR(stk_dataset_field(dataset, "image", true, &want.desc.dtype, &want.desc.shape));
    if (!pixels) return stk_chain_run_any_size(chain, bytes, &want, dst, fitted);
    return transform_pixels(recipe, i_part, pixels, bytes, stk_desc_bytes(want.desc), dst, fitted);
}

stk_status stk_predict_file(const stk_recipe *recipe, int i_part, const stk_dataset *dataset, const char *file,
                            stk_span *bytes, void *dst, bool *fitted)
{
    stk_memory *own;
    *bytes = (stk_span){0};
    STK_RETURN_IF_ERROR(stk_dataset_enter_memory(dataset, &own));
    stk_status status = stk_file_load(file, bytes);
    if (status == STK_OK) {
        status = stk_predict_image(recipe, i_part, dataset, *bytes, dst, fitted);
        if (status != STK_OK) stk_fail_prefix(status, "cannot predict '%s': ", file);
    }
    stk_dataset_leave_memory(own);
    return status;
}

stk_prediction_kind stk_predict_kind(const stk_recipe *recipe)
{
    const stk_loss_class *loss = stk_loss_class_of(recipe->loss->key);
    return loss && loss->predicts == STK_LOSS_PREDICTS_CLASS    ? STK_PREDICTION_CLASS
           : loss && loss->predicts == STK_LOSS_PREDICTS_LABELS ? STK_PREDICTION_LABEL
                                                                : STK_PREDICTION_NUMBER;
}

static int64_t find_largest(const float *score, int64_t n)
{
    int64_t best = 0;
    for (int64_t c = 1; c < n; c++)
        if (score[c] > score[best]) best = c;
    return best;
}

void stk_predict_softmax(float *score, int64_t n)
{
    double most = (double)score[find_largest(score, n)], sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)score[i] - most);
    for (int64_t i = 0; i < n; i++)
        score[i] = (float)(exp((double)score[i] - most) / sum);
}

stk_status stk_predict_top(stk_prediction_kind kind, float *score, int64_t n, const stk_dataset *dataset,
                           stk_prediction *out, int n_top, int *n_out)
{
    const char *const *names = NULL;
    int64_t n_names = stk_dataset_classes(dataset, &names);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(score[i]))
            return stk_fail(STK_CORRUPT,
                            "the network's output %lld is %g: its weights are damaged, or its training "
                            "went astray",
                            (long long)i, (double)score[i]);
    for (*n_out = 0; *n_out < n_top && *n_out < n; ++*n_out) {
        int64_t i = kind == STK_PREDICTION_NUMBER ? *n_out : find_largest(score, n);
        double x = (double)score[i];
        out[*n_out] = (stk_prediction){.class_number = i,
                                       .class_name = i < n_names ? names[i] : NULL,
                                       .probability = kind == STK_PREDICTION_LABEL ? 1 / (1 + exp(-x)) : x,
                                       .kind = kind};
        score[i] = -INFINITY; /* taken */
    }
    return STK_OK;
}
