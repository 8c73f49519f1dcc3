/* The tables: of the driver, and of the device 'cuda'. */
#include "device/gpu/cuda/convolution.h"
#include "device/gpu/cuda/product.h"

const gpu_driver cuda_driver = {
    .name = "cuda",
    .dialect = "dialect_cuda.h",
    .load = cuda_load,
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .memory = cuda_tell_memory,
    .describe = cuda_describe,
    .compile = cuda_compile,
    .restore = cuda_restore,
    .unload = cuda_unload,
    .library = "cublaslt",
    .plan_product = cuda_plan_product,
    .convolution_library = "cudnn",
    .plan_convolution = cuda_plan_convolution,
    .expect_convolution = cuda_expect_convolution,
    .plan_expected = cuda_plan_expected,
    .open_queue = cuda_open_queue,
    .close_queue = cuda_close_queue,
    .copy = cuda_copy,
    .reach = cuda_reach,
    .finish = cuda_finish,
    .open_event = cuda_open_event,
    .close_event = cuda_close_event,
    .record = cuda_record,
    .wait = cuda_wait_for,
    .sync = cuda_sync,
    .capture = cuda_make_capture,
    .release = cuda_release,
    .launch = cuda_launch_capture,
    .took_ns = cuda_took_ns,
    .count_calls = cuda_count_calls,
};

static stk_status open_device(const stk_device_config *config, stk_device **out)
{
    return gpu_open(&cuda_driver, &stk_device_class_cuda, config, out);
}

const stk_device_class stk_device_class_cuda = {
    .name = "cuda",
    .about = "NVIDIA's GPUs",
    .count = cuda_count,
    .best_gpu = cuda_best_gpu,
    .find = cuda_find_chip,
    .probe = cuda_load,
    .open = open_device,
    .close = gpu_close,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .alloc_host = gpu_alloc_host,
    .free_host = gpu_free_host,
    .kernel = gpu_find_kernel,
    .expect = gpu_expect_kernel,
    .prepare = gpu_prepare_kernels,
    .queues = &gpu_queues,
    .memory = gpu_memory,
    .chip = gpu_tell_chip,
    .describe = gpu_describe,
    .list_more = gpu_list_more,
};
