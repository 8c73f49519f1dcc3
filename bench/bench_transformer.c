/* Attention and the loss over a vocabulary; then the matrix products of BERT-base (2,048 rows) and GPT-2 124M (1,024
 * rows), forward, for the rows' gradient and for the weights', by the cpu device and next to them by oneDNN's sgemm on
 * the same memory. The last line of each network adds up one training step: what its products alone take.
 *
 *     bench_transformer [threads] [filter]
 *
 * Each time is the fastest of repeated calls, the two taking turns (set
 * OMP_WAIT_POLICY=passive, or oneDNN's team spins into our calls); with one thread it is processor time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <oneapi/dnnl/dnnl.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/cpu/threads/parallel.h"
#include "device/device.h"

typedef struct product {
    int64_t m, n, k;
    bool ta, tb;
} product;

typedef struct layer {
    const char *name;
    int64_t k, n; /* a weight [n,k] */
    int n_times;  /* in a step */
} layer;

typedef struct network {
    const char *name;
    int64_t rows;
    layer layers[6];
} network;

static const network networks[] = {
    {"bert-base 16 x 128",
     2048,
     {{"query, key, value, output", 768, 768, 48}, {"up", 768, 3072, 12}, {"down", 3072, 768, 12}}},
    {"gpt2-124m 4 x 256",
     1024,
     {{"qkv", 768, 2304, 12},
      {"output", 768, 768, 12},
      {"up", 768, 3072, 12},
      {"down", 3072, 768, 12},
      {"head", 768, 50257, 1}}},
};

static int64_t now_ns(const stk_device *device)
{
    struct timespec t;
    if (device->n_threads > 1) return stk_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static stk_status run_peer(const product *p, const float *a, const float *b, float *c)
{
    dnnl_status_t status = dnnl_sgemm(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', p->m, p->n, p->k, 1, a, p->ta ? p->m : p->k,
                                      b, p->tb ? p->k : p->n, 0, c, p->n);
    return status == dnnl_success ? STK_OK : stk_fail(STK_DEVICE, "oneDNN's sgemm failed");
}

static stk_status alloc_random(stk_device *device, int64_t n, float **out)
{
    void *p;
    STK_RETURN_IF_ERROR(device->class->alloc(device, (size_t)n * sizeof(float), STK_MEMORY_ZEROED, &p));
    *out = p;
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = (float)(i * 7919 % 1024) / 512 - 1;
    return STK_OK;
}

/* Fastest times of both. */
static stk_status time_product(stk_device *device, const product *p, double ns[2])
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = p->ta;
    attrs.matmul.transpose_b = p->tb;
    stk_tensor_desc in_desc[2] = {{STK_F32, p->ta ? STK_SHAPE(p->k, p->m) : STK_SHAPE(p->m, p->k)},
                                  {STK_F32, p->tb ? STK_SHAPE(p->n, p->k) : STK_SHAPE(p->k, p->n)}},
                    out_desc = {STK_F32, STK_SHAPE(p->m, p->n)};
    stk_op_call call = {STK_OP_matmul, &attrs, 2, 1, in_desc, &out_desc};
    stk_kernel kernel = {0};
    float *a = NULL, *b = NULL, *c = NULL;
    void *scratch = NULL;
    stk_status status = STK_OK;
    ns[0] = ns[1] = 1e30;
    STK_TRY(device->class->kernel(device, &call, &kernel));
    STK_TRY(alloc_random(device, p->m * p->k, &a));
    STK_TRY(alloc_random(device, p->n * p->k, &b));
    STK_TRY(alloc_random(device, p->m * p->n, &c));
    if (kernel.scratch_bytes) STK_TRY(device->class->alloc(device, kernel.scratch_bytes, STK_MEMORY_ZEROED, &scratch));
    stk_entry entry = {&kernel, {.in = (void *[]){a, b}, .out = (void *[]){c}, .scratch = scratch}};
    int64_t start = stk_clock_ns();
    for (int r = 0; r < 3 || stk_clock_ns() - start < 120000000; r++)
        for (int who = 0; who < 2; who++) {
            int i_failed;
            int64_t before = now_ns(device);
            STK_TRY(who ? run_peer(p, a, b, c) : device->class->run(device, &entry, 1, &i_failed));
            double took = (double)(now_ns(device) - before);
            if (took > 0 && took < ns[who]) ns[who] = took;
        }
done:
    if (a) device->class->free(device, a, (size_t)(p->m * p->k) * sizeof(float));
    if (b) device->class->free(device, b, (size_t)(p->n * p->k) * sizeof(float));
    if (c) device->class->free(device, c, (size_t)(p->m * p->n) * sizeof(float));
    if (scratch) device->class->free(device, scratch, kernel.scratch_bytes);
    stk_kernel_free(&kernel);
    return status;
}

static stk_status bench_layer(stk_device *device, const network *net, const layer *l, const char *filter, double sum[2])
{
    static const char *const pass[] = {"forward", "dx", "dweight"};
    const product products[] = {{net->rows, l->n, l->k, false, true},
                                {net->rows, l->k, l->n, false, false},
                                {l->n, l->k, net->rows, true, false}};
    for (int i = 0; i < 3; i++) {
        char name[80];
        double ns[2];
        const product *p = &products[i];
        snprintf(name, sizeof(name), "%s %s", l->name, pass[i]);
        if (filter && !strstr(name, filter)) continue;
        STK_RETURN_IF_ERROR(time_product(device, p, ns));
        double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
        printf("%-36s %5lld x %5lld x %5lld  own %7.2f ms %6.1f GFLOP/s   oneDNN %7.2f ms %6.1f GFLOP/s   %.2fx\n",
               name, (long long)p->m, (long long)p->n, (long long)p->k, ns[0] * 1e-6, flops / ns[0], ns[1] * 1e-6,
               flops / ns[1], ns[1] / ns[0]);
        fflush(stdout);
        for (int who = 0; who < 2; who++)
            sum[who] += ns[who] * 1e-6 * l->n_times;
    }
    return STK_OK;
}

/* --- attention and the loss over a vocabulary --- */

enum { MOST = 10 };

/* One call with random inputs, labels and masks that are all 0: its fastest time. */
static stk_status time_call(stk_device *device, const char *name, stk_op op, const stk_attrs *attrs, int n_in,
                            const stk_tensor_desc *in_desc)
{
    stk_tensor_desc out_desc[MOST];
    const stk_op_rule *rule = stk_op_get_rule(op);
    stk_op_call call = {op, attrs, n_in, rule->n_out, in_desc, out_desc};
    void *in[MOST] = {0}, *out[MOST] = {0}, *scratch = NULL;
    stk_kernel kernel = {0};
    stk_status status = STK_OK;
    double best = 1e30;
    STK_TRY(rule->infer(&call));
    STK_TRY(device->class->kernel(device, &call, &kernel));
    for (int i = 0; i < n_in; i++) {
        if (in_desc[i].dtype == STK_F32)
            STK_TRY(alloc_random(device, stk_shape_count(in_desc[i].shape), (float **)&in[i]));
        else
            STK_TRY(device->class->alloc(device, stk_desc_bytes(in_desc[i]), STK_MEMORY_ZEROED, &in[i]));
    }
    for (int i = 0; i < call.n_out; i++)
        STK_TRY(device->class->alloc(device, stk_desc_bytes(out_desc[i]), STK_MEMORY_ZEROED, &out[i]));
    if (kernel.scratch_bytes) STK_TRY(device->class->alloc(device, kernel.scratch_bytes, STK_MEMORY_ZEROED, &scratch));
    stk_entry entry = {&kernel, {.in = in, .out = out, .scratch = scratch}};
    int64_t start = stk_clock_ns();
    for (int r = 0; r < 3 || stk_clock_ns() - start < 200000000; r++) {
        int i_failed;
        int64_t before = now_ns(device);
        STK_TRY(device->class->run(device, &entry, 1, &i_failed));
        double took = (double)(now_ns(device) - before);
        if (took > 0 && took < best) best = took;
    }
    printf("%-60s %8.2f ms %6.1f GFLOP/s  scratch %.1f MiB\n", name, best * 1e-6, stk_op_cost(&call).flops / best,
           (double)kernel.scratch_bytes / (1 << 20));
done:
    for (int i = 0; i < MOST; i++) {
        if (in[i]) device->class->free(device, in[i], stk_desc_bytes(in_desc[i]));
        if (out[i]) device->class->free(device, out[i], stk_desc_bytes(out_desc[i]));
    }
    if (scratch) device->class->free(device, scratch, kernel.scratch_bytes);
    stk_kernel_free(&kernel);
    return status;
}

static stk_status bench_attention(stk_device *device, int64_t n, int64_t t, bool causal, double dropout)
{
    char name[80];
    const int64_t h = 12, d = 64;
    stk_attrs attrs = stk_attrs_zero();
    attrs.attention.scale = 0.125;
    attrs.attention.causal = causal;
    attrs.attention.rate = dropout;
    stk_tensor_desc x = {STK_F32, STK_SHAPE(n, t, h, d)}, lse = {STK_F32, STK_SHAPE(n, h, t)};
    stk_tensor_desc number = {STK_I64, {.rank = 0}};
    int n_more = dropout > 0 ? 2 : 0;
    snprintf(name, sizeof(name), "attention %lld x %lld%s%s", (long long)n, (long long)t, causal ? ", causal" : "",
             dropout > 0 ? ", dropout" : "");
    STK_RETURN_IF_ERROR(
        time_call(device, name, STK_OP_attention, &attrs, 3 + n_more, (stk_tensor_desc[]){x, x, x, number, number}));
    snprintf(name, sizeof(name), "attention_grad %lld x %lld%s%s", (long long)n, (long long)t, causal ? ", causal" : "",
             dropout > 0 ? ", dropout" : "");
    return time_call(device, name, STK_OP_attention_grad, &attrs, 6 + n_more,
                     (stk_tensor_desc[]){x, x, x, x, x, lse, number, number});
}

static stk_status bench_loss(stk_device *device, int64_t m, int64_t v)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.linear_cross_entropy.ignore_index = -100;
    stk_tensor_desc in[] = {
        {STK_F32, STK_SHAPE(m, 768)}, {STK_F32, STK_SHAPE(v, 768)}, {STK_I32, STK_SHAPE(m)}, {STK_F32, STK_SHAPE(m)}};
    STK_RETURN_IF_ERROR(time_call(device, "linear_cross_entropy", STK_OP_linear_cross_entropy, &attrs, 3, in));
    return time_call(device, "linear_cross_entropy_grad", STK_OP_linear_cross_entropy_grad, &attrs, 4, in);
}

static stk_status bench_library(stk_device *device, const char *filter)
{
    if (!filter || strstr("attention", filter)) {
        STK_RETURN_IF_ERROR(bench_attention(device, 16, 128, false, 0));
        STK_RETURN_IF_ERROR(bench_attention(device, 16, 128, false, 0.1));
        STK_RETURN_IF_ERROR(bench_attention(device, 4, 256, true, 0));
        STK_RETURN_IF_ERROR(bench_attention(device, 1, 1024, true, 0));
        STK_RETURN_IF_ERROR(bench_attention(device, 1, 4096, true, 0));
    }
    if (!filter || strstr("loss", filter)) STK_RETURN_IF_ERROR(bench_loss(device, 1024, 50257));
    return STK_OK;
}

int main(int argc, char **argv)
{
    stk_device *device = NULL;
    stk_device_config config = {.n_threads = argc > 1 ? atoi(argv[1]) : 0};
    stk_status status = STK_OK;
    STK_TRY(stk_device_open("cpu", &config, &device));
    stk_cpu_swap_thread_count(device->n_threads);
    STK_TRY(bench_library(device, argc > 2 ? argv[2] : NULL));
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        double sum[2] = {0};
        printf("%s\n", networks[i].name);
        for (int l = 0; l < 6 && networks[i].layers[l].name; l++)
            STK_TRY(bench_layer(device, &networks[i], &networks[i].layers[l], argc > 2 ? argv[2] : NULL, sum));
        printf("%-36s own %.0f ms, oneDNN %.0f ms\n", "products of one step", sum[0], sum[1]);
    }
done:
    if (status != STK_OK) fprintf(stderr, "bench_transformer: %s\n", stk_error_text());
    stk_device_close(device);
    return status == STK_OK ? 0 : 1;
}
