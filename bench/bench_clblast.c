/* Products of f32 matrices on the device opencl, compared with CLBlast's on the same memory.
 *
 *     bench_clblast [SECONDS] [FILTER | seed=N]
 *
 * seed=N: products that the tiles were not chosen with, drawn from that number, and the mean of their shares.
 * Each time is the fastest of the calls that fit into SECONDS (0.5), three at least, taking turns. "of limit" is the
 * share of what OpenCL reaches there at best: kernels that do the product's multiply-adds in registers, or read its
 * memory and no more, whichever takes longer. Where OpenCL runs on a processor, the last column compares processor
 * time, which other work on the machine disturbs least. Without libclblast.so.1 (libclblast-dev) ours are timed alone.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "device/gpu/opencl/opencl.h"

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool ta, tb;
} shape;

static const shape shapes[] = {
    {"square", 512, 512, 512, false, false},
    {"square", 1024, 1024, 1024, false, false},
    {"square, b transposed", 1024, 1024, 1024, false, true},
    {"square, a transposed", 1024, 1024, 1024, true, false},
    {"GPT-2, forward", 1024, 3072, 768, false, false},
    {"GPT-2, backward", 1024, 768, 3072, false, true},
    {"GPT-2, weight", 768, 3072, 1024, true, false},
    {"odd", 509, 761, 1021, false, false},
    {"odd, b transposed", 509, 761, 1021, false, true},
    {"few columns", 4096, 10, 784, false, false},
    {"few rows", 8, 4096, 1024, false, false},
    {"long sum", 64, 64, 65536, true, false},
};

enum { N_DRAWN = 16 };

/* Sides of 16 to 2048, as many below 181 as above. */
static int64_t draw_side(uint64_t bits)
{
    return (int64_t)(16 * pow(128, (double)(bits >> 11) * 0x1p-53));
}

static shape draw_shape(uint64_t seed, uint64_t i)
{
    uint64_t bits[4];
    for (uint64_t j = 0; j < 4; j++)
        bits[j] = stk_mix64(stk_mix64(seed) + 4 * i + j);
    return (shape){"drawn", draw_side(bits[0]), draw_side(bits[1]), draw_side(bits[2]), bits[3] & 1, bits[3] >> 1 & 1};
}

/* As clblast_c.h says; row-major is 101, plain 111, transposed 112. */
typedef int (*sgemm)(int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k, float alpha, cl_mem a,
                     size_t a_offset, size_t a_ld, cl_mem b, size_t b_offset, size_t b_ld, float beta, cl_mem c,
                     size_t c_offset, size_t c_ld, cl_command_queue *queue, cl_event *event);

enum { OURS, ADDS, READS, THEIRS, N_WAYS };

/* SUMS vectors of LANES numbers in each group. */
enum { SUMS = 12, LANES = 16, ADD_GROUPS = 64, READ_EACH = 4096 };
static const char limits_text[] = "KERNEL(adds, 1, 1, 1)(BUFFER(float, x), int rounds)\n"
                                  "{\n"
                                  "    POINTER(float, x);\n"
                                  "    WIDE(16) sum[12];\n"
                                  "    const WIDE(16) factor = WIDE_OF(16, x[0]);\n"
                                  "    UNROLL\n"
                                  "    for (int i = 0; i < 12; i++)\n"
                                  "        sum[i] = WIDE_OF(16, (float)i);\n"
                                  "    for (int round = 0; round < rounds; round++) {\n"
                                  "        UNROLL\n"
                                  "        for (int i = 0; i < 12; i++)\n"
                                  "            sum[i] = WIDE_FMA(16, 0.999f, sum[i], factor);\n"
                                  "    }\n"
                                  "    for (int i = 1; i < 12; i++)\n"
                                  "        sum[0] = WIDE_FMA(16, 1.0f, sum[i], sum[0]);\n"
                                  "    WIDE_STORE(16, x + 16 * GROUP_X, sum[0]);\n"
                                  "}\n"
                                  "KERNEL(reads, 1, 1, 1)(BUFFER(float, x), BUFFER(float, to), index_t n)\n"
                                  "{\n"
                                  "    POINTER(const float, x);\n"
                                  "    POINTER(float, to);\n"
                                  "    WIDE(16) sum[4];\n"
                                  "    UNROLL\n"
                                  "    for (int j = 0; j < 4; j++)\n"
                                  "        sum[j] = WIDE_OF(16, 0.0f);\n"
                                  "    const index_t end = (GROUP_X + 1) * 4096 < n ? (GROUP_X + 1) * 4096 : n;\n"
                                  "    for (index_t i = GROUP_X * 4096; i + 64 <= end; i += 64) {\n"
                                  "        UNROLL\n"
                                  "        for (int j = 0; j < 4; j++)\n"
                                  "            sum[j] += WIDE_LOAD(16, x + i + 16 * j);\n"
                                  "    }\n"
                                  "    WIDE_STORE(16, to + 16 * GROUP_X, sum[0] + sum[1] + sum[2] + sum[3]);\n"
                                  "}\n";

enum { A, B, OUR_C, SCRATCH, THEIR_C, LIMIT, N_MEMORIES };

typedef struct bench {
    stk_device *device;
    gpu_context *context;
    stk_queue *queue;
    stk_capture *capture[N_WAYS]; /* none of THEIRS */
    sgemm sgemm;
    double seconds, log_shares; /* log_shares: the sum over all products */
    void *memory[N_MEMORIES];
    size_t bytes[N_MEMORIES];
} bench;

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static stk_status call_theirs(bench *b, const shape *s)
{
    cl_mem memory[N_MEMORIES];
    size_t offset[N_MEMORIES];
    for (int i = A; i <= THEIR_C; i++)
        if (i != SCRATCH)
            STK_RETURN_IF_ERROR(opencl_find(b->context, b->memory[i], b->bytes[i], &memory[i], &offset[i]));
    int code =
        b->sgemm(101, s->ta ? 112 : 111, s->tb ? 112 : 111, (size_t)s->m, (size_t)s->n, (size_t)s->k, 1, memory[A],
                 offset[A] / 4, (size_t)(s->ta ? s->m : s->k), memory[B], offset[B] / 4, (size_t)(s->tb ? s->k : s->n),
                 0, memory[THEIR_C], offset[THEIR_C] / 4, (size_t)s->n, &b->context->queue, NULL);
    if (code) return stk_fail(STK_DEVICE, "CLBlastSgemm gives %d", code);
    return opencl_check(cl.clFinish(b->context->queue), "clFinish");
}

static stk_status call_captured(bench *b, int way)
{
    int i_failed;
    STK_RETURN_IF_ERROR(b->device->class->queues->launch(b->queue, b->capture[way], &i_failed));
    return b->device->class->queues->finish(b->queue);
}

/* Both compute the same. */
static stk_status compare(bench *b, const shape *s)
{
    size_t n = (size_t)(s->m * s->n), bytes = n * sizeof(float);
    float *ours = malloc(bytes), *theirs = malloc(bytes);
    double worst = 0;
    stk_status status = STK_OK;
    const stk_queue_class *queues = b->device->class->queues;
    if (!ours || !theirs) STK_TRY(stk_fail_memory(bytes));
    STK_TRY(queues->copy(b->queue, ours, b->memory[OUR_C], bytes, STK_COPY_TO_HOST));
    STK_TRY(queues->copy(b->queue, theirs, b->memory[THEIR_C], bytes, STK_COPY_TO_HOST));
    STK_TRY(queues->finish(b->queue));
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)ours[i] - (double)theirs[i]));
    if (!(worst < 1e-4 * (double)s->k)) STK_TRY(stk_fail(STK_DEVICE, "the two differ by %g", worst));
done:
    free(ours);
    free(theirs);
    return status;
}

static stk_status fill(bench *b, int i)
{
    size_t n = b->bytes[i] / sizeof(float);
    float *host = malloc(b->bytes[i]);
    if (!host) return stk_fail_memory(b->bytes[i]);
    for (size_t j = 0; j < n; j++)
        host[j] = (float)((j * 2654435761u >> 8) % 2001) * 1e-3f - 1;
    stk_status status = b->device->class->queues->copy(b->queue, b->memory[i], host, b->bytes[i], STK_COPY_TO_DEVICE);
    if (status == STK_OK) status = b->device->class->queues->finish(b->queue);
    free(host);
    return status;
}

static stk_status measure(bench *b, const shape *s)
{
    double best[N_WAYS], busy[N_WAYS], flops = 2.0 * (double)(s->m * s->n * s->k);
    int64_t end_ns = 0;
    for (int way = 0; way < N_WAYS; way++)
        best[way] = busy[way] = 1e9;
    for (int i = -1; i < 3 || stk_clock_ns() < end_ns; i++) {
        for (int way = 0; way < (b->sgemm ? N_WAYS : THEIRS); way++) {
            int64_t start_ns = stk_clock_ns();
            double start_s = processor_s();
            STK_RETURN_IF_ERROR(way == THEIRS ? call_theirs(b, s) : call_captured(b, way));
            if (i < 0) continue; /* this one builds kernels */
            best[way] = fmin(best[way], 1e-9 * (double)(stk_clock_ns() - start_ns));
            busy[way] = fmin(busy[way], processor_s() - start_s);
        }
        if (i < 0) end_ns = stk_clock_ns() + (int64_t)(b->seconds * 1e9);
    }
    const double limit = fmax(best[ADDS], best[READS]);
    printf("%-22s %5lld %5lld %6lld %9.1f %9.1f %9.2f", s->name, (long long)s->m, (long long)s->n, (long long)s->k,
           1e-9 * flops / best[OURS], 1e-9 * flops / limit, limit / best[OURS]);
    b->log_shares += log(limit / best[OURS]);
    if (b->sgemm) {
        STK_RETURN_IF_ERROR(compare(b, s));
        printf(" %9.1f %7.2f %10.2f", 1e-9 * flops / best[THEIRS], best[THEIRS] / best[OURS],
               busy[THEIRS] / busy[OURS]);
    }
    printf("\n");
    fflush(stdout);
    return STK_OK;
}

static void add_reads(gpu_maker *m, gpu_unit *unit, int in, size_t bytes)
{
    const int64_t n = (int64_t)(bytes / sizeof(float));
    gpu_add_unit(m, unit, "reads");
    gpu_in(m, in);
    gpu_in(m, LIMIT);
    gpu_index(m, n);
    gpu_items(m, (n + READ_EACH - 1) / READ_EACH, 1);
}

static void add_adds(gpu_maker *m, gpu_unit *unit, double flops)
{
    gpu_add_unit(m, unit, "adds");
    gpu_in(m, LIMIT);
    gpu_int(m, (int32_t)(flops / (2.0 * SUMS * LANES * ADD_GROUPS)));
    gpu_items(m, ADD_GROUPS, 1);
}

static stk_status capture_limit(bench *b, int way, double flops)
{
    stk_op_call call = {0};
    gpu_kernel made = {0};
    gpu_maker m = {.device = (gpu_device *)b->device, .call = &call, .kernel = &made};
    gpu_unit *unit;
    stk_status status = STK_OK;
    STK_TRY(gpu_unit_of_text(m.device, "limits.dev", "", limits_text, &unit));
    if (way == ADDS) {
        add_adds(&m, unit, flops);
    } else {
        add_reads(&m, unit, A, b->bytes[A]);
        add_reads(&m, unit, B, b->bytes[B]);
    }
    STK_TRY(m.status);
    stk_kernel kernel = {.state = &made};
    stk_entry entry = {.kernel = &kernel, .args = {.in = b->memory}};
    STK_TRY(b->device->class->queues->capture(b->device, &entry, 1, &b->capture[way]));
done:
    free(made.launch);
    free(made.values);
    return status;
}

static stk_status bench_shape(bench *b, const shape *s)
{
    const stk_device_class *class = b->device->class;
    stk_attrs attrs;
    stk_kernel kernel = {0};
    stk_status status = STK_OK;
    memset(&attrs, 0, sizeof(attrs));
    attrs.matmul.transpose_a = s->ta;
    attrs.matmul.transpose_b = s->tb;
    stk_tensor_desc in[2] = {stk_desc_make(STK_F32, s->ta ? STK_SHAPE(s->k, s->m) : STK_SHAPE(s->m, s->k)),
                             stk_desc_make(STK_F32, s->tb ? STK_SHAPE(s->n, s->k) : STK_SHAPE(s->k, s->n))};
    stk_tensor_desc out = stk_desc_make(STK_F32, STK_SHAPE(s->m, s->n));
    stk_op_call call = {.op = STK_OP_matmul, .attrs = &attrs, .in = in, .n_in = 2, .out = &out, .n_out = 1};
    STK_TRY(class->kernel(b->device, &call, &kernel));
    size_t most_read = (size_t)(s->k * (s->m > s->n ? s->m : s->n)) / READ_EACH;
    size_t bytes[N_MEMORIES] = {stk_desc_bytes(in[0]), stk_desc_bytes(in[1]),
                                stk_desc_bytes(out),   kernel.scratch_bytes,
                                stk_desc_bytes(out),   LANES * sizeof(float) * (ADD_GROUPS + most_read)};
    memcpy(b->bytes, bytes, sizeof(bytes));
    for (int i = 0; i < N_MEMORIES; i++)
        STK_TRY(class->alloc(b->device, bytes[i], STK_MEMORY_ZEROED, &b->memory[i]));
    STK_TRY(fill(b, A));
    STK_TRY(fill(b, B));
    stk_entry entry = {&kernel, {.in = b->memory, .out = b->memory + OUR_C, .scratch = b->memory[SCRATCH]}};
    STK_TRY(class->queues->capture(b->device, &entry, 1, &b->capture[OURS]));
    for (int way = ADDS; way <= READS; way++)
        STK_TRY(capture_limit(b, way, 2.0 * (double)(s->m * s->n * s->k)));
    STK_TRY(measure(b, s));
done:
    for (int way = 0; way < N_WAYS; way++)
        if (b->capture[way]) class->queues->release(b->capture[way]);
    memset(b->capture, 0, sizeof(b->capture));
    for (int i = 0; i < N_MEMORIES; i++) {
        class->free(b->device, b->memory[i], b->bytes[i]);
        b->memory[i] = NULL;
    }
    stk_kernel_free(&kernel);
    return status;
}

static stk_status bench_all(bench *b, const char *filter)
{
    stk_text about = {0};
    const bool is_drawn = filter && !strncmp(filter, "seed=", 5);
    stk_status status = STK_OK;
    STK_TRY(stk_device_open("opencl", NULL, &b->device));
    b->context = ((gpu_device *)b->device)->context;
    STK_TRY(b->device->class->queues->open(b->device, &b->queue));
    b->device->class->describe(b->device, &about);
    printf("opencl: %s\n%-22s %5s %5s %6s %9s %9s %9s %9s %7s %10s\n", stk_text_get(&about), "product, GFLOP/s", "M",
           "N", "K", "ours", "limit", "of limit", "CLBlast", "ratio", "processor");
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) && !is_drawn; i++)
        if (!filter || strstr(shapes[i].name, filter)) STK_TRY(bench_shape(b, &shapes[i]));
    for (uint64_t i = 0; i < N_DRAWN && is_drawn; i++) {
        shape drawn = draw_shape(strtoull(filter + 5, NULL, 10), i);
        STK_TRY(bench_shape(b, &drawn));
    }
    if (is_drawn) printf("%-22s %48.2f\n", "geometric mean", exp(b->log_shares / N_DRAWN));
done:
    stk_text_free(&about);
    if (b->queue) b->device->class->queues->close(b->queue);
    stk_device_close(b->device);
    return status;
}

int main(int argc, char **argv)
{
    bench b = {.seconds = argc > 1 ? atof(argv[1]) : 0.5};
    void *library = dlopen("libclblast.so.1", RTLD_NOW);
    if (library) *(void **)&b.sgemm = dlsym(library, "CLBlastSgemm");
    if (!b.sgemm) printf("skipped: CLBlast is not here (%s)\n", dlerror());
    if (bench_all(&b, argc > 2 ? argv[2] : NULL) == STK_OK) return 0;
    fprintf(stderr, "bench_clblast: %s\n", stk_error_text());
    return 1;
}
