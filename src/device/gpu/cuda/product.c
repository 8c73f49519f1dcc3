/* See product.h: the library, and a product described to it and run. */
#include "device/gpu/cuda/product.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"

cublaslt_symbols cublaslt;

static stk_once once = STK_ONCE_INIT;
static stk_status loaded;
static char complaint[512];
static cuda_library library;

static stk_status load(void)
{
    const char *own = getenv(cuda_cublaslt.variable);
    if (own && !strcmp(own, "0")) return stk_fail(STK_UNSUPPORTED, "not used (STOKER_CUBLASLT=0)");
    STK_RETURN_IF_ERROR(cuda_find_library(&cuda_cublaslt, cuda_driver_major(), &library));
#define X(result, symbol, parameters)                                                                                  \
    *(void **)&cublaslt.symbol = dlsym(library.handle, #symbol);                                                       \
    if (!cublaslt.symbol) return stk_fail(STK_NO_DEVICE, "'%s' has no %s", library.path, #symbol);
    CUBLASLT_SYMBOL_LIST(X)
#undef X
    library.major = (int)(cublaslt.cublasLtGetVersion() / 10000);
    if (library.major > cuda_driver_major())
        return stk_fail(STK_NO_DEVICE, "'%s' is cuBLASLt %d, and the driver is of CUDA %d", library.path, library.major,
                        cuda_driver_major());
    return STK_OK;
}

static void load_once(void)
{
    const char *own = getenv(cuda_cublaslt.variable);
    loaded = load();
    if (loaded == STK_OK) return;
    snprintf(complaint, sizeof(complaint), "%s", stk_error_text());
    /* What is asked for is not replaced by something else; what is not here is not missed. */
    if (!own || !*own) loaded = STK_UNSUPPORTED;
}

stk_status cuda_load_products(cuda_library *out, size_t *version)
{
    stk_once_run(&once, load_once);
    if (loaded != STK_OK) return stk_fail(loaded, "%s", complaint);
    *out = library;
    *version = cublaslt.cublasLtGetVersion();
    return STK_OK;
}

stk_status cuda_product_handle(gpu_context *context, cublaslt_handle *out)
{
    cuda_library found;
    size_t version;
    if (!context->products) {
        STK_RETURN_IF_ERROR(cuda_load_products(&found, &version));
        STK_RETURN_IF_ERROR(cuda_enter(context));
        int code = cublaslt.cublasLtCreate(&context->products);
        if (code) return stk_fail(STK_DEVICE, "cublasLtCreate: error %d of cuBLASLt ('%s')", code, found.path);
    }
    *out = context->products;
    return STK_OK;
}

/* --- a product --- */

static int type_of(int32_t dtype)
{
    return dtype == STK_F32 ? CUBLASLT_F32 : dtype == STK_F16 ? CUBLASLT_F16 : CUBLASLT_BF16;
}

/* Rows and columns as we have them; the library's are the other way round. */
static int make_layout(cublaslt_layout *out, int32_t dtype, int64_t rows, int64_t columns, int64_t ld, int64_t n_batch,
                       int64_t stride)
{
    const int32_t n = (int32_t)n_batch;
    int code = cublaslt.cublasLtMatrixLayoutCreate(out, type_of(dtype), (uint64_t)columns, (uint64_t)rows, ld);
    if (code || n_batch == 1) return code;
    code = cublaslt.cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_BATCH_COUNT, &n, sizeof(n));
    return code ? code
                : cublaslt.cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_BATCH_STRIDE, &stride, sizeof(stride));
}

static int set_operation(cublaslt_operation operation, int what, int32_t value)
{
    return cublaslt.cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof(value));
}

/* What is transposed for us is so for the library: both see each matrix the other way round. */
static int describe(const gpu_library_product *w, cuda_product *p)
{
    const int compute = w->tf32 ? CUBLASLT_COMPUTE_TF32 : CUBLASLT_COMPUTE_F32;
    int code = cublaslt.cublasLtMatmulDescCreate(&p->operation, compute, CUBLASLT_F32);
    if (!code) code = set_operation(p->operation, CUBLASLT_TRANSPOSE_A, w->transpose_b);
    if (!code) code = set_operation(p->operation, CUBLASLT_TRANSPOSE_B, w->transpose_a);
    if (!code && w->has_bias) code = set_operation(p->operation, CUBLASLT_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    if (!code)
        code = make_layout(&p->a, w->dtype, w->transpose_a ? w->k : w->m, w->transpose_a ? w->m : w->k, w->lda,
                           w->n_batch, w->a_batch);
    if (!code)
        code = make_layout(&p->b, w->dtype, w->transpose_b ? w->n : w->k, w->transpose_b ? w->k : w->n, w->ldb,
                           w->n_batch, w->b_batch);
    return code ? code : make_layout(&p->c, w->dtype_c, w->m, w->n, w->ldc, w->n_batch, w->c_batch);
}

void cuda_close_product(cuda_product *p)
{
    if (p->operation) cublaslt.cublasLtMatmulDescDestroy(p->operation);
    if (p->a) cublaslt.cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) cublaslt.cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) cublaslt.cublasLtMatrixLayoutDestroy(p->c);
    *p = (cuda_product){0};
}

stk_status cuda_open_product(cublaslt_handle handle, const gpu_library_product *what, cuda_product *out)
{
    *out = (cuda_product){.what = *what, .handle = handle};
    int code = describe(what, out);
    if (!code) return STK_OK;
    cuda_close_product(out);
    return stk_fail(STK_DEVICE, "a product of %lld x %lld x %lld: error %d of cuBLASLt", (long long)what->m,
                    (long long)what->n, (long long)what->k, code);
}

stk_status cuda_run_product(const cuda_product *p, const cuda_product_memory *at, cu_stream stream)
{
    const gpu_library_product *w = &p->what;
    const float one = 1, beta = w->has_onto ? 1 : 0;
    int code = 0;
    cublaslt_way way;
    memcpy(&way, w->way, sizeof(way));
    const uintptr_t begin = (uintptr_t)at->scratch, grain = CUDA_WORKSPACE_GRAIN;
    void *workspace = w->scratch_bytes ? (void *)((begin + grain - 1) / grain * grain) : NULL;
    if (w->has_bias)
        code =
            cublaslt.cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_BIAS_POINTER, &at->bias, sizeof(at->bias));
    if (!code)
        code = cublaslt.cublasLtMatmul(p->handle, p->operation, &one, at->b, p->b, at->a, p->a, &beta,
                                       w->has_onto ? at->onto : at->c, p->c, at->c, p->c, &way, workspace,
                                       w->scratch_bytes ? w->scratch_bytes - grain : 0, stream);
    if (!code) return STK_OK;
    return stk_fail(STK_DEVICE, "a product of %lld x %lld x %lld: cublasLtMatmul: error %d of cuBLASLt",
                    (long long)w->m, (long long)w->n, (long long)w->k, code);
}
