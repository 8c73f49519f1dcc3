/* The convolutions of ResNet-50 (224 x 224) and ResNet-18 (32 x 32): the cpu device's kernels compared with oneDNN's,
 * as the tables of docs/kernels.md.
 *
 *     bench_conv [resnet50|resnet18|all] [BATCH] [SECONDS] [THREADS] [FILTER]
 *
 * Below each table is what a whole training step takes compared with the sum of its convolutions. "oneDNN" works on
 * tensors as ours are (NHWC, weights OHWI with a reorder in the time); "oneDNN's formats" is the convolution alone on
 * blocked tensors that nobody had to make, which is what a network can come to at best. Each time is the fastest of the
 * calls that fit into SECONDS (0.2), two at least, the three taking turns; with one thread it is processor time, which
 * other work on the machine disturbs least.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/onednn_version.h"
#include "device/cpu/threads/parallel.h"
#include "device/device.h"
#include "engine/engine.h"
#include "optim/update.h"
#include "peak.h"
#include "stoker/nn/nn.h"

/* times: how often the network has it; needs_data: its image has a gradient. */
typedef struct conv_case {
    int times, side, c, o, kernel, stride;
} conv_case;

static const conv_case resnet50[] = {
    {1, 224, 3, 64, 7, 2},     {1, 56, 64, 64, 1, 1},    {3, 56, 64, 64, 3, 1},    {4, 56, 64, 256, 1, 1},
    {2, 56, 256, 64, 1, 1},    {1, 56, 256, 128, 1, 1},  {1, 56, 128, 128, 3, 2},  {4, 28, 128, 512, 1, 1},
    {1, 56, 256, 512, 1, 2},   {3, 28, 512, 128, 1, 1},  {3, 28, 128, 128, 3, 1},  {1, 28, 512, 256, 1, 1},
    {1, 28, 256, 256, 3, 2},   {6, 14, 256, 1024, 1, 1}, {1, 28, 512, 1024, 1, 2}, {5, 14, 1024, 256, 1, 1},
    {5, 14, 256, 256, 3, 1},   {1, 14, 1024, 512, 1, 1}, {1, 14, 512, 512, 3, 2},  {3, 7, 512, 2048, 1, 1},
    {1, 14, 1024, 2048, 1, 2}, {2, 7, 2048, 512, 1, 1},  {2, 7, 512, 512, 3, 1},   {0}};
static const conv_case resnet18[] = {{1, 32, 3, 64, 3, 1},    {4, 32, 64, 64, 3, 1},   {1, 32, 64, 128, 3, 2},
                                     {3, 16, 128, 128, 3, 1}, {1, 32, 64, 128, 1, 2},  {1, 16, 128, 256, 3, 2},
                                     {3, 8, 256, 256, 3, 1},  {1, 16, 128, 256, 1, 2}, {1, 8, 256, 512, 3, 2},
                                     {3, 4, 512, 512, 3, 1},  {1, 8, 256, 512, 1, 2},  {0}};

enum { OURS, ONEDNN, FORMATS, N_WAYS };

typedef struct bench {
    stk_device *device;
    stk_onednn *onednn;
    double peak; /* GFLOP/s of all threads */
    double seconds;
    const char *filter; /* of a line's beginning; NULL: all */
    double total_ns[N_WAYS], total_flops;
} bench;

/* --- oneDNN in its own formats --- */

typedef struct blocked_conv {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[4];
    int n_args;
} blocked_conv;

static bool add_arg(blocked_conv *b, const_dnnl_primitive_desc_t pd, int arg)
{
    stk_md_ref md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
    dnnl_memory_t memory;
    void *data;
    if (dnnl_memory_create(&memory, md, b->engine, DNNL_MEMORY_ALLOCATE) != dnnl_success) return false;
    b->args[b->n_args++] = (dnnl_exec_arg_t){arg, memory};
    if (dnnl_memory_get_data_handle(memory, &data) != dnnl_success) return false;
    memset(data, 0, dnnl_memory_desc_get_size(md));
    return true;
}

static void close_blocked(blocked_conv *b)
{
    for (int i = 0; i < b->n_args; i++)
        dnnl_memory_destroy(b->args[i].memory);
    if (b->primitive) dnnl_primitive_destroy(b->primitive);
    if (b->stream) dnnl_stream_destroy(b->stream);
    if (b->engine) dnnl_engine_destroy(b->engine);
}

static bool open_blocked(const stk_conv_shape *s, blocked_conv *b)
{
    static const int args[3][3] = {
        [STK_CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [STK_CONV_GRAD_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [STK_CONV_GRAD_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };
    stk_shape shapes[3] = {s->x, s->weight, s->y};
    stk_md md[3] = {0};
    stk_dnnl_conv c = {.pass = s->pass};
    dnnl_primitive_desc_t pd = NULL;
    bool ok = dnnl_engine_create(&b->engine, dnnl_cpu, 0) == dnnl_success &&
              dnnl_stream_create(&b->stream, b->engine, dnnl_stream_default_flags) == dnnl_success;
    for (int i = 0; i < 3 && ok; i++) {
        const int64_t *d = shapes[i].dim;
        ok = stk_md_init(&md[i], 4, (dnnl_dims_t){d[0], d[3], d[1], d[2]}, NULL, dnnl_f32) == dnnl_success;
    }
    for (int i = 0; i < 2; i++) {
        c.strides[i] = s->window.stride[i];
        c.pad_low[i] = s->window.pad_low[i];
        c.pad_high[i] = s->window.pad_high[i];
    }
    c.x = stk_md_get(&md[0]), c.weight = c.read_weight = stk_md_get(&md[1]), c.y = stk_md_get(&md[2]);
    ok = ok && stk_dnnl_conv_pd(b->engine, &c, NULL, &pd) == dnnl_success;
    for (int i = 0; i < 3 && ok; i++)
        ok = add_arg(b, pd, args[s->pass][i]);
    ok = ok && dnnl_primitive_create(&b->primitive, pd) == dnnl_success;
    if (pd) dnnl_primitive_desc_destroy(pd);
    for (int i = 0; i < 3; i++)
        stk_md_clear(&md[i]);
    return ok;
}

/* --- one pass of one convolution --- */

typedef struct ways {
    stk_kernel kernel;
    stk_onednn_conv *conv;
    blocked_conv blocked;
    void *memory[4]; /* x, weight, y, scratch */
    size_t bytes[4];
} ways;

/* Memory as programs have it: in huge pages. */
static stk_status make_zeros(const bench *b, size_t bytes, void **out)
{
    STK_RETURN_IF_ERROR(b->device->class->alloc(b->device, bytes + 64, STK_MEMORY_ZEROED, out));
    memset(*out, 0, bytes);
    return STK_OK;
}

static stk_status open_ways(const bench *b, const stk_conv_shape *s, ways *w)
{
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    stk_shape shapes[3] = {s->x, s->weight, s->y};
    int out = s->pass == STK_CONV_FORWARD ? 2 : s->pass == STK_CONV_GRAD_DATA ? 0 : 1;
    stk_tensor_desc in[2] = {{STK_F32, out == 0 ? s->y : s->x}, {STK_F32, out == 1 ? s->y : s->weight}},
                    result = {STK_F32, shapes[out]};
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = s->window;
    if (s->pass != STK_CONV_FORWARD) attrs.shape = shapes[out];
    stk_op_call call = {ops[s->pass], &attrs, 2, 1, in, &result};
    STK_RETURN_IF_ERROR(b->device->class->kernel(b->device, &call, &w->kernel));
    STK_RETURN_IF_ERROR(stk_onednn_conv_new(b->onednn, s, STK_F32, b->device->n_threads, NULL, &w->conv));
    if (!open_blocked(s, &w->blocked)) return stk_fail(STK_DEVICE, "oneDNN has no such convolution");
    for (int i = 0; i < 3; i++)
        w->bytes[i] = (size_t)stk_shape_count(shapes[i]) * sizeof(float);
    w->bytes[3] = stk_onednn_conv_scratch_bytes(w->conv);
    if (w->bytes[3] < w->kernel.scratch_bytes) w->bytes[3] = w->kernel.scratch_bytes;
    for (int i = 0; i < 4; i++)
        STK_RETURN_IF_ERROR(make_zeros(b, w->bytes[i], &w->memory[i]));
    return STK_OK;
}

static void close_ways(const bench *b, ways *w)
{
    stk_kernel_free(&w->kernel);
    stk_onednn_conv_free(w->conv);
    close_blocked(&w->blocked);
    for (int i = 0; i < 4; i++)
        if (w->memory[i]) b->device->class->free(b->device, w->memory[i], w->bytes[i] + 64);
}

static stk_status run_way(const bench *b, const stk_conv_shape *s, ways *w, int way)
{
    int out = s->pass == STK_CONV_FORWARD ? 2 : s->pass == STK_CONV_GRAD_DATA ? 0 : 1, i_failed;
    void *in[2] = {w->memory[out == 0 ? 2 : 0], w->memory[out == 1 ? 2 : 1]};
    stk_entry entry = {&w->kernel, {.in = in, .out = &w->memory[out], .scratch = w->memory[3]}};
    switch (way) {
    case OURS: return b->device->class->run(b->device, &entry, 1, &i_failed);
    case ONEDNN: return stk_onednn_conv_run(w->conv, w->memory[0], w->memory[1], NULL, w->memory[2], w->memory[3]);
    default:
        dnnl_primitive_execute(w->blocked.primitive, w->blocked.stream, w->blocked.n_args, w->blocked.args);
        dnnl_stream_wait(w->blocked.stream);
        return STK_OK;
    }
}

static int64_t now_ns(const bench *b)
{
    struct timespec t;
    if (b->device->n_threads > 1) return stk_clock_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The fastest calls, in nanoseconds. */
static stk_status measure(const bench *b, const stk_conv_shape *s, double best[N_WAYS])
{
    ways w = {0};
    stk_status status = STK_OK;
    STK_TRY(open_ways(b, s, &w));
    for (int way = 0; way < N_WAYS; way++)
        best[way] = 1e30;
    int64_t end = 0;
    for (int i = 0; i < 3 || stk_clock_ns() < end; i++) {
        if (i == 1) end = stk_clock_ns() + (int64_t)(N_WAYS * b->seconds * 1e9);
        for (int way = 0; way < N_WAYS; way++) {
            int64_t start = now_ns(b);
            STK_TRY(run_way(b, s, &w, way));
            double ns = (double)(now_ns(b) - start);
            if (ns < best[way]) best[way] = ns;
        }
    }
done:
    close_ways(b, &w);
    return status;
}

static stk_status bench_case(bench *b, const conv_case *c, int64_t batch)
{
    static const char *const passes[] = {"forward", "data", "weight"};
    char name[80];
    int64_t out = (c->side - 1) / c->stride + 1;
    stk_conv_shape s = {.window = stk_window_make(c->kernel, c->kernel),
                        .x = STK_SHAPE(batch, c->side, c->side, c->c),
                        .weight = STK_SHAPE(c->o, c->kernel, c->kernel, c->c),
                        .y = STK_SHAPE(batch, out, out, c->o)};
    for (int i = 0; i < 2; i++) {
        s.window.stride[i] = c->stride;
        s.window.pad_low[i] = s.window.pad_high[i] = c->kernel / 2;
    }
    for (int pass = 0; pass < 3; pass++) {
        double ns[N_WAYS], flops = 2.0 * (double)stk_shape_count(s.y) * c->kernel * c->kernel * c->c;
        if (pass == 1 && c->c == 3) continue; /* Nobody asks for the gradient of the image. */
        s.pass = (stk_conv_pass)pass;
        snprintf(name, sizeof(name), "%dx%d/%d %dx%dx%d -> %d | %d | %s", c->kernel, c->kernel, c->stride, c->side,
                 c->side, c->c, c->o, c->times, passes[pass]);
        if (b->filter && !strstr(name, b->filter)) continue;
        STK_RETURN_IF_ERROR(measure(b, &s, ns));
        printf("| %s |", name);
        for (int way = 0; way < N_WAYS; way++) {
            printf(" %8.2f | %3.0f %% |", ns[way] * 1e-6, 100 * flops / ns[way] / b->peak);
            b->total_ns[way] += c->times * ns[way];
        }
        b->total_flops += c->times * flops;
        printf("\n");
        fflush(stdout);
    }
    return STK_OK;
}

/* --- the whole step --- */

static stk_graph *make_step(bool is_50, int64_t batch)
{
    stk_model *model = stk_model_new("bench");
    int64_t side = is_50 ? 224 : 32;
    stk_value x = stk_model_input(model, STK_F32, side, side, 3);
    x = is_50 ? stk_resnet(x, 50, 1000, STK_STEM_IMAGENET) : stk_resnet18(x, 10, STK_STEM_CIFAR);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), batch);
    stk_value loss = stk_reduce_mean((stk_value){graph, stk_model_get_loss(model).id}, 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_build(graph, loss, &(stk_optim_options){.optimizer = stk_sgd(.lr = 0.01, .momentum = 0.9)});
    stk_model_free(model);
    return graph;
}

/* The fastest of a few training steps, in nanoseconds. */
static stk_status time_step(const bench *b, bool is_50, int64_t batch, double *best_ns)
{
    enum { STEPS = 4 };
    stk_engine *engine = NULL;
    stk_program *program;
    stk_status status = STK_OK;
    float lr = 0.01f, *images = calloc((size_t)batch * (is_50 ? 224 * 224 * 3 : 32 * 32 * 3), sizeof(*images));
    int32_t *labels = calloc((size_t)batch, sizeof(*labels));
    if (!images || !labels) STK_TRY(stk_fail(STK_NO_MEMORY, "no memory"));
    STK_TRY(stk_engine_open("cpu", &(stk_device_config){.n_threads = b->device->n_threads}, 1, &engine));
    STK_TRY(stk_engine_compile(engine, make_step(is_50, batch), NULL, &program));
    stk_program_bind(program, stk_program_input(program, "image"), images);
    stk_program_bind(program, stk_program_input(program, "label"), labels);
    stk_program_bind(program, stk_program_input(program, "lr"), &lr);
    *best_ns = 1e30;
    for (int i = 0; i < STEPS; i++) {
        int64_t start = now_ns(b);
        STK_TRY(stk_program_run(program));
        double ns = (double)(now_ns(b) - start);
        if (ns < *best_ns) *best_ns = ns;
    }
done:
    stk_engine_close(engine);
    free(images);
    free(labels);
    return status;
}

static stk_status bench_network(bench *b, const char *title, const conv_case *cases, int64_t batch)
{
    bool is_50 = cases == resnet50;
    double step_ns;
    memset(b->total_ns, 0, sizeof(b->total_ns));
    b->total_flops = 0;
    printf("\n### %s, batch %lld\n\n", title, (long long)batch);
    printf(
        "| convolution | times | pass | ours, ms | of peak | oneDNN, ms | of peak | oneDNN's formats, ms | of peak |\n"
        "|---|---:|---|---:|---:|---:|---:|---:|---:|\n");
    for (; cases->times; cases++)
        STK_RETURN_IF_ERROR(bench_case(b, cases, batch));
    printf("| all | | |");
    for (int way = 0; way < N_WAYS; way++)
        printf(" %8.2f | %3.0f %% |", b->total_ns[way] * 1e-6, 100 * b->total_flops / b->total_ns[way] / b->peak);
    printf("\n");
    if (b->filter) return STK_OK;
    STK_RETURN_IF_ERROR(time_step(b, is_50, batch, &step_ns));
    printf("\nA training step takes %.0f ms: %.2fx of our convolutions, %.2fx of oneDNN's, %.2fx of those in its "
           "formats.\n",
           step_ns * 1e-6, step_ns / b->total_ns[OURS], step_ns / b->total_ns[ONEDNN], step_ns / b->total_ns[FORMATS]);
    return STK_OK;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    int64_t batch = argc > 2 ? atoll(argv[2]) : 0;
    bench b = {.seconds = argc > 3 ? atof(argv[3]) : 0.2, .filter = argc > 5 ? argv[5] : NULL};
    stk_text about = {0};
    stk_status status = STK_OK;
    STK_TRY(stk_device_open("cpu", &(stk_device_config){.n_threads = argc > 4 ? atoi(argv[4]) : 0}, &b.device));
    STK_TRY(stk_onednn_open(&b.onednn));
    b.device->class->describe(b.device, &about);
    stk_cpu_swap_thread_count(b.device->n_threads);
    b.peak = measure_peak() * b.device->n_threads;
    if (b.peak == 0) b.peak = 1e30;
    printf("%s; multiply-adds at %.0f GFLOP/s\n", stk_text_get(&about), b.peak);
    if (strcmp(only, "resnet18")) STK_TRY(bench_network(&b, "ResNet-50, 224 x 224", resnet50, batch ? batch : 32));
    if (strcmp(only, "resnet50")) STK_TRY(bench_network(&b, "ResNet-18, 32 x 32", resnet18, batch ? batch : 128));
done:
    if (status != STK_OK) fprintf(stderr, "bench_conv: %s\n", stk_error_text());
    stk_text_free(&about);
    stk_onednn_close(b.onednn);
    stk_device_close(b.device);
    return status != STK_OK;
}
