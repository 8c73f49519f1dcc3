/* The cpu device's kernels on the shapes of a few networks, next to what the machine can do: GFLOP/s as a share of
 * measured multiply-add peak, GB/s as a share of a measured triad (a = b + s * c over memory larger than the caches).
 *
 *     bench_cpu_kernels [threads] [filter]
 *
 * Each time is the fastest of repeated calls; with one thread it is processor time, which other work on the machine
 * disturbs least.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peak.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/device.h"
#include "graph/fused.h"

typedef struct bench {
    stk_device *device;
    double peak, triad; /* flops and bytes a nanosecond */
    const char *filter;
} bench;

/* --- time --- */

static int64_t now_ns(const stk_device *device)
{
    struct timespec t;
    if (device->n_threads > 1) return stk_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The fastest of the calls within 0.2 s, at least three. */
static stk_status time_entry(stk_device *device, const stk_entry *entry, double *best_ns)
{
    int64_t start = stk_clock_ns();
    *best_ns = 1e30;
    for (int i = 0; i < 3 || stk_clock_ns() - start < 200000000; i++) {
        int i_failed;
        int64_t before = now_ns(device);
        STK_RETURN_IF_ERROR(device->class->run(device, entry, 1, &i_failed));
        double ns = (double)(now_ns(device) - before);
        /* The processor's clock may not have moved. */
        if (ns > 0 && ns < *best_ns) *best_ns = ns;
    }
    return STK_OK;
}

/* --- one call --- */

enum { MOST = 8 };

/* Runs the op on uniform inputs; labels, where there are any, are below 10. */
static stk_status bench_op(const bench *b, const char *name, stk_op op, const stk_attrs *attrs, int n_in,
                           const stk_tensor_desc *in_desc, double *best_ns)
{
    const stk_op_rule *rule = stk_op_get_rule(op);
    stk_tensor_desc out_desc[MOST];
    stk_op_call call = {op, attrs, n_in, rule->n_out < 0 ? 1 : rule->n_out, in_desc, out_desc};
    void *in[MOST] = {0}, *out[MOST] = {0}, *scratch = NULL;
    stk_kernel kernel = {0};
    stk_status status = STK_OK;
    double ns = 0;
    if (b->filter && !strstr(name, b->filter)) return STK_OK;
    STK_TRY(rule->infer(&call));
    STK_TRY(b->device->class->kernel(b->device, &call, &kernel));
    for (int i = 0; i < n_in; i++) {
        STK_TRY(b->device->class->alloc(b->device, stk_desc_bytes(in_desc[i]), STK_MEMORY_ZEROED, &in[i]));
        for (int64_t k = 0, n = stk_shape_count(in_desc[i].shape); k < n; k++) {
            if (in_desc[i].dtype == STK_F32) ((float *)in[i])[k] = (float)(k * 7919 % 1024) / 512 - (i == 2 ? 0 : 1);
            if (in_desc[i].dtype == STK_I32) ((int32_t *)in[i])[k] = (int32_t)(k % 10);
        }
    }
    for (int i = 0; i < call.n_out; i++)
        STK_TRY(b->device->class->alloc(b->device, stk_desc_bytes(out_desc[i]), STK_MEMORY_ZEROED, &out[i]));
    if (kernel.scratch_bytes)
        STK_TRY(b->device->class->alloc(b->device, kernel.scratch_bytes, STK_MEMORY_ZEROED, &scratch));
    stk_entry entry = {&kernel, {.in = in, .out = out, .scratch = scratch}};
    STK_TRY(time_entry(b->device, &entry, &ns));
    stk_cost cost = stk_op_cost(&call);
    printf("%-44s %10.1f us %8.1f GFLOP/s %4.0f %% %8.1f GB/s %4.0f %%  %s\n", name, ns * 1e-3, cost.flops / ns,
           100 * cost.flops / ns / b->peak, cost.bytes / ns, 100 * cost.bytes / ns / b->triad, kernel.impl);
done:
    for (int i = 0; i < MOST; i++) {
        if (in[i]) b->device->class->free(b->device, in[i], stk_desc_bytes(in_desc[i]));
        if (out[i]) b->device->class->free(b->device, out[i], stk_desc_bytes(out_desc[i]));
    }
    if (scratch) b->device->class->free(b->device, scratch, kernel.scratch_bytes);
    stk_kernel_free(&kernel);
    if (best_ns) *best_ns = ns;
    return status;
}

#define F32(...)  ((stk_tensor_desc){STK_F32, STK_SHAPE(__VA_ARGS__)})
#define SCALAR(t) ((stk_tensor_desc){t, {.rank = 0}})

/* --- groups of calls --- */

static stk_status bench_matmul(const bench *b, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    char name[80];
    snprintf(name, sizeof(name), "matmul %s[%lld,%lld] %s[%lld,%lld]", ta ? "T" : "", (long long)(ta ? k : m),
             (long long)(ta ? m : k), tb ? "T" : "", (long long)(tb ? n : k), (long long)(tb ? k : n));
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = ta;
    attrs.matmul.transpose_b = tb;
    stk_tensor_desc in[2] = {ta ? F32(k, m) : F32(m, k), tb ? F32(n, k) : F32(k, n)};
    return bench_op(b, name, STK_OP_matmul, &attrs, 2, in, NULL);
}

static stk_status bench_matmuls(const bench *b)
{
    /* An MLP 784-128-10 with 128 samples: forward, then gradients of weights and of the hidden layer. */
    static const int shapes[][5] = {{128, 128, 784, 0, 1},   {128, 10, 128, 0, 0},  {784, 128, 128, 1, 0},
                                    {128, 10, 128, 1, 0},    {128, 128, 10, 0, 1},  {512, 512, 512, 0, 0},
                                    {512, 512, 512, 0, 1},   {512, 512, 512, 1, 0}, {1024, 1024, 1024, 0, 0},
                                    {4096, 256, 1024, 0, 1}, {10, 4096, 512, 0, 0}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        STK_RETURN_IF_ERROR(
            bench_matmul(b, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3] != 0, shapes[i][4] != 0));
    return STK_OK;
}

static stk_status bench_conv(const bench *b, int64_t n, int64_t side, int64_t c, int64_t o, int kernel, int stride)
{
    char name[80];
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = stk_window_make(kernel, kernel);
    for (int i = 0; i < 2; i++) {
        attrs.window.stride[i] = stride;
        attrs.window.pad_low[i] = attrs.window.pad_high[i] = kernel / 2;
    }
    int64_t out = (side - 1) / stride + 1;
    stk_tensor_desc x = F32(n, side, side, c), weight = F32(o, kernel, kernel, c), y = F32(n, out, out, o);
    for (int pass = 0; pass < 3; pass++) {
        static const char *const passes[] = {"forward", "data", "weight"};
        static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
        snprintf(name, sizeof(name), "conv %dx%d/%d %lldx%lldx%lldx%lld->%lld %s", kernel, kernel, stride, (long long)n,
                 (long long)side, (long long)side, (long long)c, (long long)o, passes[pass]);
        stk_tensor_desc in[2] = {pass == 1 ? y : x, pass == 2 ? y : weight};
        attrs.shape = pass == 1 ? x.shape : weight.shape;
        if (pass == 0) attrs.shape = (stk_shape){.rank = 0};
        if (pass == 1 && c == 3) continue;
        STK_RETURN_IF_ERROR(bench_op(b, name, ops[pass], &attrs, 2, in, NULL));
    }
    return STK_OK;
}

static stk_status bench_convs(const bench *b)
{
    static const int shapes[][6] = {/* n, side, c, o, kernel, stride: a small CNN, then ResNet-18 for CIFAR */
                                    {128, 32, 3, 32, 3, 1},   {128, 16, 32, 64, 3, 1}, {128, 8, 64, 128, 3, 1},
                                    {32, 32, 3, 64, 3, 1},    {32, 32, 64, 64, 3, 1},  {32, 32, 64, 128, 3, 2},
                                    {32, 16, 128, 128, 3, 1}, {32, 32, 64, 128, 1, 2}, {32, 16, 128, 256, 3, 2},
                                    {32, 8, 256, 256, 3, 1},  {32, 8, 256, 512, 3, 2}, {32, 4, 512, 512, 3, 1},
                                    {32, 8, 256, 512, 1, 2}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        STK_RETURN_IF_ERROR(
            bench_conv(b, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], shapes[i][4], shapes[i][5]));
    return STK_OK;
}

static stk_status bench_norms(const bench *b, int64_t n, int64_t side, int64_t c)
{
    char name[80];
    stk_attrs attrs = stk_attrs_zero();
    attrs.batch_norm.eps = 1e-5;
    attrs.batch_norm.relu = 1;
    stk_tensor_desc x = F32(n, side, side, c), v = F32(c);
    snprintf(name, sizeof(name), "batch_norm %lldx%lldx%lldx%lld", (long long)n, (long long)side, (long long)side,
             (long long)c);
    STK_RETURN_IF_ERROR(bench_op(b, name, STK_OP_batch_norm, &attrs, 5, (stk_tensor_desc[]){x, v, v, v, v}, NULL));
    snprintf(name, sizeof(name), "batch_norm_grad %lldx%lldx%lldx%lld", (long long)n, (long long)side, (long long)side,
             (long long)c);
    STK_RETURN_IF_ERROR(
        bench_op(b, name, STK_OP_batch_norm_grad, &attrs, 6, (stk_tensor_desc[]){x, x, v, v, v, v}, NULL));
    attrs = stk_attrs_zero();
    attrs.window = stk_window_make(2, 2);
    attrs.window.stride[0] = attrs.window.stride[1] = 2;
    stk_tensor_desc y = F32(n, side / 2, side / 2, c);
    snprintf(name, sizeof(name), "max_pool2d 2x2 %lldx%lldx%lldx%lld", (long long)n, (long long)side, (long long)side,
             (long long)c);
    STK_RETURN_IF_ERROR(bench_op(b, name, STK_OP_max_pool2d, &attrs, 1, &x, NULL));
    snprintf(name, sizeof(name), "max_pool2d_grad 2x2 %lldx%lldx%lldx%lld", (long long)n, (long long)side,
             (long long)side, (long long)c);
    STK_RETURN_IF_ERROR(bench_op(b, name, STK_OP_max_pool2d_grad, &attrs, 3, (stk_tensor_desc[]){x, y, y}, NULL));
    attrs = stk_attrs_zero();
    attrs.reduce.axes = 6;
    attrs.reduce.kind = STK_REDUCE_MEAN;
    return bench_op(b, "mean over H, W", STK_OP_reduce, &attrs, 1, &x, NULL);
}

static stk_status bench_unaries(const bench *b, int64_t n)
{
    for (int kind = 0; kind < STK_N_UNARY; kind++) {
        char name[80];
        stk_attrs attrs = stk_attrs_zero();
        attrs.element.kind = kind;
        stk_tensor_desc x = F32(n);
        snprintf(name, sizeof(name), "unary %s %lld", stk_unary_name(kind), (long long)n);
        STK_RETURN_IF_ERROR(bench_op(b, name, STK_OP_unary, &attrs, 1, &x, NULL));
    }
    return STK_OK;
}

static stk_status bench_rest(const bench *b)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_tensor_desc big = F32(1 << 22), rows = F32(512, 8192), labels = {STK_I32, STK_SHAPE(128)};
    attrs.element.kind = STK_BINARY_add;
    STK_RETURN_IF_ERROR(bench_op(b, "binary add 4M", STK_OP_binary, &attrs, 2, (stk_tensor_desc[]){big, big}, NULL));
    attrs = stk_attrs_zero();
    attrs.dropout.rate = 0.5;
    stk_tensor_desc scalar = SCALAR(STK_I64);
    STK_RETURN_IF_ERROR(
        bench_op(b, "dropout 4M", STK_OP_dropout, &attrs, 3, (stk_tensor_desc[]){rows, scalar, scalar}, NULL));
    attrs = stk_attrs_zero();
    attrs.adam.beta1 = 0.9, attrs.adam.beta2 = 0.999, attrs.adam.eps = 1e-8;
    for (int i = 0; i < 2; i++) {
        stk_tensor_desc p = i ? big : F32(100480);
        STK_RETURN_IF_ERROR(bench_op(b, i ? "adam 4M" : "adam 100k", STK_OP_adam_update, &attrs, 6,
                                     (stk_tensor_desc[]){p, p, p, p, SCALAR(STK_F32), scalar}, NULL));
    }
    attrs = stk_attrs_zero();
    attrs.sgd.momentum = 0.9;
    STK_RETURN_IF_ERROR(bench_op(b, "sgd momentum 4M", STK_OP_sgd_update, &attrs, 4,
                                 (stk_tensor_desc[]){big, big, big, SCALAR(STK_F32)}, NULL));
    attrs = stk_attrs_zero();
    stk_tensor_desc logits = F32(128, 10), loss = F32(128);
    STK_RETURN_IF_ERROR(bench_op(b, "cross_entropy 128x10", STK_OP_cross_entropy, &attrs, 2,
                                 (stk_tensor_desc[]){logits, labels}, NULL));
    STK_RETURN_IF_ERROR(bench_op(b, "cross_entropy_grad 128x10", STK_OP_cross_entropy_grad, &attrs, 3,
                                 (stk_tensor_desc[]){logits, labels, loss}, NULL));
    STK_RETURN_IF_ERROR(bench_op(b, "softmax 512x8192", STK_OP_softmax, &attrs, 1, &rows, NULL));
    attrs.reduce.axes = 1;
    STK_RETURN_IF_ERROR(bench_op(b, "sum of columns 512x8192", STK_OP_reduce, &attrs, 1, &rows, NULL));
    attrs.reduce.axes = 2;
    STK_RETURN_IF_ERROR(bench_op(b, "sum of rows 512x8192", STK_OP_reduce, &attrs, 1, &rows, NULL));
    attrs = stk_attrs_zero();
    attrs.permutation[0] = 1;
    return bench_op(b, "transpose 512x8192", STK_OP_transpose, &attrs, 1, &rows, NULL);
}

int main(int argc, char **argv)
{
    bench b = {.filter = argc > 2 ? argv[2] : NULL, .triad = 1};
    stk_device_config config = {.n_threads = argc > 1 ? atoi(argv[1]) : 0};
    stk_text about = {0};
    stk_status status = STK_OK;
    double ns = 0;
    STK_TRY(stk_device_open("cpu", &config, &b.device));
    b.device->class->describe(b.device, &about);
    b.peak = measure_peak() * b.device->n_threads;
    if (b.peak == 0) b.peak = 1e30;
    /* The triad: an addition of two arrays of 128 MiB moves as much. */
    stk_attrs attrs = stk_attrs_zero();
    stk_tensor_desc huge = F32(1 << 25);
    const char *filter = b.filter;
    b.filter = NULL;
    STK_TRY(bench_op(&b, "triad", STK_OP_binary, &attrs, 2, (stk_tensor_desc[]){huge, huge}, &ns));
    b.triad = 3.0 * 4 * (1 << 25) / ns;
    b.filter = filter;
    printf("%s: peak %.1f GFLOP/s, memory %.1f GB/s\n", stk_text_get(&about), b.peak, b.triad);
    STK_TRY(bench_matmuls(&b));
    STK_TRY(bench_convs(&b));
    STK_TRY(bench_norms(&b, 128, 32, 32));
    STK_TRY(bench_norms(&b, 32, 32, 64));
    STK_TRY(bench_norms(&b, 32, 4, 512));
    STK_TRY(bench_unaries(&b, 1 << 18));
    STK_TRY(bench_rest(&b));
done:
    if (status != STK_OK) fprintf(stderr, "bench_cpu_kernels: %s\n", stk_error_text());
    stk_text_free(&about);
    stk_device_close(b.device);
    return status != STK_OK;
}
