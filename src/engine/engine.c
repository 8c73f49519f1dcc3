#include "engine/engine.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/program.h"

stk_status stk_engine_open(const char *device, const stk_device_config *config, uint64_t seed, stk_engine **out)
{
    stk_engine *engine = calloc(1, sizeof(*engine));
    if (!engine) return stk_fail_memory(sizeof(*engine));
    stk_status status;
    STK_TRY(stk_device_open(device, config, &engine->device));
    const stk_queue_class *queues = engine->device->class->queues;
    STK_TRY(queues->open(engine->device, &engine->in));
    STK_TRY(queues->open(engine->device, &engine->compute));
    STK_TRY(queues->open(engine->device, &engine->out));
    engine->variables = (stk_variables){.device = engine->device, .queue = engine->compute, .seed = seed, .version = 1};
    *out = engine;
    return STK_OK;
done:
    stk_engine_close(engine);
    return status;
}

/* Work under way uses what is about to be freed. What failed has no one left to tell. */
static void close_queues(stk_engine *engine)
{
    const stk_queue_class *queues = engine->device->class->queues;
    queues->close(engine->in);
    queues->close(engine->compute);
    queues->close(engine->out);
}

void stk_engine_close(stk_engine *engine)
{
    if (!engine) return;
    if (engine->device) (void)stk_engine_finish(engine);
    while (engine->programs) {
        stk_program *next = engine->programs->next;
        stk_program_free(engine->programs);
        engine->programs = next;
    }
    stk_variables_free(&engine->variables);
    if (engine->arena) engine->device->class->free(engine->device, engine->arena, engine->arena_bytes);
    if (engine->device) close_queues(engine);
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
    STK_RETURN_IF_ERROR(stk_engine_finish(engine));
    if (engine->arena) engine->device->class->free(engine->device, engine->arena, engine->arena_bytes);
    engine->arena = NULL;
    engine->arena_bytes = 0;
    engine->arena_version++;
    STK_RETURN_IF_ERROR(engine->device->class->alloc(engine->device, bytes, STK_MEMORY_SCRATCH, &engine->arena));
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
    return (stk_variable_view){v->name, {v->desc, engine->device->class->on_host ? v->data : NULL}, v->trainable};
}

stk_status stk_engine_read_variable(stk_engine *engine, int i, void *dst)
{
    const stk_variable *v = &engine->variables.variable[i];
    return stk_queue_copy_now(engine->compute, dst, v->data, stk_desc_bytes(v->desc), STK_COPY_TO_HOST);
}

stk_status stk_engine_write_variable(stk_engine *engine, int i, const void *src)
{
    const stk_variable *v = &engine->variables.variable[i];
    stk_engine_changed(engine);
    return stk_queue_copy_now(engine->compute, v->data, src, stk_desc_bytes(v->desc), STK_COPY_TO_DEVICE);
}

void stk_engine_changed(stk_engine *engine)
{
    engine->variables.version++;
}

stk_status stk_engine_finish(stk_engine *engine)
{
    const stk_queue_class *queues = engine->device->class->queues;
    stk_queue *queue[] = {engine->in, engine->compute, engine->out};
    stk_status first = STK_OK;
    for (int i = 0; i < 3; i++) {
        stk_status status = queue[i] ? queues->finish(queue[i]) : STK_OK;
        if (first == STK_OK) first = status;
    }
    return first;
}

int stk_engine_runs_ahead(const stk_engine *engine)
{
    return engine->device->class->on_host ? 0 : 2;
}
