/* Prediction for image files. See stoker/run.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset.h"
#include "tensor/shape.h"
#include "train/predict_image.h"
#include "train/run_state.h"
#include "train/trainer_state.h"

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
    if (stk_model_is_embedding(run->model))
        return stk_fail(STK_UNSUPPORTED, "the model gives rows to compare, and no classes to predict");
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

stk_status stk_run_predict(stk_run *run, const char *file, stk_prediction *out, int n_top, int *n_out)
{
    stk_status status;
    stk_span bytes = {0};
    int i_part;
    const stk_dataset *dataset = find_dataset(run, &i_part);
    int64_t n_classes = 0;
    *n_out = 0;
    STK_TRY(make_room(run, dataset, &n_classes));
    STK_TRY(stk_file_map(file, &bytes));
    status = stk_predict_image(run->recipe, i_part, dataset, bytes, run->sample);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "cannot predict '%s': ", file));
    STK_TRY(stk_trainer_predict(run->trainer, run->sample, run->probability, n_classes));
    /* The trainer knows classes by a field 'label'. */
    if (stk_predict_kind(run->recipe) == STK_PREDICTION_CLASS && !run->trainer->has_classes)
        stk_predict_softmax(run->probability, n_classes);
    STK_TRY(stk_predict_top(stk_predict_kind(run->recipe), run->probability, n_classes, dataset, out, n_top, n_out));
done:
    stk_file_unmap(bytes);
    return status;
}
