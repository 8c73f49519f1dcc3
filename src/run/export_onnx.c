/* A run's network as an ONNX model, its last preprocessing inside. See stoker/files/exchange.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new_file.h"
#include "data/dataset/pixels.h"
#include "infer/inference_graph.h"
#include "onnx/export.h"
#include "run/export.h"
#include "run/state.h"
#include "stoker/files/exchange.h"

static const stk_dataset *dataset_of(const stk_run *run, int *i_part)
{
    *i_part = run->test ? STK_PART_TEST : run->valid ? STK_PART_VALID : STK_PART_TRAIN;
    return run->test ? run->test : run->valid ? run->valid : run->train;
}

static bool find_pixels(const stk_dataset *dataset, stk_onnx_pixels *out)
{
    stk_pixels pixels;
    if (!stk_pixels_find(dataset, "image", &pixels)) return false;
    *out = (stk_onnx_pixels){.input = "image", .n = pixels.n};
    memcpy(out->a, pixels.a, sizeof(out->a));
    memcpy(out->b, pixels.b, sizeof(out->b));
    return true;
}

static stk_status get_weight(void *user, const char *name, const void **data)
{
    stk_export_source *source = user;
    stk_value variable = stk_graph_find(source->graph, STK_OP_variable, name);
    if (variable.id < 0) return stk_fail(STK_INTERNAL, "variable '%s' is not the model's", name);
    return stk_export_load(source, stk_value_node(variable), data);
}

/* "[\"cat\",\"dog\"]", "" where classes have no names. */
static void print_classes(const stk_dataset *dataset, stk_text *out)
{
    const char *const *names = NULL;
    int64_t n = stk_dataset_classes(dataset, &names);
    for (int64_t i = 0; names && i < n; i++) {
        stk_text_add(out, "%s\"", i ? "," : "[");
        for (const char *c = names[i]; *c; c++)
            stk_text_add(out, *c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < 0x20 ? "?" : "%c", *c);
        stk_text_add(out, "\"%s", i == n - 1 ? "]" : "");
    }
}

typedef struct texts {
    stk_text stages, classes;
    char step[32];
} texts;

static stk_status save(stk_export_source *source, const stk_graph *graph, const char *path,
                       const stk_export_options *options, texts *t, stk_onnx_export_report *report)
{
    int i_part;
    stk_onnx_pixels pixels;
    const stk_dataset *dataset = dataset_of(source->run, &i_part);
    const stk_yaml_node *stages = source->run->recipe->part[i_part].stages;
    bool has_pixels = find_pixels(dataset, &pixels);
    if (stages) stk_yaml_print_flow(stages, &t->stages);
    print_classes(dataset, &t->classes);
    snprintf(t->step, sizeof(t->step), "%lld", (long long)source->step);
    STK_RETURN_IF_ERROR(stk_text_status(&t->stages));
    STK_RETURN_IF_ERROR(stk_text_status(&t->classes));
    const char *metadata[] = {"stoker.run",
                              source->run->info.name,
                              "stoker.step",
                              t->step,
                              STK_ONNX_STAGES,
                              stk_text_get(&t->stages),
                              STK_ONNX_STAGES "_inside",
                              has_pixels ? "1, the last; input 'image' is u8 [N,H,W,C] after those before it" : "0",
                              "stoker.classes",
                              stk_text_get(&t->classes),
                              NULL};
    stk_onnx_export how = {.name = source->run->info.name,
                           .metadata = metadata,
                           .pixels = has_pixels ? &pixels : NULL,
                           .inside_bytes = options->shard_bytes,
                           .weight = get_weight,
                           .user = source};
    return stk_onnx_save(graph, &how, path, report);
}

stk_status stk_run_export_onnx(const char *folder, const char *out, const stk_run_options *run_options,
                               const stk_export_options *options, stk_export_report *report)
{
    STK_NEED(folder);
    STK_NEED(report);
    static const stk_export_options none = {.names = NULL};
    stk_export_source source = {0};
    stk_onnx_export_report written;
    stk_graph *graph = NULL;
    texts t = {.step = ""};
    stk_status status = STK_OK;
    *report = (stk_export_report){0};
    if (!options) options = &none;
    if (options->dtype != STK_F32) STK_TRY(stk_fail(STK_UNSUPPORTED, "ONNX models are written in f32"));
    STK_TRY(stk_export_path(folder, "model.onnx", out, report->path));
    STK_TRY(stk_new_file_check_kind(report->path, "an ONNX model of Stoker", 0, "\x08\x08\x12\x06stoker", 10));
    STK_TRY(stk_export_open(folder, run_options, &source));
    STK_TRY(stk_dir_check_for(report->path));
    STK_TRY(stk_inference_graph(source.run->model, STK_ANY, &graph));
    STK_TRY(save(&source, graph, report->path, options, &t, &written));
    report->n_tensors = written.n_weights;
    report->n_bytes = written.weight_bytes;
    report->n_files = written.external ? 2 : 1;
    report->step = source.step;
    snprintf(report->inputs, sizeof(report->inputs), "%s", written.inputs);
    snprintf(report->outputs, sizeof(report->outputs), "%s", written.outputs);
done:
    stk_text_free(&t.stages);
    stk_text_free(&t.classes);
    stk_graph_free(graph);
    stk_export_close(&source);
    return status;
}
