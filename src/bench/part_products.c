/* Products of matrices and convolutions, by a step of one operation on a device: bench/part.h. Operations count two for
 * each multiplication and addition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/part.h"
#include "stoker/graph/session.h"
#include "stoker/rng.h"

typedef struct product {
    stk_session *session;
    stk_session_step *step;
    double gflop;
    const char *input_name[2];
    uint16_t *input[2];
    int n_inputs;
} product;

static stk_status run_step(void *user, double *amount)
{
    product *p = user;
    *amount = p->gflop;
    return stk_session_run(p->step);
}

static bool is_on_host(const stk_bench_part_setting *setting)
{
    return !setting->device || !strncmp(setting->device, "cpu", 3) || !strncmp(setting->device, "reference", 9);
}

static stk_status find_dtype(const char *name, stk_dtype *out)
{
    *out = STK_F32;
    if (!strcmp(name, "f32")) return STK_OK;
    *out = STK_BF16;
    if (!strcmp(name, "bf16")) return STK_OK;
    *out = STK_F16;
    if (!strcmp(name, "f16")) return STK_OK;
    return stk_fail(STK_INVALID, "'%s' is not one of f32, bf16, f16", name);
}

/* Numbers of some 0.1 with either sign, as networks have. In f32 a variable, which stays on the device. Variables have
 * no first content in 16 bits: there it is an input, which the cpu reads where it lies. */
static stk_status make_operand(product *p, stk_graph *graph, const char *name, stk_dtype dtype, stk_shape shape,
                               stk_value *out)
{
    if (dtype == STK_F32) {
        *out = stk_graph_variable(graph, name, dtype, shape, (stk_init){STK_INIT_NORMAL, 0.1}, false);
        return STK_OK;
    }
    size_t n = 1;
    for (int i = 0; i < shape.rank; i++)
        n *= (size_t)shape.dim[i];
    uint16_t *bits = malloc(n * sizeof(*bits));
    if (!bits) return stk_fail_memory(n * sizeof(*bits));
    stk_rng rng = stk_rng_make(1, 0, 0, (uint64_t)p->n_inputs);
    const unsigned tenth = dtype == STK_BF16 ? 0x3d80 : 0x2e00;
    for (size_t i = 0; i < n; i++) {
        uint32_t word = stk_rng_u32(&rng);
        bits[i] = (uint16_t)(tenth | (word & 0x7f) | (word >> 16 & 0x8000));
    }
    p->input_name[p->n_inputs] = name;
    p->input[p->n_inputs++] = bits;
    *out = stk_graph_input(graph, name, dtype, shape);
    return STK_OK;
}

/* Takes graph, whose one output is x. */
static stk_status measure(const stk_bench_part_setting *setting, stk_graph *graph, stk_value x, product *p,
                          double *figure)
{
    stk_graph_output(graph, "x", x);
    p->session = stk_session_new(setting->device, setting->n_threads, 1);
    p->step = stk_session_compile(p->session, graph, false);
    for (int i = 0; i < p->n_inputs; i++)
        stk_session_input(p->step, p->input_name[i], p->input[i]);
    stk_status status = stk_session_status(p->session);
    if (status == STK_OK) status = stk_bench_part_repeat(setting->seconds, run_step, p, figure);
    stk_session_free(p->session);
    return status;
}

static void free_inputs(product *p)
{
    for (int i = 0; i < p->n_inputs; i++)
        free(p->input[i]);
}

/* With a copy to the device in each step the figure would be another one. */
static stk_status check_device(const stk_bench_part_setting *setting, stk_dtype dtype)
{
    if (dtype == STK_F32 || is_on_host(setting)) return STK_OK;
    return stk_fail(STK_UNSUPPORTED, "convolutions in 16 bits are measured on the device cpu alone, and not on '%s'",
                    setting->device);
}

/* On a device with memory of its own: a product of products, a b b b ..., whose operands stay there, and of whose
 * result one number is read, so that neither copies nor starts are what is measured. b keeps the numbers' size. */
static stk_status measure_chain(const stk_bench_part_setting *setting, const int64_t size[3], stk_dtype dtype,
                                double *figure)
{
    enum { PRODUCTS = 16 };
    product p = {.gflop = PRODUCTS * 2e-9 * (double)size[0] * (double)size[1] * (double)size[2]};
    if (size[1] != size[2])
        return stk_fail(STK_UNSUPPORTED, "on '%s' products are measured in a row: the second matrix must be square",
                        setting->device);
    stk_graph *graph = stk_graph_new();
    stk_value x =
        stk_graph_variable(graph, "a", STK_F32, STK_SHAPE(size[0], size[1]), (stk_init){STK_INIT_NORMAL, 0.1}, false);
    stk_value b = stk_graph_variable(graph, "b", STK_F32, STK_SHAPE(size[1], size[2]),
                                     (stk_init){STK_INIT_NORMAL, 1 / sqrt((double)size[1])}, false);
    if (dtype != STK_F32) {
        x = stk_cast_to(x, dtype);
        b = stk_cast_to(b, dtype);
    }
    for (int i = 0; i < PRODUCTS; i++)
        x = stk_matmul(x, b, false, false);
    if (dtype != STK_F32) x = stk_cast_to(x, STK_F32);
    return measure(setting, graph, stk_reduce_max(x, 3), &p, figure);
}

static stk_status run_matmul(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure)
{
    int64_t size[3];
    stk_dtype dtype;
    product p = {0};
    stk_value a, b;
    stk_status status = STK_OK;
    if (n != 2) return stk_fail(STK_INVALID, "matmul takes MxKxN and a type");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[0], 3, size));
    STK_RETURN_IF_ERROR(find_dtype(argument[1], &dtype));
    if (!is_on_host(setting)) return measure_chain(setting, size, dtype, figure);
    p.gflop = 2e-9 * (double)size[0] * (double)size[1] * (double)size[2];
    stk_graph *graph = stk_graph_new();
    STK_TRY(make_operand(&p, graph, "a", dtype, STK_SHAPE(size[0], size[1]), &a));
    STK_TRY(make_operand(&p, graph, "b", dtype, STK_SHAPE(size[1], size[2]), &b));
    status = measure(setting, graph, stk_matmul(a, b, false, false), &p, figure);
    graph = NULL;
done:
    stk_graph_free(graph);
    free_inputs(&p);
    return status;
}

static stk_status run_conv(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure)
{
    int64_t size[6];
    stk_dtype dtype;
    product p = {0};
    stk_value x, weight;
    stk_status status = STK_OK;
    if (n != 2) return stk_fail(STK_INVALID, "conv takes NxHxWxCxOxK and a type");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[0], 6, size));
    STK_RETURN_IF_ERROR(find_dtype(argument[1], &dtype));
    STK_RETURN_IF_ERROR(check_device(setting, dtype));
    p.gflop = 2e-9 * (double)size[0] * (double)size[1] * (double)size[2] * (double)size[3] * (double)size[4] *
              (double)size[5] * (double)size[5];
    stk_window window = stk_window_make((int32_t)size[5], (int32_t)size[5]);
    for (int i = 0; i < 2; i++) {
        window.pad_low[i] = (int32_t)(size[5] - 1) / 2;
        window.pad_high[i] = (int32_t)size[5] / 2;
    }
    stk_graph *graph = stk_graph_new();
    STK_TRY(make_operand(&p, graph, "image", dtype, STK_SHAPE(size[0], size[1], size[2], size[3]), &x));
    STK_TRY(make_operand(&p, graph, "weight", dtype, STK_SHAPE(size[4], size[5], size[5], size[3]), &weight));
    status = measure(setting, graph, stk_conv2d_raw(x, weight, window), &p, figure);
    graph = NULL;
done:
    stk_graph_free(graph);
    free_inputs(&p);
    return status;
}

const stk_bench_part stk_bench_part_matmul = {"matmul", "MxKxN f32|bf16|f16", "a product of two matrices", "GFLOP/s",
                                              run_matmul};
const stk_bench_part stk_bench_part_conv = {
    "conv", "NxHxWxCxOxK f32|bf16|f16", "a convolution of KxK with O outputs, borders of zeros", "GFLOP/s", run_conv};
