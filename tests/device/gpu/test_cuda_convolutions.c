/* Convolutions by cuDNN on the device 'cuda': which plan is taken, on the played GPU (tests/device/play) or on what
 * STOKER_CUDA, STOKER_NVRTC and STOKER_CUDNN name. Their values are test_op_values'. */
#define DEVICE "cuda"

#include "device/gpu/cuda/convolution.h"
#include "device/gpu/expect.h"

#include <stdio.h>

static int n_asked, n_run, n_read;
static int (*real_get)(cudnn_descriptor, int, int, int64_t, int64_t *, void *);
static int (*real_set)(cudnn_descriptor, int, int, int64_t, const void *);
static int (*real_run)(cudnn_handle, cudnn_descriptor, cudnn_descriptor);

static int count_asked(cudnn_descriptor d, int attribute, int type, int64_t n_wanted, int64_t *n, void *out)
{
    n_asked += attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS;
    return real_get(d, attribute, type, n_wanted, n, out);
}

static int count_read(cudnn_descriptor d, int attribute, int type, int64_t n, const void *values)
{
    n_read += attribute == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    return real_set(d, attribute, type, n, values);
}

static int count_run(cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor memory)
{
    n_run++;
    return real_run(handle, plan, memory);
}

static void begin_counting(void)
{
    n_asked = n_run = n_read = 0;
    real_get = cudnn.cudnnBackendGetAttribute;
    real_set = cudnn.cudnnBackendSetAttribute;
    real_run = cudnn.cudnnBackendExecute;
    cudnn.cudnnBackendGetAttribute = count_asked;
    cudnn.cudnnBackendSetAttribute = count_read;
    cudnn.cudnnBackendExecute = count_run;
}

static void end_counting(void)
{
    cudnn.cudnnBackendGetAttribute = real_get;
    cudnn.cudnnBackendSetAttribute = real_set;
    cudnn.cudnnBackendExecute = real_run;
}

static const gpu_library_convolution small = {.n_images = 2,
                                              .x_channels = 8,
                                              .y_channels = 16,
                                              .groups = 1,
                                              .x_side = {5, 6},
                                              .y_side = {5, 6},
                                              .taps = {3, 3},
                                              .stride = {1, 1},
                                              .dilation = {1, 1},
                                              .pad_low = {1, 1},
                                              .pad_high = {1, 1},
                                              .n_sides = 2,
                                              .dtype = STK_BF16,
                                              .dtype_out = STK_BF16};

static gpu_context *context_of(stk_device *device)
{
    return ((gpu_device *)device)->context;
}

/* Measured once; in this process and every later one it is what was kept. */
static void a_convolution_takes_the_same_plan_each_time(void **state)
{
    (void)state;
    char folder[] = "/tmp/stoker-gpu-XXXXXX";
    gpu_library_convolution first = small, second = small, third = small;
    stk_device *device = open_device();
    char *before = enter_cache(folder);
    setenv("STOKER_PLAY_WAYS", "3", 1);
    begin_counting();
    expect_ok(cuda_plan_convolution(context_of(device), &first));
    assert_int_equal(n_asked, 1);
    const int n_measured = n_run;
    assert_true(n_measured >= 2 * 4);
    expect_ok(cuda_plan_convolution(context_of(device), &second));
    assert_ptr_equal(first.plan, second.plan);
    assert_int_equal(n_asked, 1);
    const size_t scratch = first.scratch_bytes;
    stk_device_close(device);
    device = open_device();
    expect_ok(cuda_plan_convolution(context_of(device), &third));
    assert_int_equal(n_asked, 1);
    assert_int_equal(n_run, n_measured);
    assert_int_equal(n_read, 1);
    assert_int_equal(third.scratch_bytes, scratch);
    end_counting();
    unsetenv("STOKER_PLAY_WAYS");
    leave_cache(folder, before);
    stk_device_close(device);
}

/* Then nothing is measured, since another run could find another one. */
static void where_nothing_is_kept_it_is_the_first(void **state)
{
    (void)state;
    gpu_library_convolution what = small;
    stk_device *device = open_device();
    char *before = getenv("STOKER_CACHE") ? strdup(getenv("STOKER_CACHE")) : NULL;
    setenv("STOKER_CACHE", "/proc/no-such-folder", 1);
    setenv("STOKER_PLAY_WAYS", "3", 1);
    expect_ok(cuda_plan_convolution(context_of(device), &what));
    assert_int_equal(what.scratch_bytes, 0); /* of the played library's first */
    unsetenv("STOKER_PLAY_WAYS");
    if (before)
        setenv("STOKER_CACHE", before, 1);
    else
        unsetenv("STOKER_CACHE");
    free(before);
    stk_device_close(device);
}

/* What is kept and of no use is chosen anew, as after a new version of the library. */
static void what_the_library_does_not_read_is_chosen_again(void **state)
{
    (void)state;
    cuda_dnn dnn;
    cuda_dnn_plan plan;
    stk_device *device = open_device();
    expect_ok(cuda_dnn_of(context_of(device), &dnn));
    assert_false(cuda_dnn_read_plan(&dnn, "{\"cudnnVersion\":1}", 19, &plan));
    stk_device_close(device);
}

static void what_the_library_does_not_make_is_ours(void **state)
{
    (void)state;
    stk_device *device = open_device();
    gpu_library_convolution of_ints = small, relu_alone = small;
    of_ints.dtype = of_ints.dtype_out = STK_I32;
    relu_alone.dtype = relu_alone.dtype_out = STK_F32;
    relu_alone.relu = 1;
    assert_int_equal(cuda_plan_convolution(context_of(device), &of_ints), STK_UNSUPPORTED);
    begin_counting();
    assert_int_equal(cuda_plan_convolution(context_of(device), &relu_alone), STK_UNSUPPORTED);
    const int n = n_asked;
    assert_int_equal(cuda_plan_convolution(context_of(device), &relu_alone), STK_UNSUPPORTED);
    assert_int_equal(n_asked, n); /* It is not asked twice. */
    end_counting();
    stk_device_close(device);
}

/* The played library's second engine is one of tensor cores, and computes so. */
static void tf32_is_taken_where_it_is_wanted(void **state)
{
    (void)state;
    stk_device *device = open_device();
    gpu_library_convolution exact = small, rounded = small;
    cuda_dnn dnn;
    expect_ok(cuda_dnn_of(context_of(device), &dnn));
    exact.dtype = exact.dtype_out = rounded.dtype = rounded.dtype_out = STK_F32;
    rounded.tf32 = 1;
    for (int i = 0; i < 2; i++) {
        cuda_descriptors graph = {0}, list = {0};
        cudnn_descriptor config[CUDA_MOST_PROPOSED];
        const gpu_library_convolution *what = i ? &rounded : &exact;
        cudnn_descriptor described = cuda_dnn_describe(&dnn, what, &graph);
        assert_int_equal(cuda_dnn_ask(&dnn, described, what, CUDNN_HEUR_MODE_A, &list, config), 1 + i);
        cuda_dnn_free(&list);
        cuda_dnn_free(&graph);
    }
    stk_device_close(device);
}

/* On several threads, each with a handle; then none is asked for again. */
static void what_is_expected_is_planned_together(void **state)
{
    enum { N = 12 };
    (void)state;
    char folder[] = "/tmp/stoker-gpu-XXXXXX";
    char *before = enter_cache(folder);
    setenv("STOKER_PLAY_WAYS", "3", 1);
    for (int run = 0; run < 2; run++) { /* measured, then kept */
        stk_device *device = open_device();
        gpu_library_convolution what[N];
        for (int i = 0; i < N; i++) {
            what[i] = small;
            what[i].n_images = 1 + i / 2; /* each twice */
            expect_ok(cuda_expect_convolution(context_of(device), &what[i]));
        }
        expect_ok(cuda_plan_expected(context_of(device), NULL));
        begin_counting();
        for (int i = 0; i < N; i++)
            expect_ok(cuda_plan_convolution(context_of(device), &what[i]));
        assert_int_equal(n_asked + n_read + n_run, 0);
        for (int i = 0; i < N; i++)
            assert_int_equal(what[i].plan == what[i / 2 * 2].plan, 1);
        end_counting();
        stk_device_close(device);
    }
    unsetenv("STOKER_PLAY_WAYS");
    leave_cache(folder, before);
}

/* And what was expected is forgotten: a later call plans its own alone. */
static void planning_stops_when_it_is_told_to(void **state)
{
    (void)state;
    const int stop = 1;
    stk_device *device = open_device();
    gpu_library_convolution what = small, other = small;
    other.n_images = 3;
    expect_ok(cuda_expect_convolution(context_of(device), &what));
    expect_ok(cuda_expect_convolution(context_of(device), &other));
    assert_int_equal(cuda_plan_expected(context_of(device), &stop), STK_INTERRUPTED);
    begin_counting();
    expect_ok(cuda_plan_convolution(context_of(device), &what));
    assert_true(n_asked <= 1);
    end_counting();
    stk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolution_takes_the_same_plan_each_time),
        cmocka_unit_test(where_nothing_is_kept_it_is_the_first),
        cmocka_unit_test(what_the_library_does_not_read_is_chosen_again),
        cmocka_unit_test(what_the_library_does_not_make_is_ours),
        cmocka_unit_test(what_is_expected_is_planned_together),
        cmocka_unit_test(planning_stops_when_it_is_told_to),
        cmocka_unit_test(tf32_is_taken_where_it_is_wanted),
    };
    cuda_library library;
    size_t version;
    take_played_gpu();
    if (!has_device()) return 77;
    if (cuda_load_convolutions(&library, &version) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
