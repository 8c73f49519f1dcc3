/* Which of cuBLASLt's ways a product takes. The library proposes some; the fastest on this chip is measured once, and
 * kept on disk by shape, version and chip: a run that goes on, and each run after it, takes the same. Where nothing can
 * be kept, it is the library's first. Ways whose sums are in no fixed order are not asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/gpu/cuda/product.h"
#include "device/gpu/cuda/ways.h"
#include "device/kept.h"

enum { MOST_WAYS = 4, WORKSPACE_MIB = 32 };

/* --- what was chosen before --- */

static bool name_choice(const gpu_context *context, const gpu_library_product *product, char *out, size_t n)
{
    cuda_library library;
    size_t version;
    if (cuda_load_products(&library, &version) != STK_OK) return false;
    uint64_t key = stk_hash64(product, sizeof(*product), version);
    key = stk_hash64(context->chip->name, strlen(context->chip->name), key);
    return (size_t)snprintf(out, n, "product-%016llx", (unsigned long long)key) < n;
}

/* `asked` has no choice in it yet: all but the choice must be the same. */
static bool read_choice(const char *name, gpu_library_product *asked)
{
    void *bytes;
    size_t n;
    gpu_library_product kept;
    if (!stk_kept_read("gpu", name, &bytes, &n, NULL)) return false;
    bool fits = n == sizeof(kept);
    if (fits) memcpy(&kept, bytes, n);
    fits = fits && !memcmp(&kept, asked, offsetof(gpu_library_product, way));
    free(bytes);
    if (fits) *asked = kept;
    return fits;
}

/* --- what the library proposes --- */

static int set_preferences(const gpu_library_product *w, cublaslt_preference preference)
{
    const uint64_t workspace = (uint64_t)WORKSPACE_MIB << 20;
    const uint32_t reductions = CUBLASLT_REDUCTION_IN_F32;
    const uint32_t alignments[4] = {(uint32_t)w->align_b, (uint32_t)w->align_a, (uint32_t)w->align_c,
                                    (uint32_t)w->align_c};
    int code = cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MOST_WORKSPACE, &workspace,
                                                             sizeof(workspace));
    if (!code)
        code = cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_REDUCTIONS, &reductions,
                                                             sizeof(reductions));
    for (int i = 0; i < 4 && !code; i++)
        code = cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_ALIGNMENT_A + i, &alignments[i],
                                                             sizeof(alignments[i]));
    return code;
}

/* How many; 0: the library has no way for this. */
static int list_ways(const cuda_product *p, cublaslt_result *out)
{
    cublaslt_preference preference = NULL;
    int n = 0, n_valid = 0;
    if (cublaslt.cublasLtMatmulPreferenceCreate(&preference)) return 0;
    if (!set_preferences(&p->what, preference) &&
        cublaslt.cublasLtMatmulAlgoGetHeuristic(p->handle, p->operation, p->b, p->a, p->c, p->c, preference, MOST_WAYS,
                                                out, &n))
        n = 0;
    cublaslt.cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < n; i++)
        if (!out[i].state) out[n_valid++] = out[i];
    return n_valid;
}

static void take_way(gpu_library_product *product, const cublaslt_result *way)
{
    memcpy(product->way, &way->way, sizeof(product->way));
    product->scratch_bytes = way->workspace_bytes ? way->workspace_bytes + CUDA_WORKSPACE_GRAIN : 0;
}

/* --- measuring --- */

/* Elements from the first to behind the last. */
static int64_t extent(int64_t n_batch, int64_t batch, int64_t rows, int64_t columns, int64_t ld)
{
    return (n_batch - 1) * batch + (rows - 1) * ld + columns;
}

static stk_status take_memory(gpu_context *context, const gpu_library_product *w, size_t scratch,
                              cuda_product_memory *at)
{
    const size_t bytes = stk_dtype_bytes((stk_dtype)w->dtype), bytes_c = stk_dtype_bytes((stk_dtype)w->dtype_c);
    const int64_t a = w->transpose_a ? extent(w->n_batch, w->a_batch, w->k, w->m, w->lda)
                                     : extent(w->n_batch, w->a_batch, w->m, w->k, w->lda);
    const int64_t b = w->transpose_b ? extent(w->n_batch, w->b_batch, w->n, w->k, w->ldb)
                                     : extent(w->n_batch, w->b_batch, w->k, w->n, w->ldb);
    const int64_t c = extent(w->n_batch, w->c_batch, w->m, w->n, w->ldc);
    STK_RETURN_IF_ERROR(cuda_alloc(context, (size_t)a * bytes, &at->a));
    STK_RETURN_IF_ERROR(cuda_alloc(context, (size_t)b * bytes, &at->b));
    STK_RETURN_IF_ERROR(cuda_alloc(context, (size_t)c * bytes_c, &at->c));
    at->onto = at->c;
    if (w->has_bias) STK_RETURN_IF_ERROR(cuda_alloc(context, (size_t)w->n * bytes_c, &at->bias));
    return scratch ? cuda_alloc(context, scratch, &at->scratch) : STK_OK;
}

static void give_memory(gpu_context *context, const cuda_product_memory *at)
{
    void *const all[] = {at->a, at->b, at->c, at->bias, at->scratch};
    for (int i = 0; i < 5; i++)
        if (all[i]) cuda_free(context, all[i]);
}

typedef struct trial {
    cuda_product *product;
    const cublaslt_result *way;
    cuda_product_memory at;
} trial;

static stk_status run_way(void *user, int i, cu_stream stream)
{
    const trial *t = user;
    take_way(&t->product->what, &t->way[i]);
    return cuda_run_product(t->product, &t->at, stream);
}

static stk_status measure(gpu_context *context, cuda_product *p, const cublaslt_result *ways, int n, int *best)
{
    trial t = {.product = p, .way = ways};
    size_t scratch = 0;
    for (int i = 0; i < n; i++)
        if (ways[i].workspace_bytes + CUDA_WORKSPACE_GRAIN > scratch)
            scratch = ways[i].workspace_bytes + CUDA_WORKSPACE_GRAIN;
    stk_status status = take_memory(context, &p->what, scratch, &t.at);
    if (status == STK_OK) status = cuda_measure_ways(context, n, run_way, &t, best);
    give_memory(context, &t.at);
    return status;
}

/* --- choosing --- */

stk_status cuda_plan_product(gpu_context *context, gpu_library_product *product)
{
    cublaslt_handle handle;
    cuda_product p;
    cublaslt_result ways[MOST_WAYS];
    char name[64];
    int best = 0;
    stk_status status = STK_OK;
    if (!cuda_has_types(product->dtype, product->dtype_c)) return STK_UNSUPPORTED;
    STK_RETURN_IF_ERROR(cuda_product_handle(context, &handle));
    const bool has_name = name_choice(context, product, name, sizeof(name));
    if (has_name && read_choice(name, product)) return STK_OK;
    STK_RETURN_IF_ERROR(cuda_enter(context));
    STK_RETURN_IF_ERROR(cuda_open_product(handle, product, &p));
    const int n = list_ways(&p, ways);
    if (n == 0) STK_TRY(STK_UNSUPPORTED);
    if (n > 1 && has_name) status = measure(context, &p, ways, n, &best);
    if (status == STK_NO_MEMORY) status = STK_OK; /* The first then. */
    STK_TRY(status);
    /* Another process may have been faster; and what is not kept would be another one the next time. */
    if (has_name && read_choice(name, product)) goto done;
    take_way(product, &ways[best]);
    if (!has_name || !stk_kept_write("gpu", name, product, sizeof(*product))) take_way(product, &ways[0]);
done:
    cuda_close_product(&p);
    return status;
}
