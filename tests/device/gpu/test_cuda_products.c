/* Products by cuBLASLt on the device 'cuda': which way is taken, on the played GPU (tests/device/play) or on what
 * STOKER_CUDA, STOKER_NVRTC and STOKER_CUBLASLT name. Their values are test_op_values'. */
#define DEVICE "cuda"

#include "device/gpu/cuda/product.h"
#include "device/gpu/expect.h"

#include <stdio.h>

static int n_asked, n_multiplied;
static int (*real_ask)(cublaslt_handle, cublaslt_operation, cublaslt_layout, cublaslt_layout, cublaslt_layout,
                       cublaslt_layout, cublaslt_preference, int, cublaslt_result *, int *);
static int (*real_multiply)(cublaslt_handle, cublaslt_operation, const void *, const void *, cublaslt_layout,
                            const void *, cublaslt_layout, const void *, const void *, cublaslt_layout, void *,
                            cublaslt_layout, const cublaslt_way *, void *, size_t, cu_stream);

/* The first way three times: told apart by the workspace that they say they want. */
static int propose_three(cublaslt_handle handle, cublaslt_operation operation, cublaslt_layout a, cublaslt_layout b,
                         cublaslt_layout c, cublaslt_layout d, cublaslt_preference preference, int n_wanted,
                         cublaslt_result *out, int *n)
{
    int code = real_ask(handle, operation, a, b, c, d, preference, n_wanted, out, n);
    n_asked++;
    assert_true(code == 0 && *n >= 1 && n_wanted >= 3);
    for (int i = 1; i < 3; i++) {
        out[i] = out[0];
        out[i].workspace_bytes += (size_t)(1000 * i);
    }
    *n = 3;
    return 0;
}

static int count_product(cublaslt_handle handle, cublaslt_operation operation, const void *alpha, const void *a,
                         cublaslt_layout al, const void *b, cublaslt_layout bl, const void *beta, const void *c,
                         cublaslt_layout cl, void *d, cublaslt_layout dl, const cublaslt_way *way, void *workspace,
                         size_t bytes, cu_stream stream)
{
    n_multiplied++;
    assert_true((uintptr_t)workspace % 256 == 0);
    return real_multiply(handle, operation, alpha, a, al, b, bl, beta, c, cl, d, dl, way, workspace, bytes, stream);
}

static const gpu_library_product small_product = {.n_batch = 2,
                                                  .m = 20,
                                                  .n = 30,
                                                  .k = 40,
                                                  .lda = 40,
                                                  .ldb = 30,
                                                  .ldc = 30,
                                                  .a_batch = 800,
                                                  .b_batch = 1200,
                                                  .c_batch = 600,
                                                  .dtype = STK_BF16,
                                                  .dtype_c = STK_BF16,
                                                  .align_a = 64,
                                                  .align_b = 64,
                                                  .align_c = 64};

/* Measured once; kept for every later process; the library's first where nothing can be kept. */
static void a_product_takes_the_same_way_each_time(void **state)
{
    (void)state;
    char folder[] = "/tmp/stoker-gpu-XXXXXX";
    gpu_library_product first = small_product, second = small_product, third = small_product;
    stk_device *device = open_device();
    gpu_context *context = ((gpu_device *)device)->context;
    char *before = enter_cache(folder);
    real_ask = cublaslt.cublasLtMatmulAlgoGetHeuristic;
    real_multiply = cublaslt.cublasLtMatmul;
    cublaslt.cublasLtMatmulAlgoGetHeuristic = propose_three;
    cublaslt.cublasLtMatmul = count_product;
    expect_ok(cuda_plan_product(context, &first));
    assert_int_equal(n_asked, 1);
    assert_int_equal(n_multiplied, 3 * 4);
    expect_ok(cuda_plan_product(context, &second));
    assert_int_equal(n_asked, 1);
    assert_memory_equal(&first, &second, sizeof(first));
    setenv("STOKER_CACHE", "/proc/no-such-folder", 1);
    expect_ok(cuda_plan_product(context, &third));
    assert_int_equal(n_asked, 2);
    assert_true(third.scratch_bytes == 0 || third.scratch_bytes % 1000 == CUDA_WORKSPACE_GRAIN);
    cublaslt.cublasLtMatmulAlgoGetHeuristic = real_ask;
    cublaslt.cublasLtMatmul = real_multiply;
    leave_cache(folder, before);
    stk_device_close(device);
}

/* What the library does not know is not asked of it. */
static void other_types_are_ours(void **state)
{
    (void)state;
    stk_device *device = open_device();
    gpu_context *context = ((gpu_device *)device)->context;
    gpu_library_product of_ints = small_product, mixed = small_product;
    of_ints.dtype = STK_I32;
    mixed.dtype_c = STK_F16;
    assert_int_equal(cuda_plan_product(context, &of_ints), STK_UNSUPPORTED);
    assert_int_equal(cuda_plan_product(context, &mixed), STK_UNSUPPORTED);
    stk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_takes_the_same_way_each_time),
        cmocka_unit_test(other_types_are_ours),
    };
    cuda_library library;
    size_t version;
    take_played_gpu();
    if (!has_device()) return 77;
    if (cuda_load_products(&library, &version) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
