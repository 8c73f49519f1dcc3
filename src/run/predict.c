/* Prediction for image files. See stoker/train/run.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/codec/image.h"
#include "data/dataset/dataset.h"
#include "data/source/fields.h"
#include "data/source/paths.h"
#include "infer/predict_image.h"
#include "recipe/build.h"
#include "run/state.h"
#include "tensor/shape.h"
#include "train/trainer_state.h"

/* The data whose stages are those of evaluation. */
static const stk_dataset *find_dataset(const stk_run *run, int *i_part)
{
    *i_part = run->test ? STK_PART_TEST : run->valid ? STK_PART_VALID : STK_PART_TRAIN;
    return run->test ? run->test : run->valid ? run->valid : run->train;
}

/* Without data to test with nobody has said what is done to images that are not learned from. */
static void warn_random(stk_run *run, const stk_dataset *dataset, int i_part)
{
    for (int f = 0; i_part == STK_PART_TRAIN && f < dataset->source->n_fields; f++)
        for (int i = 0; i < dataset->chain[f].n_stages && !strcmp(dataset->chain[f].field, "image"); i++) {
            char text[200];
            if (!dataset->chain[f].stage[i]->class->random) continue;
            snprintf(text, sizeof(text),
                     "the recipe has no 'test' or 'valid', and so images go through the stages of training, '%s' and "
                     "other random ones too",
                     dataset->chain[f].stage[i]->class->key.name);
            stk_run_warn(run, text);
            return;
        }
}

/* For runs that predict something else, and no other verb does it either. */
static stk_status refuse(const stk_run *run, const char *format, const char *what)
{
    char why[200];
    snprintf(why, sizeof(why), format, what);
    return stk_fail(
        STK_UNSUPPORTED,
        "%s, and 'predict' says classes or numbers of image files: 'stoker eval %s' measures it on its data, "
        "'stoker export %s --onnx' gives it to other programs",
        why, run->folder, run->folder);
}

/* Whether a sample's image is what files give. */
static stk_status check_pictures(const stk_run *run, const stk_dataset *dataset)
{
    char text[STK_SHAPE_TEXT_BYTES];
    int i = 0;
    while (i < dataset->source->n_fields && strcmp(dataset->source->field[i].name, "image"))
        i++;
    if (i == dataset->source->n_fields)
        return refuse(run, "the run learned from '%s', not from pictures", dataset->source->field[0].name);
    const stk_field_type *type = &dataset->source->field[i].type;
    if (type->kind == STK_FIELD_ARRAY && type->desc.shape.rank != 3)
        return refuse(run, "the run learned from %s a sample, not from pictures", stk_desc_text(type->desc, text));
    return STK_OK;
}

static stk_status check_predicts(const stk_run *run, const stk_dataset *dataset, int64_t *n_out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    if (stk_build_generates(run->recipe))
        return stk_fail(STK_UNSUPPORTED,
                        "the run predicts what comes next in a text, and 'predict' takes image files: "
                        "stoker generate %s TEXT",
                        run->folder);
    if (!strcmp(run->recipe->loss->key, "masked_lm"))
        return refuse(run, "the run predicts hidden tokens of a text%s", "");
    STK_RETURN_IF_ERROR(check_pictures(run, dataset));
    stk_value output = stk_model_get_output(run->model);
    if (output.id < 0) return stk_fail(STK_INVALID, "the model has no output to predict with");
    if (stk_model_is_embedding(run->model)) return refuse(run, "the model gives rows to compare%s", "");
    stk_shape shape = stk_value_shape(output), sample = {.rank = shape.rank - 1};
    memcpy(sample.dim, shape.dim + 1, (size_t)sample.rank * sizeof(*sample.dim));
    *n_out = shape.rank == 2 ? shape.dim[1] : 0;
    if (*n_out < 1) return refuse(run, "the run predicts %s numbers of each picture", stk_shape_text(sample, text));
    return STK_OK;
}

stk_status stk_run_check_predict(const stk_run *run)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    int i_part;
    int64_t n_out;
    return check_predicts(run, find_dataset(run, &i_part), &n_out);
}

static stk_status make_room(stk_run *run, const stk_dataset *dataset, int i_part, int64_t *n_out)
{
    stk_tensor_desc desc;
    STK_RETURN_IF_ERROR(check_predicts(run, dataset, n_out));
    if (run->sample) return STK_OK;
    STK_RETURN_IF_ERROR(stk_dataset_field(dataset, "image", true, &desc.dtype, &desc.shape));
    run->sample_bytes = stk_desc_bytes(desc);
    run->probability = calloc((size_t)*n_out, sizeof(*run->probability));
    run->sample = malloc(run->sample_bytes ? run->sample_bytes : 1);
    if (run->sample && run->probability) {
        warn_random(run, dataset, i_part);
        return STK_OK;
    }
    free(run->sample);
    free(run->probability);
    run->sample = NULL;
    run->probability = NULL;
    return stk_fail_memory(run->sample_bytes);
}

/* Once: of many files most are alike in this. */
static void warn_fitted(stk_run *run, const char *file, stk_span bytes)
{
    int64_t height, width;
    stk_text text = {0};
    if (run->fitting_told || stk_image_size(bytes, &height, &width) != STK_OK) return;
    run->fitting_told = true;
    stk_text_add(
        &text,
        "'%s' is %lld x %lld pixels, and the stages of evaluation do not resize: it and others that do not fit "
        "are resized by their shorter side, and the middle is taken",
        file, (long long)width, (long long)height);
    if (stk_text_status(&text) == STK_OK) stk_run_warn(run, stk_text_get(&text));
    stk_text_free(&text);
}

stk_status stk_run_input(const stk_run *run, stk_dtype *dtype, stk_shape *shape, int64_t *n_out)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    int i_part;
    const stk_dataset *dataset = find_dataset(run, &i_part);
    STK_RETURN_IF_ERROR(check_predicts(run, dataset, n_out));
    return stk_dataset_field(dataset, "image", true, dtype, shape);
}

/* What the network says of a sample, into out [n_out]. */
static stk_status predict(stk_run *run, const void *sample, float *out, int64_t n_out)
{
    STK_RETURN_IF_ERROR(stk_trainer_predict(run->trainer, sample, out, n_out));
    /* The trainer knows classes by a field 'label'. */
    if (stk_predict_kind(run->recipe) == STK_PREDICTION_CLASS && !run->trainer->has_classes)
        stk_predict_softmax(out, n_out);
    return STK_OK;
}

stk_status stk_run_predict_sample(stk_run *run, const void *sample, float *out, int64_t n_out)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    int i_part;
    int64_t n;
    STK_RETURN_IF_ERROR(check_predicts(run, find_dataset(run, &i_part), &n));
    if (n != n_out) return stk_fail(STK_INVALID, "n_out is %lld, not %lld", (long long)n_out, (long long)n);
    return predict(run, sample, out, n_out);
}

stk_status stk_run_predict(stk_run *run, const char *file, stk_prediction *out, int n_top, int *n_out)
{
    if (!run) return stk_fail(STK_INVALID, "there is no run");
    stk_status status;
    stk_span bytes = {0};
    int i_part;
    const stk_dataset *dataset = find_dataset(run, &i_part);
    int64_t n_classes = 0;
    bool fitted;
    *n_out = 0;
    STK_TRY(make_room(run, dataset, i_part, &n_classes));
    STK_TRY(stk_predict_file(run->recipe, i_part, dataset, file, &bytes, run->sample, &fitted));
    if (fitted) warn_fitted(run, file, bytes);
    STK_TRY(predict(run, run->sample, run->probability, n_classes));
    STK_TRY(stk_predict_top(stk_predict_kind(run->recipe), run->probability, n_classes, dataset, out, n_top, n_out));
done:
    stk_file_unload(bytes);
    return status;
}

/* *goes_on: the caller's function wants more. */
static stk_status predict_next(stk_run *run, const char *file, stk_prediction *room, int n_top, stk_prediction_fn fn,
                               void *user, bool *goes_on)
{
    int n = 0;
    stk_status status = stk_run_predict(run, file, room, n_top, &n);
    *goes_on = false;
    if (!stk_record_can_skip(status)) return status; /* The next file would fail alike. */
    *goes_on = fn(user, file, status, room, n);
    return STK_OK;
}

stk_status stk_run_predict_folder(stk_run *run, const char *folder, int n_top, stk_prediction_fn fn, void *user)
{
    stk_status status;
    stk_names files = {0};
    stk_prediction *room = NULL;
    int i_part;
    int64_t n_classes;
    bool goes_on = true;
    if (n_top < 1 || !fn) STK_TRY(stk_fail(STK_INVALID, "n_top is %d, or there is no function to tell", n_top));
    if (!(room = calloc((size_t)n_top, sizeof(*room)))) STK_TRY(stk_fail_memory((size_t)n_top * sizeof(*room)));
    const stk_dataset *dataset = find_dataset(run, &i_part);
    STK_TRY(make_room(run, dataset, i_part, &n_classes));
    STK_TRY(stk_folder_images(folder, &files));
    stk_names_sort(&files);
    for (size_t i = 0; i < files.n && goes_on; i++)
        STK_TRY(predict_next(run, files.name[i], room, n_top, fn, user, &goes_on));
done:
    stk_names_free(&files);
    free(room);
    return status;
}
