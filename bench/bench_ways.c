/* Every way of the lists of products and convolutions (impl.h) that can do a call, timed: what tables of families are
 * made of and checked by (src/device/cpu/tuned, tools/tune.py). Reads calls from standard input, one a line, and
 * answers each with one line, tab-separated: the call, the processor's choice by table and by rule alone, the call's
 * sizes, and nanoseconds by way.
 *
 *     bench_ways [THREADS]       2
 *
 *     matmul DTYPE OUT BATCHES M N K TURNED_A TURNED_B SHARED_B
 *     conv2d|conv2d_grad_data|conv2d_grad_weight DTYPE OUT IMAGES HEIGHT WIDTH CHANNELS FILTERS KERNEL_H KERNEL_W
 * STRIDE PAD_LOW PAD_HIGH DILATION GROUPS
 *
 * All ways take turns; one that is far behind after two turns gets no more. In each turn the fastest of a few runs of a
 * way is held against that of the way that is fastest in all, and the median of these ratios counts: on a shared
 * machine a core may be twice as fast for a moment, which one way alone would have met. Weights that a program would
 * keep packed (engine/packed.h) are packed once. The inputs are neither zeros nor denormal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/matmul/matmul_impls.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/sgemm_memory.h"
#include "device/cpu/threads/parallel.h"
#include "device/cpu/tuned/tuned.h"
#include "device/device.h"
#include "ops/rule.h"

enum { MOST_IN = 2, MOST_WAYS = 8, MOST_NUMBERS = 12, ROUNDS = 9, FEWEST_RUNS = 2 };
static const double ROUND_S = 0.004, HOPELESS = 2;

/* A call, and what it works on. */
typedef struct subject {
    stk_attrs attrs;
    stk_tensor_desc in_desc[MOST_IN], out_desc;
    stk_op_call call;
    void *in[MOST_IN], *out;
    bool keeps_weight;
} subject;

typedef struct way {
    const char *name;
    stk_kernel kernel;
    void *scratch, *packed;
    double best_ns, round_ns[ROUNDS]; /* of all rounds, of each; 0: it did not run in that */
} way;

/* --- calls --- */

static const stk_cpu_way *ways_of(stk_op op)
{
    return op == STK_OP_matmul ? stk_matmul_ways : stk_conv_ways;
}

static bool find_dtype(const char *text, stk_dtype *out)
{
    static const stk_dtype known[] = {STK_F32, STK_BF16, STK_F16};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(text, stk_dtype_name(known[i]))) {
            *out = known[i];
            return true;
        }
    return false;
}

static bool find_op(const char *text, stk_op *out)
{
    static const stk_op known[] = {STK_OP_matmul, STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(text, stk_op_name(known[i]))) {
            *out = known[i];
            return true;
        }
    return false;
}

static void set_product(subject *s, stk_dtype dtype, const int64_t z[MOST_NUMBERS])
{
    bool ta = z[4], tb = z[5], is_one = z[0] == 1, shares = z[6];
    stk_shape a = ta ? STK_SHAPE(z[0], z[3], z[1]) : STK_SHAPE(z[0], z[1], z[3]);
    stk_shape b = tb ? STK_SHAPE(z[0], z[2], z[3]) : STK_SHAPE(z[0], z[3], z[2]);
    if (is_one) a = STK_SHAPE(a.dim[1], a.dim[2]);
    if (is_one || shares) b = STK_SHAPE(b.dim[1], b.dim[2]);
    s->attrs.matmul.transpose_a = ta;
    s->attrs.matmul.transpose_b = tb;
    s->in_desc[0] = stk_desc_make(dtype, a);
    s->in_desc[1] = stk_desc_make(dtype, b);
    s->keeps_weight = !ta && b.rank == 2;
}

static void set_convolution(subject *s, stk_op op, stk_dtype dtype, const int64_t z[MOST_NUMBERS])
{
    stk_window *w = &s->attrs.window;
    int64_t y[2];
    *w = stk_window_make((int32_t)z[5], (int32_t)z[6]);
    for (int i = 0; i < 2; i++) {
        w->stride[i] = (int32_t)z[7];
        w->pad_low[i] = (int32_t)z[8];
        w->pad_high[i] = (int32_t)z[9];
        w->dilation[i] = (int32_t)z[10];
        y[i] = (z[1 + i] + z[8] + z[9] - z[10] * (z[5 + i] - 1) - 1) / z[7] + 1;
    }
    w->groups = (int32_t)z[11];
    stk_shape from = STK_SHAPE(z[0], z[1], z[2], z[3]), to = STK_SHAPE(z[0], y[0], y[1], z[4]);
    stk_shape weight = STK_SHAPE(z[4], z[5], z[6], z[3] / z[11]);
    bool of_data = op == STK_OP_conv2d_grad_data, of_weight = op == STK_OP_conv2d_grad_weight;
    s->in_desc[0] = stk_desc_make(dtype, of_data ? to : from);
    s->in_desc[1] = stk_desc_make(dtype, of_weight ? to : weight);
    if (of_data || of_weight) s->attrs.shape = of_data ? from : weight;
    s->keeps_weight = !of_weight;
}

static stk_status read_call(const char *line, subject *s)
{
    char op_text[32], in_text[8], out_text[8];
    int64_t z[MOST_NUMBERS] = {0};
    int at = 0, n = 0;
    stk_op op;
    stk_dtype in, out;
    if (sscanf(line, "%31s %7s %7s%n", op_text, in_text, out_text, &at) != 3 || !find_op(op_text, &op) ||
        !find_dtype(in_text, &in) || !find_dtype(out_text, &out))
        return stk_fail(STK_INVALID, "'%s' is no call", line);
    for (char *end; n < MOST_NUMBERS; n++) {
        z[n] = strtoll(line + at, &end, 10);
        if (end == line + at) break;
        at = (int)(end - line);
    }
    bool is_product = op == STK_OP_matmul;
    if (n != (is_product ? 7 : MOST_NUMBERS) || (!is_product && (z[7] < 1 || z[11] < 1)))
        return stk_fail(STK_INVALID, "'%s' has not the numbers of a call", line);
    memset(s, 0, sizeof(*s));
    s->attrs = stk_attrs_zero();
    if (is_product)
        set_product(s, in, z);
    else
        set_convolution(s, op, in, z);
    s->call = (stk_op_call){op, &s->attrs, MOST_IN, 1, s->in_desc, &s->out_desc};
    STK_RETURN_IF_ERROR(stk_op_get_rule(op)->infer(&s->call));
    s->out_desc.dtype = out;
    return STK_OK;
}

/* --- memory --- */

static void fill(stk_dtype dtype, void *p, int64_t n)
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

static stk_status take_memory(stk_device *device, subject *s)
{
    for (int i = 0; i < MOST_IN; i++) {
        STK_RETURN_IF_ERROR(device->class->alloc(device, stk_desc_bytes(s->in_desc[i]), STK_MEMORY_ZEROED, &s->in[i]));
        fill(s->in_desc[i].dtype, s->in[i], stk_shape_count(s->in_desc[i].shape));
    }
    return device->class->alloc(device, stk_desc_bytes(s->out_desc), STK_MEMORY_ZEROED, &s->out);
}

static void give_memory_back(stk_device *device, subject *s)
{
    for (int i = 0; i < MOST_IN; i++)
        if (s->in[i]) device->class->free(device, s->in[i], stk_desc_bytes(s->in_desc[i]));
    if (s->out) device->class->free(device, s->out, stk_desc_bytes(s->out_desc));
}

/* --- ways --- */

static void free_way(stk_device *device, way *w)
{
    if (w->scratch) device->class->free(device, w->scratch, w->kernel.scratch_bytes);
    if (w->packed) device->class->free(device, w->packed, w->kernel.packed_bytes);
    stk_kernel_free(&w->kernel);
}

/* The weight as a program keeps it. */
static stk_status pack(stk_device *device, const subject *s, way *w)
{
    stk_kernel packing = {.run = w->kernel.pack, .state = w->kernel.state};
    int64_t n = stk_shape_count(s->in_desc[w->kernel.packed_input].shape);
    void *weight = NULL;
    int i_failed;
    STK_RETURN_IF_ERROR(device->class->alloc(device, (size_t)n * sizeof(float), STK_MEMORY_ZEROED, &weight));
    fill(STK_F32, weight, n);
    stk_status status = device->class->alloc(device, w->kernel.packed_bytes, STK_MEMORY_ZEROED, &w->packed);
    stk_entry entry = {&packing, {.in = &weight, .out = &w->packed}};
    if (status == STK_OK) status = device->class->run(device, &entry, 1, &i_failed);
    device->class->free(device, weight, (size_t)n * sizeof(float));
    return status;
}

static stk_status prepare_way(stk_device *device, const subject *s, way *w)
{
    if (w->kernel.scratch_bytes)
        STK_RETURN_IF_ERROR(device->class->alloc(device, w->kernel.scratch_bytes, STK_MEMORY_ZEROED, &w->scratch));
    return s->keeps_weight && w->kernel.packed_bytes && s->in_desc[0].dtype != STK_F32 ? pack(device, s, w) : STK_OK;
}

static stk_status time_way(stk_device *device, const subject *s, way *w, int round)
{
    void *in[MOST_IN] = {s->in[0], s->in[1]}, *out = s->out;
    stk_entry entry = {&w->kernel, {.in = in, .out = &out, .scratch = w->scratch, .packed = w->packed}};
    int64_t end = stk_clock_ns() + (int64_t)(ROUND_S * 1e9);
    for (int i = 0; i < FEWEST_RUNS || stk_clock_ns() < end; i++) {
        int i_failed;
        int64_t before = stk_clock_ns();
        STK_RETURN_IF_ERROR(device->class->run(device, &entry, 1, &i_failed));
        double ns = (double)(stk_clock_ns() - before);
        if (i == 0 || ns < w->round_ns[round]) w->round_ns[round] = ns;
    }
    if (w->round_ns[round] < w->best_ns) w->best_ns = w->round_ns[round];
    return STK_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As if it had always run next to the best way at that way's best. */
static double compared_with(const way *best, const way *w)
{
    double ratio[ROUNDS];
    int n = 0;
    for (int i = 0; i < ROUNDS; i++)
        if (w->round_ns[i] > 0 && best->round_ns[i] > 0) ratio[n++] = w->round_ns[i] / best->round_ns[i];
    qsort(ratio, (size_t)n, sizeof(ratio[0]), compare_doubles);
    return best->best_ns * (ratio[n / 2] + ratio[(n - 1) / 2]) / 2;
}

/* All that can do it, each name once. */
static stk_status find_ways(stk_device *device, const subject *s, way ways[MOST_WAYS], int *n)
{
    const stk_cpu_device *cpu = (const stk_cpu_device *)device;
    for (const stk_cpu_way *w = ways_of(s->call.op); w->name && *n < MOST_WAYS; w++) {
        bool has = false;
        for (int i = 0; i < *n; i++)
            has |= !strcmp(ways[i].name, w->name);
        if (has) continue;
        stk_sgemm_unsettle_thread();
        int before = stk_cpu_swap_thread_count(device->n_threads);
        stk_status status = stk_cpu_make_way(cpu, &s->call, ways_of(s->call.op), w->name, &ways[*n].kernel);
        stk_cpu_swap_thread_count(before);
        if (status == STK_UNSUPPORTED) continue;
        STK_RETURN_IF_ERROR(status);
        ways[*n].name = w->name;
        ways[*n].best_ns = 1e30;
        (*n)++;
        STK_RETURN_IF_ERROR(prepare_way(device, s, &ways[*n - 1]));
    }
    return STK_OK;
}

/* The name among ways of what the device takes: what it makes does the same as one of them. "other": none of them. */
static stk_status find_choice(stk_device *device, const subject *s, const way *ways, int n, const char **out)
{
    stk_kernel kernel;
    STK_RETURN_IF_ERROR(device->class->kernel(device, &s->call, &kernel));
    *out = "other";
    for (int i = 0; i < n && !strcmp(*out, "other"); i++) {
        const stk_kernel *k = &ways[i].kernel;
        if (k->run == kernel.run && k->scratch_bytes == kernel.scratch_bytes && !strcmp(k->impl, kernel.impl))
            *out = ways[i].name;
    }
    stk_kernel_free(&kernel);
    return STK_OK;
}

static void print_sizes(const subject *s)
{
    int64_t z[STK_TUNED_N_SIZES];
    stk_tuned_sizes(&s->call, z);
    for (int i = 0; i < STK_TUNED_N_SIZES; i++)
        printf("%s%s=%lld", i ? " " : "", stk_tuned_size_name((stk_tuned_size)i), (long long)z[i]);
}

static stk_status answer(stk_device *device, const char *line)
{
    subject s;
    way ways[MOST_WAYS] = {{0}}, *fastest = ways;
    const char *tuned, *rule;
    int n = 0;
    stk_status status;
    STK_RETURN_IF_ERROR(read_call(line, &s));
    STK_TRY(take_memory(device, &s));
    STK_TRY(find_ways(device, &s, ways, &n));
    STK_TRY(find_choice(device, &s, ways, n, &tuned));
    setenv("STOKER_KERNELS", "default", 1);
    status = find_choice(device, &s, ways, n, &rule);
    unsetenv("STOKER_KERNELS");
    STK_TRY(status);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < n; i++)
            if (ways[i].best_ns < fastest->best_ns) fastest = &ways[i];
        double best = fastest->best_ns;
        for (int i = 0; i < n; i++)
            if (round < 2 || ways[i].best_ns < HOPELESS * best) STK_TRY(time_way(device, &s, &ways[i], round));
    }
    printf("%s\t%s\t%s\t", line, tuned, rule);
    print_sizes(&s);
    printf("\t");
    for (int i = 0; i < n; i++)
        printf("%s%s=%.0f", i ? " " : "", ways[i].name, compared_with(fastest, &ways[i]));
    printf("\n");
done:
    for (int i = 0; i < n; i++)
        free_way(device, &ways[i]);
    give_memory_back(device, &s);
    return status;
}

int main(int argc, char **argv)
{
    stk_device_config config = {.n_threads = argc > 1 ? atoi(argv[1]) : 2};
    stk_device *device = NULL;
    stk_text about = {0};
    char line[256];
    stk_status status;
    setvbuf(stdout, NULL, _IOLBF, 0);
    STK_TRY(stk_device_open("cpu", &config, &device));
    device->class->describe(device, &about);
    printf("%s\n", stk_text_get(&about));
    stk_cpu_swap_thread_count(device->n_threads);
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0]) STK_TRY(answer(device, line));
    }
done:
    if (status != STK_OK) fprintf(stderr, "bench_ways: %s\n", stk_error_text());
    stk_text_free(&about);
    stk_device_close(device);
    return status != STK_OK;
}
