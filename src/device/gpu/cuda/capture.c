/* A program: a list of launches with their arguments, recorded as a CUDA graph, which one call launches. They go on a
 * stream that captures, so that calls of libraries, which take a stream, fit into the same graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/cuda/convolution.h"
#include "device/gpu/cuda/product.h"

/* No graph is made of so few, as of an op that is timed alone: making one costs more than it saves. */
enum { FEW_LAUNCHES = 8 };

void cuda_release(stk_capture *base)
{
    cuda_capture *capture = (cuda_capture *)base;
    gpu_context *context = capture->context;
    if (context->launched == capture) context->launched = NULL;
    if (!context->hangs && cuda_enter(context) == STK_OK) {
        if (capture->graph) cu.cuGraphExecDestroy(capture->graph);
        if (capture->begin) cu.cuEventDestroy(capture->begin);
        if (capture->end) cu.cuEventDestroy(capture->end);
    }
    for (int i = 0; i < capture->n_launches; i++) {
        if (capture->launch[i].product) cuda_close_product(capture->launch[i].product);
        free(capture->launch[i].product);
    }
    free(capture->launch);
    free(capture->argument);
    free(capture->values);
    free(capture->was_launched);
    free(capture);
}

/* --- launches, which keep their arguments --- */

static stk_status open_product(gpu_context *context, const gpu_bound_launch *from, cuda_launch *to)
{
    cublaslt_handle handle;
    cuda_product *product = calloc(1, sizeof(*product));
    if (!product) return stk_fail_memory(sizeof(*product));
    snprintf(to->name, sizeof(to->name), "%s", from->kernel);
    stk_status status = cuda_product_handle(context, &handle);
    if (status == STK_OK) status = cuda_open_product(handle, from->product, product);
    if (status == STK_OK)
        to->product = product;
    else
        free(product);
    return status;
}

static stk_status find_convolution(const gpu_bound_launch *from, cuda_launch *to)
{
    snprintf(to->name, sizeof(to->name), "%s", from->kernel);
    to->convolution = from->convolution->plan;
    return STK_OK;
}

/* Looked at before anything is captured: a driver that loads kernels when they are first wanted does it here. */
static stk_status find_function(const gpu_bound_launch *from, cuda_launch *to)
{
    int most = 0;
    const uint32_t wanted = from->group[0] * from->group[1] * from->group[2];
    snprintf(to->name, sizeof(to->name), "%s", from->kernel);
    memcpy(to->n_groups, from->n_groups, sizeof(to->n_groups));
    memcpy(to->group, from->group, sizeof(to->group));
    stk_status status =
        cuda_check(cu.cuModuleGetFunction(&to->function, from->module->module, from->kernel), "cuModuleGetFunction");
    if (status == STK_OK)
        status = cuda_check(cu.cuFuncGetAttribute(&most, CU_FUNCTION_MOST_GROUP, to->function), "cuFuncGetAttribute");
    if (status == STK_OK && wanted > (uint32_t)most)
        status = stk_fail(STK_INTERNAL, "groups of %u work-items, and its registers suffice for %d", wanted, most);
    return status == STK_OK ? status : stk_fail_prefix(status, "kernel '%s': ", from->kernel);
}

/* Room for all arguments and their values. */
static stk_status make_room(cuda_capture *capture, const gpu_bound_launch *launches, int n)
{
    size_t n_arguments = 1, n_bytes = 1;
    for (int i = 0; i < n; i++) {
        n_arguments += (size_t)launches[i].n_arguments;
        for (int j = 0; j < launches[i].n_arguments; j++)
            n_bytes += (launches[i].argument[j].bytes + 15) / 16 * 16 + 16;
    }
    capture->launch = calloc((size_t)n + 1, sizeof(*capture->launch));
    capture->argument = calloc(n_arguments, sizeof(*capture->argument));
    capture->values = malloc(n_bytes);
    capture->was_launched = calloc(1, sizeof(*capture->was_launched));
    if (!capture->launch || !capture->argument || !capture->values || !capture->was_launched)
        return stk_fail_memory(n_bytes);
    return STK_OK;
}

static void keep_arguments(const gpu_bound_launch *from, cuda_launch *to, void ***argument, char **value)
{
    to->argument = *argument;
    for (int i = 0; i < from->n_arguments; i++) {
        const gpu_argument *a = &from->argument[i];
        const size_t bytes = a->bytes ? a->bytes : sizeof(a->address);
        memcpy(*value, a->bytes ? a->value : &a->address, bytes);
        *(*argument)++ = *value;
        *value += (bytes + 15) / 16 * 16;
    }
}

static stk_status keep_launches(cuda_capture *capture, const gpu_bound_launch *launches, int n)
{
    STK_RETURN_IF_ERROR(make_room(capture, launches, n));
    void **argument = capture->argument;
    char *value = capture->values;
    for (int i = 0; i < n; i++) {
        cuda_launch *to = &capture->launch[i];
        STK_RETURN_IF_ERROR(launches[i].convolution ? find_convolution(&launches[i], to)
                            : launches[i].product   ? open_product(capture->context, &launches[i], to)
                                                    : find_function(&launches[i], to));
        keep_arguments(&launches[i], &capture->launch[i], &argument, &value);
        capture->n_launches++;
    }
    return STK_OK;
}

static void *address_of(const cuda_launch *l, int i)
{
    return *(void **)l->argument[i];
}

static stk_status launch_product(const cuda_launch *l, cu_stream stream)
{
    const cuda_product_memory at = {.a = address_of(l, GPU_PRODUCT_A),
                                    .b = address_of(l, GPU_PRODUCT_B),
                                    .c = address_of(l, GPU_PRODUCT_C),
                                    .bias = address_of(l, GPU_PRODUCT_BIAS),
                                    .onto = address_of(l, GPU_PRODUCT_ONTO),
                                    .scratch = address_of(l, GPU_PRODUCT_SCRATCH)};
    return cuda_run_product(l->product, &at, stream);
}

static stk_status launch_convolution(const cuda_launch *l, cu_stream stream)
{
    const cuda_convolution_memory at = {
        .in = {address_of(l, GPU_CONVOLUTION_IN_0), address_of(l, GPU_CONVOLUTION_IN_1)},
        .out = address_of(l, GPU_CONVOLUTION_OUT),
        .bias = address_of(l, GPU_CONVOLUTION_BIAS),
        .scratch = address_of(l, GPU_CONVOLUTION_SCRATCH)};
    return cuda_run_convolution(&l->convolution->what, &l->convolution->plan, &at, stream);
}

static stk_status launch_one(const gpu_context *context, const cuda_launch *l, cu_stream stream)
{
    if (l->product) return launch_product(l, stream);
    if (l->convolution) return launch_convolution(l, stream);
    int code = cu.cuLaunchKernel(l->function, l->n_groups[0], l->n_groups[1], l->n_groups[2], l->group[0], l->group[1],
                                 l->group[2], 0, stream, l->argument, NULL);
    return cuda_check_work(context, code, "cuLaunchKernel");
}

/* --- the graph --- */

/* A library may load its kernels and take memory when they are first wanted, which only a relaxed capture lets it. */
static int capture_mode(const cuda_capture *capture)
{
    for (int i = 0; i < capture->n_launches; i++)
        if (capture->launch[i].product || capture->launch[i].convolution) return CU_CAPTURE_RELAXED;
    return CU_CAPTURE_THREAD_LOCAL;
}

/* What failed while it was recorded is more worth telling than that the recording is of no use. */
static stk_status record_graph(const cuda_capture *capture, cu_graph *graph)
{
    cu_stream stream = capture->context->stream;
    stk_status status = cuda_check(cu.cuStreamBeginCapture(stream, capture_mode(capture)), "cuStreamBeginCapture");
    if (status != STK_OK) return status;
    for (int i = 0; i < capture->n_launches && status == STK_OK; i++) {
        capture->context->i_launched = i;
        status = launch_one(capture->context, &capture->launch[i], stream);
    }
    int code = cu.cuStreamEndCapture(stream, graph);
    return status != STK_OK ? status : cuda_check(code, "cuStreamEndCapture");
}

/* The chip gets it here, so that memory which is missing for it is missed before the first step. */
static stk_status make_graph(cuda_capture *capture)
{
    gpu_context *context = capture->context;
    cu_graph graph = NULL;
    const cuda_capture *launched = context->launched;
    context->launched = capture; /* for errors */
    stk_status status = record_graph(capture, &graph);
    context->launched = launched;
    context->i_launched = -1;
    if (status == STK_OK)
        status = cuda_check(cu.cuGraphInstantiateWithFlags(&capture->graph, graph, 0), "cuGraphInstantiateWithFlags");
    if (graph) cu.cuGraphDestroy(graph);
    if (status == STK_OK) status = cuda_check(cu.cuGraphUpload(capture->graph, context->stream), "cuGraphUpload");
    return status == STK_OK ? cuda_wait_stream(context, context->stream) : status;
}

stk_status cuda_make_capture(gpu_context *context, const gpu_bound_launch *launches, int n, stk_capture **out)
{
    stk_status status = STK_OK;
    cuda_capture *capture = calloc(1, sizeof(*capture));
    if (!capture) return stk_fail_memory(sizeof(*capture));
    capture->head.driver = &cuda_driver;
    capture->context = context;
    STK_TRY(cuda_enter(context));
    STK_TRY(keep_launches(capture, launches, n));
    STK_TRY(cuda_check(cu.cuEventCreate(&capture->begin, CU_EVENT_DEFAULT), "cuEventCreate"));
    STK_TRY(cuda_check(cu.cuEventCreate(&capture->end, CU_EVENT_DEFAULT), "cuEventCreate"));
    if (context->has_graphs && n > FEW_LAUNCHES) STK_TRY(make_graph(capture));
    *out = (stk_capture *)capture;
    capture = NULL;
done:
    if (capture) cuda_release((stk_capture *)capture);
    return status;
}

/* --- launching --- */

/* With STOKER_CUDA_GRAPHS=0 each kernel is waited for, so that what fails or hangs has a name. */
static stk_status launch_all(const cuda_capture *capture, cu_stream stream)
{
    gpu_context *context = capture->context;
    for (int i = 0; i < capture->n_launches; i++) {
        context->i_launched = context->has_graphs ? -1 : i;
        STK_RETURN_IF_ERROR(launch_one(context, &capture->launch[i], stream));
        if (!context->has_graphs) STK_RETURN_IF_ERROR(cuda_wait_stream(context, stream));
    }
    if (!context->has_graphs) context->launched = NULL; /* What fails later is none of these. */
    return STK_OK;
}

stk_status cuda_launch_capture(stk_queue *queue, const stk_capture *from)
{
    const cuda_capture *capture = (const cuda_capture *)from;
    gpu_context *context = capture->context;
    cu_stream stream = cuda_stream_of(queue);
    STK_RETURN_IF_ERROR(cuda_enter(context));
    STK_RETURN_IF_ERROR(cuda_check_work(context, cu.cuEventRecord(capture->begin, stream), "cuEventRecord"));
    context->launched = capture;
    context->i_launched = -1;
    if (capture->graph)
        STK_RETURN_IF_ERROR(cuda_check_work(context, cu.cuGraphLaunch(capture->graph, stream), "cuGraphLaunch"));
    else
        STK_RETURN_IF_ERROR(launch_all(capture, stream));
    *capture->was_launched = true;
    return cuda_check_work(context, cu.cuEventRecord(capture->end, stream), "cuEventRecord");
}

int64_t cuda_took_ns(const stk_capture *from)
{
    const cuda_capture *capture = (const cuda_capture *)from;
    float milliseconds = 0;
    if (!*capture->was_launched || cuda_enter(capture->context) != STK_OK ||
        cu.cuEventElapsedTime(&milliseconds, capture->begin, capture->end) != CU_SUCCESS)
        return -1;
    return (int64_t)((double)milliseconds * 1e6);
}

int cuda_count_calls(const stk_capture *from)
{
    const cuda_capture *capture = (const cuda_capture *)from;
    return capture->graph ? 1 : capture->n_launches;
}
