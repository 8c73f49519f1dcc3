/* Own kernels next to the library's: for each own way of the lists of products and convolutions (impl.h) that has one
 * of oneDNN's behind it, calls for which it is chosen, what the library's way of the same list takes for them, and what
 * oneDNN takes alone in the formats that it likes best, which nobody had to make. Below 1.00x ours is ahead. Prints a
 * table of docs/kernels.md.
 *
 *     bench_own [THREADS [FILTER]]     1 thread; FILTER: part of a line
 *     bench_own THREADS seed=N         convolutions and products in bf16 that nobody chose, drawn from that seed, and
 * the geometric mean of ours over the library's way STOKER_ISA=avx2 ONEDNN_MAX_CPU_ISA=AVX2 bench_own     as on a
 * processor without AVX-512
 *
 * All take turns, and the fastest call of each counts; with one thread it is processor time, which other work on the
 * machine disturbs least.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "onednn_alone.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "device/cpu/conv/conv2d_onednn.h"
#include "device/cpu/matmul/matmul_impls.h"
#include "device/cpu/threads/parallel.h"
#include "device/device.h"
#include "ops/rule.h"

enum { ROUNDS = 6, MOST_IN = 2 };
static const double ROUND_S = 0.03;

typedef struct own_case {
    const char *way; /* as docs/kernels.md calls it */
    stk_op op;
    stk_dtype dtype;
    int64_t size[6]; /* product: m, n, k; convolution: images, side, channels, filters, kernel, stride */
    bool transpose_a, transpose_b;
} own_case;

#define F32_CONV(way, pass, ...)                                                                                       \
    {                                                                                                                  \
        way, STK_OP_conv2d##pass, STK_F32, {__VA_ARGS__}, false, false                                                 \
    }
#define BF16_CONV(way, pass, ...)                                                                                      \
    {                                                                                                                  \
        way, STK_OP_conv2d##pass, STK_BF16, {__VA_ARGS__}, false, false                                                \
    }

static const own_case cases[] = {
    {"one row", STK_OP_matmul, STK_F32, {1, 2048, 1024}, false, true},
    {"one row", STK_OP_matmul, STK_F32, {1, 2048, 2048}, false, false},
    {"one row", STK_OP_matmul, STK_F32, {1, 768, 3072}, false, true},
    {"small product", STK_OP_matmul, STK_F32, {16, 48, 64}, false, true},
    {"small product", STK_OP_matmul, STK_F32, {128, 10, 128}, false, true},
    {"small product", STK_OP_matmul, STK_F32, {64, 64, 64}, false, false},
    {"small product", STK_OP_matmul, STK_F32, {48, 64, 16}, true, false},
    {"product in bf16", STK_OP_matmul, STK_BF16, {2048, 3072, 768}, false, true},
    {"product in bf16", STK_OP_matmul, STK_BF16, {2048, 768, 3072}, false, false},
    {"product in bf16", STK_OP_matmul, STK_BF16, {3072, 768, 2048}, true, false},
    F32_CONV("Winograd", , 8, 56, 64, 64, 3, 1),
    F32_CONV("Winograd", _grad_data, 8, 28, 128, 128, 3, 1),
    F32_CONV("Winograd", _grad_weight, 8, 14, 256, 256, 3, 1),
    F32_CONV("direct", , 8, 56, 128, 128, 3, 2),
    F32_CONV("direct", _grad_data, 8, 28, 256, 256, 3, 2),
    F32_CONV("direct", _grad_weight, 8, 28, 256, 256, 3, 2),
    F32_CONV("direct", , 8, 56, 64, 64, 5, 1),
    F32_CONV("weights of 1x1", _grad_weight, 8, 14, 1024, 256, 1, 1),
    F32_CONV("weights of 1x1", _grad_weight, 8, 7, 512, 2048, 1, 1),
    F32_CONV("weights of 1x1", _grad_weight, 8, 28, 512, 1024, 1, 2),
    F32_CONV("depthwise", , 16, 32, 32, 0, 3, 1),
    F32_CONV("depthwise", _grad_data, 16, 32, 32, 0, 3, 1),
    F32_CONV("depthwise", _grad_weight, 16, 32, 32, 0, 3, 1),
    F32_CONV("depthwise", , 8, 56, 144, 0, 3, 1),
    F32_CONV("depthwise", _grad_data, 8, 56, 144, 0, 3, 1),
    F32_CONV("depthwise", _grad_weight, 8, 56, 144, 0, 3, 1),
    F32_CONV("depthwise", , 8, 14, 576, 0, 5, 1),
    F32_CONV("depthwise", _grad_data, 8, 14, 576, 0, 5, 1),
    F32_CONV("depthwise", _grad_weight, 8, 14, 576, 0, 5, 1),
    F32_CONV("depthwise", , 16, 16, 192, 0, 3, 2),
    F32_CONV("depthwise", _grad_data, 16, 16, 192, 0, 3, 2),
    F32_CONV("depthwise", _grad_weight, 16, 16, 192, 0, 3, 2),
    BF16_CONV("pairs of bf16", _grad_weight, 8, 56, 64, 64, 3, 1),
    BF16_CONV("pairs of bf16", _grad_weight, 8, 28, 128, 128, 3, 1),
    BF16_CONV("pairs of bf16", _grad_weight, 8, 56, 128, 128, 3, 2),
    BF16_CONV("pairs of bf16", _grad_weight, 8, 28, 512, 1024, 1, 2),
    BF16_CONV("pairs of bf16", _grad_weight, 8, 14, 1024, 256, 1, 1),
    BF16_CONV("weights of 1x1 in bf16", _grad_weight, 8, 14, 240, 960, 1, 1),
    BF16_CONV("weights of 1x1 in bf16", _grad_weight, 8, 7, 720, 720, 1, 1),
    BF16_CONV("Winograd in 16 bits", _grad_weight, 32, 4, 48, 48, 3, 1),
    BF16_CONV("Winograd in 16 bits", _grad_weight, 64, 8, 112, 112, 3, 1),
    BF16_CONV("tiles", , 8, 56, 64, 64, 3, 1),
    BF16_CONV("tiles", , 8, 56, 64, 256, 1, 1),
    BF16_CONV("tiles", , 8, 14, 256, 256, 3, 1),
    BF16_CONV("tiles", , 8, 7, 512, 512, 3, 1),
    BF16_CONV("tiles", , 8, 224, 3, 64, 7, 2),
    BF16_CONV("tiles", _grad_data, 8, 28, 128, 128, 3, 1),
    BF16_CONV("tiles", _grad_data, 8, 56, 128, 128, 3, 2),
    BF16_CONV("tiles", _grad_data, 8, 14, 1024, 256, 1, 1),
    BF16_CONV("tiles", _grad_weight, 8, 224, 3, 64, 7, 2),
    BF16_CONV("tiles", _grad_weight, 8, 7, 512, 512, 3, 1),
};

/* What the case means: inputs, and a text. */
static void describe(const own_case *c, stk_attrs *attrs, stk_tensor_desc in[MOST_IN], char *text, size_t n_text)
{
    const int64_t *s = c->size;
    const char *type = c->dtype == STK_F32 ? "f32" : "bf16";
    *attrs = stk_attrs_zero();
    if (c->op == STK_OP_matmul) {
        attrs->matmul.transpose_a = c->transpose_a;
        attrs->matmul.transpose_b = c->transpose_b;
        in[0] = stk_desc_make(c->dtype, c->transpose_a ? STK_SHAPE(s[2], s[0]) : STK_SHAPE(s[0], s[2]));
        in[1] = stk_desc_make(c->dtype, c->transpose_b ? STK_SHAPE(s[1], s[2]) : STK_SHAPE(s[2], s[1]));
        snprintf(text, n_text, "%s %lldx%lldx%lld%s%s", type, (long long)s[0], (long long)s[1], (long long)s[2],
                 c->transpose_a ? ", left turned" : "", c->transpose_b ? ", right turned" : "");
        return;
    }
    bool is_depthwise = s[3] == 0;
    int64_t out = (s[1] - 1) / s[5] + 1, filters = is_depthwise ? s[2] : s[3];
    attrs->window = stk_window_make(s[4], s[4]);
    for (int i = 0; i < 2; i++) {
        attrs->window.stride[i] = (int32_t)s[5];
        attrs->window.pad_low[i] = attrs->window.pad_high[i] = (int32_t)s[4] / 2;
    }
    attrs->window.groups = is_depthwise ? (int32_t)s[2] : 1;
    stk_shape x = STK_SHAPE(s[0], s[1], s[1], s[2]), y = STK_SHAPE(s[0], out, out, filters);
    stk_shape weight = STK_SHAPE(filters, s[4], s[4], is_depthwise ? 1 : s[2]);
    bool of_data = c->op == STK_OP_conv2d_grad_data, of_weight = c->op == STK_OP_conv2d_grad_weight;
    in[0] = stk_desc_make(c->dtype, of_data ? y : x);
    in[1] = stk_desc_make(c->dtype, of_weight ? y : weight);
    if (of_data || of_weight) attrs->shape = of_data ? x : weight;
    snprintf(text, n_text, "%s %lldx%lld/%lld %lldx%lldx%lldx%lld -> %lld, %s", type, (long long)s[4], (long long)s[4],
             (long long)s[5], (long long)s[0], (long long)s[1], (long long)s[1], (long long)s[2], (long long)filters,
             of_data     ? "data"
             : of_weight ? "weights"
                         : "forward");
}

static int64_t now_ns(const stk_device *device)
{
    struct timespec t;
    if (device->n_threads > 1) return stk_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A kernel with what it works on. */
typedef struct way {
    stk_kernel kernel;
    void *scratch;
    double best_ns;
} way;

static stk_status time_way(stk_device *device, way *w, void **in, void **out)
{
    stk_entry entry = {&w->kernel, {.in = in, .out = out, .scratch = w->scratch}};
    int64_t end = stk_clock_ns() + (int64_t)(ROUND_S * 1e9);
    for (int i = 0; i < 3 || stk_clock_ns() < end; i++) {
        int i_failed;
        int64_t before = now_ns(device);
        STK_RETURN_IF_ERROR(device->class->run(device, &entry, 1, &i_failed));
        double ns = (double)(now_ns(device) - before);
        if (ns > 0 && ns < w->best_ns) w->best_ns = ns;
    }
    return STK_OK;
}

/* *out stays empty where the list has no way of the library's for it by itself, as for products in bf16. */
static stk_status make_library(stk_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_cpu_device *cpu = (const stk_cpu_device *)device;
    stk_status status = STK_OK;
    if (call->op != STK_OP_matmul)
        status = stk_conv_onednn_make(cpu, call, out);
    else if (call->in[0].dtype == STK_F32)
        status = stk_matmul_sgemm_make(cpu, call, out);
    if (status == STK_UNSUPPORTED) stk_kernel_free(out);
    return status == STK_UNSUPPORTED ? STK_OK : status;
}

static void print_ratio(double own_ns, double other_ns)
{
    if (other_ns < 1e30)
        printf(" %.1f | %.2fx |", other_ns * 1e-3, own_ns / other_ns);
    else
        printf(" | |");
}

/* *ratio: ours over the library's, or over its own formats where the list has no way of the library's; 0: neither. */
static stk_status bench_case(stk_device *device, const own_case *c, const char *filter, double *ratio)
{
    char text[128];
    stk_attrs attrs;
    stk_tensor_desc in_desc[MOST_IN], out_desc;
    stk_op_call call = {c->op, &attrs, MOST_IN, 1, in_desc, &out_desc};
    void *in[MOST_IN] = {NULL}, *out = NULL;
    way ways[2] = {{.best_ns = 1e30}, {.best_ns = 1e30}}; /* ours, the library's */
    double alone_ns = 1e30, ns;
    bool is_f32;
    stk_status status;
    describe(c, &attrs, in_desc, text, sizeof(text));
    if (filter && !strstr(text, filter) && !strstr(c->way, filter)) return STK_OK;
    STK_TRY(stk_op_get_rule(c->op)->infer(&call));
    STK_TRY(device->class->kernel(device, &call, &ways[0].kernel));
    STK_TRY(make_library(device, &call, &ways[1].kernel));
    for (int i = 0; i < MOST_IN; i++)
        STK_TRY(device->class->alloc(device, stk_desc_bytes(in_desc[i]), STK_MEMORY_ZEROED, &in[i]));
    STK_TRY(device->class->alloc(device, stk_desc_bytes(out_desc), STK_MEMORY_ZEROED, &out));
    for (int i = 0; i < 2; i++)
        if (ways[i].kernel.scratch_bytes)
            STK_TRY(device->class->alloc(device, ways[i].kernel.scratch_bytes, STK_MEMORY_ZEROED, &ways[i].scratch));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++)
            if (ways[i].kernel.run) STK_TRY(time_way(device, &ways[i], in, &out));
        STK_TRY(onednn_alone_time(device, &call, ROUND_S, &ns, &is_f32));
        if (ns < alone_ns && (c->dtype == STK_F32 || !is_f32)) alone_ns = ns;
    }
    printf("| %s | %s | %s | %.1f |", c->way, text, ways[0].kernel.impl, ways[0].best_ns * 1e-3);
    print_ratio(ways[0].best_ns, ways[1].best_ns);
    print_ratio(ways[0].best_ns, alone_ns);
    printf("\n");
    *ratio = ways[1].best_ns < 1e30 ? ways[0].best_ns / ways[1].best_ns
             : alone_ns < 1e30      ? ways[0].best_ns / alone_ns
                                    : 0;
done:
    for (int i = 0; i < MOST_IN; i++)
        if (in[i]) device->class->free(device, in[i], stk_desc_bytes(in_desc[i]));
    if (out) device->class->free(device, out, stk_desc_bytes(out_desc));
    for (int i = 0; i < 2; i++) {
        if (ways[i].scratch) device->class->free(device, ways[i].scratch, ways[i].kernel.scratch_bytes);
        stk_kernel_free(&ways[i].kernel);
    }
    return status;
}

/* --- calls that nobody chose --- */

/* Evenly by size, from least to most. */
static int64_t draw_size(uint64_t *seed, double least, double most)
{
    *seed = stk_mix64(*seed + 1);
    double u = (double)(*seed >> 11) * 0x1p-53;
    return (int64_t)(least * pow(most / least, u));
}

static own_case draw_case(uint64_t *seed, int number)
{
    static const stk_op ops[4] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight, STK_OP_matmul};
    own_case c = {.way = "drawn", .op = ops[number % 4], .dtype = STK_BF16};
    if (c.op == STK_OP_matmul) {
        for (int i = 0; i < 3; i++)
            c.size[i] = draw_size(seed, 64, 4096);
        c.transpose_a = draw_size(seed, 1, 4) > 1;
        c.transpose_b = !c.transpose_a && draw_size(seed, 1, 4) > 1;
        return c;
    }
    c.size[0] = draw_size(seed, 4, 64);
    c.size[1] = draw_size(seed, 5, 64);
    for (int i = 2; i < 4; i++)
        c.size[i] = 8 * draw_size(seed, 2, 80);
    c.size[4] = 2 * draw_size(seed, 1, 4) - 1;
    c.size[5] = draw_size(seed, 1, 3);
    return c;
}

static stk_status bench_drawn(stk_device *device, uint64_t seed)
{
    enum { N = 24 };
    double sum = 0, ratio;
    int n = 0;
    for (int i = 0; i < N; i++) {
        own_case c = draw_case(&seed, i);
        STK_RETURN_IF_ERROR(bench_case(device, &c, NULL, &ratio));
        if (ratio > 0) sum += log(ratio), n++;
    }
    printf("\ngeometric mean of %d: %.2fx\n", n, n ? exp(sum / n) : 0);
    return STK_OK;
}

int main(int argc, char **argv)
{
    stk_device_config config = {.n_threads = argc > 1 ? atoi(argv[1]) : 1};
    stk_device *device = NULL;
    stk_text about = {0};
    stk_status status;
    double ratio;
    setvbuf(stdout, NULL, _IOLBF, 0);
    STK_TRY(stk_device_open("cpu", &config, &device));
    device->class->describe(device, &about);
    stk_cpu_swap_thread_count(device->n_threads);
    printf("%s\n\n| own way | call | what ran | ours, us | the library's way, us | | oneDNN's formats, us | |\n"
           "|---|---|---|---:|---:|---:|---:|---:|\n",
           stk_text_get(&about));
    if (argc > 2 && !strncmp(argv[2], "seed=", 5)) {
        STK_TRY(bench_drawn(device, strtoull(argv[2] + 5, NULL, 10)));
        goto done;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        STK_TRY(bench_case(device, &cases[i], argc > 2 ? argv[2] : NULL, &ratio));
done:
    if (status != STK_OK) fprintf(stderr, "bench_own: %s\n", stk_error_text());
    stk_text_free(&about);
    stk_device_close(device);
    return status != STK_OK;
}
