#include "engine/engine.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/program.h"

stk_status stk_engine_open(const char *device, const stk_device_config *config, uint64_t seed, stk_engine **out)
{
    stk_engine *engine = calloc(1, sizeof(*engine));
    if (!engine) return stk_fail_memory(sizeof(*engine));
    stk_status status = stk_device_open(device, config, &engine->device);
    if (status != STK_OK) {
        free(engine);
        return status;
    }
    engine->variables = (stk_variables){.device = engine->device, .seed = seed};
    *out = engine;
    return STK_OK;
}

void stk_engine_close(stk_engine *engine)
{
    if (!engine) return;
    while (engine->programs) {
        stk_program *next = engine->programs->next;
        stk_program_free(engine->programs);
        engine->programs = next;
    }
    stk_variables_free(&engine->variables);
    if (engine->arena) engine->device->class->free(engine->device, engine->arena, engine->arena_bytes);
    stk_device_close(engine->device);
    free(engine);
}

const stk_device *stk_engine_device(const stk_engine *engine)
{
    return engine->device;
}

void stk_engine_discard(stk_engine *engine, stk_program *program)
{
    if (!program) return;
    for (stk_program **p = &engine->programs; *p; p = &(*p)->next)
        if (*p == program) {
            *p = program->next;
            break;
        }
    stk_program_free(program);
}

stk_status stk_engine_reserve(stk_engine *engine, size_t bytes)
{
    if (bytes <= engine->arena_bytes) return STK_OK;
    if (engine->arena) engine->device->class->free(engine->device, engine->arena, engine->arena_bytes);
    engine->arena = NULL;
    engine->arena_bytes = 0;
    engine->arena_version++;
    STK_RETURN_IF_ERROR(engine->device->class->alloc(engine->device, bytes, &engine->arena));
    engine->arena_bytes = bytes;
    return STK_OK;
}

int stk_engine_n_variables(const stk_engine *engine)
{
    return engine->variables.n;
}

stk_variable_view stk_engine_variable(const stk_engine *engine, int i)
{
    const stk_variable *v = &engine->variables.variable[i];
    return (stk_variable_view){v->name, {v->desc, v->data}, v->trainable};
}
