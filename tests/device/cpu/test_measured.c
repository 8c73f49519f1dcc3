/* Choices that are measured (measured.h): who measures, what is kept and found again, that a call goes by what was
 * chosen for few of its images or rows, and that what another processor or a hand has written is refused. */
#include "device/cpu/measured.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "device/cpu/call.h"

/* --- calls --- */

typedef struct subject {
    stk_attrs attrs;
    stk_tensor_desc in[2], out;
    stk_op_call call;
} subject;

/* [m,k] by [k,n]; turned: [k,m]. */
static void make_product(subject *s, bool turned, int64_t m, int64_t n, int64_t k)
{
    *s = (subject){.attrs = stk_attrs_zero()};
    s->attrs.matmul.transpose_a = turned;
    s->in[0] = stk_desc_make(STK_F32, turned ? STK_SHAPE(k, m) : STK_SHAPE(m, k));
    s->in[1] = stk_desc_make(STK_F32, STK_SHAPE(k, n));
    s->out = stk_desc_make(STK_F32, STK_SHAPE(m, n));
    s->call = (stk_op_call){STK_OP_matmul, &s->attrs, 2, 1, s->in, &s->out};
}

/* 3x3 on images of 8 x 8. */
static void make_convolution(subject *s, stk_op op, int64_t images, int64_t channels, int64_t filters)
{
    *s = (subject){.attrs = stk_attrs_zero()};
    stk_shape x = STK_SHAPE(images, 8, 8, channels), y = STK_SHAPE(images, 8, 8, filters);
    stk_shape weight = STK_SHAPE(filters, 3, 3, channels);
    s->attrs.window = stk_window_make(3, 3);
    for (int i = 0; i < 2; i++)
        s->attrs.window.pad_low[i] = s->attrs.window.pad_high[i] = 1;
    bool of_data = op == STK_OP_conv2d_grad_data, of_weight = op == STK_OP_conv2d_grad_weight;
    if (of_data || of_weight) s->attrs.shape = of_data ? x : weight;
    s->in[0] = stk_desc_make(STK_F32, of_data ? y : x);
    s->in[1] = stk_desc_make(STK_F32, of_weight ? y : weight);
    s->out = stk_desc_make(STK_F32, of_data ? x : of_weight ? weight : y);
    s->call = (stk_op_call){op, &s->attrs, 2, 1, s->in, &s->out};
}

/* --- devices --- */

static char cache[64];

static int setup(void **state)
{
    (void)state;
    strcpy(cache, "/tmp/test_measured.XXXXXX");
    if (!mkdtemp(cache)) return -1;
    setenv("STOKER_CACHE", cache, 1);
    setenv("STOKER_KERNELS", "measured", 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", cache);
    return system(command);
}

static stk_device *open_measuring(stk_measuring measuring)
{
    stk_device *device = call_open(NULL, 2);
    device->measuring = measuring;
    return device;
}

static void settle(stk_device *device, const subject *s)
{
    assert_int_equal(device->class->expect(device, &s->call), STK_OK);
    assert_int_equal(device->class->prepare(device, NULL), STK_OK);
}

/* Freed by the caller. */
static char *choices_of(stk_device *device)
{
    stk_text text = {0};
    device->class->print_choices(device, &text);
    char *copy = strdup(stk_text_get(&text));
    stk_text_free(&text);
    return copy;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* The device's kernel for the call is the one that the way makes; or, for NULL, another. */
static bool goes_by(stk_device *device, const subject *s, const char *way)
{
    stk_kernel taken, by_name = {0};
    assert_int_equal(device->class->kernel(device, &s->call, &taken), STK_OK);
    assert_int_equal(stk_cpu_make_way((stk_cpu_device *)device, &s->call, stk_matmul_ways, way, &by_name), STK_OK);
    bool same = taken.run == by_name.run && !strcmp(taken.impl, by_name.impl);
    stk_kernel_free(&taken);
    stk_kernel_free(&by_name);
    return same;
}

/* --- tests --- */

static void a_call_is_measured_once(void **state)
{
    (void)state;
    subject s;
    make_product(&s, false, 4096, 256, 256);
    stk_device *device = open_measuring(STK_MEASURES);
    settle(device, &s);
    char *first = choices_of(device);
    assert_int_equal(count_lines(first), 2);
    assert_non_null(strstr(first, "# kernels measured on "));
    assert_non_null(strstr(first, "\tmatmul f32[2048,256] f32[256,256] -> f32[2048,256]\n"));
    assert_null(strstr(first, "?\t"));
    stk_device_close(device);

    /* Another process finds it, and has no time for more: what was found is what it prints. */
    const volatile int stop = 1;
    device = open_measuring(STK_MEASURES);
    assert_int_equal(device->class->expect(device, &s.call), STK_OK);
    assert_int_equal(device->class->prepare(device, &stop), STK_OK);
    char *second = choices_of(device);
    assert_string_equal(first, second);
    free(first);
    free(second);
    stk_device_close(device);
}

static void all_batches_have_one_choice(void **state)
{
    (void)state;
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    stk_device *device = open_measuring(STK_MEASURES);
    for (int i = 0; i < 3; i++)
        for (int64_t images = 32; images <= 128; images *= 2) {
            subject s;
            make_convolution(&s, ops[i], images, 128, 128);
            settle(device, &s);
        }
    for (int64_t rows = 2048; rows <= 8192; rows *= 2) {
        subject s;
        make_product(&s, true, 512, 512, rows);
        settle(device, &s);
    }
    char *text = choices_of(device);
    assert_int_equal(count_lines(text), 1 + 3 + 1);
    assert_non_null(
        strstr(text, "\tconv2d kernel=3x3 pad=1:1,1:1 f32[16,8,8,128] f32[128,3,3,128] -> f32[16,8,8,128]\n"));
    assert_non_null(strstr(text, " f32[16,8,8,128] f32[16,8,8,128] -> f32[128,3,3,128]\n"));
    assert_non_null(strstr(text, "\tmatmul transpose_a f32[512,512] f32[512,512] -> f32[512,512]\n"));
    free(text);
    stk_device_close(device);
}

/* Each way in turn, by a text as a run keeps it. */
static void a_call_goes_by_its_choice(void **state)
{
    (void)state;
    subject s;
    make_product(&s, false, 4096, 256, 256);
    stk_device *device = open_measuring(STK_MEASURES);
    settle(device, &s);
    char *text = choices_of(device), *line = strchr(text, '\n') + 1, *tail = strchr(line, '\t');
    static const char *const ways[] = {"sgemm", "own"};
    for (int i = 0; i < 2; i++) {
        stk_text other = {0};
        stk_text_add(&other, "%.*s%s%s", (int)(line - text), text, ways[i], tail);
        assert_int_equal(device->class->take_choices(device, stk_text_get(&other)), STK_OK);
        assert_true(goes_by(device, &s, ways[i]));
        assert_false(goes_by(device, &s, ways[!i]));
        char *now = choices_of(device);
        assert_string_equal(now, stk_text_get(&other));
        free(now);
        stk_text_free(&other);
    }
    /* One that it does not have is left to the list. */
    stk_text other = {0};
    stk_text_add(&other, "%.*sno such way%s", (int)(line - text), text, tail);
    assert_int_equal(device->class->take_choices(device, stk_text_get(&other)), STK_OK);
    stk_kernel kernel;
    assert_int_equal(device->class->kernel(device, &s.call, &kernel), STK_OK);
    stk_kernel_free(&kernel);
    stk_text_free(&other);
    free(text);
    stk_device_close(device);
}

static void what_is_not_its_own_is_refused(void **state)
{
    (void)state;
    subject s;
    make_product(&s, false, 4096, 256, 256);
    stk_device *device = open_measuring(STK_MEASURES);
    settle(device, &s);
    char *before = choices_of(device);
    stk_text text = {0};
    assert_int_equal(device->class->take_choices(device, "# kernels measured on an abacus\nown\tmatmul\n"),
                     STK_MISMATCH);
    assert_non_null(strstr(stk_error_text(), "measured on an abacus, and this is "));
    assert_int_equal(device->class->take_choices(device, ""), STK_CORRUPT);
    assert_int_equal(device->class->take_choices(device, "kernels"), STK_CORRUPT);
    stk_text_add(&text, "%sown matmul\n", before);
    assert_int_equal(device->class->take_choices(device, stk_text_get(&text)), STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "line 3 is not 'WAY<tab>CALL'"));
    char *after = choices_of(device);
    assert_string_equal(before, after);
    free(before);
    free(after);
    stk_text_free(&text);
    stk_device_close(device);
}

/* Nothing is printed, nothing kept. */
static void expect_nothing(stk_device *device)
{
    subject s;
    stk_text text = {0};
    char path[100];
    make_product(&s, false, 4096, 256, 256);
    settle(device, &s);
    device->class->print_choices(device, &text);
    assert_int_equal(text.n, 0);
    snprintf(path, sizeof(path), "%s/kernels", cache);
    assert_false(stk_path_exists(path));
    stk_device_close(device);
}

static void most_devices_measure_nothing(void **state)
{
    (void)state;
    expect_nothing(open_measuring(STK_MEASURES_NOTHING));
    setenv("STOKER_KERNELS", "default", 1);
    expect_nothing(open_measuring(STK_MEASURES));
    setenv("STOKER_KERNELS", "tuned", 1);
    expect_nothing(open_measuring(STK_MEASURES));
}

/* A choice of before counts; new ones are not made. */
static void it_may_measure_no_more(void **state)
{
    (void)state;
    subject s, other;
    make_product(&s, false, 4096, 256, 256);
    make_product(&other, false, 4096, 512, 256);
    stk_device *device = open_measuring(STK_MEASURES);
    settle(device, &s);
    device->measuring = STK_MEASURES_NO_MORE;
    settle(device, &other);
    char *text = choices_of(device);
    assert_int_equal(count_lines(text), 2);
    free(text);
    stk_device_close(device);
}

static void a_stop_ends_it(void **state)
{
    (void)state;
    const volatile int stop = 1;
    subject s;
    make_product(&s, false, 4096, 256, 256);
    stk_device *device = open_measuring(STK_MEASURES);
    assert_int_equal(device->class->expect(device, &s.call), STK_OK);
    assert_int_equal(device->class->prepare(device, &stop), STK_INTERRUPTED);
    stk_device_close(device);
}

static void numbers_are_the_same_within_rounding(void **state)
{
    (void)state;
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    enum { IMAGES = 3, CHANNELS = 12, N = IMAGES * 64 * CHANNELS };
    static float x[N], y[N], one[N], other[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i * 37 % 101) / 101 - 0.5f;
        y[i] = (float)(i * 53 % 89) / 89 - 0.5f;
    }
    for (int i = 0; i < 3; i++) {
        subject s;
        make_convolution(&s, ops[i], IMAGES, CHANNELS, CHANNELS);
        float *out[2] = {one, other};
        for (int measures = 0; measures < 2; measures++) {
            stk_device *device = open_measuring(measures ? STK_MEASURES : STK_MEASURES_NOTHING);
            settle(device, &s);
            memset(out[measures], 0, sizeof(one));
            void *in[2] = {x, y}, *to = out[measures];
            stk_kernel kernel;
            void *scratch = NULL;
            int i_failed;
            assert_int_equal(device->class->kernel(device, &s.call, &kernel), STK_OK);
            assert_int_equal(device->class->alloc(device, kernel.scratch_bytes + 1, STK_MEMORY_ZEROED, &scratch),
                             STK_OK);
            stk_entry entry = {&kernel, {.in = in, .out = &to, .scratch = scratch}};
            assert_int_equal(device->class->run(device, &entry, 1, &i_failed), STK_OK);
            device->class->free(device, scratch, kernel.scratch_bytes + 1);
            stk_kernel_free(&kernel);
            stk_device_close(device);
        }
        for (int k = 0; k < N; k++)
            assert_float_equal(one[k], other[k], 1e-4);
    }
}

int main(void)
{
    unsetenv("STOKER_AMX");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_is_measured_once, setup, teardown),
        cmocka_unit_test_setup_teardown(all_batches_have_one_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_goes_by_its_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_its_own_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(most_devices_measure_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(it_may_measure_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stop_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_are_the_same_within_rounding, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
