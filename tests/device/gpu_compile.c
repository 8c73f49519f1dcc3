/* What a GPU on paper (device/paper) makes of the harness's cases, or of all programs of a recipe, as lines of JSON:
 * for tools/gpu_kernels.py.
 *
 *   gpu_compile [--all] CHIP FOLDER cases
 *   gpu_compile [--all] CHIP FOLDER RECIPE [KEY=VALUE]...
 *
 * --all: as if there were kernels of all ops, so that nothing is decomposed.
 * CHIP is a number of paper_chips; FOLDER is where the last of them, which is the text in OpenCL's dialect, writes its
 * programs. Kept programs lie in STOKER_CACHE. An op without a kernel is a line, and the rest is built all the same.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu_generate.h"
#include "device/paper/calls.h"
#include "device/paper/nvrtc.h"
#include "device/paper/paper.h"
#include "engine/program.h"
#include "graph/query.h"
#include "nn/model_class.h"
#include "recipe/build.h"
#include "run/state.h"
#include "train/trainer_state.h"

static bool print(json_t *line)
{
    bool printed = line && json_dumpf(line, stdout, JSON_COMPACT) == 0 && putchar('\n') == '\n';
    json_decref(line);
    return printed;
}

/* --- what was built --- */

static void print_kernel(const paper_kernel *k)
{
    json_t *line = json_pack("{ss ss ss si sb sb}", "kernel", k->name, "file", k->file, "settings", k->settings,
                             "group", k->group, "hot", paper_is_hot(k), "wants_tiles", paper_wants_tiles(k));
    json_t *figures = json_pack("{si si si si si si si si}", "registers", k->registers, "stack", k->stack_bytes,
                                "shared", k->shared_bytes, "spill_stores", k->spill_store_bytes, "spill_loads",
                                k->spill_load_bytes, "mma", k->n_mma, "wgmma", k->n_wgmma, "fma", k->n_fma);
    json_object_update(line, figures);
    json_decref(figures);
    print(line);
}

static void print_kernels(const stk_device *device)
{
    const gpu_device *gpu = (const gpu_device *)device;
    for (int i = 0; i < gpu->n_modules; i++)
        for (int j = 0; j < gpu->module[i]->n_kernels; j++)
            print_kernel(&gpu->module[i]->kernel[j]);
}

static void print_missing(void)
{
    for (int i = 0; paper_get_missing(i); i++)
        print(json_pack("{ss}", "missing", paper_get_missing(i)));
}

/* --- a program --- */

static json_t *list_descs(int n, const stk_tensor_desc *desc)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        char text[STK_SHAPE_TEXT_BYTES];
        json_array_append_new(list, json_string(stk_desc_text(desc[i], text)));
    }
    return list;
}

static json_t *list_launches(const gpu_kernel *kernel)
{
    json_t *list = json_array();
    for (int i = 0; kernel && i < kernel->n_launches; i++) {
        const gpu_launch *l = &kernel->launch[i];
        char name[GPU_NAME_BYTES];
        gpu_kernel_name(l->unit, l->kernel, name);
        double n_groups = (double)l->n_groups[0] * l->n_groups[1] * l->n_groups[2];
        json_array_append_new(list, json_pack("{ss sf}", "kernel", name, "groups", n_groups));
    }
    return list;
}

static void print_node(const stk_program *program, int32_t i, stk_tensor_desc *desc)
{
    const stk_graph *graph = program->graph;
    const stk_node *node = &graph->node[i];
    int64_t times = stk_program_times(program, i);
    if (node->op == STK_OP_input || node->op == STK_OP_variable || times == 0) return;
    stk_op_call call = stk_graph_call(graph, i, desc, desc + graph->n_values + 64);
    stk_cost cost = stk_graph_cost(graph, i);
    print(json_pack("{ss sI sf sf sb so so so}", "op", stk_op_name(node->op), "times", (json_int_t)times, "flops",
                    cost.flops, "bytes", cost.bytes, "backward", node->backward, "in", list_descs(call.n_in, call.in),
                    "out", list_descs(call.n_out, call.out), "launches", list_launches(program->kernel[i].state)));
}

/* Builds it, and has every launch checked: nothing else reads the entries' pointers, which are not set. */
static stk_status look_at_program(stk_device *device, const stk_program *program, const char *what)
{
    const stk_graph *graph = program->graph;
    stk_capture *capture = NULL;
    STK_RETURN_IF_ERROR(device->class->queues->capture(device, program->entry, program->n_entries, &capture));
    device->class->queues->release(capture);
    stk_tensor_desc *desc = malloc(((size_t)graph->n_values + 64) * 2 * sizeof(*desc));
    if (!desc) return stk_fail_memory((size_t)graph->n_values * sizeof(*desc));
    print(json_pack("{ss si}", "program", what, "entries", program->n_entries));
    for (int32_t i = 0; i < graph->n_nodes; i++)
        print_node(program, i, desc);
    free(desc);
    return STK_OK;
}

/* --- a recipe --- */

static stk_status look_at_eval(stk_device *device, stk_trainer *trainer, const stk_dataset *data, const char *what)
{
    if (!data) return STK_OK;
    STK_RETURN_IF_ERROR(stk_trainer_prepare_eval(trainer, data));
    if (!trainer->eval.program) /* The shapes of batches differ: one of the model's own. */
        STK_RETURN_IF_ERROR(stk_step_compile_eval(trainer, stk_dataset_batch_size(data), &trainer->eval));
    return look_at_program(device, trainer->eval.program, what);
}

static stk_status look_at_engine(const stk_engine *engine)
{
    for (const stk_program *program = engine->programs; program; program = program->next)
        STK_RETURN_IF_ERROR(look_at_program(engine->device, program, "generate"));
    print_kernels(engine->device);
    return STK_OK;
}

static stk_status look_at_generation(const char *name, const stk_recipe *recipe)
{
    stk_transformer_config config;
    if (!recipe->model_class || !recipe->model_class->generates) return STK_OK;
    STK_RETURN_IF_ERROR(stk_build_transformer_config(recipe, &config));
    return gpu_generate(name, &config, look_at_engine);
}

static stk_status look_at_run(const char *name, stk_run *run)
{
    stk_trainer *trainer = run->trainer;
    stk_trainer_config config = stk_run_config(run);
    stk_trainer_configure(trainer, &config);
    STK_RETURN_IF_ERROR(stk_trainer_prepare(trainer, run->recipe->epochs));
    stk_device *device = trainer->engine->device;
    if (!trainer->train.program)
        STK_RETURN_IF_ERROR(stk_step_compile_train(trainer, run->recipe->batch, &trainer->train));
    STK_RETURN_IF_ERROR(look_at_program(device, trainer->train.program, "train"));
    STK_RETURN_IF_ERROR(look_at_eval(device, trainer, run->valid, "valid"));
    STK_RETURN_IF_ERROR(look_at_eval(device, trainer, run->test, "test"));
    if (stk_model_get_output(trainer->model).id >= 0) {
        STK_RETURN_IF_ERROR(stk_step_compile_predict(trainer, &trainer->predict));
        STK_RETURN_IF_ERROR(look_at_program(device, trainer->predict.program, "predict"));
    }
    print_kernels(device);
    STK_RETURN_IF_ERROR(look_at_generation(name, run->recipe));
    print_missing();
    return STK_OK;
}

static stk_status look_at_recipe(const char *device, const char *recipe, int n_set, char **keys)
{
    enum { MOST = 30 };
    const char *set[MOST + 1];
    char device_key[40];
    stk_run *run = NULL;
    int n = 0;
    snprintf(device_key, sizeof(device_key), "device=%s", device);
    set[n++] = device_key;
    for (int i = 0; i < n_set && i < MOST; i++)
        set[n++] = keys[i];
    stk_run_options options = {.set = set, .n_set = n};
    STK_RETURN_IF_ERROR(stk_run_open(recipe, &options, &run));
    stk_status status = look_at_run(device, run);
    stk_run_close(run);
    return status;
}

/* --- cases --- */

static stk_status look_at_cases(const char *name)
{
    stk_device *device;
    paper_tally tally;
    STK_RETURN_IF_ERROR(stk_device_open(name, NULL, &device));
    stk_status status = paper_build_cases(device, &tally);
    if (status == STK_OK) {
        print_kernels(device);
        print_missing();
    }
    stk_device_close(device);
    return status;
}

int main(int argc, char **argv)
{
    char device[16];
    if (argc > 1 && !strcmp(argv[1], "--all")) {
        paper_set_caps(&stk_device_caps_all);
        argc--, argv++;
    }
    if (argc < 4) {
        fprintf(stderr, "usage: gpu_compile [--all] CHIP FOLDER cases|RECIPE [KEY=VALUE]...\n");
        return 2;
    }
    paper_add();
    paper_set_folder(argv[2]);
    paper_set_lenient(true);
    snprintf(device, sizeof(device), "paper:%.4s", argv[1]);
    stk_status status =
        !strcmp(argv[3], "cases") ? look_at_cases(device) : look_at_recipe(device, argv[3], argc - 4, argv + 4);
    if (status == STK_OK) print(json_pack("{ss}", "compiler", nvrtc_version()));
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    paper_forget_missing();
    return status != STK_OK;
}
