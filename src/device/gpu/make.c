/* Kernels as data: gpu.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/gpu.h"

/* --- failing --- */

void gpu_fail(gpu_maker *m, stk_status status)
{
    if (m->status == STK_OK) m->status = status;
}

void gpu_refuse(gpu_maker *m)
{
    stk_text types = {0};
    if (m->status != STK_OK) return;
    for (int i = 0; i < m->call->n_in; i++)
        stk_text_add(&types, i ? ", %s" : "%s", stk_dtype_name(m->call->in[i].dtype));
    for (int i = 0; i < m->call->n_out; i++)
        stk_text_add(&types, i ? ", %s" : " -> %s", stk_dtype_name(m->call->out[i].dtype));
    m->status = stk_fail(STK_UNSUPPORTED, "the device '%s' has no kernel for '%s' of %s", m->device->driver->name,
                         stk_op_name(m->call->op), stk_text_get(&types));
    stk_text_free(&types);
}

const char *gpu_type(gpu_maker *m, stk_dtype dtype)
{
    if (dtype != STK_F64) return stk_dtype_name(dtype);
    gpu_refuse(m);
    return NULL;
}

/* --- launches --- */

static gpu_launch *last(gpu_maker *m)
{
    return m->status == STK_OK && m->kernel->n_launches > 0 ? &m->kernel->launch[m->kernel->n_launches - 1] : NULL;
}

static gpu_launch *add_launch(gpu_maker *m, const char *kernel)
{
    gpu_kernel *k = m->kernel;
    if (m->status != STK_OK) return NULL;
    gpu_launch *grown = realloc(k->launch, ((size_t)k->n_launches + 1) * sizeof(*grown));
    if (!grown) {
        gpu_fail(m, stk_fail_memory(sizeof(*grown)));
        return NULL;
    }
    k->launch = grown;
    gpu_launch *l = &grown[k->n_launches++];
    *l = (gpu_launch){.n_groups = {1, 1, 1}, .group = {1, 1, 1}};
    snprintf(l->kernel, sizeof(l->kernel), "%s", kernel);
    return l;
}

void gpu_add_unit(gpu_maker *m, gpu_unit *unit, const char *kernel)
{
    gpu_launch *l = add_launch(m, kernel);
    if (l) l->unit = unit;
}

void gpu_add_product(gpu_maker *m, const gpu_library_product *product)
{
    gpu_launch *l = add_launch(m, "product");
    if (l) l->product = *product;
}

void gpu_add_convolution(gpu_maker *m, const gpu_library_convolution *convolution)
{
    gpu_launch *l = add_launch(m, "convolution");
    if (l) l->convolution = *convolution;
}

void gpu_add(gpu_maker *m, const char *file, const char *kernel, const char *settings, ...)
{
    char text[2048];
    gpu_unit *unit = NULL;
    va_list list;
    if (m->status != STK_OK) return;
    va_start(list, settings);
    int n = vsnprintf(text, sizeof(text), settings, list);
    va_end(list);
    if (n < 0 || (size_t)n + 32 > sizeof(text)) {
        gpu_fail(m, stk_fail(STK_INTERNAL, "the settings of '%s' are too long", file));
        return;
    }
    if (m->wide) snprintf(text + n, sizeof(text) - (size_t)n, "#define index_t long\n");
    gpu_fail(m, gpu_unit_of_file(m->device, file, text, &unit));
    gpu_add_unit(m, unit, kernel);
}

void gpu_groups(gpu_maker *m, int64_t x, int64_t y, int64_t z)
{
    gpu_launch *l = last(m);
    if (!l) return;
    if (x > INT32_MAX || y > 65535 || z > 65535 || x < 0 || y < 0 || z < 0) {
        gpu_fail(m, stk_fail(STK_UNSUPPORTED, "'%s' is too large for one launch: %lld x %lld x %lld groups",
                             stk_op_name(m->call->op), (long long)x, (long long)y, (long long)z));
        return;
    }
    l->n_groups[0] = (uint32_t)x;
    l->n_groups[1] = (uint32_t)y;
    l->n_groups[2] = (uint32_t)z;
}

void gpu_group(gpu_maker *m, uint32_t x, uint32_t y, uint32_t z)
{
    gpu_launch *l = last(m);
    if (!l) return;
    l->group[0] = x;
    l->group[1] = y;
    l->group[2] = z;
}

void gpu_items(gpu_maker *m, int64_t n, uint32_t group)
{
    gpu_group(m, group, 1, 1);
    gpu_groups(m, n / group + (n % group != 0), 1, 1);
}

void gpu_copies(gpu_maker *m, int in, int out)
{
    gpu_launch *l = last(m);
    if (!l) return;
    l->copies = true;
    l->copy_in = in;
    l->copy_out = out;
}

/* --- arguments --- */

static void add_argument(gpu_maker *m, gpu_launch_argument argument)
{
    gpu_launch *l = last(m);
    if (!l) return;
    if (l->n_arguments == GPU_MOST_ARGUMENTS) {
        gpu_fail(m, stk_fail(STK_UNSUPPORTED, "a kernel of '%s' takes more than %d arguments", stk_op_name(m->call->op),
                             GPU_MOST_ARGUMENTS));
        return;
    }
    l->argument[l->n_arguments++] = argument;
}

void gpu_in(gpu_maker *m, int i)
{
    add_argument(m, (gpu_launch_argument){.kind = GPU_IN, .i = i});
}

void gpu_out(gpu_maker *m, int i)
{
    add_argument(m, (gpu_launch_argument){.kind = GPU_OUT, .i = i});
}

void gpu_scratch(gpu_maker *m, size_t offset)
{
    add_argument(m, (gpu_launch_argument){.kind = GPU_SCRATCH, .offset = offset});
}

void gpu_memory_at(gpu_maker *m, gpu_argument_kind kind, int i, size_t offset)
{
    add_argument(m, (gpu_launch_argument){.kind = kind, .i = i, .offset = offset});
}

void gpu_bytes(gpu_maker *m, const void *bytes, size_t n)
{
    gpu_kernel *k = m->kernel;
    if (m->status != STK_OK) return;
    size_t at = (k->n_values + 15) / 16 * 16;
    char *grown = realloc(k->values, at + n);
    if (!grown) {
        gpu_fail(m, stk_fail_memory(at + n));
        return;
    }
    k->values = grown;
    memcpy(grown + at, bytes, n);
    k->n_values = at + n;
    add_argument(m, (gpu_launch_argument){.kind = GPU_VALUE, .offset = at, .bytes = n});
}

void gpu_int(gpu_maker *m, int32_t value)
{
    gpu_bytes(m, &value, sizeof(value));
}

void gpu_long(gpu_maker *m, int64_t value)
{
    gpu_bytes(m, &value, sizeof(value));
}

void gpu_index(gpu_maker *m, int64_t value)
{
    if (m->wide)
        gpu_long(m, value);
    else
        gpu_int(m, (int32_t)value);
}

void gpu_float(gpu_maker *m, double value)
{
    float narrow = (float)value;
    gpu_bytes(m, &narrow, sizeof(narrow));
}

/* The number of the site, which counts from 1; equal ones are one. */
static stk_status add_site(gpu_device *device, gpu_site site, int32_t *out)
{
    for (int i = 0; i < device->n_sites; i++)
        if (device->site[i].status == site.status && device->site[i].limit == site.limit &&
            !strcmp(device->site[i].format, site.format)) {
            *out = i + 1;
            return STK_OK;
        }
    gpu_site *grown = realloc(device->site, ((size_t)device->n_sites + 1) * sizeof(*grown));
    if (!grown) return stk_fail_memory(sizeof(*grown));
    device->site = grown;
    grown[device->n_sites++] = site;
    *out = device->n_sites;
    return STK_OK;
}

void gpu_fault(gpu_maker *m, stk_status status, const char *format, int64_t limit)
{
    gpu_site site = {.status = status, .limit = limit};
    int32_t number = 0;
    if (m->status != STK_OK) return;
    snprintf(site.format, sizeof(site.format), "%s", format);
    gpu_fail(m, add_site(m->device, site, &number));
    add_argument(m, (gpu_launch_argument){.kind = GPU_FAULT});
    gpu_int(m, number);
}

void gpu_slots(gpu_maker *m)
{
    gpu_launch *l = last(m);
    if (!l) return;
    l->n_slot = l->n_arguments;
    for (int i = 0; i < (GPU_SLOTS - 1) * l->n_slot; i++)
        add_argument(m, l->argument[i]);
}

void gpu_slot_sizes(gpu_maker *m, int64_t n, uint32_t group)
{
    int64_t wide[GPU_SLOTS] = {n};
    int32_t narrow[GPU_SLOTS] = {(int32_t)n};
    if (m->wide)
        gpu_bytes(m, wide, sizeof(wide));
    else
        gpu_bytes(m, narrow, sizeof(narrow));
    gpu_items(m, n, group);
}

size_t gpu_take(gpu_maker *m, size_t bytes)
{
    size_t offset = m->scratch_bytes;
    m->scratch_bytes += (bytes + 63) / 64 * 64;
    return offset;
}

/* --- making one --- */

static void release(void *state)
{
    gpu_kernel *k = state;
    if (!k) return;
    free(k->launch);
    free(k->values);
    free(k);
}

static bool is_wide(const stk_op_call *call)
{
    bool wide = false;
    for (int i = 0; i < call->n_in; i++)
        wide |= stk_shape_count(call->in[i].shape) > INT32_MAX / 2;
    for (int i = 0; i < call->n_out; i++)
        wide |= stk_shape_count(call->out[i].shape) > INT32_MAX / 2;
    return wide;
}

stk_status gpu_find_kernel(stk_device *base, const stk_op_call *call, stk_kernel *out)
{
    gpu_make make = gpu_find_make(call->op);
    gpu_maker m = {.device = (gpu_device *)base, .call = call, .wide = is_wide(call), .impl = "own"};
    memset(out, 0, sizeof(*out));
    m.kernel = calloc(1, sizeof(*m.kernel));
    if (!m.kernel) return stk_fail_memory(sizeof(*m.kernel));
    for (int i = 0; i < call->n_in + call->n_out; i++)
        gpu_type(&m, i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype);
    if (!make)
        gpu_refuse(&m);
    else if (m.status == STK_OK)
        make(&m);
    if (m.status != STK_OK) {
        release(m.kernel);
        return m.status;
    }
    *out = (stk_kernel){.state = m.kernel, .release = release, .scratch_bytes = m.scratch_bytes, .impl = m.impl};
    memcpy(out->in_place, m.in_place, sizeof(out->in_place));
    return STK_OK;
}

static bool is_convolution(stk_op op)
{
    return op == STK_OP_conv2d || op == STK_OP_conv2d_grad_data || op == STK_OP_conv2d_grad_weight ||
           op == STK_OP_conv3d || op == STK_OP_conv3d_grad_data || op == STK_OP_conv3d_grad_weight;
}

stk_status gpu_expect_kernel(stk_device *base, const stk_op_call *call)
{
    gpu_maker m = {.device = (gpu_device *)base, .call = call, .expects = true};
    if (m.device->driver->expect_convolution && is_convolution(call->op)) gpu_find_make(call->op)(&m);
    return m.status;
}

stk_status gpu_prepare_kernels(stk_device *base, const volatile int *stop)
{
    const gpu_device *device = (const gpu_device *)base;
    return device->driver->plan_expected ? device->driver->plan_expected(device->context, stop) : STK_OK;
}
