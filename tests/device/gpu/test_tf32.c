/* When a product is made in TF32: only where its op says so, and never otherwise. What cuBLASLt is told needs no
 * library, since its table is played; what the ops tell a driver is seen on the device 'opencl', whose driver here has
 * one function more.
 */
#define DEVICE "opencl"

#include <stdio.h>

#include "device/gpu/cuda/product.h"
#include "device/gpu/expect.h"

/* --- what cuBLASLt is told --- */

static int compute_type;

static int note_compute(cublaslt_operation *out, int compute, int scale_type)
{
    assert_int_equal(scale_type, CUBLASLT_F32);
    compute_type = compute;
    *out = (cublaslt_operation)&compute_type;
    return 0;
}

static int drop_operation(cublaslt_operation operation)
{
    (void)operation;
    return 0;
}

static int set_operation(cublaslt_operation operation, int what, const void *value, size_t bytes)
{
    (void)operation, (void)what, (void)value, (void)bytes;
    return 0;
}

static int make_layout(cublaslt_layout *out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    (void)type, (void)rows, (void)columns, (void)ld;
    *out = (cublaslt_layout)&compute_type;
    return 0;
}

static int drop_layout(cublaslt_layout layout)
{
    (void)layout;
    return 0;
}

static void the_library_is_told_so(void **state)
{
    (void)state;
    const cublaslt_symbols before = cublaslt;
    cuda_product p;
    gpu_library_product what = {.n_batch = 1, .m = 2, .n = 3, .k = 4, .dtype = STK_F32, .dtype_c = STK_F32};
    cublaslt.cublasLtMatmulDescCreate = note_compute;
    cublaslt.cublasLtMatmulDescDestroy = drop_operation;
    cublaslt.cublasLtMatmulDescSetAttribute = set_operation;
    cublaslt.cublasLtMatrixLayoutCreate = make_layout;
    cublaslt.cublasLtMatrixLayoutDestroy = drop_layout;
    expect_ok(cuda_open_product(NULL, &what, &p));
    cuda_close_product(&p);
    assert_int_equal(compute_type, 68); /* CUBLAS_COMPUTE_32F */
    what.tf32 = 1;
    expect_ok(cuda_open_product(NULL, &what, &p));
    cuda_close_product(&p);
    assert_int_equal(compute_type, 77); /* CUBLAS_COMPUTE_32F_FAST_TF32 */
    cublaslt = before;
}

/* --- what a driver is told --- */

static gpu_library_product asked;

static stk_status note_product(gpu_context *context, gpu_library_product *product)
{
    (void)context;
    asked = *product;
    return STK_UNSUPPORTED;
}

static int told(stk_device *device, stk_dtype dtype, int32_t tf32)
{
    stk_attrs attrs = stk_attrs_zero();
    const stk_tensor_desc in[2] = {stk_desc_make(dtype, STK_SHAPE(20, 30)), stk_desc_make(dtype, STK_SHAPE(30, 40))};
    stk_tensor_desc out = stk_desc_make(dtype, STK_SHAPE(20, 40));
    stk_kernel kernel;
    attrs.tf32 = tf32;
    asked = (gpu_library_product){.tf32 = -1};
    expect_ok(device->class->kernel(device, &(stk_op_call){STK_OP_matmul, &attrs, 2, 1, in, &out}, &kernel));
    stk_kernel_free(&kernel);
    return asked.tf32;
}

static void a_driver_is_told_where_the_op_says_so(void **state)
{
    (void)state;
    stk_device *device;
    if (stk_device_open(DEVICE, NULL, &device) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        skip();
    }
    gpu_device *gpu = (gpu_device *)device;
    assert_false(device->caps->tf32);
    gpu_driver driver = *gpu->driver;
    driver.plan_product = note_product;
    gpu->driver = &driver;
    assert_int_equal(told(device, STK_F32, 0), 0);
    assert_int_equal(told(device, STK_F32, 1), 1);
    assert_int_equal(told(device, STK_BF16, 1), 0);
    stk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_is_told_so),
        cmocka_unit_test(a_driver_is_told_where_the_op_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
