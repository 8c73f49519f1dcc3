/* See timing.h. */
#include "device/cpu/timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/cpu/onednn/sgemm_memory.h"

enum { MOST_IN = 3 };

typedef struct trial {
    const char *name;
    stk_kernel kernel;
    void *scratch, *packed;
    double best_ns, turn_ns[STK_MOST_TURNS]; /* of all turns, of each; 0: it had no run in that */
} trial;

/* What the ways work on. */
typedef struct subject {
    stk_device *device;
    const stk_op_call *call;
    void *in[MOST_IN], *out;
} subject;

/* --- memory --- */

static void fill_some(stk_dtype dtype, void *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t sign = (uint32_t)(i * 7 % 5 & 1), fraction = (uint32_t)(i * 37 % 127); /* 0.5 to 1 and to -1 */
        float x = (sign ? -1.0f : 1.0f) * (0.5f + (float)fraction / 256);
        if (dtype == STK_F32)
            ((float *)p)[i] = x;
        else if (dtype == STK_BF16)
            ((uint16_t *)p)[i] = (uint16_t)(sign << 15 | 0x3f00 | fraction);
        else
            ((uint16_t *)p)[i] = (uint16_t)(sign << 15 | 0x3800 | fraction << 3);
    }
}

/* By copies of the first ones. */
static void fill(stk_dtype dtype, void *p, int64_t n)
{
    enum { FIRST = 5 * 127 };
    size_t element = stk_dtype_bytes(dtype), bytes = (size_t)n * element, done = FIRST * element;
    fill_some(dtype, p, n < FIRST ? n : FIRST);
    for (size_t some; done < bytes; done += some) {
        some = bytes - done < done ? bytes - done : done;
        memcpy((char *)p + done, p, some);
    }
}

static stk_status take_memory(subject *s)
{
    const stk_device_class *class = s->device->class;
    for (int i = 0; i < s->call->n_in; i++) {
        const stk_tensor_desc *in = &s->call->in[i];
        STK_RETURN_IF_ERROR(class->alloc(s->device, stk_desc_bytes(*in), STK_MEMORY_ZEROED, &s->in[i]));
        fill(in->dtype, s->in[i], stk_shape_count(in->shape));
    }
    return class->alloc(s->device, stk_desc_bytes(s->call->out[0]), STK_MEMORY_ZEROED, &s->out);
}

static void give_memory_back(subject *s)
{
    const stk_device_class *class = s->device->class;
    for (int i = 0; i < s->call->n_in; i++)
        if (s->in[i]) class->free(s->device, s->in[i], stk_desc_bytes(s->call->in[i]));
    if (s->out) class->free(s->device, s->out, stk_desc_bytes(s->call->out[0]));
}

/* --- trials --- */

static void end_trial(stk_device *device, trial *t)
{
    if (t->scratch) device->class->free(device, t->scratch, t->kernel.scratch_bytes);
    if (t->packed) device->class->free(device, t->packed, t->kernel.packed_bytes);
    stk_kernel_free(&t->kernel);
}

/* Whether the second input is a weight that a program would keep packed. */
static bool keeps_weight(const stk_op_call *call)
{
    if (call->in[0].dtype == STK_F32 || call->op == STK_OP_conv2d_grad_weight) return false;
    return call->op != STK_OP_matmul || (!call->attrs->matmul.transpose_a && call->in[1].shape.rank == 2);
}

static stk_status pack(const subject *s, trial *t)
{
    const stk_device_class *class = s->device->class;
    stk_kernel packing = {.run = t->kernel.pack, .state = t->kernel.state};
    int64_t n = stk_shape_count(s->call->in[t->kernel.packed_input].shape);
    void *weight = NULL;
    int i_failed;
    STK_RETURN_IF_ERROR(class->alloc(s->device, (size_t)n * sizeof(float), STK_MEMORY_ZEROED, &weight));
    fill(STK_F32, weight, n);
    stk_status status = class->alloc(s->device, t->kernel.packed_bytes, STK_MEMORY_ZEROED, &t->packed);
    stk_entry entry = {&packing, {.in = &weight, .out = &t->packed}};
    if (status == STK_OK) status = class->run(s->device, &entry, 1, &i_failed);
    class->free(s->device, weight, (size_t)n * sizeof(float));
    return status;
}

static stk_status prepare_trial(const subject *s, trial *t)
{
    size_t bytes = t->kernel.scratch_bytes;
    if (bytes) STK_RETURN_IF_ERROR(s->device->class->alloc(s->device, bytes, STK_MEMORY_ZEROED, &t->scratch));
    return t->kernel.packed_bytes && keeps_weight(s->call) ? pack(s, t) : STK_OK;
}

static stk_status make_way(stk_device *device, const stk_op_call *call, const char *name, stk_kernel *out)
{
    stk_sgemm_unsettle_thread();
    int before = stk_cpu_swap_thread_count(device->n_threads);
    stk_status status = stk_cpu_make_way((const stk_cpu_device *)device, call, stk_cpu_ways_of(call->op), name, out);
    stk_cpu_swap_thread_count(before);
    return status;
}

/* All that can do it, each name once, in trials that the caller ends. */
static stk_status find_trials(const subject *s, trial trials[STK_MOST_WAYS], int *n)
{
    for (const stk_cpu_way *w = stk_cpu_ways_of(s->call->op); w && w->name && *n < STK_MOST_WAYS; w++) {
        trial *t = &trials[*n];
        bool has = false;
        for (int i = 0; i < *n; i++)
            has |= !strcmp(trials[i].name, w->name);
        if (has) continue;
        stk_status status = make_way(s->device, s->call, w->name, &t->kernel);
        if (status == STK_UNSUPPORTED) continue;
        STK_RETURN_IF_ERROR(status);
        t->name = w->name;
        (*n)++;
        STK_RETURN_IF_ERROR(prepare_trial(s, t));
    }
    return STK_OK;
}

static bool is_over(const stk_timing *how)
{
    return (how->stop && *how->stop) || (how->end_ns && stk_clock_ns() >= how->end_ns);
}

static stk_status run_turn(const subject *s, const stk_timing *how, int i_turn, trial *t)
{
    void *in[MOST_IN], *out = s->out;
    memcpy(in, s->in, sizeof(in));
    stk_entry entry = {&t->kernel, {.in = in, .out = &out, .scratch = t->scratch, .packed = t->packed}};
    int64_t end = stk_clock_ns() + (int64_t)(how->turn_s * 1e9);
    for (int i = 0; i < how->fewest_runs || stk_clock_ns() < end; i++) {
        int i_failed;
        int64_t before = stk_clock_ns();
        if (is_over(how)) return STK_OK;
        STK_RETURN_IF_ERROR(s->device->class->run(s->device, &entry, 1, &i_failed));
        double ns = (double)(stk_clock_ns() - before);
        if (t->turn_ns[i_turn] == 0 || ns < t->turn_ns[i_turn]) t->turn_ns[i_turn] = ns > 1 ? ns : 1;
    }
    if (t->best_ns == 0 || t->turn_ns[i_turn] < t->best_ns) t->best_ns = t->turn_ns[i_turn];
    return STK_OK;
}

static const trial *find_fastest(const trial *trials, int n)
{
    const trial *fastest = trials;
    for (int i = 0; i < n; i++)
        if (trials[i].best_ns > 0 && (fastest->best_ns == 0 || trials[i].best_ns < fastest->best_ns))
            fastest = &trials[i];
    return fastest;
}

static stk_status take_turns(const subject *s, const stk_timing *how, trial *trials, int n, bool *in_time)
{
    *in_time = true;
    for (int turn = 0; turn < how->n_turns && n > 0; turn++) {
        double best = find_fastest(trials, n)->best_ns;
        bool is_sure = turn < how->n_sure_turns;
        for (int i = 0; i < n; i++)
            if (is_sure || trials[i].best_ns < how->hopeless * best)
                STK_RETURN_IF_ERROR(run_turn(s, how, turn, &trials[i]));
        if (is_sure && is_over(how)) *in_time = false;
        if (is_over(how)) break;
    }
    return STK_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As if it had always run next to the best way at that way's best. */
static double compared_with(const trial *best, const trial *t)
{
    double ratio[STK_MOST_TURNS];
    int n = 0;
    for (int i = 0; i < STK_MOST_TURNS; i++)
        if (t->turn_ns[i] > 0 && best->turn_ns[i] > 0) ratio[n++] = t->turn_ns[i] / best->turn_ns[i];
    if (n == 0) return t->best_ns;
    qsort(ratio, (size_t)n, sizeof(ratio[0]), compare_doubles);
    return best->best_ns * (ratio[n / 2] + ratio[(n - 1) / 2]) / 2;
}

stk_status stk_time_ways(stk_device *device, const stk_op_call *call, const stk_timing *how,
                         stk_timed_way out[STK_MOST_WAYS], int *n, bool *in_time)
{
    subject s = {.device = device, .call = call};
    trial trials[STK_MOST_WAYS] = {{0}};
    int n_trials = 0;
    stk_status status;
    *n = 0;
    *in_time = false;
    if (call->n_in > MOST_IN || call->n_out != 1) return stk_cpu_unsupported(call);
    STK_TRY(take_memory(&s));
    STK_TRY(find_trials(&s, trials, &n_trials));
    STK_TRY(take_turns(&s, how, trials, n_trials, in_time));
    const trial *fastest = find_fastest(trials, n_trials);
    for (int i = 0; i < n_trials; i++)
        out[i] = (stk_timed_way){trials[i].name, compared_with(fastest, &trials[i])};
    *n = n_trials;
done:
    for (int i = 0; i < n_trials; i++)
        end_trial(device, &trials[i]);
    give_memory_back(&s);
    return status;
}

stk_status stk_name_way(stk_device *device, const stk_op_call *call, const char **out)
{
    stk_kernel taken;
    *out = "other";
    STK_RETURN_IF_ERROR(device->class->kernel(device, call, &taken));
    for (const stk_cpu_way *w = stk_cpu_ways_of(call->op); w && w->name && !strcmp(*out, "other"); w++) {
        stk_kernel k = {0};
        if (make_way(device, call, w->name, &k) != STK_OK) continue;
        if (k.run == taken.run && k.scratch_bytes == taken.scratch_bytes && !strcmp(k.impl, taken.impl)) *out = w->name;
        stk_kernel_free(&k);
    }
    stk_kernel_free(&taken);
    return STK_OK;
}
