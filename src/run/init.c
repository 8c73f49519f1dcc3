/* First weights from a file or another run. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "graph/query.h"
#include "recipe/build.h"
#include "run/state.h"
#include "weights/weights.h"

/* A run's folder stands for its best checkpoint, or its last. */
static stk_status find_file(const char *path, char out[STK_PATH_BYTES])
{
    struct stat info;
    char checkpoint[STK_PATH_BYTES];
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode) || strstr(path, ".safetensors"))
        return stk_path_join(out, STK_PATH_BYTES, "", path);
    if (stk_checkpoint_find(path, true, checkpoint, sizeof(checkpoint), NULL) != STK_OK)
        STK_RETURN_IF_ERROR(stk_checkpoint_find(path, false, checkpoint, sizeof(checkpoint), NULL));
    return stk_path_join(out, STK_PATH_BYTES, checkpoint, "model.safetensors");
}

static void tell(stk_run *run, const char *path, const stk_weights_report *report)
{
    stk_text text = {0};
    stk_text_add(&text, "init: %lld tensors from '%s' (%s)", (long long)report->n_loaded, path, report->naming->name);
    if (report->n_left) stk_text_add(&text, "; left as they were: %s", stk_text_get(&report->left));
    if (report->n_unused) stk_text_add(&text, "; of the file not taken: %s", stk_text_get(&report->unused));
    stk_run_warn(run, stk_text_get(&text));
    stk_text_free(&text);
}

/* The trainer's tensors that are the network's own. */
static stk_status list_tensors(stk_run *run, stk_named_tensor **out, size_t *n)
{
    const stk_named_tensor *all;
    size_t n_all;
    const stk_graph *graph = stk_model_graph((stk_model *)run->model);
    STK_RETURN_IF_ERROR(stk_trainer_tensors(run->trainer, &all, &n_all));
    *n = 0;
    *out = calloc(n_all + 1, sizeof(**out));
    if (!*out) return stk_fail_memory(n_all * sizeof(**out));
    for (size_t i = 0; i < n_all; i++)
        if (stk_graph_find(graph, STK_OP_variable, all[i].name).id >= 0) (*out)[(*n)++] = all[i];
    return STK_OK;
}

static stk_status load(stk_run *run)
{
    const stk_recipe *recipe = run->recipe;
    char path[STK_PATH_BYTES];
    stk_safetensors_file *file = NULL;
    stk_named_tensor *tensors = NULL;
    stk_weights_report report;
    size_t n;
    stk_status status;
    STK_TRY(find_file(recipe->init_weights, path));
    STK_TRY(stk_safetensors_open(path, &file));
    STK_TRY(list_tensors(run, &tensors, &n));
    status = stk_weights_load(file, tensors, n, recipe->init_leave, NULL, &report);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
    tell(run, path, &report);
    stk_weights_report_free(&report);
    STK_TRY(stk_trainer_put_tensors(run->trainer));
done:
    stk_safetensors_close(file);
    free(tensors);
    return status;
}

stk_status stk_run_init_weights(stk_run *run)
{
    if (!run->recipe->init_weights) return STK_OK;
    stk_status status = load(run);
    if (status == STK_OK) return STK_OK;
    return stk_build_fail(stk_yaml_get(stk_yaml_get(run->recipe->yaml->root, "init"), "weights"), status);
}
