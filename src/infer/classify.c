/* See stoker/train/classify.h. The network is built from the two texts in the file's metadata (recipe/describe.h). */
#include "stoker/train/classify.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "engine/engine.h"
#include "infer/inference_graph.h"
#include "infer/predict_image.h"
#include "recipe/build.h"
#include "recipe/describe.h"
#include "weights/weights.h"

struct stk_classifier {
    stk_recipe *recipe;
    stk_dataset *dataset; /* blank: for its stages and classes */
    stk_model *model;
    stk_engine *engine;
    stk_program *program;
    int64_t n_classes;
    void *sample; /* the network's input */
    float *score; /* [n_classes] */
};

static stk_status read_description(const stk_safetensors_file *weights, const char *file, stk_classifier *c)
{
    const char *recipe = stk_safetensors_metadata(weights, STK_RECIPE_KEY);
    const char *record = stk_safetensors_metadata(weights, STK_DATA_KEY);
    if (!recipe || !record)
        return stk_fail(STK_UNSUPPORTED,
                        "'%s' does not say which network it is of; write it with: stoker export RUN --safetensors",
                        file);
    STK_RETURN_IF_ERROR(stk_recipe_parse(file, recipe, strlen(recipe), NULL, 0, &c->recipe));
    return stk_data_record_parse(file, record, strlen(record), &c->recipe->record);
}

/* Probabilities of classes, else the plain output. */
static stk_status compile(stk_classifier *c)
{
    stk_graph *graph;
    STK_RETURN_IF_ERROR(stk_inference_graph(c->model, 1, &graph));
    stk_value logits = stk_value_of(graph, graph->root[0].value);
    if (stk_predict_kind(c->recipe) == STK_PREDICTION_CLASS) logits = stk_softmax(logits);
    graph->n_roots = 0;
    stk_graph_output(graph, "prediction", logits);
    stk_shape shape = stk_value_shape(logits);
    c->n_classes = shape.rank == 2 ? shape.dim[1] : 0;
    STK_RETURN_IF_ERROR(stk_engine_compile_forward(c->engine, graph, &c->program)); /* takes graph */
    if (c->n_classes < 1) return stk_fail(STK_UNSUPPORTED, "the network's output is no row of numbers");
    if (stk_program_input(c->program, "image") < 0)
        return stk_fail(STK_UNSUPPORTED, "the network has no input 'image'");
    return STK_OK;
}

/* Where the device's memory is not the host's, through copies. */
static stk_status load_weights(const stk_safetensors_file *weights, stk_classifier *c)
{
    int n = stk_engine_n_variables(c->engine);
    stk_weights_report report = {0};
    stk_status status = STK_OK;
    bool on_host = true;
    stk_named_tensor *tensor = calloc((size_t)n + 1, sizeof(*tensor));
    if (!tensor) return stk_fail_memory((size_t)n * sizeof(*tensor));
    for (int i = 0; i < n; i++) {
        stk_variable_view v = stk_engine_variable(c->engine, i);
        tensor[i] = (stk_named_tensor){.name = v.name, .view = v.view};
        if (v.view.data) continue;
        on_host = false;
        tensor[i].view.data = malloc(stk_desc_bytes(v.view.desc));
        if (!tensor[i].view.data) STK_TRY(stk_fail_memory(stk_desc_bytes(v.view.desc)));
    }
    STK_TRY(stk_weights_load(weights, tensor, (size_t)n, NULL, NULL, &report));
    for (int i = 0; i < n && !on_host; i++)
        STK_TRY(stk_engine_write_variable(c->engine, i, tensor[i].view.data));
done:
    for (int i = 0; i < n && !on_host; i++)
        free(tensor[i].view.data);
    stk_weights_report_free(&report);
    free(tensor);
    return status;
}

static stk_status make_room(stk_classifier *c)
{
    stk_tensor_desc desc;
    STK_RETURN_IF_ERROR(stk_dataset_field(c->dataset, "image", true, &desc.dtype, &desc.shape));
    c->sample = malloc(stk_desc_bytes(desc));
    c->score = malloc((size_t)c->n_classes * sizeof(*c->score));
    return c->sample && c->score ? STK_OK : stk_fail_memory(stk_desc_bytes(desc));
}

stk_status stk_classifier_open(const char *file, const stk_classifier_options *options, stk_classifier **out)
{
    STK_NEED(file);
    STK_NEED(out);
    static const stk_classifier_options default_value = {.device = NULL};
    stk_safetensors_file *weights = NULL;
    stk_status status;
    *out = NULL;
    if (!options) options = &default_value;
    stk_device_config device = {.n_threads = options->n_threads};
    stk_classifier *c = calloc(1, sizeof(*c));
    if (!c) return stk_fail_memory(sizeof(*c));
    STK_TRY(stk_safetensors_open(file, &weights));
    STK_TRY(read_description(weights, file, c));
    STK_TRY(stk_build_dataset(c->recipe, STK_PART_TRAIN, &c->dataset));
    STK_TRY(stk_build_model(c->recipe, c->dataset, &c->model));
    STK_TRY(stk_engine_open(options->device ? options->device : "cpu", &device, 0, &c->engine));
    STK_TRY(compile(c));
    STK_TRY(load_weights(weights, c));
    STK_TRY(make_room(c));
    *out = c;
    c = NULL;
done:
    stk_safetensors_close(weights);
    stk_classifier_close(c);
    return status;
}

void stk_classifier_close(stk_classifier *classifier)
{
    if (!classifier) return;
    stk_engine_close(classifier->engine);
    stk_model_free(classifier->model);
    stk_dataset_free(classifier->dataset);
    stk_recipe_free(classifier->recipe);
    free(classifier->sample);
    free(classifier->score);
    free(classifier);
}

stk_status stk_classifier_predict(stk_classifier *c, const char *image, stk_prediction *out, int n_top, int *n_out)
{
    if (!c) return stk_fail(STK_INVALID, "there is no classifier");
    stk_span bytes;
    stk_status status;
    bool fitted;
    *n_out = 0;
    STK_TRY(stk_predict_file(c->recipe, STK_PART_TRAIN, c->dataset, image, &bytes, c->sample, &fitted));
    stk_program_bind(c->program, stk_program_input(c->program, "image"), c->sample);
    STK_TRY(stk_program_run(c->program));
    STK_TRY(stk_program_wait(c->program, 0));
    memcpy(c->score, stk_program_output(c->program, "prediction", NULL), (size_t)c->n_classes * sizeof(*c->score));
    STK_TRY(stk_predict_top(stk_predict_kind(c->recipe), c->score, c->n_classes, c->dataset, out, n_top, n_out));
done:
    stk_file_unload(bytes);
    return status;
}
