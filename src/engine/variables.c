#include "engine/variables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"

/* Element i depends on (seed, name, i) only, so the order of creation and the thread count change nothing. */
static double draw(stk_init init, uint64_t key, int64_t i)
{
    stk_u32x4 r = stk_philox(key, 0, (uint64_t)i / 2);
    uint32_t a = r.v[i % 2 * 2], b = r.v[i % 2 * 2 + 1];
    if (init.kind == STK_INIT_UNIFORM) return init.a * ((double)(a >> 8) * 0x1p-23 - 1);
    double u = ((double)a + 1) * 0x1p-32, v = (double)b * 0x1p-32;
    return init.a * sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* data: the host's. */
static stk_status fill(const stk_variable *v, stk_init init, uint64_t seed, void *data)
{
    int64_t n = stk_shape_count(v->desc.shape);
    uint64_t key = stk_mix64(seed ^ stk_hash_text(v->name));
    for (int64_t i = 0; i < n; i++) {
        double x = init.kind == STK_INIT_CONSTANT ? init.a : draw(init, key, i);
        switch (v->desc.dtype) {
        case STK_F32: ((float *)data)[i] = (float)x; break;
        case STK_F64: ((double *)data)[i] = x; break;
        case STK_I64: ((int64_t *)data)[i] = (int64_t)x; break;
        case STK_I32: ((int32_t *)data)[i] = (int32_t)x; break;
        default:
            return stk_fail(STK_UNSUPPORTED, "variable '%s': no first content for %s", v->name,
                            stk_dtype_name(v->desc.dtype));
        }
    }
    return STK_OK;
}

static stk_status give_content(const stk_variables *all, const stk_variable *v, stk_init init)
{
    size_t bytes = stk_desc_bytes(v->desc);
    if (init.kind == STK_INIT_CONSTANT && init.a == 0) return STK_OK; /* It comes zeroed. */
    if (all->device->class->on_host) return fill(v, init, all->seed, v->data);
    void *content = malloc(bytes + 1);
    if (!content) return stk_fail_memory(bytes);
    stk_status status = fill(v, init, all->seed, content);
    if (status == STK_OK) status = stk_queue_copy_now(all->queue, v->data, content, bytes, STK_COPY_TO_DEVICE);
    free(content);
    return status;
}

static stk_status add_variable(stk_variables *all, const char *name, stk_tensor_desc desc, stk_init init,
                               bool trainable)
{
    if (all->n == all->capacity) {
        int grown = all->capacity ? 2 * all->capacity : 64;
        stk_variable *p = realloc(all->variable, (size_t)grown * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)grown * sizeof(*p));
        all->variable = p;
        all->capacity = grown;
    }
    stk_variable v = {.name = strdup(name), .desc = desc, .trainable = trainable};
    if (!v.name) return stk_fail_memory(strlen(name));
    stk_status status = all->device->class->alloc(all->device, stk_desc_bytes(desc), STK_MEMORY_ZEROED, &v.data);
    if (status == STK_OK) status = give_content(all, &v, init);
    if (status != STK_OK) {
        if (v.data) all->device->class->free(all->device, v.data, stk_desc_bytes(desc));
        free(v.name);
        return status;
    }
    all->variable[all->n++] = v;
    all->bytes += stk_desc_bytes(desc);
    return STK_OK;
}

stk_status stk_variables_get(stk_variables *variables, const char *name, stk_tensor_desc desc, stk_init init,
                             bool trainable, int *out)
{
    for (int i = 0; i < variables->n; i++) {
        const stk_variable *v = &variables->variable[i];
        if (strcmp(v->name, name)) continue;
        if (v->desc.dtype != desc.dtype || !stk_shape_equal(v->desc.shape, desc.shape)) {
            char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
            return stk_fail(STK_MISMATCH, "variable '%s' is %s here and %s in another graph", name,
                            stk_desc_text(desc, a), stk_desc_text(v->desc, b));
        }
        *out = i;
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(add_variable(variables, name, desc, init, trainable));
    *out = variables->n - 1;
    return STK_OK;
}

void stk_variables_free(stk_variables *variables)
{
    for (int i = 0; i < variables->n; i++) {
        stk_variable *v = &variables->variable[i];
        variables->device->class->free(variables->device, v->data, stk_desc_bytes(v->desc));
        free(v->name);
    }
    free(variables->variable);
    *variables = (stk_variables){0};
}
