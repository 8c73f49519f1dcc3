#include "engine/engine.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/program.h"

static stk_status open_device(stk_engine *engine, const char *name, const stk_device_config *config)
{
    stk_home *on = &engine->on[engine->n_devices];
    STK_RETURN_IF_ERROR(stk_device_open(name, config, &on->device));
    engine->n_devices++;
    const stk_queue_class *queues = on->device->class->queues;
    STK_RETURN_IF_ERROR(queues->open(on->device, &on->in));
    STK_RETURN_IF_ERROR(queues->open(on->device, &on->compute));
    return queues->open(on->device, &on->out);
}

stk_status stk_engine_check_device(const char *name)
{
    return stk_device_check(name);
}

stk_status stk_engine_open_many(const char *const *device, const stk_device_config *config, int n, uint64_t seed,
                                stk_engine **out)
{
    if (n < 1 || n > STK_MOST_DEVICES)
        return stk_fail(STK_INVALID, "%d devices: an engine has 1 to %d", n, STK_MOST_DEVICES);
    stk_engine *engine = calloc(1, sizeof(*engine));
    if (!engine) return stk_fail_memory(sizeof(*engine));
    stk_status status = STK_OK;
    engine->variables = (stk_variables){.seed = seed, .version = 1};
    for (int i = 0; i < n; i++) {
        STK_TRY(open_device(engine, device[i], config ? &config[i] : NULL));
        engine->variables.device[i] = engine->on[i].device;
        engine->variables.queue[i] = engine->on[i].compute;
    }
    engine->device = engine->on[0].device;
    engine->in = engine->on[0].in;
    engine->compute = engine->on[0].compute;
    engine->out = engine->on[0].out;
    *out = engine;
    return STK_OK;
done:
    stk_engine_close(engine);
    return status;
}

stk_status stk_engine_open(const char *device, const stk_device_config *config, uint64_t seed, stk_engine **out)
{
    return stk_engine_open_many(&device, config, 1, seed, out);
}

void stk_engine_measure(stk_engine *engine, stk_measuring measuring)
{
    for (int i = 0; i < engine->n_devices; i++)
        engine->on[i].device->measuring = measuring;
}

void stk_engine_limit_compiled(stk_engine *engine, size_t bytes)
{
    for (int i = 0; i < engine->n_devices; i++)
        engine->on[i].device->compiled_limit_bytes = bytes;
}

void stk_engine_print_choices(const stk_engine *engine, stk_text *out)
{
    if (engine->device->class->print_choices) engine->device->class->print_choices(engine->device, out);
}

stk_status stk_engine_take_choices(stk_engine *engine, const char *text)
{
    stk_device *device = engine->device;
    return device->class->take_choices ? device->class->take_choices(device, text) : STK_OK;
}

int stk_engine_n_devices(const stk_engine *engine)
{
    return engine->n_devices;
}

/* Work under way uses what is about to be freed. What failed has no one left to tell. */
static void close_device(stk_home *on)
{
    const stk_device_class *class = on->device->class;
    if (on->arena) class->free(on->device, on->arena, on->arena_bytes);
    class->queues->close(on->in);
    class->queues->close(on->compute);
    class->queues->close(on->out);
    stk_device_close(on->device);
}

void stk_engine_close(stk_engine *engine)
{
    if (!engine) return;
    (void)stk_engine_finish(engine);
    while (engine->programs) {
        stk_program *next = engine->programs->next;
        stk_program_free(engine->programs);
        engine->programs = next;
    }
    stk_variables_free(&engine->variables);
    for (int i = 0; i < engine->n_devices; i++)
        close_device(&engine->on[i]);
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

stk_status stk_engine_reserve(stk_engine *engine, int i_device, size_t bytes)
{
    stk_home *on = &engine->on[i_device];
    if (bytes <= on->arena_bytes) return STK_OK;
    STK_RETURN_IF_ERROR(stk_engine_finish(engine));
    if (on->arena) on->device->class->free(on->device, on->arena, on->arena_bytes);
    on->arena = NULL;
    on->arena_bytes = 0;
    engine->arena_version++;
    STK_RETURN_IF_ERROR(on->device->class->alloc(on->device, bytes, STK_MEMORY_SCRATCH, &on->arena));
    on->arena_bytes = bytes;
    return STK_OK;
}

int stk_engine_n_variables(const stk_engine *engine)
{
    return engine->variables.n;
}

stk_variable_view stk_engine_variable(const stk_engine *engine, int i)
{
    const stk_variable *v = &engine->variables.variable[i];
    void *data = engine->on[v->device].device->class->on_host ? v->data : NULL;
    return (stk_variable_view){v->name, {v->desc, data}, v->trainable, v->n_parts, v->whole};
}

stk_status stk_engine_read_variable(stk_engine *engine, int i, void *dst)
{
    const stk_variable *v = &engine->variables.variable[i];
    return stk_queue_copy_now(engine->on[v->device].compute, dst, v->data, stk_desc_bytes(v->desc), STK_COPY_TO_HOST);
}

stk_status stk_engine_write_variable(stk_engine *engine, int i, const void *src)
{
    const stk_variable *v = &engine->variables.variable[i];
    stk_engine_changed(engine);
    return stk_queue_copy_now(engine->on[v->device].compute, v->data, src, stk_desc_bytes(v->desc), STK_COPY_TO_DEVICE);
}

void stk_engine_changed(stk_engine *engine)
{
    engine->variables.version++;
}

stk_status stk_engine_finish(stk_engine *engine)
{
    stk_status first = STK_OK;
    for (int i = 0; i < 3 * engine->n_devices; i++) {
        const stk_home *on = &engine->on[i / 3];
        stk_queue *queue[] = {on->in, on->compute, on->out};
        stk_status status = queue[i % 3] ? on->device->class->queues->finish(queue[i % 3]) : STK_OK;
        if (first == STK_OK) first = status;
    }
    return first;
}

int stk_engine_runs_ahead(const stk_engine *engine)
{
    return engine->device->class->on_host ? 0 : 2;
}
