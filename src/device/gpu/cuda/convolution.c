/* See convolution.h: the library, its handle, a plan run. */
#include "device/gpu/cuda/convolution.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"

cudnn_symbols cudnn;

/* Its number is its own, and not CUDA's. */
static const cuda_library_kind kind = {.name = "cuDNN",
                                       .what = "NVIDIA's convolutions",
                                       .variable = "STOKER_CUDNN",
                                       .soname = "libcudnn.so.9",
                                       .package = "nvidia-cudnn-cu13",
                                       .package_12 = "nvidia-cudnn-cu12",
                                       .version = "cudnnGetVersion"};

static stk_once once = STK_ONCE_INIT;
static stk_status loaded;
static char complaint[1024];
static cuda_library library;

static stk_status load(void)
{
    const char *own = getenv(kind.variable);
    if (own && !strcmp(own, "0")) return stk_fail(STK_UNSUPPORTED, "not used (STOKER_CUDNN=0)");
    STK_RETURN_IF_ERROR(cuda_find_library(&kind, cuda_driver_major(), &library));
#define X(result, symbol, parameters)                                                                                  \
    *(void **)&cudnn.symbol = dlsym(library.handle, #symbol);                                                          \
    if (!cudnn.symbol) return stk_fail(STK_NO_DEVICE, "'%s' has no %s", library.path, #symbol);
    CUDNN_SYMBOL_LIST(X)
#undef X
    library.major = (int)(cudnn.cudnnGetVersion() / 10000);
    const int cuda_major = (int)(cudnn.cudnnGetCudartVersion() / 1000);
    if (library.major != 9)
        return stk_fail(STK_NO_DEVICE, "'%s' is cuDNN %d, and 9 is wanted", library.path, library.major);
    if (cuda_major > cuda_driver_major())
        return stk_fail(STK_NO_DEVICE, "'%s' is for CUDA %d, and the driver is of CUDA %d", library.path, cuda_major,
                        cuda_driver_major());
    return STK_OK;
}

static void load_once(void)
{
    const char *own = getenv(kind.variable);
    loaded = load();
    if (loaded == STK_OK) return;
    snprintf(complaint, sizeof(complaint), "%s", stk_error_text());
    /* What is asked for is not replaced by something else; what is not here is not missed. */
    if (!own || !*own) loaded = STK_UNSUPPORTED;
}

stk_status cuda_load_convolutions(cuda_library *out, size_t *version)
{
    stk_once_run(&once, load_once);
    if (loaded != STK_OK) return stk_fail(loaded, "%s", complaint);
    *out = library;
    *version = cudnn.cudnnGetVersion();
    return STK_OK;
}

stk_status cuda_dnn_check(int code, const char *call)
{
    char more[512] = "";
    const int thousands = code / 1000 * 1000;
    if (!code) return STK_OK;
    /* A description that one version takes may be a bad one for another: our own kernels take all. */
    if (thousands == CUDNN_STATUS_NOT_SUPPORTED || thousands == CUDNN_STATUS_BAD_PARAM) return STK_UNSUPPORTED;
    cudnn.cudnnGetLastErrorString(more, sizeof(more));
    return stk_fail(STK_DEVICE, "%s: %s (%d)%s%s; STOKER_CUDNN=0 does without", call, cudnn.cudnnGetErrorString(code),
                    code, *more ? ": " : "", more);
}

stk_status cuda_dnn_of(gpu_context *context, cuda_dnn *out)
{
    cuda_library found;
    size_t version;
    if (!context->convolution_library) {
        STK_RETURN_IF_ERROR(cuda_load_convolutions(&found, &version));
        STK_RETURN_IF_ERROR(cuda_enter(context));
        stk_status status = cuda_dnn_check(cudnn.cudnnCreate(&context->convolution_library), "cudnnCreate");
        if (status == STK_UNSUPPORTED) /* as for a chip that is too old for it */
            return stk_fail(status, "'%s' is not for this chip", found.path);
        if (status != STK_OK) return stk_fail_prefix(status, "'%s': ", found.path);
    }
    *out = (cuda_dnn){.handle = context->convolution_library};
    return STK_OK;
}

int cuda_dnn_more(gpu_context *context, int n)
{
    for (int i = 0; i < n - 1; i++) {
        if (i == CUDA_MOST_HANDLES) return i + 1;
        if (!context->more_handles[i] && cudnn.cudnnCreate(&context->more_handles[i])) {
            context->more_handles[i] = NULL;
            return i + 1;
        }
    }
    return n;
}

void cuda_close_convolutions(gpu_context *context)
{
    while (context->convolutions) {
        cuda_convolution *c = context->convolutions;
        context->convolutions = c->next;
        cuda_dnn_free_plan(&c->plan);
        free(c);
    }
    for (int i = 0; i < CUDA_MOST_HANDLES; i++)
        if (context->more_handles[i]) cudnn.cudnnDestroy(context->more_handles[i]);
    memset(context->more_handles, 0, sizeof(context->more_handles));
    if (context->convolution_library) cudnn.cudnnDestroy(context->convolution_library);
    context->convolution_library = NULL;
}

/* --- running --- */

/* The op's inputs come in this order; the third is what it writes. */
static void name_arrays(const gpu_library_convolution *what, int64_t number[3])
{
    const char *order = what->pass == GPU_CONVOLUTION_FORWARD     ? "xwy"
                        : what->pass == GPU_CONVOLUTION_GRAD_DATA ? "ywx"
                                                                  : "xyw";
    for (int i = 0; i < 3; i++)
        number[i] = order[i];
}

cudnn_descriptor cuda_dnn_place(const gpu_library_convolution *what, const cuda_dnn_plan *plan,
                                const cuda_convolution_memory *at, cuda_descriptors *list)
{
    int64_t number[4] = {0, 0, 0, CUDA_TENSOR_BIAS};
    void *address[4] = {at->in[0], at->in[1], at->out, at->bias};
    const uintptr_t begin = (uintptr_t)at->scratch, grain = CUDA_DNN_WORKSPACE_GRAIN;
    void *workspace = plan->workspace_bytes ? (void *)((begin + grain - 1) / grain * grain) : NULL;
    const int64_t n = what->has_bias ? 4 : 3;
    name_arrays(what, number);
    cudnn_descriptor memory = cuda_dnn_make(list, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    cuda_dnn_set(list, memory, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, number);
    cuda_dnn_set(list, memory, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, address);
    cuda_dnn_set(list, memory, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    cuda_dnn_finish(list, memory);
    return memory;
}

/* What is said of memory is read while the work is enqueued, and not later. */
stk_status cuda_run_convolution(const gpu_library_convolution *what, const cuda_dnn_plan *plan,
                                const cuda_convolution_memory *at, cu_stream stream)
{
    cuda_descriptors list = {0};
    cudnn_descriptor memory = cuda_dnn_place(what, plan, at, &list);
    if (!list.code) list.code = cudnn.cudnnSetStream(plan->handle, stream);
    if (!list.code) list.code = cudnn.cudnnBackendExecute(plan->handle, plan->plan, memory);
    const int code = list.code;
    cuda_dnn_free(&list);
    stk_status status = cuda_dnn_check(code, "cudnnBackendExecute");
    if (status != STK_UNSUPPORTED) return status;
    return stk_fail(STK_DEVICE, "cudnnBackendExecute: %s (%d)", cudnn.cudnnGetErrorString(code), code);
}
