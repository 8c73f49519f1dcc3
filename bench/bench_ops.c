/* Speed of single ops: the large cases of tests/harness, one line each.
 *
 *     bench_ops [--filter TEXT] [--device NAME] [--threads N] [--seconds S] [--all]
 *
 * --filter keeps the lines that contain TEXT ("conv2d ", "bf16", "14x14"); --all adds the small cases. The time is the
 * fastest of the calls that fit into S seconds (0.3). GB/s counts what must be read and written at least, GFLOP/s what
 * the op's rule says it costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "harness/harness.h"

typedef struct bench_options {
    const char *filter, *device;
    int n_threads;
    double seconds;
    bool all;
} bench_options;

typedef struct bench_buffers {
    void *out[CASE_MOST_OUT], *scratch;
    stk_kernel kernel;
} bench_buffers;

static stk_status open_buffers(const case_run *run, stk_device *device, bench_buffers *out)
{
    memset(out, 0, sizeof(*out));
    STK_RETURN_IF_ERROR(device->class->kernel(device, &run->call, &out->kernel));
    out->scratch = harness_alloc(out->kernel.scratch_bytes);
    if (!out->scratch) return stk_fail_memory(out->kernel.scratch_bytes);
    for (int i = 0; i < run->call.n_out; i++)
        if (!(out->out[i] = harness_alloc(stk_desc_bytes(run->out_desc[i]))))
            return stk_fail_memory(stk_desc_bytes(run->out_desc[i]));
    return STK_OK;
}

static void close_buffers(bench_buffers *buffers)
{
    for (int i = 0; i < CASE_MOST_OUT; i++)
        free(buffers->out[i]);
    free(buffers->scratch);
    stk_kernel_free(&buffers->kernel);
}

/* The fastest call, in nanoseconds. */
static stk_status measure(const case_run *run, stk_device *device, const bench_buffers *buffers, double seconds,
                          int64_t *best_ns)
{
    stk_entry entry = {&buffers->kernel, {.in = run->in, .out = buffers->out, .scratch = buffers->scratch}};
    int64_t start_ns = stk_clock_ns(), end_ns = start_ns + (int64_t)(seconds * 1e9);
    *best_ns = INT64_MAX;
    /* The first call pays for page faults, so there are at least three. */
    for (int i = 0; i < 3 || stk_clock_ns() < end_ns; i++) {
        int i_failed = 0;
        int64_t before_ns = stk_clock_ns();
        STK_RETURN_IF_ERROR(device->class->run(device, &entry, 1, &i_failed));
        int64_t spent_ns = stk_clock_ns() - before_ns;
        if (spent_ns < *best_ns) *best_ns = spent_ns;
    }
    return STK_OK;
}

static stk_status bench_case(const op_case *source, stk_dtype main_dtype, stk_device *device, stk_device *reference,
                             double seconds)
{
    case_run run;
    bench_buffers buffers = {0};
    int64_t ns = 0;
    STK_RETURN_IF_ERROR(case_run_open(source, main_dtype, reference, &run));
    stk_status status = STK_OK;
    STK_TRY(open_buffers(&run, device, &buffers));
    STK_TRY(measure(&run, device, &buffers, seconds, &ns));
    stk_cost cost = stk_op_cost(&run.call);
    double t = ns > 0 ? (double)ns : 1;
    printf("%-58s %10.1f %10.1f %8.1f  %s\n", case_text(&run), t * 1e-3, cost.flops / t, cost.bytes / t,
           buffers.kernel.impl ? buffers.kernel.impl : "?");
    fflush(stdout);
done:
    if (status == STK_UNSUPPORTED) printf("%-58s %s\n", case_text(&run), stk_error_text());
    close_buffers(&buffers);
    case_run_close(&run);
    return status == STK_UNSUPPORTED ? STK_OK : status;
}

static bool is_wanted(const bench_options *options, const op_case *source, stk_dtype main_dtype)
{
    case_run run = {.source = source, .main = main_dtype};
    if (!source->large && !options->all) return false;
    return !options->filter || strstr(case_text(&run), options->filter);
}

static stk_status bench_all(const bench_options *options)
{
    stk_device *device = NULL, *reference = NULL;
    stk_status status = STK_OK;
    int n_lists;
    const case_list *lists = harness_case_lists(&n_lists);
    stk_text about = {0};
    STK_TRY(stk_device_open(options->device, &(stk_device_config){.n_threads = options->n_threads}, &device));
    STK_TRY(stk_device_open("reference", NULL, &reference));
    device->class->describe(device, &about);
    printf("%s: %s\n%-58s %10s %10s %8s  %s\n", device->class->name, stk_text_get(&about), "case", "us", "GFLOP/s",
           "GB/s", "kernel");
    for (int l = 0; l < n_lists; l++)
        for (int i = 0; i < lists[l].n; i++)
            for (int d = 0; d < STK_N_DTYPES; d++)
                if (case_mains(&lists[l].cases[i]) >> d & 1 && is_wanted(options, &lists[l].cases[i], (stk_dtype)d))
                    STK_TRY(bench_case(&lists[l].cases[i], (stk_dtype)d, device, reference, options->seconds));
done:
    stk_text_free(&about);
    stk_device_close(device);
    stk_device_close(reference);
    return status;
}

int main(int argc, char **argv)
{
    bench_options options = {.device = "cpu", .seconds = 0.3};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--all")) {
            options.all = true;
            continue;
        }
        if (!strcmp(argv[i], "--filter"))
            options.filter = value;
        else if (!strcmp(argv[i], "--device"))
            options.device = value;
        else if (!strcmp(argv[i], "--threads"))
            options.n_threads = value ? atoi(value) : 0;
        else if (!strcmp(argv[i], "--seconds"))
            options.seconds = value ? atof(value) : 0;
        else
            value = NULL;
        if (!value) {
            fprintf(stderr, "usage: bench_ops [--filter TEXT] [--device NAME] [--threads N] [--seconds S] [--all]\n");
            return 2;
        }
        i++;
    }
    if (bench_all(&options) == STK_OK) return 0;
    fprintf(stderr, "bench_ops: %s\n", stk_error_text());
    return 1;
}
