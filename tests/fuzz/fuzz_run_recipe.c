/* A random recipe of synthetic samples (recipe_grammar.h): parsed, built, compiled, and trained for two steps on the
 * cpu and on the reference device, whose losses must agree. Letters of some recipes are changed at random first; an
 * input that begins with "data:" is a recipe itself.
 *
 * How near losses must be: 1e-4 of the loss, and SHAKEN times what the reference's own losses change by when its first
 * weights change in their last place, so that a network that magnifies rounding has no promise to keep that the
 * reference could not keep either. Only the first loss is compared in 16 bits, where the place is that of these, and of
 * optimisers that divide gradients by their size, where what is nothing but rounding becomes a whole step.
 * With FUZZ_SHOW set recipes and what becomes of them are printed.
 *
 * covers: nn/attention_block.c nn/cnn.c nn/cnn3d.c nn/conv2d.c nn/dense.c nn/dropout.c nn/mlp.c nn/scale.c nn/unet.c
 * recipe/build_synthetic.c
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "fuzz/recipe_grammar.h"
#include "graph/graph.h"
#include "nn/layer.h"
#include "recipe/build.h"
#include "train/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_STEPS = 2, N_SHAKES = 2, SHAKEN = 64, MOST_BYTES = 1 << 20, MOST_FLOPS = 300000, MOST_ROWS = 64 };

typedef struct outcome {
    stk_status status;
    int n;
    double loss[N_STEPS];
    char error[300];
} outcome;

static void on_event(void *user, const stk_train_event *event)
{
    outcome *o = user;
    if (event->kind == STK_EVENT_STEP && o->n < N_STEPS) o->loss[o->n++] = event->loss;
}

/* Whether a forward pass of a batch is quickly done, and its numbers are few. */
static bool is_small(const stk_model *model, int64_t batch)
{
    stk_graph *graph = stk_graph_clone(stk_model_graph((stk_model *)(uintptr_t)model), batch);
    double bytes = 0, flops = 0;
    if (!graph) return false;
    for (int32_t v = 0; v < graph->n_values; v++)
        bytes += stk_shape_known(graph->value[v].desc.shape) ? (double)stk_desc_bytes(graph->value[v].desc) : 1e9;
    for (int32_t i = 0; i < graph->n_nodes && bytes <= MOST_BYTES; i++) {
        const stk_node *node = &graph->node[i];
        stk_tensor_desc *desc = calloc((size_t)(node->n_in + node->n_out), sizeof(*desc));
        if (!desc) abort();
        stk_op_call call = stk_graph_call(graph, i, desc, desc + node->n_in);
        flops += stk_op_cost(&call).flops;
        free(desc);
    }
    stk_graph_free(graph);
    return bytes <= MOST_BYTES && flops <= MOST_FLOPS;
}

static double place_of(const stk_recipe *recipe)
{
    switch (recipe->precision) {
    case STK_PRECISION_BF16: return 0x1p-8;
    case STK_PRECISION_F16: return 0x1p-11;
    default: return 0x1p-23;
    }
}

/* Moves the first weights by a unit in their last place, each up or down. */
static stk_status shake(stk_trainer *trainer, uint64_t seed, double place)
{
    const stk_named_tensor *tensors;
    size_t n;
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensors, &n));
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; tensors[i].view.desc.dtype == STK_F32 && k < stk_shape_count(tensors[i].view.desc.shape);
             k++) {
            float *x = (float *)tensors[i].view.data + k;
            *x *= (float)(1 + (stk_philox(seed, i, (uint64_t)k).v[0] & 1 ? place : -place));
        }
    return stk_trainer_put_tensors(trainer);
}

/* Data and model; *model is NULL where there is none, or it is large. */
static stk_status build(const stk_recipe *recipe, stk_dataset *part[STK_N_PARTS], stk_model **model)
{
    for (int i = 0; i < STK_N_PARTS; i++)
        STK_RETURN_IF_ERROR(stk_build_dataset(recipe, i, &part[i]));
    STK_RETURN_IF_ERROR(stk_build_model(recipe, part[0], model));
    STK_RETURN_IF_ERROR(stk_build_check_names(recipe, *model));
    STK_RETURN_IF_ERROR(stk_build_check_parts(recipe, part[0], part[1], part[2]));
    if (!is_small(*model, recipe->batch)) return STK_INTERRUPTED;
    bool is_long = part[1] && stk_dataset_count(part[1]) > MOST_ROWS;
    return is_long ? STK_INTERRUPTED : STK_OK;
}

static void train_on(const stk_recipe *recipe, const char *device, int n_threads, uint64_t seed, outcome *out)
{
    stk_dataset *part[STK_N_PARTS] = {NULL};
    stk_model *model = NULL;
    stk_trainer *trainer = NULL;
    stk_status status;
    *out = (outcome){0};
    STK_TRY(build(recipe, part, &model));
    trainer = stk_trainer_new(model, part[0], recipe->optimizer);
    part[0] = NULL;
    model = NULL;
    stk_trainer_config config = stk_build_config(recipe);
    config.device = device;
    config.n_threads = n_threads;
    if (config.precision == STK_PRECISION_AUTO) config.precision = STK_PRECISION_F32; /* on both devices */
    config.max_steps = N_STEPS;
    config.data_memory_bytes = 16 << 20;
    config.valid = part[1];
    config.on_event = on_event;
    config.event_user = out;
    stk_trainer_configure(trainer, &config);
    STK_TRY(stk_trainer_prepare(trainer, 1));
    if (seed) STK_TRY(shake(trainer, seed, place_of(recipe)));
    STK_TRY(stk_trainer_run(trainer, 1));
done:
    out->status = status;
    snprintf(out->error, sizeof(out->error), "%s", status == STK_OK ? "" : stk_error_text());
    if (getenv("FUZZ_SHOW")) fprintf(stderr, "%s: status %d, %d steps: %s\n", device, (int)status, out->n, out->error);
    stk_trainer_free(trainer);
    stk_model_free(model);
    for (int i = 0; i < STK_N_PARTS; i++)
        stk_dataset_free(part[i]);
}

static void complain(const stk_recipe *recipe, const outcome *got, const outcome *want, const char *what, int i,
                     double allowed)
{
    stk_text text = {0};
    stk_recipe_print(recipe, &text);
    fprintf(stderr, "%s\n%s at step %d: cpu %d %.9g '%s', reference %d %.9g '%s', allowed %.2g\n", stk_text_get(&text),
            what, i + 1, (int)got->status, got->loss[i], got->error, (int)want->status, want->loss[i], want->error,
            allowed);
    abort();
}

/* False where they are not near; with `other`, it aborts then. */
static bool compare(const stk_recipe *recipe, const outcome *got, const outcome *want, const outcome *other)
{
    bool is_half = recipe->precision == STK_PRECISION_BF16 || recipe->precision == STK_PRECISION_F16;
    bool is_first = is_half || recipe->optimizer.kind != STK_OPTIMIZER_SGD;
    for (int i = 0; i < got->n && i < want->n && !(is_first && i); i++) {
        double change = 0, size = fabs(want->loss[i]);
        for (int s = 0; s < N_SHAKES && other; s++) {
            double d = i < other[s].n ? fabs(other[s].loss[i] - want->loss[i]) : NAN;
            if (!(d <= change)) change = d;
        }
        double allowed = (is_half ? 3e-2 : 1e-4) * (size + 1e-3) + SHAKEN * change;
        if (isnan(got->loss[i]) && isnan(want->loss[i])) return true;
        if (!(allowed < INFINITY) || !(size < 1e30) || fabs(got->loss[i] - want->loss[i]) <= allowed) continue;
        if (!other) return false;
        complain(recipe, got, want, "losses differ", i, allowed);
    }
    return true;
}

static void run(const stk_recipe *recipe, fuzz_draw *draw)
{
    outcome got, want, other[N_SHAKES] = {{0}};
    int n_threads = 1 + fuzz_below(draw, 3);
    train_on(recipe, "cpu", n_threads, 0, &got);
    if (got.status == STK_INTERNAL) complain(recipe, &got, &got, "an internal error", 0, 0);
    if (got.n == 0) return;
    train_on(recipe, "reference", n_threads, 0, &want);
    if (want.n == 0 && want.status != STK_UNSUPPORTED) complain(recipe, &got, &want, "only the reference fails", 0, 0);
    if (compare(recipe, &got, &want, NULL)) return;
    for (uint64_t s = 0; s < N_SHAKES; s++)
        train_on(recipe, "reference", n_threads, s + 1, &other[s]);
    compare(recipe, &got, &want, other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_TEXT = 1 << 13 };
    fuzz_draw draw = {data, size, size ? 1 : 0};
    stk_text text = {0};
    stk_recipe *recipe;
    if (size > MOST_TEXT) return 0;
    if (size > 5 && !memcmp(data, "data:", 5))
        stk_text_add_bytes(&text, data, size);
    else
        fuzz_make_recipe(&draw, &text);
    if (size && data[0] >= 224)
        for (int n = 1 + fuzz_below(&draw, 4); n > 0 && text.n; n--)
            text.data[fuzz_below(&draw, 65536) % (int)text.n] = (char)(fuzz_byte(&draw) & 127);
    if (getenv("FUZZ_SHOW")) fprintf(stderr, "%s\n", stk_text_get(&text));
    if (stk_recipe_parse("recipe.yaml", stk_text_get(&text), text.n, NULL, 0, &recipe) == STK_OK) {
        if (recipe->model && fuzz_recipe_is_bounded(recipe->yaml->root)) run(recipe, &draw);
        stk_recipe_free(recipe);
    } else if (getenv("FUZZ_SHOW")) {
        fprintf(stderr, "refused: %s\n", stk_error_text());
    }
    stk_text_free(&text);
    return 0;
}
