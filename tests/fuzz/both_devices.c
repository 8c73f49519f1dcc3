/* See fuzz/both_devices.h. Longer than most: one node and the whole program share what may differ. */
#include "fuzz/both_devices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "device/device.h"
#include "device/reference/element.h"
#include "engine/engine.h"

/* --- what may differ --- */

/* Moved and chosen numbers are the same bits. What is computed may be off by that many units in the last place, and by
 * SHAKEN times what the reference's own result changes by when its inputs change in their last place: so a sum that
 * cancels has no promise to keep that the reference could not keep either. */
enum { EXACT = 0, SHAKEN = 16, N_SHAKES = 3, N_WHOLE = 256 };

/* Units in the last place. */
static double units_of(stk_op op)
{
    switch (op) {
    case STK_OP_select:
    case STK_OP_broadcast:
    case STK_OP_reshape:
    case STK_OP_transpose:
    case STK_OP_slice:
    case STK_OP_slice_grad:
    case STK_OP_pad:
    case STK_OP_concat:
    case STK_OP_compare:
    case STK_OP_cast:
    case STK_OP_gather:
    case STK_OP_iota:
    case STK_OP_argmax:
    case STK_OP_max_pool2d:
    case STK_OP_max_pool3d:
    case STK_OP_write_at:
    case STK_OP_in_top_k: return EXACT;
    case STK_OP_unary:
    case STK_OP_binary: return 8;
    default: return 32;
    }
}

static double unit(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F64: return 0x1p-52;
    case STK_F32: return 0x1p-23;
    case STK_F16: return 0x1p-10;
    default: return 0x1p-7;
    }
}

/* Beyond these it is the way of computing that decides whether a sum or a square overflows on the way. */
static double most(stk_dtype dtype)
{
    return dtype == STK_F64 ? 1e150 : dtype == STK_F16 ? 200 : 1e15;
}

/* --- one graph --- */

typedef struct both {
    const stk_graph *graph;
    stk_device *reference, *cpu;
    void **value;  /* by value id: the reference's */
    double unit;   /* in the last place of the narrowest float */
    bool is_rough; /* some node is not continuous, or some number is not finite */
} both;

static void *new_memory(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1)) abort();
    memset(p, 0xff, bytes);
    return p;
}

static bool is_leaf(const stk_node *node)
{
    return node->op == STK_OP_input || node->op == STK_OP_variable || node->op == STK_OP_constant;
}

static double number(uint64_t seed, int kind, int64_t i)
{
    static const double special[] = {0, -0.0, 1, -1, 1e-30, 1e30, INFINITY, NAN};
    uint32_t word = stk_philox(seed, 0, (uint64_t)i).v[0];
    double plain = ((double)(word >> 8 & 255) - 127.5) / 64;
    if (kind == 1) return plain * 64;
    if (kind == 2 && word % 8 == 0) return special[word >> 16 & 7];
    return plain;
}

static void fill(stk_tensor_desc desc, void *data, fuzz_draw *draw)
{
    int kind = fuzz_below(draw, 8), seed = fuzz_byte(draw), below = 1 + fuzz_below(draw, 5);
    if (kind > 2) kind = 0;
    for (int64_t i = 0, n = stk_shape_count(desc.shape); i < n; i++) {
        uint32_t word = stk_philox((uint64_t)seed, 0, (uint64_t)i).v[0];
        double x = stk_dtype_is_float(desc.dtype) ? number((uint64_t)seed, kind, i)
                                                  : (double)(word % (uint32_t)below) - (kind == 1 ? below / 2 : 0);
        stk_ref_store(desc.dtype, data, i, desc.dtype == STK_BOOL ? word & 1 : x);
    }
}

static void fill_leaves(both *b, fuzz_draw *draw, fuzz_content content, const void *user)
{
    for (int32_t i = 0; i < b->graph->n_nodes; i++) {
        const stk_node *node = &b->graph->node[i];
        if (!is_leaf(node)) continue;
        stk_tensor_desc desc = b->graph->value[node->first_out].desc;
        void *data = b->value[node->first_out] = new_memory(stk_desc_bytes(desc));
        const void *known = node->op == STK_OP_constant ? NULL : content(user, node->name, desc);
        if (known)
            memcpy(data, known, stk_desc_bytes(desc));
        else if (node->op != STK_OP_constant)
            fill(desc, data, draw);
        else
            for (int64_t k = 0, n = stk_shape_count(desc.shape); k < n; k++)
                stk_ref_put(desc.dtype, data, k, stk_ref_from_double(desc.dtype, node->attrs.constant.value));
    }
}

static bool is_small(const stk_graph *graph)
{
    double bytes = 0, flops = 0;
    for (int32_t v = 0; v < graph->n_values; v++) {
        stk_shape shape = graph->value[v].desc.shape;
        if (!stk_shape_known(shape)) return false;
        bytes += (double)stk_desc_bytes(graph->value[v].desc);
    }
    for (int32_t i = 0; i < graph->n_nodes && bytes <= FUZZ_MOST_BYTES; i++) {
        stk_tensor_desc desc[64];
        const stk_node *node = &graph->node[i];
        if (node->n_in + node->n_out > 64) return false;
        stk_op_call call = stk_graph_call(graph, i, desc, desc + node->n_in);
        flops += stk_op_cost(&call).flops;
    }
    return bytes <= FUZZ_MOST_BYTES && flops <= FUZZ_MOST_FLOPS;
}

/* --- one node --- */

typedef struct node_run {
    stk_op_call call;
    stk_tensor_desc *desc; /* [n_in + n_out] */
    void **in, **out;
} node_run;

static node_run begin_node(both *b, int32_t i_node)
{
    const stk_node *node = &b->graph->node[i_node];
    size_t n = (size_t)(node->n_in + node->n_out);
    node_run r = {.desc = calloc(n, sizeof(*r.desc)), .in = calloc(n, sizeof(*r.in))};
    if (!r.desc || !r.in) abort();
    r.call = stk_graph_call(b->graph, i_node, r.desc, r.desc + node->n_in);
    r.out = r.in + node->n_in;
    for (int i = 0; i < node->n_in; i++)
        r.in[i] = b->value[node->in[i]];
    return r;
}

static void end_node(node_run *r)
{
    free(r->desc);
    free(r->in);
}

/* out[] is made here: exactly as many pointers and bytes as the call has. After a failure the memory is gone. A kernel
 * that wants much scratch memory, as of an empty tensor with a long side, is left out as one that is not there. */
static stk_status call_on(stk_device *device, const node_run *r, void *const *in, void **out)
{
    stk_kernel kernel = {0};
    stk_status status = device->class->kernel(device, &r->call, &kernel);
    if (status != STK_OK) return status;
    if (kernel.scratch_bytes > FUZZ_MOST_BYTES * 16) {
        stk_kernel_free(&kernel);
        return STK_UNSUPPORTED;
    }
    void **ins = new_memory((size_t)r->call.n_in * sizeof(*ins));
    void *scratch = kernel.scratch_bytes ? new_memory(kernel.scratch_bytes) : NULL;
    memcpy(ins, in, (size_t)r->call.n_in * sizeof(*ins));
    for (int i = 0; i < r->call.n_out; i++)
        out[i] = new_memory(stk_desc_bytes(r->call.out[i]));
    stk_entry entry = {&kernel, {.in = ins, .out = out, .scratch = scratch}};
    int i_failed;
    status = device->class->run(device, &entry, 1, &i_failed);
    for (int i = 0; i < r->call.n_out && status != STK_OK; i++) {
        free(out[i]);
        out[i] = NULL;
    }
    free(ins);
    free(scratch);
    stk_kernel_free(&kernel);
    return status;
}

/* A copy whose elements have moved by up to half a unit in the last place or so, each by its own draw. */
static void *shaken(stk_tensor_desc desc, const void *data, uint64_t seed)
{
    void *copy = new_memory(stk_desc_bytes(desc));
    memcpy(copy, data, stk_desc_bytes(desc));
    for (int64_t i = 0, n = stk_dtype_is_float(desc.dtype) ? stk_shape_count(desc.shape) : 0; i < n; i++) {
        double x = stk_ref_load(desc.dtype, data, i);
        bool up = stk_philox(seed, 7, (uint64_t)i).v[0] & 1;
        /* A half unit is lost in 64 bits: there it is a whole one. */
        double y = desc.dtype == STK_F64 ? nextafter(x, up ? HUGE_VAL : -HUGE_VAL)
                                         : x * (1 + (up ? 1 : -1) * unit(desc.dtype));
        if (isfinite(x) && isfinite(y)) stk_ref_store(desc.dtype, copy, i, y);
    }
    return copy;
}

/* change[k][i]: by how much element i of output k changes at most. False: a shaken call failed. */
static bool shake_node(both *b, const node_run *r, double **change)
{
    bool worked = true;
    void **in = calloc((size_t)(r->call.n_in + r->call.n_out) + 1, sizeof(*in)), **out = in ? in + r->call.n_in : NULL;
    if (!in) abort();
    for (uint64_t s = 1; s <= N_SHAKES && worked; s++) {
        for (int i = 0; i < r->call.n_in; i++)
            in[i] = shaken(r->call.in[i], r->in[i], s * 64 + (uint64_t)i);
        worked = call_on(b->reference, r, in, out) == STK_OK;
        for (int k = 0; k < r->call.n_out && worked; k++) {
            for (int64_t i = 0, n = stk_shape_count(r->call.out[k].shape); i < n; i++) {
                double x = stk_ref_load(r->call.out[k].dtype, out[k], i);
                double d = fabs(x - stk_ref_load(r->call.out[k].dtype, r->out[k], i));
                if (!(d <= change[k][i])) change[k][i] = d;
            }
            free(out[k]);
        }
        for (int i = 0; i < r->call.n_in; i++)
            free(in[i]);
    }
    free(in);
    return worked;
}

static bool all_finite(stk_tensor_desc desc, const void *data)
{
    for (int64_t i = 0, n = stk_dtype_is_float(desc.dtype) ? stk_shape_count(desc.shape) : 0; i < n; i++)
        if (!(fabs(stk_ref_load(desc.dtype, data, i)) < most(desc.dtype))) return false;
    return true;
}

static double mean_size(stk_tensor_desc desc, const void *data)
{
    int64_t n = stk_shape_count(desc.shape), n_finite = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(stk_ref_load(desc.dtype, data, i));
        if (!isfinite(x)) continue;
        sum += x;
        n_finite++;
    }
    return n_finite ? sum / (double)n_finite : 0;
}

static void complain(const both *b, int32_t i_node, int k, int64_t i, double got, double want, double allowed)
{
    char *text = stk_graph_print(b->graph);
    fprintf(stderr, "%s\nnode %d (%s), output %d, element %lld: cpu %.9g, reference %.9g, allowed %.2g\n",
            text ? text : "", (int)i_node, stk_op_name(b->graph->node[i_node].op), k, (long long)i, got, want, allowed);
    abort();
}

/* In 64 bits the reference has no wider sums, and adds one after the other: each may round. */
static double terms_of(const node_run *r, int k)
{
    int64_t n = stk_shape_count(r->call.out[k].shape);
    return r->call.n_in > 0 && n > 0 ? (double)stk_shape_count(r->call.in[0].shape) / (double)n : 0;
}

/* False where the outputs are not near; with `change`, it aborts then. */
static bool compare_output(const both *b, int32_t i_node, const node_run *r, int k, const void *got,
                           const double *change, bool is_finite)
{
    stk_tensor_desc desc = r->call.out[k];
    stk_op op = b->graph->node[i_node].op;
    bool is_float = stk_dtype_is_float(desc.dtype);
    double units = is_float ? units_of(op) : EXACT;
    if (desc.dtype == STK_F64 && units > 8) units += terms_of(r, k);
    double size = units > EXACT ? mean_size(desc, r->out[k]) : 0;
    for (int64_t i = 0, n = stk_shape_count(desc.shape); i < n; i++) {
        double x = stk_ref_load(desc.dtype, got, i), y = stk_ref_load(desc.dtype, r->out[k], i), allowed = 0;
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (units > EXACT) {
            /* Infinities and what is near them: a sum in another order may overflow, or be no number. */
            if (!is_finite || !(fabs(y) < most(desc.dtype))) continue;
            allowed = units * unit(desc.dtype) * (fabs(y) + (units > 8 ? size : 0)) + 1e-37 +
                      (change ? SHAKEN * change[i] : 0);
            if (isnan(allowed) || fabs(x - y) <= allowed) continue;
        }
        if (!change && units > EXACT) return false;
        complain(b, i_node, k, i, x, y, allowed);
    }
    return true;
}

/* What makes small differences large ones, and what passes make another node of: a frozen batch norm. */
static bool is_rough(const both *b, const stk_node *node)
{
    if (node->op == STK_OP_batch_norm && node->attrs.batch_norm.frozen) return true;
    stk_dtype dtype = b->graph->value[node->first_out].desc.dtype;
    return node->op == STK_OP_compare || node->op == STK_OP_argmax ||
           (node->op == STK_OP_unary &&
            (node->attrs.element.kind == STK_UNARY_floor || node->attrs.element.kind == STK_UNARY_ceil ||
             node->attrs.element.kind == STK_UNARY_round || node->attrs.element.kind == STK_UNARY_sign)) ||
           (node->op == STK_OP_cast && !stk_dtype_is_float(dtype)) || dtype == STK_F16 || dtype == STK_BF16;
}

/* The outputs of both devices, compared: in the first place alone, then with what shaking does. */
static void compare_node(both *b, int32_t i_node, const node_run *r, void *const *got, bool is_finite)
{
    double **change = calloc((size_t)r->call.n_out + 1, sizeof(*change));
    bool fits = true;
    if (!change) abort();
    for (int k = 0; k < r->call.n_out; k++)
        fits = compare_output(b, i_node, r, k, got[k], NULL, is_finite) && fits;
    for (int k = 0; k < r->call.n_out && !fits; k++) {
        change[k] = calloc((size_t)stk_shape_count(r->call.out[k].shape) + 1, sizeof(**change));
        if (!change[k]) abort();
    }
    if (!fits && shake_node(b, r, change))
        for (int k = 0; k < r->call.n_out; k++)
            (void)compare_output(b, i_node, r, k, got[k], change[k], is_finite);
    for (int k = 0; k < r->call.n_out; k++)
        free(change[k]);
    free(change);
}

/* False: the reference refuses its inputs, and so must the cpu have. */
static bool run_node(both *b, int32_t i_node)
{
    const stk_node *node = &b->graph->node[i_node];
    node_run r = begin_node(b, i_node);
    void **got = calloc((size_t)node->n_out + 1, sizeof(*got));
    if (!got) abort();
    stk_status want = call_on(b->reference, &r, r.in, r.out), status = call_on(b->cpu, &r, r.in, got);
    if (status != STK_UNSUPPORTED && want != STK_UNSUPPORTED && (want == STK_OK) != (status == STK_OK)) {
        fprintf(stderr, "node %d (%s): the reference gives %d, the cpu %d: %s\n", (int)i_node, stk_op_name(node->op),
                (int)want, (int)status, stk_error_text());
        abort();
    }
    bool is_finite = true;
    for (int i = 0; i < node->n_in; i++)
        is_finite = is_finite && all_finite(r.call.in[i], r.in[i]);
    if (want == STK_OK && status == STK_OK) compare_node(b, i_node, &r, got, is_finite);
    for (int k = 0; k < node->n_out; k++) {
        b->value[node->first_out + k] = r.out[k];
        if (want == STK_OK && !all_finite(r.call.out[k], r.out[k])) b->is_rough = true;
        free(got[k]);
    }
    b->is_rough = b->is_rough || is_rough(b, node) || !is_finite;
    free(got);
    end_node(&r);
    return want == STK_OK;
}

/* --- the whole program --- */

static void set_leaves(const both *b, stk_engine *engine, stk_program *program)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        stk_value x = stk_graph_find(b->graph, STK_OP_variable, stk_engine_variable(engine, i).name);
        if (x.id >= 0 && stk_engine_write_variable(engine, i, b->value[x.id]) != STK_OK) abort();
    }
    for (int32_t i = 0; i < b->graph->n_nodes; i++)
        if (b->graph->node[i].op == STK_OP_input) {
            int i_input = stk_program_input(program, b->graph->node[i].name);
            if (i_input >= 0) stk_program_bind(program, i_input, b->value[b->graph->node[i].first_out]);
        }
}

/* The reference's values where every node's inputs are shaken: what rounding does to the whole. False: a call failed.
 */
static bool shake_values(const both *b, uint64_t seed, void **value)
{
    both other = *b;
    other.value = value;
    bool worked = true;
    for (int32_t i = 0; i < b->graph->n_nodes && worked; i++) {
        const stk_node *node = &b->graph->node[i];
        if (is_leaf(node)) {
            value[node->first_out] = shaken(b->graph->value[node->first_out].desc, b->value[node->first_out], seed);
            continue;
        }
        node_run r = begin_node(&other, i);
        for (int k = 0; k < node->n_in; k++)
            r.in[k] = shaken(r.call.in[k], r.in[k], seed * 4096 + (uint64_t)(i * 16 + k));
        worked = call_on(b->reference, &r, r.in, &value[node->first_out]) == STK_OK;
        for (int k = 0; k < node->n_in; k++)
            free(r.in[k]);
        end_node(&r);
    }
    return worked;
}

static void free_values(const both *b, void **value)
{
    for (int32_t v = 0; v < b->graph->n_values; v++)
        free(value[v]);
    free(value);
}

/* By how much shaking changes element i at most. */
static double change_of(const both *b, int32_t id, void **const *other, int64_t i)
{
    double change = 0;
    for (int s = 0; s < N_SHAKES; s++) {
        double d = fabs(stk_ref_load(b->graph->value[id].desc.dtype, other[s][id], i) -
                        stk_ref_load(b->graph->value[id].desc.dtype, b->value[id], i));
        if (!(d <= change)) change = d;
    }
    return change;
}

/* Few shakes may happen to leave an element as it was: no element is held closer than all of them on average. */
static double mean_change(const both *b, int32_t id, void **const *other)
{
    double sum = 0;
    int64_t n = stk_shape_count(b->graph->value[id].desc.shape);
    for (int64_t i = 0; i < n; i++)
        sum += change_of(b, id, other, i);
    return n > 0 ? sum / (double)n : 0;
}

/* False where they are not near; with `other`, it aborts then. */
static bool compare_whole(const both *b, const char *name, int32_t id, const void *got, void **const *other)
{
    stk_tensor_desc desc = b->graph->value[id].desc;
    double size = mean_size(desc, b->value[id]), least = other ? mean_change(b, id, other) : 0;
    for (int64_t i = 0, n = stk_shape_count(desc.shape); i < n; i++) {
        double x = stk_ref_load(desc.dtype, got, i), y = stk_ref_load(desc.dtype, b->value[id], i);
        double change = other ? change_of(b, id, other, i) : 0;
        if (change < least) change = least;
        double allowed = N_WHOLE * b->unit * (fabs(y) + size) + N_WHOLE * change + 1e-30;
        if (x == y || isnan(allowed) || fabs(x - y) <= allowed) continue;
        if (!other) return false;
        char *text = stk_graph_print(b->graph);
        fprintf(stderr, "%s\noutput '%s', element %lld: the program %.9g, node by node %.9g, allowed %.2g\n",
                text ? text : "", name, (long long)i, x, y, allowed);
        abort();
    }
    return true;
}

static bool compare_outputs(const both *b, const stk_program *program, void **const *other)
{
    for (int32_t i = 0; i < b->graph->n_roots; i++) {
        const stk_graph_root *root = &b->graph->root[i];
        stk_tensor_desc desc;
        const void *got = root->name ? stk_program_output(program, root->name, &desc) : NULL;
        if (!got || !stk_dtype_is_float(desc.dtype)) continue;
        if (!compare_whole(b, root->name, root->value, got, other)) return false;
    }
    return true;
}

static void compare_program(const both *b, const stk_program *program)
{
    void **other[N_SHAKES] = {0};
    bool worked = !b->is_rough && !compare_outputs(b, program, NULL);
    for (int s = 0; s < N_SHAKES && worked; s++) {
        other[s] = calloc((size_t)b->graph->n_values + 1, sizeof(*other[s]));
        if (!other[s]) abort();
        worked = shake_values(b, (uint64_t)s + 1, other[s]);
    }
    if (worked) (void)compare_outputs(b, program, other);
    for (int s = 0; s < N_SHAKES; s++)
        if (other[s]) free_values(b, other[s]);
}

static void run_program(const both *b, int n_threads)
{
    stk_device_config config = {.n_threads = n_threads};
    stk_compile_options options = {.memory_limit_bytes = FUZZ_MOST_BYTES * 64};
    stk_engine *engine = NULL;
    stk_program *program;
    if (stk_engine_open("cpu", &config, 1, &engine) != STK_OK) abort();
    stk_status status = stk_engine_compile(engine, stk_graph_clone(b->graph, STK_ANY), &options, &program);
    if (status == STK_OK) {
        set_leaves(b, engine, program);
        if (stk_program_run(program) == STK_OK) compare_program(b, program);
    } else if (status == STK_INTERNAL) {
        fprintf(stderr, "%s\n", stk_error_text());
        abort();
    }
    stk_engine_close(engine);
}

void fuzz_run_both(const stk_graph *graph, fuzz_draw *draw, fuzz_content content, const void *user)
{
    both b = {.graph = graph};
    int n_threads = 1 + fuzz_below(draw, 3);
    if (!is_small(graph)) return;
    stk_device_config config = {.n_threads = n_threads};
    if (stk_device_open("reference", &config, &b.reference) != STK_OK) abort();
    if (stk_device_open("cpu", &config, &b.cpu) != STK_OK) abort();
    b.value = calloc((size_t)graph->n_values + 1, sizeof(*b.value));
    if (!b.value) abort();
    for (int32_t v = 0; v < graph->n_values; v++) {
        stk_dtype dtype = graph->value[v].desc.dtype;
        if (stk_dtype_is_float(dtype) && unit(dtype) > b.unit) b.unit = unit(dtype);
    }
    fill_leaves(&b, draw, content, user);
    bool works = true;
    for (int32_t i = 0; i < graph->n_nodes && works; i++)
        works = is_leaf(&graph->node[i]) || run_node(&b, i);
    if (works) run_program(&b, n_threads);
    free_values(&b, b.value);
    stk_device_close(b.reference);
    stk_device_close(b.cpu);
}
