/* Every way of the lists of products and convolutions (impl.h) that can do a call, timed: what tables of families are
 * made of and checked by (src/device/cpu/tuned, tools/tune.py). Reads calls from standard input, one a line, and
 * answers each with one line, tab-separated: the call, the processor's choice by table and by rule alone, the call's
 * sizes, and nanoseconds by way.
 *
 *     bench_ways [THREADS [measured]]       2
 *
 *     matmul DTYPE OUT BATCHES M N K TURNED_A TURNED_B SHARED_B
 *     conv2d|conv2d_grad_data|conv2d_grad_weight DTYPE OUT IMAGES HEIGHT WIDTH CHANNELS FILTERS KERNEL_H KERNEL_W
 * STRIDE PAD_LOW PAD_HIGH DILATION GROUPS
 *
 * How they are timed is in device/cpu/timing.h. "measured" behind the threads: the choice is what a run's first step
 * would have measured on a processor without a table (device/cpu/measured.h), each call for itself; set STOKER_CACHE to
 * an empty folder, since what was measured before is not measured again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/cpu/threads/parallel.h"
#include "device/cpu/timing.h"
#include "device/cpu/tuned/tuned.h"
#include "device/device.h"
#include "ops/rule.h"

enum { MOST_IN = 2, MOST_NUMBERS = 12 };
static const stk_timing how = {
    .n_turns = STK_MOST_TURNS, .n_sure_turns = 2, .hopeless = 2, .turn_s = 0.004, .fewest_runs = 2};

typedef struct subject {
    stk_attrs attrs;
    stk_tensor_desc in_desc[MOST_IN], out_desc;
    stk_op_call call;
} subject;

/* --- calls --- */

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

/* --- answers --- */

static void print_sizes(const subject *s)
{
    int64_t z[STK_TUNED_N_SIZES];
    stk_tuned_sizes(&s->call, z);
    for (int i = 0; i < STK_TUNED_N_SIZES; i++)
        printf("%s%s=%lld", i ? " " : "", stk_tuned_size_name((stk_tuned_size)i), (long long)z[i]);
}

/* By the choice that the environment asks for. */
static stk_status find_choice(stk_device *device, const subject *s, const char *kernels, const char **out)
{
    if (kernels) setenv("STOKER_KERNELS", kernels, 1);
    stk_status status = stk_name_way(device, &s->call, out);
    if (kernels) unsetenv("STOKER_KERNELS");
    return status;
}

/* What a run's first step would have measured and chosen, by a device of its own. */
static stk_status measure_choice(const subject *s, const stk_device_config *config, const char **out)
{
    stk_device *device = NULL;
    stk_status status;
    setenv("STOKER_KERNELS", "measured", 1);
    STK_TRY(stk_device_open("cpu", config, &device));
    device->measuring = STK_MEASURES;
    STK_TRY(device->class->expect(device, &s->call));
    STK_TRY(device->class->prepare(device, NULL));
    status = stk_name_way(device, &s->call, out);
done:
    unsetenv("STOKER_KERNELS");
    stk_device_close(device);
    return status;
}

static stk_status answer(stk_device *device, const stk_device_config *config, bool measures, const char *line)
{
    subject s;
    stk_timed_way ways[STK_MOST_WAYS];
    const char *choice, *rule;
    bool in_time;
    int n;
    STK_RETURN_IF_ERROR(read_call(line, &s));
    STK_RETURN_IF_ERROR(measures ? measure_choice(&s, config, &choice) : find_choice(device, &s, NULL, &choice));
    STK_RETURN_IF_ERROR(find_choice(device, &s, "default", &rule));
    STK_RETURN_IF_ERROR(stk_time_ways(device, &s.call, &how, ways, &n, &in_time));
    printf("%s\t%s\t%s\t", line, choice, rule);
    print_sizes(&s);
    printf("\t");
    for (int i = 0; i < n; i++)
        printf("%s%s=%.0f", i ? " " : "", ways[i].name, ways[i].ns);
    printf("\n");
    return STK_OK;
}

int main(int argc, char **argv)
{
    stk_device_config config = {.n_threads = argc > 1 ? atoi(argv[1]) : 2};
    bool measures = argc > 2 && !strcmp(argv[2], "measured");
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
        if (line[0]) STK_TRY(answer(device, &config, measures, line));
    }
done:
    if (status != STK_OK) fprintf(stderr, "bench_ways: %s\n", stk_error_text());
    stk_text_free(&about);
    stk_device_close(device);
    return status != STK_OK;
}
