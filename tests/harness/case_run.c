#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "device/queue.h"
#include "device/reference/element.h"

/* --- numbers --- */

double harness_random(uint64_t seed, uint64_t i)
{
    return (double)(stk_philox(seed, 0, i).v[0] >> 8) * 0x1p-24;
}

double harness_load(stk_dtype dtype, const void *data, int64_t i)
{
    return stk_ref_load(dtype, data, i);
}

void harness_store(stk_dtype dtype, void *data, int64_t i, double x)
{
    stk_ref_store(dtype, data, i, x);
}

void *harness_alloc(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1)) return NULL;
    memset(p, 0xff, bytes);
    return p;
}

/* --- filling --- */

/* A shuffle of 0 .. n-1 as arithmetic: i -> i * step + offset, step prime to n. */
static int64_t permuted(int64_t i, int64_t n)
{
    static const int64_t primes[] = {7919, 104729, 1299709};
    for (int p = 0; p < 3; p++)
        if (n % primes[p]) return (i * primes[p] + 17) % n;
    return i;
}

static double special(uint64_t seed, int64_t i, double uniform)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1, -1, 1e-30};
    uint32_t word = stk_philox(seed, 1, (uint64_t)i).v[0];
    return word % 4 ? uniform : values[(word >> 8) % 8];
}

static double rare(uint64_t seed, int64_t i, double uniform)
{
    uint32_t word = stk_philox(seed, 1, (uint64_t)i).v[0] % 96;
    return word > 1 ? uniform : word ? INFINITY : NAN;
}

static double value_at(const case_input *input, uint64_t seed, int64_t i, int64_t n)
{
    double u = harness_random(seed, (uint64_t)i), span = input->b - input->a;
    switch (input->fill) {
    case FILL_DISTINCT: {
        /* Middles of n cells, so that none lies at the ends or, for an even n, at the centre. */
        int64_t cells = n + n % 2;
        return input->a + span * ((double)permuted(i, cells) + 0.5) / (double)cells;
    }
    case FILL_SPECIAL: return special(seed, i, input->a + span * u);
    case FILL_RARE: return rare(seed, i, input->a + span * u);
    case FILL_STEPS: return input->a + floor(span * u);
    case FILL_LABELS: return floor(input->b * u);
    case FILL_BOOL: return u < 0.5;
    case FILL_CONSTANT: return input->a;
    default: return input->a + span * u;
    }
}

static void fill_shares(stk_tensor_desc desc, uint64_t seed, void *data)
{
    int64_t n = desc.shape.dim[desc.shape.rank - 1], n_rows = n ? stk_shape_count(desc.shape) / n : 0;
    for (int64_t row = 0; row < n_rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += harness_random(seed, (uint64_t)(row * n + i));
        for (int64_t i = 0; i < n; i++)
            harness_store(desc.dtype, data, row * n + i, harness_random(seed, (uint64_t)(row * n + i)) / sum);
    }
}

/* Output 0 of the op `forward` of the inputs before input number i. */
static stk_status fill_forward(case_run *run, int i, stk_device *reference)
{
    stk_op op = run->source->in[i].forward;
    const stk_op_rule *rule = stk_op_get_rule(op);
    stk_tensor_desc out_desc[CASE_MOST_OUT];
    stk_op_call call = {op, &run->attrs, rule->n_in, rule->n_out, run->in_desc, out_desc};
    stk_kernel kernel = {0};
    void *out[CASE_MOST_OUT] = {0}, *scratch = NULL;
    stk_status status = STK_OK;
    if (rule->n_in > i) STK_TRY(stk_fail(STK_INTERNAL, "'%s' needs %d inputs", rule->name, rule->n_in));
    STK_TRY(rule->infer(&call));
    STK_TRY(reference->class->kernel(reference, &call, &kernel));
    scratch = harness_alloc(kernel.scratch_bytes);
    for (int j = 0; j < call.n_out; j++)
        out[j] = harness_alloc(stk_desc_bytes(out_desc[j]));
    stk_kernel_args args = {.in = run->in, .out = out, .scratch = scratch};
    STK_TRY(kernel.run(kernel.state, &args));
    memcpy(run->in[i], out[0], stk_desc_bytes(run->in_desc[i]));
done:
    for (int j = 0; j < CASE_MOST_OUT; j++)
        free(out[j]);
    free(scratch);
    stk_kernel_free(&kernel);
    return status;
}

/* Huge inputs repeat after N elements: a prime, so that an index that has lost its upper bits shows. */
enum { PERIOD = 1048583 };

static stk_status fill_input(case_run *run, int i, stk_device *reference)
{
    const case_input *input = &run->source->in[i];
    stk_tensor_desc desc = run->in_desc[i];
    uint64_t seed = 1000 + (uint64_t)i;
    run->in[i] = harness_alloc(stk_desc_bytes(desc));
    if (!run->in[i]) return stk_fail_memory(stk_desc_bytes(desc));
    if (input->fill == FILL_FORWARD) return fill_forward(run, i, reference);
    if (input->fill == FILL_SHARES) {
        fill_shares(desc, seed, run->in[i]);
        return STK_OK;
    }
    int64_t n = stk_shape_count(desc.shape), n_own = n > 16 * PERIOD ? PERIOD : n;
    for (int64_t j = 0; j < n_own; j++)
        harness_store(desc.dtype, run->in[i], j, value_at(input, seed, j, n_own));
    size_t size = stk_dtype_bytes(desc.dtype), step = (size_t)n_own * size, bytes = (size_t)n * size;
    for (size_t done = step; done < bytes; done += step)
        memcpy((char *)run->in[i] + done, run->in[i], bytes - done < step ? bytes - done : step);
    return STK_OK;
}

/* --- opening and closing --- */

unsigned case_mains(const op_case *source)
{
    bool any = false;
    for (int i = 0; i < source->n_in; i++)
        any |= source->in[i].dtype < CASE_FIXED;
    if (!any) return 1u << STK_F32;
    return source->mains ? source->mains : 1u << STK_F32 | 1u << STK_BF16 | 1u << STK_F16 | 1u << STK_F64;
}

static stk_dtype resolve_dtype(int code, stk_dtype main)
{
    if (code == CASE_MAIN) return main;
    if (code == CASE_STAT) return main == STK_F64 ? STK_F64 : STK_F32;
    return (stk_dtype)(code - CASE_FIXED);
}

stk_status case_run_describe(const op_case *source, stk_dtype main, case_run *out)
{
    const stk_op_rule *rule = stk_op_get_rule(source->op);
    memset(out, 0, sizeof(*out));
    out->source = source;
    out->main = main;
    out->attrs = source->attrs;
    for (int i = 0; i < source->n_in; i++)
        out->in_desc[i] = stk_desc_make(resolve_dtype(source->in[i].dtype, main), source->in[i].shape);
    out->call = (stk_op_call){source->op, &out->attrs, source->n_in, rule->n_out, out->in_desc, out->out_desc};
    return rule->infer(&out->call);
}

stk_status case_run_open(const op_case *source, stk_dtype main, stk_device *reference, case_run *out)
{
    stk_status status = STK_OK;
    STK_TRY(case_run_describe(source, main, out));
    for (int i = 0; i < source->n_in; i++)
        STK_TRY(fill_input(out, i, reference));
done:
    if (status != STK_OK) {
        stk_fail_prefix(status, "%s '%s': ", stk_op_name(source->op), source->name);
        case_run_close(out);
    }
    return status;
}

void case_run_close(case_run *run)
{
    for (int i = 0; i < CASE_MOST_IN; i++)
        free(run->in[i]);
    memset(run->in, 0, sizeof(run->in));
}

const char *case_text(const case_run *run)
{
    static char text[200];
    snprintf(text, sizeof(text), "%s '%s' %s", stk_op_name(run->source->op), run->source->name,
             stk_dtype_name(run->main));
    return text;
}

/* --- calling --- */

/* Memory of the device with the host's bytes in it; on the host exactly as much as that, so that a sanitizer sees what
 * goes beyond. */
static stk_status put(stk_queue *queue, const void *src, size_t bytes, void **out)
{
    stk_device *device = queue->device;
    if (device->class->on_host) {
        *out = harness_alloc(bytes);
        if (!*out) return stk_fail_memory(bytes);
    } else {
        STK_RETURN_IF_ERROR(device->class->alloc(device, bytes, STK_MEMORY_ZEROED, out));
    }
    return src ? device->class->queues->copy(queue, *out, src, bytes, STK_COPY_TO_DEVICE) : STK_OK;
}

static void drop(stk_queue *queue, void *p, size_t bytes)
{
    if (!p) return;
    if (queue->device->class->on_host)
        free(p);
    else
        queue->device->class->free(queue->device, p, bytes);
}

/* What a call has on the device. */
typedef struct placed_call {
    stk_kernel kernel;
    void *in[CASE_MOST_IN], *out[CASE_MOST_OUT], *scratch, *packed;
} placed_call;

/* Inputs are copied, since a kernel in place may overwrite them. */
static stk_status place_call(const case_run *run, stk_queue *queue, int in_place, placed_call *c)
{
    STK_RETURN_IF_ERROR(put(queue, NULL, c->kernel.scratch_bytes, &c->scratch));
    for (int i = 0; i < run->call.n_in; i++)
        STK_RETURN_IF_ERROR(put(queue, run->in[i], stk_desc_bytes(run->in_desc[i]), &c->in[i]));
    for (int i = 0; i < run->call.n_out; i++) {
        if (in_place >= 0 && in_place / 32 == i)
            c->out[i] = c->in[in_place % 32];
        else
            STK_RETURN_IF_ERROR(put(queue, NULL, stk_desc_bytes(run->out_desc[i]), &c->out[i]));
    }
    return STK_OK;
}

/* A number in f32 that rounds to x, which is of 16 bits: up to half a step of it away, if there is one. */
static float widened(stk_dtype dtype, double x, uint32_t random)
{
    float wide = (float)x;
    uint32_t bits;
    memcpy(&bits, &wide, sizeof(bits));
    bits += random % 0x10000 - 0x8000;
    float moved;
    memcpy(&moved, &bits, sizeof(moved));
    char rounded[sizeof(double)];
    harness_store(dtype, rounded, 0, moved);
    return harness_load(dtype, rounded, 0) == x ? moved : wide;
}

/* What the kernel keeps of a weight, whose input is then left as it is: no numbers. */
static stk_status place_packed(const case_run *run, stk_queue *queue, placed_call *c)
{
    int i = c->kernel.packed_input, i_failed;
    stk_tensor_desc desc = run->in_desc[i];
    int64_t n = stk_shape_count(desc.shape);
    size_t bytes = (size_t)n * sizeof(float);
    void *weight = NULL;
    stk_status status = STK_OK;
    float *wide = harness_alloc(bytes);
    if (!wide) return stk_fail_memory(bytes);
    for (int64_t j = 0; j < n; j++)
        wide[j] = widened(desc.dtype, harness_load(desc.dtype, run->in[i], j), stk_philox(7, 0, (uint64_t)j).v[0]);
    STK_TRY(put(queue, wide, bytes, &weight));
    STK_TRY(put(queue, NULL, c->kernel.packed_bytes, &c->packed));
    stk_kernel pack = {.run = c->kernel.pack, .state = c->kernel.state};
    STK_TRY(stk_queue_run_now(queue, &(stk_entry){&pack, {.in = &weight, .out = &c->packed}}, 1, &i_failed));
    drop(queue, c->in[i], stk_desc_bytes(desc));
    c->in[i] = NULL;
    STK_TRY(put(queue, NULL, stk_desc_bytes(desc), &c->in[i]));
done:
    drop(queue, weight, bytes);
    free(wide);
    return status;
}

static void drop_call(const case_run *run, stk_queue *queue, int in_place, placed_call *c)
{
    drop(queue, c->scratch, c->kernel.scratch_bytes);
    drop(queue, c->packed, c->kernel.packed_bytes);
    for (int i = 0; i < run->call.n_in; i++)
        drop(queue, c->in[i], stk_desc_bytes(run->in_desc[i]));
    for (int i = 0; i < run->call.n_out; i++)
        if (in_place < 0 || in_place / 32 != i) drop(queue, c->out[i], stk_desc_bytes(run->out_desc[i]));
    stk_kernel_free(&c->kernel);
}

stk_status case_call(const case_run *run, stk_device *device, int in_place, void *out[CASE_MOST_OUT], const char **impl)
{
    placed_call c = {0};
    stk_queue *queue = NULL;
    stk_status status = STK_OK;
    int i_failed;
    stk_capture *capture = NULL;
    const stk_queue_class *queues = device->class->queues;
    memset(out, 0, CASE_MOST_OUT * sizeof(*out));
    STK_TRY(queues->open(device, &queue));
    STK_TRY(device->class->kernel(device, &run->call, &c.kernel));
    if (impl) *impl = c.kernel.impl ? c.kernel.impl : "?";
    bool keeps = in_place == CASE_KEPT;
    if (keeps) in_place = CASE_APART;
    STK_TRY(place_call(run, queue, in_place, &c));
    if (keeps) STK_TRY(place_packed(run, queue, &c));
    stk_entry entry = {&c.kernel, {.in = c.in, .out = c.out, .scratch = c.kernel.scratch_bytes ? c.scratch : NULL}};
    entry.args.packed = c.packed;
    STK_TRY(queues->capture(device, &entry, 1, &capture));
    STK_TRY(queues->launch(queue, capture, &i_failed));
    for (int i = 0; i < run->call.n_out; i++) {
        size_t bytes = stk_desc_bytes(run->out_desc[i]);
        out[i] = harness_alloc(bytes);
        if (!out[i]) STK_TRY(stk_fail_memory(bytes));
        STK_TRY(queues->copy(queue, out[i], c.out[i], bytes, STK_COPY_TO_HOST));
    }
done:
    if (queue) {
        stk_status finished = queues->finish(queue);
        if (status == STK_OK) status = finished;
        queues->release(capture);
        drop_call(run, queue, in_place, &c);
        queues->close(queue);
    }
    return status;
}

/* --- comparing --- */

/* Such convolutions may go by Winograd's tiles of 4 x 4 outputs, which lose two bits (docs/kernels.md). */
static bool has_larger_tiles(const case_run *run)
{
    stk_op op = run->source->op;
    const stk_window *w = &run->source->attrs.window;
    if (op != STK_OP_conv2d && op != STK_OP_conv2d_grad_data && op != STK_OP_conv2d_grad_weight) return false;
    for (int i = 0; i < 2; i++)
        if (w->kernel[i] != 3 || w->stride[i] != 1 || run->in_desc[i].shape.dim[3] < 32) return false;
    return true;
}

/* The relative error that a result may have: a few units in the last place of its dtype, more for sums. */
static double tolerance(const case_run *run, stk_dtype dtype)
{
    double loosen = run->source->loosen > 0 ? run->source->loosen : 1;
    /* A result in f32 of 16-bit inputs has seen no 16-bit rounding, or little of it, so its own dtype counts. */
    bool is_half = run->main == STK_BF16 || run->main == STK_F16;
    if (dtype == STK_F32 && is_half && run->source->rounds) return 3e-2;
    switch (dtype) {
    case STK_F64: return 1e-11 * loosen;
    case STK_F32: return 2e-6 * loosen * (has_larger_tiles(run) ? 3 : 1);
    case STK_F16: return 1e-3 * loosen;
    default: return 8e-3 * loosen;
    }
}

/* The mean size of the finite elements: results of sums may be off by a share of it. */
static double mean_size(stk_tensor_desc desc, const void *data)
{
    int64_t n = stk_shape_count(desc.shape), n_finite = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(harness_load(desc.dtype, data, i));
        if (!isfinite(x)) continue;
        sum += x;
        n_finite++;
    }
    return n_finite ? sum / (double)n_finite : 0;
}

const char *case_compare(const case_run *run, int i_out, const void *got, const void *want)
{
    static char text[300];
    stk_tensor_desc desc = run->out_desc[i_out];
    int64_t n = stk_shape_count(desc.shape);
    bool is_float = stk_dtype_is_float(desc.dtype), is_rare = false;
    for (int i = 0; i < run->source->n_in; i++)
        is_rare |= run->source->in[i].fill == FILL_RARE;
    double size = is_float ? mean_size(desc, want) : 0, allowed = is_float ? tolerance(run, desc.dtype) : 0;
    for (int64_t i = 0; i < n; i++) {
        double x = harness_load(desc.dtype, got, i), y = harness_load(desc.dtype, want, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (is_rare && !isfinite(x) && (!isfinite(y) || run->main == STK_BF16)) continue;
        if (fabs(x - y) <= allowed * (fabs(y) + size)) continue;
        snprintf(text, sizeof(text), "output %d, element %lld of %lld is %.9g, the reference has %.9g (off by %.2g)",
                 i_out, (long long)i, (long long)n, x, y, fabs(x - y));
        return text;
    }
    return NULL;
}

/* --- all of them --- */

stk_status harness_each_call(stk_status (*visit)(void *user, const case_run *run), void *user)
{
    int n_lists;
    const case_list *lists = harness_case_lists(&n_lists);
    for (int l = 0; l < n_lists; l++) {
        for (int i = 0; i < lists[l].n; i++) {
            const op_case *source = &lists[l].cases[i];
            for (int d = 0; d < STK_N_DTYPES && !source->large; d++) {
                case_run run;
                if (!(case_mains(source) >> d & 1)) continue;
                if (case_run_describe(source, (stk_dtype)d, &run) != STK_OK) continue;
                STK_RETURN_IF_ERROR(visit(user, &run));
            }
        }
    }
    return STK_OK;
}
