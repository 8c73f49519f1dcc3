/* Library ops and optimisers on every device against what PyTorch and Keras compute, recorded in tests/golden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "harness/harness.h"

enum { MOST = 10 };

typedef struct golden_tensor {
    stk_dtype dtype;
    stk_shape shape;
    const void *data; /* NULL: not recorded */
} golden_tensor;

/* With several steps the outputs of one become the first inputs of the next, input number `varying` has a value for
 * each step, and so has every recorded output; an i64 scalar counts the steps. */
typedef struct golden_case {
    const char *name;
    stk_op op;
    stk_attrs attrs;
    int n_in, n_out, n_steps, varying;
    golden_tensor in[MOST], out[MOST];
} golden_case;

#include "golden/attention_golden.h"
#include "golden/conv_golden.h"
#include "golden/keras_golden.h"
#include "golden/ops_golden.h"

typedef struct golden_run {
    stk_op_call call;
    stk_tensor_desc in_desc[MOST], out_desc[MOST];
    void *in[MOST], *out[MOST], *scratch;
    stk_kernel kernel;
} golden_run;

static stk_status open_run(const golden_case *golden, stk_device *device, golden_run *run)
{
    stk_status status = STK_OK;
    memset(run, 0, sizeof(*run));
    for (int i = 0; i < golden->n_in; i++) {
        stk_shape shape = golden->in[i].shape;
        if (i == golden->varying) {
            memmove(shape.dim, shape.dim + 1, (STK_MAX_RANK - 1) * sizeof(shape.dim[0]));
            shape.rank--;
        }
        run->in_desc[i] = stk_desc_make(golden->in[i].dtype, shape);
        size_t bytes = stk_desc_bytes(run->in_desc[i]);
        run->in[i] = harness_alloc(bytes);
        if (!run->in[i]) STK_TRY(stk_fail_memory(bytes));
        memcpy(run->in[i], golden->in[i].data, bytes);
    }
    const stk_op_rule *rule = stk_op_get_rule(golden->op);
    run->call = (stk_op_call){golden->op, &golden->attrs, golden->n_in, rule->n_out, run->in_desc, run->out_desc};
    STK_TRY(rule->infer(&run->call));
    assert_int_equal(run->call.n_out, golden->n_out);
    for (int i = 0; i < golden->n_out; i++)
        run->out[i] = harness_alloc(stk_desc_bytes(run->out_desc[i]));
    STK_TRY(device->class->kernel(device, &run->call, &run->kernel));
    run->scratch = harness_alloc(run->kernel.scratch_bytes);
done:
    return status;
}

static void close_run(golden_run *run)
{
    for (int i = 0; i < MOST; i++) {
        free(run->in[i]);
        free(run->out[i]);
    }
    free(run->scratch);
    stk_kernel_free(&run->kernel);
}

/* Output i after step number i_step; the number of elements that are off. */
static int compare(const golden_case *golden, const golden_run *run, int i, int i_step)
{
    stk_tensor_desc desc = run->out_desc[i];
    int64_t n = stk_shape_count(desc.shape);
    const float *want = (const float *)golden->out[i].data + (golden->n_steps > 1 ? n * i_step : 0);
    double size = 0;
    for (int64_t j = 0; j < n; j++)
        size = fmax(size, fabs((double)want[j]));
    for (int64_t j = 0; j < n; j++) {
        double got = harness_load(desc.dtype, run->out[i], j);
        if (fabs(got - (double)want[j]) <= 3e-6 * (size + fabs((double)want[j]))) continue;
        print_message("%s '%s': step %d, output %d, element %lld is %.9g, recorded %.9g\n", stk_op_name(golden->op),
                      golden->name, i_step, i, (long long)j, got, (double)want[j]);
        return 1;
    }
    return 0;
}

/* What the next step reads. */
static void feed_back(const golden_case *golden, golden_run *run, int i_step)
{
    for (int i = 0; i < golden->n_out; i++)
        memcpy(run->in[i], run->out[i], stk_desc_bytes(run->out_desc[i]));
    for (int i = 0; i < golden->n_in; i++) {
        size_t bytes = stk_desc_bytes(run->in_desc[i]);
        if (i == golden->varying) memcpy(run->in[i], (const char *)golden->in[i].data + bytes * (size_t)i_step, bytes);
        if (golden->in[i].dtype == STK_I64) ++*(int64_t *)run->in[i];
    }
}

/* The number of outputs that are wrong; *n_skipped counts cases that the device lacks. */
static int check_golden(const golden_case *golden, stk_device *device, int *n_skipped)
{
    golden_run run;
    stk_status status = STK_OK;
    int n_wrong = 0;
    status = open_run(golden, device, &run);
    if (status == STK_UNSUPPORTED) {
        print_message("skipped: %s\n", stk_error_text());
        ++*n_skipped;
        status = STK_OK;
        goto done;
    }
    STK_TRY(status);
    for (int i_step = 0; i_step < golden->n_steps; i_step++) {
        int i_failed = 0;
        stk_entry entry = {&run.kernel, {.in = run.in, .out = run.out, .scratch = run.scratch}};
        if (i_step) feed_back(golden, &run, i_step);
        STK_TRY(device->class->run(device, &entry, 1, &i_failed));
        for (int i = 0; i < golden->n_out; i++)
            if (golden->out[i].data) n_wrong += compare(golden, &run, i, i_step);
    }
done:
    if (status != STK_OK) {
        print_message("%s '%s': %s\n", stk_op_name(golden->op), golden->name, stk_error_text());
        n_wrong++;
    }
    close_run(&run);
    return n_wrong;
}

static void check_list(const golden_case *list, size_t n)
{
    for (int d = 0; stk_device_classes[d]; d++) {
        stk_device *device;
        int n_skipped = 0, n_wrong = 0;
        /* The records lie in the host's memory; kernels elsewhere are held to the reference device's, whose these are.
         */
        if (!stk_device_classes[d]->on_host) continue;
        if (stk_device_open(stk_device_classes[d]->name, NULL, &device) != STK_OK) {
            print_message("device '%s' is left out: %s\n", stk_device_classes[d]->name, stk_error_text());
            continue;
        }
        for (size_t i = 0; i < n; i++)
            n_wrong += check_golden(&list[i], device, &n_skipped);
        print_message("%s: %zu records, %d skipped, %d wrong\n", device->class->name, n, n_skipped, n_wrong);
        stk_device_close(device);
        assert_int_equal(n_wrong, 0);
    }
}

static void as_pytorch(void **state)
{
    (void)state;
    check_list(golden_cases, sizeof(golden_cases) / sizeof(golden_cases[0]));
}

static void attention_as_pytorch(void **state)
{
    (void)state;
    check_list(attention_cases, sizeof(attention_cases) / sizeof(attention_cases[0]));
}

static void conv_as_pytorch(void **state)
{
    (void)state;
    check_list(conv_cases, sizeof(conv_cases) / sizeof(conv_cases[0]));
}

static void as_keras(void **state)
{
    (void)state;
    check_list(keras_cases, sizeof(keras_cases) / sizeof(keras_cases[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_pytorch), cmocka_unit_test(attention_as_pytorch),
                                       cmocka_unit_test(conv_as_pytorch), cmocka_unit_test(as_keras)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
