/* What a program of several devices is checked for, and its arenas. See dispatch.h. */
#include "base/error.h"
#include "engine/program.h"

size_t stk_program_variable_bytes_on(const stk_program *program, int i_device)
{
    const stk_graph *graph = program->graph;
    size_t bytes = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_value_info *value = &graph->value[graph->node[i].first_out];
        if (graph->node[i].op == STK_OP_variable && value->device == i_device) bytes += stk_desc_bytes(value->desc);
    }
    return bytes;
}

stk_status stk_program_check_devices(const stk_program *program)
{
    const stk_graph *graph = program->graph;
    const stk_engine *engine = program->engine;
    if (engine->n_devices > 1 && program->micro.n > 1)
        return stk_fail(STK_UNSUPPORTED, "micro-batches on %d devices are not supported", engine->n_devices);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        const stk_value_info *out = &graph->value[node->first_out];
        if (out->device >= engine->n_devices)
            return stk_fail(STK_INVALID, "%s is on device %d, and the engine has %d", stk_op_name(node->op),
                            (int)out->device, engine->n_devices);
        bool crosses = node->op == STK_OP_copy_to || node->op == STK_OP_all_reduce;
        for (int j = 0; j < node->n_in && !crosses; j++)
            if (graph->value[node->in[j]].device != out->device)
                return stk_fail(STK_INVALID, "%s on device %d reads a value on device %d", stk_op_name(node->op),
                                (int)out->device, (int)graph->value[node->in[j]].device);
    }
    return STK_OK;
}

stk_status stk_program_check_device_limits(const stk_program *program, const stk_compile_options *options)
{
    for (int d = 0; d < program->engine->n_devices; d++) {
        size_t limit = options->device_limit_bytes[d], own = stk_program_variable_bytes_on(program, d);
        size_t all = stk_variables_bytes_on(&program->engine->variables, d), arena = program->plan.device_bytes[d];
        size_t variables = own > all ? own : all;
        if (!limit || variables + arena <= limit) continue;
        stk_text name = {0};
        stk_device_print_name(program->engine->on[d].device, &name);
        stk_fail(STK_NO_MEMORY,
                 "device '%s': the plan needs %zu bytes (%zu for parameters and optimiser state, %zu for activations), "
                 "its limit is %zu bytes; place fewer layers there or make its limit larger",
                 stk_text_get(&name), variables + arena, variables, arena, limit);
        stk_text_free(&name);
        return STK_NO_MEMORY;
    }
    return STK_OK;
}

stk_status stk_program_reserve(const stk_program *program)
{
    stk_engine *engine = program->engine;
    const stk_plan *plan = &program->plan;
    STK_RETURN_IF_ERROR(
        stk_engine_reserve(engine, 0, plan->n_devices > 1 ? plan->device_bytes[0] : stk_plan_placed_bytes(plan)));
    for (int d = 1; d < engine->n_devices; d++)
        STK_RETURN_IF_ERROR(stk_engine_reserve(engine, d, plan->device_bytes[d]));
    return STK_OK;
}
