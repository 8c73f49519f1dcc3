/* See run/observe.h. */
#include "run/observe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "run/observe_graph.h"

enum { PATH_BYTES = 4096, MOST_IMAGES = 16 };

/* --- scalars --- */

typedef enum scalar {
    LOSS,
    ACCURACY,
    PERPLEXITY,
    EPOCH_LOSS,
    EPOCH_ACCURACY,
    VALID_LOSS,
    VALID_ACCURACY,
    VALID_PERPLEXITY,
    LEARNING_RATE,
    GRAD_NORM,
    LOSS_SCALE,
    SKIPPED_STEPS,
    SAMPLES_PER_S,
    INPUT_WAIT,
    DEVICE_BUSY,
    RESIDENT,
    PLANNED,
    N_SCALARS
} scalar;

static const char *const tags[N_SCALARS] = {
    [LOSS] = "train/loss",
    [ACCURACY] = "train/accuracy",
    [PERPLEXITY] = "train/perplexity",
    [EPOCH_LOSS] = "epoch/loss",
    [EPOCH_ACCURACY] = "epoch/accuracy",
    [VALID_LOSS] = "valid/loss",
    [VALID_ACCURACY] = "valid/accuracy",
    [VALID_PERPLEXITY] = "valid/perplexity",
    [LEARNING_RATE] = "optimizer/learning_rate",
    [GRAD_NORM] = "optimizer/grad_norm",
    [LOSS_SCALE] = "optimizer/loss_scale",
    [SKIPPED_STEPS] = "optimizer/skipped_steps",
    [SAMPLES_PER_S] = "speed/samples_per_s",
    [INPUT_WAIT] = "speed/input_wait_share",
    [DEVICE_BUSY] = "speed/device_busy_share",
    [RESIDENT] = "memory/resident_bytes",
    [PLANNED] = "memory/planned_bytes",
};

static void add(stk_observer *observer, scalar i, double value)
{
    stk_event_add_scalar(observer->file, tags[i], !(observer->seen >> i & 1), value);
    observer->seen |= UINT32_C(1) << i;
}

static void add_known(stk_observer *observer, scalar i, double value, bool known)
{
    if (known) add(observer, i, value);
}

/* Of this process, in bytes; 0: not known. */
static double resident_bytes(void)
{
    long long total, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    int n = fscanf(file, "%lld %lld", &total, &resident);
    fclose(file);
    return n == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) : 0;
}

static void add_step(stk_observer *observer, const stk_train_event *event)
{
    add(observer, LOSS, event->loss);
    add_known(observer, ACCURACY, event->train.accuracy, event->train.accuracy >= 0);
    add_known(observer, PERPLEXITY, event->train.perplexity, event->train.perplexity > 0);
    add(observer, LEARNING_RATE, event->lr);
    add_known(observer, GRAD_NORM, event->grad_norm, !(event->grad_norm < 0));
    add_known(observer, LOSS_SCALE, event->loss_scale, event->loss_scale > 0);
    add_known(observer, SKIPPED_STEPS, (double)event->n_skipped_steps, event->loss_scale > 0);
    add(observer, SAMPLES_PER_S, event->samples_per_s);
    add(observer, INPUT_WAIT, event->input_wait_share);
    add_known(observer, DEVICE_BUSY, event->device_busy_share, event->device_busy_share >= 0);
    double resident = resident_bytes();
    add_known(observer, RESIDENT, resident, resident > 0);
    add(observer, PLANNED, (double)event->peak_planned_bytes);
}

static void add_epoch(stk_observer *observer, const stk_train_event *event)
{
    const stk_metrics *valid = &event->valid;
    add(observer, EPOCH_LOSS, event->train.loss);
    add_known(observer, EPOCH_ACCURACY, event->train.accuracy, event->train.accuracy >= 0);
    if (valid->n_samples == 0) return;
    add(observer, VALID_LOSS, valid->loss);
    add_known(observer, VALID_ACCURACY, valid->accuracy, valid->accuracy >= 0);
    add_known(observer, VALID_PERPLEXITY, valid->perplexity, valid->perplexity > 0);
}

/* What else the recipe measures, "train/f1": the plugin is named each time, since there is no list of their tags. */
static void add_values(stk_observer *observer, const char *part, const stk_metrics *metrics)
{
    char tag[96];
    for (int i = 0; i < metrics->n_values; i++) {
        if (!isfinite(metrics->value[i].value)) continue;
        snprintf(tag, sizeof(tag), "%s/%s", part, metrics->value[i].name);
        stk_event_add_scalar(observer->file, tag, true, metrics->value[i].value);
    }
}

/* --- records --- */

static stk_status keep(stk_observer *observer, stk_status status)
{
    if (status == STK_OK) return STK_OK;
    stk_event_file_close(observer->file);
    observer->file = NULL;
    return observer->failed = status;
}

stk_status stk_observe_event(stk_observer *observer, const stk_train_event *event)
{
    if (!observer->file) return STK_OK;
    stk_event_begin(observer->file, event->step);
    if (event->kind == STK_EVENT_EPOCH) {
        add_epoch(observer, event);
        add_values(observer, "epoch", &event->train);
        add_values(observer, "valid", &event->valid);
    } else {
        add_step(observer, event);
    }
    return keep(observer, stk_event_end(observer->file));
}

/* Parameters, and not what the optimiser keeps for them: the latter are named after the former. */
static bool is_state(const stk_named_tensor *all, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++) {
        size_t length = strlen(all[k].name);
        if (k != i && !strncmp(all[i].name, all[k].name, length) && all[i].name[length] == '.') return true;
    }
    return false;
}

/* One record, "weights/layer1.0.conv1/weight": a group a layer, and a record each, since large networks have hundreds.
 */
static stk_status add_histogram(stk_observer *observer, const char *kind, const char *name, bool is_first, int64_t step,
                                const float *x, size_t n)
{
    char tag[256];
    const char *dot = strrchr(name, '.');
    int n_layer = dot ? (int)(dot - name) : (int)strlen(name);
    snprintf(tag, sizeof(tag), "%s/%.*s%s%s", kind, n_layer, name, dot ? "/" : "", dot ? dot + 1 : "");
    stk_event_begin(observer->file, step);
    stk_event_add_histogram(observer->file, tag, is_first, x, n);
    return keep(observer, stk_event_end(observer->file));
}

stk_status stk_observe_parameters(stk_observer *observer, stk_trainer *trainer, int64_t step)
{
    const stk_named_tensor *tensor;
    size_t n;
    if (!observer->file || !observer->recipe->tensorboard.histograms) return STK_OK;
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensor, &n));
    for (size_t i = 0; i < n; i++) {
        const stk_tensor_view *view = &tensor[i].view;
        if (view->desc.dtype != STK_F32 || !view->data || is_state(tensor, n, i)) continue;
        STK_RETURN_IF_ERROR(add_histogram(observer, "weights", tensor[i].name, !observer->has_histograms, step,
                                          view->data, (size_t)stk_shape_count(view->desc.shape)));
    }
    observer->has_histograms = true;
    return STK_OK;
}

stk_status stk_observe_gradients(stk_observer *observer, stk_trainer *trainer, int64_t step)
{
    const stk_named_tensor *tensor;
    size_t n, n_elements;
    if (!observer->file || !observer->recipe->tensorboard.gradients) return STK_OK;
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensor, &n));
    for (size_t i = 0; i < n; i++) {
        const float *grad = stk_trainer_gradient(trainer, tensor[i].name, &n_elements);
        if (!grad) continue; /* state of the optimiser, or frozen */
        STK_RETURN_IF_ERROR(
            add_histogram(observer, "gradients", tensor[i].name, !observer->has_gradients, step, grad, n_elements));
    }
    observer->has_gradients = true;
    return STK_OK;
}

static stk_status write_images(stk_observer *observer, const stk_picture *picture, const unsigned char *data, int n)
{
    uint8_t *png[MOST_IMAGES] = {NULL};
    stk_event_image image[MOST_IMAGES];
    stk_status status = STK_OK;
    for (int i = 0; i < n; i++) {
        STK_TRY(stk_picture_encode(picture, data + (size_t)i * picture->sample_bytes, &png[i], &image[i].n_bytes));
        image[i].png = png[i];
    }
    stk_event_begin(observer->file, 0);
    stk_event_add_images(observer->file, "inputs", true, image, n, picture->height, picture->width);
    status = stk_event_end(observer->file);
done:
    for (int i = 0; i < n; i++)
        free(png[i]);
    return status;
}

/* The second batch: the first step is not to wait for pictures. */
stk_status stk_observe_batch(stk_observer *observer, const stk_dataset *dataset, const stk_batch *batch)
{
    stk_picture picture;
    if (!observer->wants_images || !observer->file || observer->n_batches++ == 0) return STK_OK;
    observer->wants_images = false;
    const void *data = stk_batch_data(batch, "image");
    if (!data || stk_picture_plan(dataset, "image", &picture) != STK_OK) return STK_OK; /* It has no images. */
    int64_t n = stk_batch_count(batch), most = observer->recipe->tensorboard.n_images;
    return keep(observer, write_images(observer, &picture, data, (int)(n < most ? n : most)));
}

/* --- the file --- */

/* In Markdown, as code. */
static stk_status write_recipe(stk_observer *observer, const char *recipe_text)
{
    stk_text text = {0};
    stk_text_add(&text, "```yaml\n%s```\n", recipe_text);
    stk_status status = stk_text_status(&text);
    if (status == STK_OK) {
        stk_event_begin(observer->file, 0);
        stk_event_add_text(observer->file, "recipe", true, stk_text_get(&text));
        status = stk_event_end(observer->file);
    }
    stk_text_free(&text);
    return status;
}

stk_status stk_observe_open(const char *folder, int64_t step, const stk_recipe *recipe, const char *recipe_text,
                            stk_trainer *trainer, stk_observer *out)
{
    char path[PATH_BYTES];
    *out = (stk_observer){.recipe = recipe};
    if (!recipe->tensorboard.on) return STK_OK;
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), folder, "events"));
    /* What a run left that failed before its first checkpoint is of no use. */
    if (step == 0) STK_RETURN_IF_ERROR(stk_event_files_remove(path));
    STK_RETURN_IF_ERROR(stk_event_file_open(path, step, &out->file));
    if (step > 0) return STK_OK;
    out->wants_images = recipe->tensorboard.n_images > 0;
    STK_RETURN_IF_ERROR(keep(out, write_recipe(out, recipe_text)));
    return keep(out, stk_observe_write_graph(out->file, trainer));
}

void stk_observe_close(stk_observer *observer)
{
    stk_event_file_close(observer->file);
    observer->file = NULL;
}
