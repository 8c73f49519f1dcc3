/* What products are described by, compared with what NVIDIA's own cuBLASLt makes of it. It needs no GPU for that: what
 * it refuses, or takes for something else, is ours to mend. STOKER_REAL_CUBLASLT names it (./dev gpu-libraries). */
#define DEVICE "cuda"

#include "device/gpu/cuda/product.h"
#include "device/gpu/expect.h"

#include <dlfcn.h>
#include <stdio.h>

/* Of NVIDIA's headers: what is read back, and by what number. */
enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLUMNS = 3, LAYOUT_LD = 4 };

typedef int (*read_attribute)(void *of, int what, void *value, size_t bytes, size_t *written);

static void *library;

static void load(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
#define X(result, symbol, parameters)                                                                                  \
    *(void **)&cublaslt.symbol = dlsym(library, #symbol);                                                              \
    assert_non_null(cublaslt.symbol);
    CUBLASLT_SYMBOL_LIST(X)
#undef X
    print_message("cuBLASLt %zu\n", cublaslt.cublasLtGetVersion());
}

static void it_has_all_symbols(void **state)
{
    (void)state;
    load(getenv("STOKER_REAL_CUBLASLT"));
}

static read_attribute reader(const char *symbol)
{
    read_attribute read;
    *(void **)&read = dlsym(library, symbol);
    assert_non_null(read);
    return read;
}

static int64_t read_number(read_attribute read, void *of, int what, size_t bytes)
{
    int64_t value = 0;
    size_t written = 0;
    assert_int_equal(read(of, what, &value, bytes, &written), 0);
    assert_int_equal(written, bytes);
    return value;
}

/* Columns where ours are rows. */
static void expect_layout(cublaslt_layout layout, int type, int64_t rows, int64_t columns, int64_t ld, int64_t n_batch,
                          int64_t stride)
{
    read_attribute read = reader("cublasLtMatrixLayoutGetAttribute");
    assert_int_equal(read_number(read, layout, LAYOUT_TYPE, 4), type);
    assert_int_equal(read_number(read, layout, LAYOUT_ROWS, 8), columns);
    assert_int_equal(read_number(read, layout, LAYOUT_COLUMNS, 8), rows);
    assert_int_equal(read_number(read, layout, LAYOUT_LD, 8), ld);
    assert_int_equal(read_number(read, layout, CUBLASLT_BATCH_COUNT, 4), n_batch);
    if (n_batch > 1) assert_int_equal(read_number(read, layout, CUBLASLT_BATCH_STRIDE, 8), stride);
}

static void describes(gpu_library_product w, int type, int type_c)
{
    cuda_product p;
    read_attribute read = reader("cublasLtMatmulDescGetAttribute");
    expect_ok(cuda_open_product(NULL, &w, &p));
    assert_int_equal(read_number(read, p.operation, CUBLASLT_TRANSPOSE_A, 4), w.transpose_b);
    assert_int_equal(read_number(read, p.operation, CUBLASLT_TRANSPOSE_B, 4), w.transpose_a);
    assert_int_equal(read_number(read, p.operation, CUBLASLT_EPILOGUE, 4), w.has_bias ? CUBLASLT_EPILOGUE_BIAS : 1);
    expect_layout(p.a, type, w.transpose_a ? w.k : w.m, w.transpose_a ? w.m : w.k, w.lda, w.n_batch, w.a_batch);
    expect_layout(p.b, type, w.transpose_b ? w.n : w.k, w.transpose_b ? w.k : w.n, w.ldb, w.n_batch, w.b_batch);
    expect_layout(p.c, type_c, w.m, w.n, w.ldc, w.n_batch, w.c_batch);
    cuda_close_product(&p);
}

static void products_are_described(void **state)
{
    (void)state;
    gpu_library_product w = {.n_batch = 1, .m = 1024, .n = 3072, .k = 768, .lda = 768, .ldb = 3072, .ldc = 3072};
    for (int i = 0; i < 16; i++) {
        w.transpose_a = i & 1;
        w.transpose_b = i >> 1 & 1;
        w.has_bias = i >> 2 & 1;
        w.n_batch = i >> 3 & 1 ? 12 : 1;
        w.lda = w.transpose_a ? w.m : w.k;
        w.ldb = w.transpose_b ? w.k : w.n;
        w.a_batch = w.m * w.k;
        w.b_batch = w.k * w.n;
        w.c_batch = w.m * w.n;
        w.dtype = w.dtype_c = STK_F32;
        describes(w, CUBLASLT_F32, CUBLASLT_F32);
        w.dtype = STK_BF16;
        describes(w, CUBLASLT_BF16, CUBLASLT_F32);
        w.dtype = w.dtype_c = STK_F16;
        describes(w, CUBLASLT_F16, CUBLASLT_F16);
    }
}

static void preferences_are_taken(void **state)
{
    (void)state;
    cublaslt_preference preference;
    const uint64_t workspace = 32 << 20;
    const uint32_t reductions = CUBLASLT_REDUCTION_IN_F32, alignment = 64;
    read_attribute read = reader("cublasLtMatmulPreferenceGetAttribute");
    assert_int_equal(cublaslt.cublasLtMatmulPreferenceCreate(&preference), 0);
    assert_int_equal(cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MOST_WORKSPACE, &workspace,
                                                                   sizeof(workspace)),
                     0);
    assert_int_equal(
        cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_REDUCTIONS, &reductions, sizeof(reductions)),
        0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_ALIGNMENT_A + i, &alignment,
                                                                       sizeof(alignment)),
                         0);
        assert_int_equal(read_number(read, preference, CUBLASLT_ALIGNMENT_A + i, 4), 64);
    }
    assert_int_equal(read_number(read, preference, CUBLASLT_MOST_WORKSPACE, 8), 32 << 20);
    cublaslt.cublasLtMatmulPreferenceDestroy(preference);
}

/* The numbers are the library's own: what it does not know is refused. */
static void what_is_unknown_is_refused(void **state)
{
    (void)state;
    const int32_t one = 1;
    cublaslt_operation operation;
    assert_int_equal(cublaslt.cublasLtMatmulDescCreate(&operation, CUBLASLT_COMPUTE_F32, CUBLASLT_F32), 0);
    assert_int_not_equal(cublaslt.cublasLtMatmulDescSetAttribute(operation, 999, &one, sizeof(one)), 0);
    cublaslt.cublasLtMatmulDescDestroy(operation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_all_symbols),
        cmocka_unit_test(products_are_described),
        cmocka_unit_test(preferences_are_taken),
        cmocka_unit_test(what_is_unknown_is_refused),
    };
    const char *path = getenv("STOKER_REAL_CUBLASLT");
    if (path && *path) return cmocka_run_group_tests(tests, NULL, NULL);
    printf("SKIP: STOKER_REAL_CUBLASLT names no libcublasLt (./dev gpu-libraries)\n");
    return 77;
}
