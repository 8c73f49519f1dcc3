/* See convolution.h: what cuDNN proposes for a graph, and which of that computes what our kernels do. An engine is one
 * of its ways to compute; notes on it say how its numbers come about. */
#include <stdlib.h>

#include "device/gpu/cuda/convolution.h"

enum { MOST_NOTES = 16, MOST_WORKSPACE_MIB = 128 };

/* Sums in no fixed order are refused, and narrower ones. So are FFT and Winograd: they take differences of neighbouring
 * pixels, by which rounding grows and what is infinite spreads. f32 is exact f32, and TF32 only where that is wanted.
 */
static bool is_forbidden(int note, const gpu_library_convolution *what)
{
    switch (note) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD: return true;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: return what->dtype == STK_F32 && !what->tf32;
    default: return false;
    }
}

/* An engine whose notes cannot be read is as good as forbidden. */
static bool is_allowed(cudnn_descriptor config, const gpu_library_convolution *what)
{
    cuda_descriptors list = {0};
    int note[MOST_NOTES];
    int64_t n = 0, n_notes = 0;
    cudnn_descriptor engine = cuda_dnn_make(&list, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!list.code)
        list.code = cudnn.cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                   1, &n, &engine);
    if (!list.code)
        list.code = cudnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                   MOST_NOTES, &n_notes, note);
    bool allowed = !list.code && n == 1 && n_notes <= MOST_NOTES;
    for (int64_t i = 0; allowed && i < n_notes; i++)
        allowed = !is_forbidden(note[i], what);
    cuda_dnn_free(&list);
    return allowed;
}

void cuda_dnn_free_plan(cuda_dnn_plan *plan)
{
    if (plan->plan) cudnn.cudnnBackendDestroyDescriptor(plan->plan);
    *plan = (cuda_dnn_plan){0};
}

/* Both ways to a plan end here. The list has nothing else in it. */
static bool finish_plan(const cuda_dnn *dnn, cuda_descriptors *list, cudnn_descriptor d, cuda_dnn_plan *out)
{
    int64_t n = 0, bytes = 0;
    cuda_dnn_finish(list, d);
    if (!list->code)
        list->code = cudnn.cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                                    &n, &bytes);
    if (list->code || bytes < 0 || bytes > (int64_t)MOST_WORKSPACE_MIB << 20) {
        cuda_dnn_free(list);
        return false;
    }
    *out = (cuda_dnn_plan){.plan = d, .handle = dnn->handle, .workspace_bytes = (size_t)bytes};
    return true;
}

static cudnn_descriptor begin_plan(const cuda_dnn *dnn, cuda_descriptors *list)
{
    cudnn_descriptor d = cuda_dnn_make(list, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (dnn->handle) cuda_dnn_set(list, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn->handle);
    if (dnn->chip)
        cuda_dnn_set(list, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &dnn->chip);
    return d;
}

/* False, too, where the library finds only here that it cannot. */
static bool make_plan(const cuda_dnn *dnn, cudnn_descriptor config, cuda_dnn_plan *out)
{
    cuda_descriptors list = {0};
    cudnn_descriptor d = begin_plan(dnn, &list);
    cuda_dnn_set(&list, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    return finish_plan(dnn, &list, d, out);
}

int cuda_dnn_ask(const cuda_dnn *dnn, cudnn_descriptor graph, const gpu_library_convolution *what, int mode,
                 cuda_descriptors *list, cudnn_descriptor config[CUDA_MOST_PROPOSED])
{
    int64_t n_proposed = 0;
    int n = 0;
    cudnn_descriptor ask = cuda_dnn_make(list, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cuda_dnn_set(list, ask, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    cuda_dnn_set(list, ask, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (dnn->chip)
        cuda_dnn_set(list, ask, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &dnn->chip);
    cuda_dnn_finish(list, ask);
    for (int i = 0; i < CUDA_MOST_PROPOSED; i++)
        config[i] = cuda_dnn_make(list, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!list->code)
        list->code = cudnn.cudnnBackendGetAttribute(ask, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                    CUDA_MOST_PROPOSED, &n_proposed, config);
    for (int64_t i = 0; !list->code && i < n_proposed && i < CUDA_MOST_PROPOSED; i++)
        if (is_allowed(config[i], what)) config[n++] = config[i];
    return n;
}

static int propose(const cuda_dnn *dnn, cudnn_descriptor graph, const gpu_library_convolution *what, int mode, int n,
                   cuda_dnn_plan *out)
{
    cuda_descriptors list = {0};
    cudnn_descriptor config[CUDA_MOST_PROPOSED];
    int n_plans = 0;
    const int n_allowed = cuda_dnn_ask(dnn, graph, what, mode, &list, config);
    for (int i = 0; i < n_allowed && n_plans < n && !cuda_dnn_is_stopped(dnn); i++)
        if (make_plan(dnn, config[i], &out[n_plans])) n_plans++;
    cuda_dnn_free(&list);
    return n_plans;
}

int cuda_dnn_propose(const cuda_dnn *dnn, cudnn_descriptor graph, const gpu_library_convolution *what, int n,
                     cuda_dnn_plan *out)
{
    int n_plans = propose(dnn, graph, what, CUDNN_HEUR_MODE_A, n, out);
    return n_plans || cuda_dnn_is_stopped(dnn) ? n_plans : propose(dnn, graph, what, CUDNN_HEUR_MODE_FALLBACK, n, out);
}

/* --- plans to keep --- */

char *cuda_dnn_write_plan(const cuda_dnn_plan *plan, size_t *n)
{
    const int what = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    int64_t bytes = 0;
    if (cudnn.cudnnBackendGetAttribute(plan->plan, what, CUDNN_TYPE_CHAR, 0, &bytes, NULL) || bytes <= 0) return NULL;
    char *text = malloc((size_t)bytes);
    if (text && cudnn.cudnnBackendGetAttribute(plan->plan, what, CUDNN_TYPE_CHAR, bytes, &bytes, text)) {
        free(text);
        return NULL;
    }
    *n = (size_t)bytes;
    return text;
}

bool cuda_dnn_read_plan(const cuda_dnn *dnn, const char *text, size_t n, cuda_dnn_plan *out)
{
    cuda_descriptors list = {0};
    cudnn_descriptor d = begin_plan(dnn, &list);
    cuda_dnn_set(&list, d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)n, text);
    return finish_plan(dnn, &list, d, out);
}
