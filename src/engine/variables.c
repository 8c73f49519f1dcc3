#include "engine/variables.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "engine/draw.h"

/* The first content of one variable. Element i depends on (seed, name, i) only, so that neither the order of creation
 * nor the thread count changes anything. */
typedef struct filling {
    stk_init init;
    stk_draw_fn draw; /* NULL: a constant */
    uint64_t key;
    stk_dtype dtype;
    int64_t n;
    void *data; /* the host's */
} filling;

static void store(const filling *f, int64_t i, double x)
{
    switch (f->dtype) {
    case STK_F32: ((float *)f->data)[i] = (float)x; break;
    case STK_F64: ((double *)f->data)[i] = x; break;
    case STK_I64: ((int64_t *)f->data)[i] = (int64_t)x; break;
    default: ((int32_t *)f->data)[i] = (int32_t)x; break;
    }
}

/* Elements begin to begin + n - 1, which are a chunk or less. */
static void draw(const filling *f, int64_t begin, int64_t n)
{
    float x[STK_DRAW_CHUNK];
    bool in_place = f->dtype == STK_F32 && n == STK_DRAW_CHUNK;
    f->draw(f->key, begin / STK_DRAW_CHUNK, (float)f->init.a, in_place ? (float *)f->data + begin : x);
    for (int64_t i = 0; i < n && !in_place; i++)
        store(f, begin + i, (double)x[i]);
}

static void fill_part(const void *p, int i_part, int n_parts)
{
    const filling *f = p;
    int64_t n_chunks = (f->n + STK_DRAW_CHUNK - 1) / STK_DRAW_CHUNK, end = n_chunks * (i_part + 1) / n_parts;
    for (int64_t chunk = n_chunks * i_part / n_parts; chunk < end; chunk++) {
        int64_t begin = chunk * STK_DRAW_CHUNK, n = f->n - begin < STK_DRAW_CHUNK ? f->n - begin : STK_DRAW_CHUNK;
        if (f->draw) draw(f, begin, n);
        for (int64_t i = 0; i < n && !f->draw; i++)
            store(f, begin + i, f->init.a);
    }
}

/* Of a weight [O,...,C]: output i < C is input i. */
static void make_identity(const filling *f, stk_shape shape)
{
    if (shape.rank < 2) return;
    int64_t n_channels = shape.dim[shape.rank - 1], filter = stk_shape_product(shape, 1, shape.rank), middle = 0;
    for (int axis = 1; axis < shape.rank - 1; axis++)
        middle = middle * shape.dim[axis] + shape.dim[axis] / 2;
    for (int64_t i = 0; i < shape.dim[0] && i < n_channels; i++) {
        for (int64_t k = 0; k < filter; k++)
            store(f, i * filter + k, 0);
        store(f, i * filter + middle * n_channels + i, 1);
    }
}

static stk_draw_fn choose_draw(stk_init_kind kind)
{
    const stk_draw_kernels *kernels = stk_draw_kernels_choose();
    return kind == STK_INIT_NORMAL ? kernels->normal : kind == STK_INIT_CONSTANT ? NULL : kernels->uniform;
}

/* data: the host's. The device's threads help where there is much and it has some. */
static stk_status fill(const stk_variables *all, const stk_variable *v, stk_init init, void *data)
{
    enum { PART = 1 << 16, MOST_PARTS = 1024 };
    stk_dtype dtype = v->desc.dtype;
    filling f = {.init = init,
                 .draw = choose_draw(init.kind),
                 .key = stk_mix64(all->seed ^ stk_hash_text(v->name)),
                 .dtype = dtype,
                 .n = stk_shape_count(v->desc.shape),
                 .data = data};
    if (dtype != STK_F32 && dtype != STK_F64 && dtype != STK_I64 && dtype != STK_I32)
        return stk_fail(STK_UNSUPPORTED, "variable '%s': no first content for %s", v->name, stk_dtype_name(dtype));
    int64_t n_parts = f.n / PART < MOST_PARTS ? f.n / PART : MOST_PARTS;
    const stk_device *device = all->device[v->device];
    if (n_parts > 1 && device->class->parallel)
        device->class->parallel(device, (int)n_parts, fill_part, &f);
    else
        fill_part(&f, 0, 1);
    if (init.kind == STK_INIT_IDENTITY) make_identity(&f, v->desc.shape);
    return STK_OK;
}

static stk_status give_content(const stk_variables *all, const stk_variable *v, const stk_attrs *leaf)
{
    size_t bytes = stk_desc_bytes(v->desc);
    stk_init init = leaf->leaf.init;
    if (all->device[v->device]->absent[0]) return STK_OK;
    if (leaf->leaf.content)
        return stk_queue_copy_now(all->queue[v->device], v->data, leaf->leaf.content, bytes, STK_COPY_TO_DEVICE);
    if (init.kind == STK_INIT_CONSTANT && init.a == 0) return STK_OK; /* It comes zeroed. */
    if (all->device[v->device]->class->on_host) return fill(all, v, init, v->data);
    void *content = malloc(bytes + 1);
    if (!content) return stk_fail_memory(bytes);
    stk_status status = fill(all, v, init, content);
    if (status == STK_OK)
        status = stk_queue_copy_now(all->queue[v->device], v->data, content, bytes, STK_COPY_TO_DEVICE);
    free(content);
    return status;
}

static stk_status add_variable(stk_variables *all, const char *name, stk_tensor_desc desc, int i_device,
                               const stk_attrs *leaf)
{
    if (all->n == all->capacity) {
        int grown = all->capacity ? 2 * all->capacity : 64;
        stk_variable *p = realloc(all->variable, (size_t)grown * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)grown * sizeof(*p));
        all->variable = p;
        all->capacity = grown;
    }
    stk_device *device = all->device[i_device];
    stk_variable v = {.name = strdup(name), .desc = desc, .device = i_device, .trainable = leaf->leaf.trainable};
    v.n_parts = leaf->leaf.n_parts;
    v.whole = leaf->leaf.whole;
    if (!v.name) return stk_fail_memory(strlen(name));
    stk_status status = device->class->alloc(device, stk_desc_bytes(desc), STK_MEMORY_ZEROED, &v.data);
    if (status == STK_OK) status = give_content(all, &v, leaf);
    if (status != STK_OK) {
        if (v.data) device->class->free(device, v.data, stk_desc_bytes(desc));
        free(v.name);
        return status;
    }
    all->variable[all->n++] = v;
    all->bytes += stk_desc_bytes(desc);
    return STK_OK;
}

int stk_variables_find(const stk_variables *variables, const char *name)
{
    for (int i = 0; i < variables->n; i++)
        if (!strcmp(variables->variable[i].name, name)) return i;
    return -1;
}

stk_status stk_variables_get(stk_variables *variables, const char *name, stk_tensor_desc desc, int device,
                             const stk_attrs *leaf, int *out)
{
    int i = stk_variables_find(variables, name);
    if (i >= 0) {
        const stk_variable *v = &variables->variable[i];
        if (v->desc.dtype != desc.dtype || !stk_shape_equal(v->desc.shape, desc.shape)) {
            char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
            return stk_fail(STK_MISMATCH, "variable '%s' is %s here and %s in another graph", name,
                            stk_desc_text(desc, a), stk_desc_text(v->desc, b));
        }
        if (v->device != device)
            return stk_fail(STK_MISMATCH, "variable '%s' is on device %d here and on device %d in another graph", name,
                            device, v->device);
        *out = i;
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(add_variable(variables, name, desc, device, leaf));
    *out = variables->n - 1;
    return STK_OK;
}

size_t stk_variables_bytes_on(const stk_variables *variables, int device)
{
    size_t bytes = 0;
    for (int i = 0; i < variables->n; i++)
        if (variables->variable[i].device == device) bytes += stk_desc_bytes(variables->variable[i].desc);
    return bytes;
}

void stk_variables_free(stk_variables *variables)
{
    for (int i = 0; i < variables->n; i++) {
        stk_variable *v = &variables->variable[i];
        stk_device *device = variables->device[v->device];
        device->class->free(device, v->data, stk_desc_bytes(v->desc));
        free(v->name);
    }
    free(variables->variable);
    *variables = (stk_variables){0};
}
