/* Convolutions by cuDNN, where it is here.
 *
 *   convolution.c         the library, its handle, a plan run
 *   convolution_graph.c   a convolution described to it: tensors, operations, their graph
 *   convolution_plans.c   the plans that it proposes, and those of them that compute what our kernels do
 *   convolution_choice.c  which one is taken, the same one each time
 *   convolution_ahead.c   those of a program, made together on all cores
 */
#ifndef STK_DEVICE_GPU_CUDA_CONVOLUTION_H
#define STK_DEVICE_GPU_CUDA_CONVOLUTION_H

#include "device/gpu/cuda/cuda.h"
#include "device/gpu/cuda/cudnn.h"

extern cudnn_symbols cudnn; /* set by cuda_load_convolutions */

/* Whose plans are wanted. */
typedef struct cuda_dnn {
    cudnn_handle handle;
    cudnn_descriptor chip;    /* where there is no handle: what a chip is that is not here, for tests; else NULL */
    const volatile int *stop; /* not 0: no more plans are wanted; NULL: they all are */
} cuda_dnn;

/* Descriptors that are made one after the other. The first failure stays, and nothing is done behind it. */
enum { CUDA_MOST_DESCRIPTORS = 40 };
typedef struct cuda_descriptors {
    cudnn_descriptor made[CUDA_MOST_DESCRIPTORS];
    int n, code;
} cuda_descriptors;

/* Numbers of a graph's tensors. */
enum { CUDA_TENSOR_X = 'x', CUDA_TENSOR_WEIGHT = 'w', CUDA_TENSOR_Y = 'y', CUDA_TENSOR_BIAS = 'b' };

/* A way to compute a graph, on the handle that it was made with. */
typedef struct cuda_dnn_plan {
    cudnn_descriptor plan;
    cudnn_handle handle;
    size_t workspace_bytes;
} cuda_dnn_plan;

/* One that the context has met, with its plan. */
typedef struct cuda_convolution {
    struct cuda_convolution *next;
    gpu_library_convolution what;
    bool is_planned;
    cuda_dnn_plan plan; /* of NULL: kernels of our own */
} cuda_convolution;

/* Where its arrays lie: the op's inputs and output, and scratch memory of scratch_bytes. */
typedef struct cuda_convolution_memory {
    void *in[2], *out, *bias, *scratch;
} cuda_convolution_memory;

enum { CUDA_DNN_WORKSPACE_GRAIN = 256 }; /* as for products */

/* --- convolution.c --- */
/* STK_OK, or why there is none; once. Its version is its number, 92801 of 9.28.1. */
stk_status cuda_load_convolutions(cuda_library *out, size_t *version);
/* The context's, which is made when it is first wanted. STK_UNSUPPORTED: there is none. */
stk_status cuda_dnn_of(gpu_context *context, cuda_dnn *out);
/* One more for each of n threads but the first, as far as there are so many: how many threads that makes. */
int cuda_dnn_more(gpu_context *context, int n);
static inline bool cuda_dnn_is_stopped(const cuda_dnn *dnn)
{
    return dnn->stop && *dnn->stop;
}
/* What the code means: STK_UNSUPPORTED, without a text, of what the library does not do. */
stk_status cuda_dnn_check(int code, const char *call);
/* Where a plan finds its arrays, in `list`. */
cudnn_descriptor cuda_dnn_place(const gpu_library_convolution *what, const cuda_dnn_plan *plan,
                                const cuda_convolution_memory *at, cuda_descriptors *list);
stk_status cuda_run_convolution(const gpu_library_convolution *what, const cuda_dnn_plan *plan,
                                const cuda_convolution_memory *at, cu_stream stream);
void cuda_close_convolutions(gpu_context *context);

/* --- convolution_graph.c --- */
cudnn_descriptor cuda_dnn_make(cuda_descriptors *list, int kind);
void cuda_dnn_set(cuda_descriptors *list, cudnn_descriptor d, int attribute, int type, int64_t n, const void *values);
void cuda_dnn_finish(cuda_descriptors *list, cudnn_descriptor d);
void cuda_dnn_free(cuda_descriptors *list);
/* The graph, in `list` with all that it is of; or NULL. */
cudnn_descriptor cuda_dnn_describe(const cuda_dnn *dnn, const gpu_library_convolution *what, cuda_descriptors *list);

/* --- convolution_plans.c --- */
/* Engines, with all settings, that the library proposes, its best first, without those whose numbers are not ours: how
 * many. They are of `list`. */
enum { CUDA_MOST_PROPOSED = 16 };
int cuda_dnn_ask(const cuda_dnn *dnn, cudnn_descriptor graph, const gpu_library_convolution *what, int mode,
                 cuda_descriptors *list, cudnn_descriptor config[CUDA_MOST_PROPOSED]);
/* Plans of them, at most n; how many. */
int cuda_dnn_propose(const cuda_dnn *dnn, cudnn_descriptor graph, const gpu_library_convolution *what, int n,
                     cuda_dnn_plan *out);
/* As text, which is the caller's to free(); NULL: this plan has none. */
char *cuda_dnn_write_plan(const cuda_dnn_plan *plan, size_t *n);
bool cuda_dnn_read_plan(const cuda_dnn *dnn, const char *text, size_t n, cuda_dnn_plan *out);
void cuda_dnn_free_plan(cuda_dnn_plan *plan);

/* --- convolution_choice.c --- */
/* A convolution whose plan is chosen. */
enum { CUDA_MOST_PLANS = 4 };
typedef struct cuda_dnn_choice {
    cuda_convolution *of;
    char name[64]; /* of what is kept; "": it is not */
    bool was_kept; /* and is the only one of the plans */
    cuda_dnn_plan plan[CUDA_MOST_PLANS];
    int n;
    stk_status status; /* STK_UNSUPPORTED: there is no plan */
    char complaint[512];
} cuda_dnn_choice;
/* The plans that there are for c->of: on any thread, with a handle of its own. */
void cuda_dnn_begin_choice(const gpu_context *context, const cuda_dnn *dnn, cuda_dnn_choice *c);
/* The fastest of them, on the chip. */
stk_status cuda_dnn_choose(gpu_context *context, const cuda_dnn *dnn, cuda_dnn_choice *c);
void cuda_dnn_end_choice(cuda_dnn_choice *c);

/* --- convolution_ahead.c: what driver.h has under these names --- */
stk_status cuda_plan_convolution(gpu_context *context, gpu_library_convolution *convolution);
stk_status cuda_expect_convolution(gpu_context *context, const gpu_library_convolution *convolution);
stk_status cuda_plan_expected(gpu_context *context, const volatile int *stop);

#endif
