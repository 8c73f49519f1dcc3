/* Kernels of the cpu on more than 2^31 elements, against the reference device: an index in 32 bits would wrap. A case
 * takes up to 40 GB, since the reference computes many ops in f64, and minutes, so that they run only where STOKER_HUGE
 * is set: ./dev huge. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/queue.h"
#include "harness/harness.h"

/* ROWS x ROW is 2.3e9; BYTES and HALF are the dtypes that such a case fits into. */
enum { ROWS = 70001, ROW = 32768 };
#define BYTES  .mains = 1u << STK_U8
#define HALF   .mains = 1u << STK_BF16
#define IMAGES ROWS, 32, 32, 32
#define SQUARE(n)                                                                                                      \
    {                                                                                                                  \
        n, n                                                                                                           \
    }
#define ONCE(window_kernel, window_stride)                                                                             \
    .window = {.kernel = SQUARE(window_kernel), .stride = SQUARE(window_stride), .dilation = SQUARE(1), .groups = 1}
#define BN ATTRS(.batch_norm = {.eps = 1e-5, .momentum = 0.1, .relu = 1})
#define REDUCTION(name, what, axes_, lowest)                                                                           \
    CASE(name, reduce, ATTRS(.reduce = {.kind = STK_REDUCE_##what, .axes = axes_}),                                    \
         INPUTS(REAL(lowest, 1, ROWS, ROW)), .loosen = 2, HALF)

static const op_case cases[] = {
    CASE("exp", unary, ATTRS(.element = {.kind = STK_UNARY_exp}), INPUTS(REAL(-1, 1, ROWS, ROW)), HALF, .loosen = 2),
    CASE("mul", binary, ATTRS(.element = {.kind = STK_BINARY_mul}),
         INPUTS(ROUGH(FILL_STEPS, 0, 9, ROWS, ROW), ROUGH(FILL_STEPS, 0, 9, ROWS, ROW)), BYTES),
    CASE("less", compare, ATTRS(.element = {.kind = STK_COMPARE_less}),
         INPUTS(ROUGH(FILL_STEPS, 0, 9, ROWS, ROW), ROUGH(FILL_STEPS, 0, 9, ROWS, ROW)), BYTES),
    CASE("to bf16", cast, ATTRS(.dtype = STK_BF16), INPUTS(TYPED(STK_U8, FILL_STEPS, 0, 99, ROWS, ROW))),
    CASE("rows", broadcast, ATTRS(.shape = DIMS(ROWS, ROW)), INPUTS(ROUGH(FILL_STEPS, 0, 99, ROWS, 1)), BYTES),
    CASE("rows", transpose, ATTRS(.permutation = {1, 0}), INPUTS(ROUGH(FILL_STEPS, 0, 99, ROWS, ROW)), BYTES),
    CASE("rows", concat, ATTRS(.concat = {.axis = 1}),
         INPUTS(ROUGH(FILL_STEPS, 0, 99, ROWS, ROW / 2), ROUGH(FILL_STEPS, 0, 99, ROWS, ROW / 2)), BYTES),
    CASE("rows", slice, ATTRS(.slice = {.start = {1, 0}, .stop = {ROWS, ROW}, .step = {1, 1}}),
         INPUTS(ROUGH(FILL_STEPS, 0, 99, ROWS, ROW)), BYTES),
    CASE("rows", pad, ATTRS(.pad = {.low = {1, 2}, .high = {1, 1}, .value = 3}),
         INPUTS(ROUGH(FILL_STEPS, 0, 99, ROWS, ROW)), BYTES),
    CASE("of rows", gather, ATTRS(.axis = 0),
         INPUTS(ROUGH(FILL_STEPS, 0, 99, ROWS, ROW), TYPED(STK_I32, FILL_LABELS, 0, ROWS, 512)), BYTES),
    CASE("of rows", scatter_add, ATTRS(.shape = DIMS(ROWS, ROW), .axis = 0),
         INPUTS(REAL(-1, 1, 512, ROW), TYPED(STK_I32, FILL_LABELS, 0, ROWS, 512)), HALF, .loosen = 2),
    REDUCTION("of rows", SUM, 2, 0),
    REDUCTION("of columns", SUM, 1, 0),
    REDUCTION("of all", MAX, 3, -1),
    CASE("of rows", argmax, ATTRS(.argmax = {1, 0}), INPUTS(REAL(-1, 1, ROWS, ROW)), HALF),
    CASE("of rows", cumsum, ATTRS(.cumsum = {.axis = 1}), INPUTS(REAL(0, 1, ROWS, ROW)), HALF, .loosen = 4),
    CASE("rows", softmax, ATTRS(0), INPUTS(REAL(-3, 3, ROWS, ROW)), HALF, .loosen = 4),
    CASE("rows", layer_norm, ATTRS(.layer_norm = {1e-5}),
         INPUTS(REAL(-1, 2, ROWS, ROW), STATS(0.5, 2, ROW), STATS(-1, 1, ROW)), HALF, .loosen = 10),
    CASE("rows", cross_entropy, ATTRS(0), INPUTS(REAL(-3, 3, ROWS, ROW), LABELS(ROWS, ROW)), HALF, .loosen = 4),
    CASE("rows", dropout, ATTRS(.dropout = {.rate = 0.3}), INPUTS(REAL(-1, 1, ROWS, ROW), SCALAR_I64(3), SCALAR_I64(5)),
         HALF),
    CASE("much comes out", matmul, ATTRS(0), INPUTS(REAL(-1, 1, ROWS, 8), REAL(-1, 1, 8, ROW)), HALF, .loosen = 4),
    CASE("much goes in", matmul, ATTRS(0), INPUTS(REAL(-1, 1, ROWS, ROW), REAL(0, 1, ROW, 2)), HALF, .loosen = 4),
    CASE("much is added", matmul, ATTRS(.matmul = {1, 0}), INPUTS(REAL(-1, 1, ROWS, ROW), REAL(0, 1, ROWS, 2)), HALF,
         .loosen = 8),
    CASE("3x3", conv2d, ATTRS(ONCE(3, 2)), INPUTS(REAL(-1, 1, IMAGES), REAL(0, 1, 2, 3, 3, 32)), HALF, .loosen = 4),
    CASE("1x1", conv2d, ATTRS(ONCE(1, 1)), INPUTS(REAL(-1, 1, ROWS, 32, 32, 2), REAL(-1, 1, 32, 1, 1, 2)), HALF,
         .loosen = 4),
    CASE("1x1", conv2d_grad_data, ATTRS(.shape = DIMS(IMAGES), ONCE(1, 1)),
         INPUTS(REAL(-1, 1, ROWS, 32, 32, 2), REAL(-1, 1, 2, 1, 1, 32)), HALF, .loosen = 4),
    CASE("1x1", conv2d_grad_weight, ATTRS(.shape = DIMS(2, 1, 1, 32), ONCE(1, 1)),
         INPUTS(REAL(0, 1, IMAGES), REAL(0, 1, ROWS, 32, 32, 2)), HALF, .loosen = 8),
    CASE("2x2", max_pool2d, ATTRS(ONCE(2, 2)), INPUTS(REAL(-1, 1, IMAGES)), HALF),
    CASE("2x2", avg_pool2d, ATTRS(ONCE(2, 2)), INPUTS(REAL(0, 1, IMAGES)), HALF, .loosen = 2),
    CASE("images", batch_norm, BN,
         INPUTS(REAL(-1, 1, IMAGES), STATS(0.5, 2, 32), STATS(-0.5, 0.5, 32), STATS(-1, 1, 32), STATS(0.5, 2, 32)),
         HALF, .loosen = 10),
    CASE("images", group_norm, ATTRS(.group_norm = {1e-5, 4}),
         INPUTS(REAL(-1, 1, IMAGES), STATS(0.5, 2, 32), STATS(-0.5, 0.5, 32)), HALF, .loosen = 10),
};

/* Like case_call, without copies. */
static stk_status call(const case_run *run, stk_device *device, void *out[CASE_MOST_OUT])
{
    stk_status status = STK_OK;
    stk_kernel kernel = {0};
    stk_queue *queue = NULL;
    stk_capture *capture = NULL;
    const stk_queue_class *queues = device->class->queues;
    void *in[CASE_MOST_IN], *scratch = NULL;
    int i_failed;
    memcpy(in, run->in, sizeof(in));
    STK_TRY(queues->open(device, &queue));
    STK_TRY(device->class->kernel(device, &run->call, &kernel));
    for (int i = -1; i < run->call.n_out; i++) {
        size_t bytes = i < 0 ? kernel.scratch_bytes : stk_desc_bytes(run->out_desc[i]);
        void *p = (double)bytes * 1.1 < (double)stk_machine_memory(true) ? harness_alloc(bytes) : NULL;
        if (!p) STK_TRY(stk_fail_memory(bytes));
        *(i < 0 ? &scratch : &out[i]) = p;
    }
    stk_entry entry = {&kernel, {.in = in, .out = out, .scratch = scratch}};
    STK_TRY(queues->capture(device, &entry, 1, &capture));
    STK_TRY(queues->launch(queue, capture, &i_failed));
    STK_TRY(queues->finish(queue));
done:
    if (queue) {
        queues->release(capture);
        queues->close(queue);
    }
    stk_kernel_free(&kernel);
    free(scratch);
    return status;
}

typedef enum verdict { FITS_NOT, EQUAL, HAS_NO_KERNEL, WRONG } verdict;

static const char *const words[] = {"left out, too little memory", "equal", "no kernel", "WRONG"};

static double needed_bytes(const op_case *source, stk_dtype main)
{
    case_run run;
    double bytes = 0;
    if (case_run_describe(source, main, &run) != STK_OK) return 0;
    for (int i = 0; i < run.call.n_in; i++)
        bytes += (double)stk_desc_bytes(run.in_desc[i]);
    for (int i = 0; i < run.call.n_out; i++)
        bytes += 2 * (double)stk_desc_bytes(run.out_desc[i]);
    return bytes;
}

static verdict check(const op_case *source, stk_dtype main, stk_device *reference, stk_device *cpu)
{
    case_run run;
    void *want[CASE_MOST_OUT] = {0}, *got[CASE_MOST_OUT] = {0};
    verdict found = EQUAL;
    const char *why = NULL;
    if (needed_bytes(source, main) * 1.1 > (double)stk_machine_memory(true)) return FITS_NOT;
    stk_status status = case_run_open(source, main, reference, &run);
    if (status == STK_OK) status = call(&run, reference, want);
    if (status == STK_OK) {
        status = call(&run, cpu, got);
        if (status == STK_UNSUPPORTED) found = HAS_NO_KERNEL;
    }
    if (status == STK_NO_MEMORY) { /* of a kernel, above all the reference device's */
        printf("%s\n", stk_error_text());
        found = FITS_NOT;
    }
    for (int i = 0; status == STK_OK && !why && i < run.call.n_out; i++)
        why = case_compare(&run, i, got[i], want[i]);
    if (status != STK_OK && found == EQUAL) why = stk_error_text();
    if (why) printf("%s: %s\n", case_text(&run), why);
    for (int i = 0; i < CASE_MOST_OUT; i++) {
        free(want[i]);
        free(got[i]);
    }
    case_run_close(&run);
    return why ? WRONG : found;
}

/* test_op_huge [FROM [TO]]: numbers of cases */
int main(int argc, char **argv)
{
    const int n = (int)(sizeof(cases) / sizeof(*cases));
    int from = argc > 1 ? atoi(argv[1]) : 0, to = argc > 2 ? atoi(argv[2]) : n, n_of[4] = {0};
    stk_device *reference, *cpu;
    if (!getenv("STOKER_HUGE")) {
        puts("SKIP more than 2^31 elements: takes up to 40 GB and half an hour; ./dev huge");
        return 77;
    }
    if (stk_device_open("reference", NULL, &reference) != STK_OK || stk_device_open("cpu", NULL, &cpu) != STK_OK) {
        fprintf(stderr, "%s\n", stk_error_text());
        return 1;
    }
    for (int i = from; i < to && i < n; i++) {
        unsigned mains = case_mains(&cases[i]);
        stk_dtype main = STK_F32;
        for (int d = 0; d < STK_N_DTYPES; d++)
            if (mains >> d & 1) main = (stk_dtype)d;
        int64_t start = stk_clock_ns();
        verdict found = check(&cases[i], main, reference, cpu);
        n_of[found]++;
        printf("%d %s '%s' %s: %s, %.0f s\n", i, stk_op_name(cases[i].op), cases[i].name, stk_dtype_name(main),
               words[found], (double)(stk_clock_ns() - start) * 1e-9);
        fflush(stdout);
    }
    printf("%d equal, %d wrong, %d without a kernel, %d left out\n", n_of[EQUAL], n_of[WRONG], n_of[HAS_NO_KERNEL],
           n_of[FITS_NOT]);
    stk_device_close(cpu);
    stk_device_close(reference);
    return n_of[WRONG] > 0;
}
