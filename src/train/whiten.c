/* See train/whiten.h. */
#include "train/whiten.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "train/eigen.h"
#include "train/trainer_state.h"

enum { MOST_PATCH = 512 };

typedef struct whitening {
    stk_named_tensor weight; /* f32 [O,h,w,C] */
    const char *field;       /* of the data */
    stk_shape image;         /* [H,W,C] */
    int64_t n_patch;         /* numbers in a patch */
    double *moments;         /* [n_patch,n_patch]: sums of products, its upper half */
    double *patch, *vectors; /* [n_patch]; [n_patch,n_patch] */
    double n;                /* patches */
} whitening;

/* The field of the data that the convolution with this weight reads; NULL: it reads none. */
static const char *find_field(const stk_graph *graph, const char *weight, stk_shape *image)
{
    stk_value variable = stk_graph_find(graph, STK_OP_variable, weight);
    for (int i = 0; variable.id >= 0 && i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_conv2d || node->in[1] != variable.id) continue;
        const stk_node *source = &graph->node[graph->value[node->in[0]].node];
        stk_tensor_desc desc = graph->value[node->in[0]].desc;
        if (source->op != STK_OP_input || desc.dtype != STK_F32 || desc.shape.rank != 4) return NULL;
        *image = (stk_shape){.rank = 3, .dim = {desc.shape.dim[1], desc.shape.dim[2], desc.shape.dim[3]}};
        return source->name;
    }
    return NULL;
}

stk_status stk_whiten_check(const stk_graph *graph, const stk_whiten *settings)
{
    char weight[256];
    stk_shape image;
    if (!settings->layer) return STK_OK;
    if (settings->n_samples <= 0 || !(settings->eps > 0))
        return stk_fail(STK_INVALID, "'whiten': %lld samples and an eps of %g; both must be above 0",
                        (long long)settings->n_samples, settings->eps);
    snprintf(weight, sizeof(weight), "%s.weight", settings->layer);
    if (!find_field(graph, weight, &image))
        return stk_fail(STK_NOT_FOUND,
                        "'whiten': there is no convolution '%s' that reads f32 images of the data; "
                        "'stoker models NAME' lists the layers",
                        settings->layer);
    stk_shape shape = stk_value_shape(stk_graph_find(graph, STK_OP_variable, weight));
    int64_t n_patch = stk_shape_product(shape, 1, 4);
    if (n_patch > MOST_PATCH)
        return stk_fail(STK_UNSUPPORTED, "'whiten': a patch of '%s' has %lld numbers, and may have %d", weight,
                        (long long)n_patch, MOST_PATCH);
    if (shape.dim[0] == n_patch || shape.dim[0] == 2 * n_patch) return STK_OK;
    return stk_fail(STK_INVALID,
                    "'whiten': '%s' has %lld filters; its patches of %lld numbers want as many, or twice as many",
                    settings->layer, (long long)shape.dim[0], (long long)n_patch);
}

/* Of a layer that stk_whiten_check has found. */
static stk_status find_weight(stk_trainer *trainer, whitening *w)
{
    const char *layer = trainer->config.whiten.layer;
    const stk_named_tensor *tensors;
    size_t n, length = strlen(layer);
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensors, &n));
    for (size_t i = 0; i < n; i++)
        if (!strncmp(tensors[i].name, layer, length) && !strcmp(tensors[i].name + length, ".weight"))
            w->weight = tensors[i];
    if (w->weight.name) w->field = find_field(stk_model_graph(trainer->model), w->weight.name, &w->image);
    if (!w->field) return stk_fail(STK_INTERNAL, "'whiten': '%s' has gone", layer);
    w->n_patch = stk_shape_product(w->weight.view.desc.shape, 1, 4);
    return STK_OK;
}

/* Adds the patch with its corner at y, x. */
static void add_patch(whitening *w, const float *image, int64_t y, int64_t x)
{
    stk_shape filter = w->weight.view.desc.shape;
    int64_t n = w->n_patch, n_row = filter.dim[2] * filter.dim[3];
    for (int64_t k = 0; k < n; k++)
        w->patch[k] = (double)image[((y + k / n_row) * w->image.dim[1] + x) * w->image.dim[2] + k % n_row];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            w->moments[i * n + j] += w->patch[i] * w->patch[j];
    w->n++;
}

static void add_image(whitening *w, const float *image)
{
    stk_shape filter = w->weight.view.desc.shape;
    for (int64_t y = 0; y + filter.dim[1] <= w->image.dim[0]; y++)
        for (int64_t x = 0; x + filter.dim[2] <= w->image.dim[1]; x++)
            add_patch(w, image, y, x);
}

/* Of the first samples of the first epoch. */
static stk_status add_samples(stk_trainer *trainer, whitening *w, int64_t n_samples)
{
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    stk_loader_config config = stk_loader_config_default();
    int64_t sample = stk_shape_product(w->image, 0, 3);
    stk_status status;
    config.seed = trainer->config.seed;
    config.n_epochs = 1;
    STK_TRY(stk_trainer_open_loader(trainer, trainer->dataset, config, &loader));
    while (n_samples > 0 && (batch = stk_loader_next(loader))) {
        const float *image = stk_batch_data(batch, w->field);
        for (int64_t i = 0; i < stk_batch_count(batch) && n_samples > 0; i++, n_samples--)
            add_image(w, image + i * sample);
        stk_batch_release(batch);
    }
    STK_TRY(stk_loader_status(loader));
    if (w->n == 0)
        STK_TRY(stk_fail(STK_INVALID, "'whiten': the training data have no patches for '%s'", w->weight.name));
done:
    stk_loader_close(loader);
    return status;
}

static stk_status solve(whitening *w, double eps)
{
    int64_t n = w->n_patch;
    float *out = w->weight.view.data;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            w->moments[i * n + j] = w->moments[j * n + i] = w->moments[i * n + j] / w->n;
    for (int64_t i = 0; i < n * n; i++)
        if (!isfinite(w->moments[i]))
            return stk_fail(STK_CORRUPT, "'whiten': the data of '%s' are not finite", w->field);
    stk_eigen_symmetric(w->moments, n, w->vectors);
    for (int64_t i = 0; i < w->weight.view.desc.shape.dim[0]; i++) {
        double value = w->moments[i % n * (n + 1)], sign = i < n ? 1 : -1;
        for (int64_t k = 0; k < n; k++)
            out[i * n + k] = (float)(sign * w->vectors[i % n * n + k] / sqrt((value > 0 ? value : 0) + eps));
    }
    return STK_OK;
}

stk_status stk_trainer_whiten(stk_trainer *trainer)
{
    const stk_whiten *settings = &trainer->config.whiten;
    whitening w = {.n = 0};
    stk_status status;
    if (!settings->layer || trainer->state.step > 0) return STK_OK;
    STK_TRY(find_weight(trainer, &w));
    w.moments = calloc((size_t)(w.n_patch * w.n_patch), sizeof(double));
    w.vectors = calloc((size_t)(w.n_patch * w.n_patch), sizeof(double));
    w.patch = calloc((size_t)w.n_patch, sizeof(double));
    if (!w.moments || !w.vectors || !w.patch)
        STK_TRY(stk_fail_memory((size_t)(w.n_patch * w.n_patch) * sizeof(double)));
    STK_TRY(add_samples(trainer, &w, settings->n_samples));
    STK_TRY(solve(&w, settings->eps));
    STK_TRY(stk_trainer_put_tensors(trainer));
done:
    free(w.moments);
    free(w.vectors);
    free(w.patch);
    return status;
}
