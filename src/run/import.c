/* A run from weights of others. See stoker/files/exchange.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "optim/average.h"
#include "recipe/build.h"
#include "recipe/describe.h"
#include "run/state.h"
#include "stoker/files/exchange.h"
#include "weights/checkpoint_inside.h"
#include "weights/weights.h"

const char *stk_exchange_names(int i, const char **about)
{
    const stk_naming *naming = stk_naming_at(i);
    if (naming && about) *about = naming->about;
    return naming ? naming->name : NULL;
}

/* The trainer's tensors: first the model's, which the file gives; then what a checkpoint keeps besides, without the
 * optimiser's state, which begins when training does. */
typedef struct tensor_list {
    stk_named_tensor *tensor; /* free() */
    size_t n_model, n;
} tensor_list;

static stk_status list_tensors(stk_run *run, tensor_list *out)
{
    const stk_named_tensor *all;
    const stk_graph *graph = stk_model_graph((stk_model *)run->model);
    size_t n_all;
    STK_RETURN_IF_ERROR(stk_trainer_tensors(run->trainer, &all, &n_all));
    *out = (tensor_list){.tensor = calloc(n_all + 1, sizeof(*all))};
    if (!out->tensor) return stk_fail_memory(n_all * sizeof(*all));
    for (size_t i = 0; i < n_all; i++)
        if (stk_graph_find(graph, STK_OP_variable, all[i].name).id >= 0) out->tensor[out->n_model++] = all[i];
    out->n = out->n_model;
    for (size_t i = 0; i < n_all; i++)
        if (stk_graph_find(graph, STK_OP_variable, all[i].name).id < 0 &&
            !stk_is_optimizer_state(all, n_all, all[i].name))
            out->tensor[out->n++] = all[i];
    return STK_OK;
}

/* With a running mean of the weights, both begin as the file says. */
static void copy_to_raw(const tensor_list *list)
{
    for (size_t i = list->n_model; i < list->n; i++) {
        const stk_named_tensor *raw = &list->tensor[i];
        size_t n = strlen(raw->name), n_end = strlen(STK_AVERAGE_RAW);
        for (size_t k = 0; n > n_end && k < list->n_model; k++) {
            const stk_named_tensor *mean = &list->tensor[k];
            if (strlen(mean->name) != n - n_end || strncmp(mean->name, raw->name, n - n_end)) continue;
            if (!strcmp(raw->name + n - n_end, STK_AVERAGE_RAW))
                memcpy(raw->view.data, mean->view.data, stk_desc_bytes(mean->view.desc));
        }
    }
}

static void copy_list(const stk_text *text, char out[STK_EXCHANGE_TEXT])
{
    if (snprintf(out, STK_EXCHANGE_TEXT, "%s", stk_text_get(text)) >= STK_EXCHANGE_TEXT)
        snprintf(out + STK_EXCHANGE_TEXT - 6, 6, ", ...");
}

static stk_status load(const stk_safetensors_file *file, const char *path, const stk_named_tensor *tensors, size_t n,
                       const stk_import_options *options, stk_import_report *out)
{
    stk_weights_report report;
    stk_status status = stk_weights_load(file, tensors, n, options->leave, options->names, &report);
    if (status == STK_OK) {
        out->names = report.naming->name;
        out->n_file = stk_safetensors_count(file);
        out->n_loaded = report.n_loaded;
        out->n_left = report.n_left;
        out->n_extra = report.n_extra;
        out->n_unused = report.n_unused;
        copy_list(&report.left, out->left);
        copy_list(&report.unused, out->unused);
        stk_weights_report_free(&report);
    } else {
        stk_fail_prefix(status, "'%s': ", path);
    }
    return status;
}

/* All of the run's files, or none: a folder without them goes away when the run is closed. */
static stk_status save(stk_run *run, const stk_named_tensor *tensors, size_t n)
{
    stk_train_state state;
    stk_status status;
    stk_checkpoint_report report = {0};
    STK_TRY(stk_folder_write_recipe(run));
    STK_TRY(stk_checkpoint_writer_open(run->folder, (int)run->recipe->checkpoint_keep, &run->writer));
    stk_trainer_get_state(run->trainer, &state);
    STK_TRY(stk_checkpoint_save_in_place(run->writer, tensors, n, &state, run->recipe_text.data, false));
    stk_checkpoint_wait(run->writer, &report);
    if (report.status != STK_OK) STK_TRY(stk_fail(report.status, "%s", report.error));
done:
    if (status != STK_OK) stk_folder_remove_recipe(run);
    return status;
}

/* The run of a recipe; else of the network that `as` names, or that the file itself describes. */
static stk_status open_run(const char *recipe, const char *path, const stk_safetensors_file *file,
                           const stk_run_options *run_options, const char *as, stk_run **out)
{
    stk_description known = {0};
    stk_status status = STK_OK;
    *out = NULL;
    if (recipe) return stk_run_open(recipe, run_options, out);
    const char *inside = stk_safetensors_metadata(file, STK_RECIPE_KEY);
    const char *record = stk_safetensors_metadata(file, STK_DATA_KEY);
    if (as) {
        STK_TRY(stk_describe_known(as, file, &known));
        inside = stk_text_get(&known.recipe);
        record = stk_text_get(&known.record);
    }
    if (!inside || !record)
        STK_TRY(stk_fail(
            STK_INVALID,
            "'%s' does not say which network it is of; give a recipe (--recipe), or name the network (--as)", path));
    status = stk_run_open_text(inside, record, run_options, out);
done:
    stk_description_free(&known);
    return status;
}

static stk_status refuse_onnx(const char *path)
{
    size_t n = strlen(path);
    if (n < 5 || strcmp(path + n - 5, ".onnx") != 0) return STK_OK;
    return stk_fail(STK_INVALID,
                    "'%s' is no file of weights but a network: a recipe takes it as a layer, {onnx: {file: '%s'}} "
                    "(docs/onnx.md)",
                    path, path);
}

stk_status stk_run_import(const char *recipe, const char *path, const stk_run_options *run_options,
                          const stk_import_options *options, stk_import_report *out)
{
    STK_NEED(path);
    STK_NEED(out);
    static const stk_import_options none = {.names = NULL};
    char checkpoint[STK_PATH_BYTES], previous[STK_PATH_BYTES];
    bool has_earlier;
    stk_text warnings = {0};
    tensor_list list = {0};
    stk_safetensors_file *file = NULL;
    stk_run *run = NULL;
    stk_status status;
    *out = (stk_import_report){.names = ""};
    STK_TRY(refuse_onnx(path));
    STK_TRY(stk_safetensors_open(path, &file)); /* before the data are looked for */
    STK_TRY(open_run(recipe, path, file, run_options, options ? options->as : NULL, &run));
    stk_trainer_config config = stk_run_config(run);
    stk_trainer_configure(run->trainer, &config);
    STK_TRY(stk_trainer_prepare(run->trainer, run->recipe->epochs));
    STK_TRY(list_tensors(run, &list));
    STK_TRY(load(file, path, list.tensor, list.n_model, options ? options : &none, out));
    copy_to_raw(&list);
    STK_TRY(stk_folder_open(run, checkpoint, &has_earlier, &warnings));
    if (has_earlier) {
        STK_TRY(stk_folder_move_aside(run, previous));
        stk_text_add(&warnings, "the earlier run is kept in '%s'", previous);
        stk_run_warn(run, stk_text_get(&warnings));
    }
    STK_TRY(save(run, list.tensor, list.n));
    out->generates = stk_build_generates(run->recipe);
    snprintf(out->folder, sizeof(out->folder), "%s", run->folder);
done:
    stk_text_free(&warnings);
    free(list.tensor);
    stk_run_close(run);
    stk_safetensors_close(file);
    return status;
}
