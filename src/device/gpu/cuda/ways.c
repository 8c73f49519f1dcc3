/* See ways.h. */
#include "device/gpu/cuda/ways.h"

#include "base/error.h"

enum { N_TIMED = 3 };

/* Milliseconds of N_TIMED runs, after one that loads the kernel. */
static stk_status time_way(gpu_context *context, int i, cuda_run_way run, void *user, cu_event begin, cu_event end,
                           float *out)
{
    for (int k = 0; k <= N_TIMED; k++) {
        if (k == 1) STK_RETURN_IF_ERROR(cuda_check(cu.cuEventRecord(begin, context->stream), "cuEventRecord"));
        STK_RETURN_IF_ERROR(run(user, i, context->stream));
    }
    STK_RETURN_IF_ERROR(cuda_check(cu.cuEventRecord(end, context->stream), "cuEventRecord"));
    STK_RETURN_IF_ERROR(cuda_wait_event(context, end));
    return cuda_check(cu.cuEventElapsedTime(out, begin, end), "cuEventElapsedTime");
}

stk_status cuda_measure_ways(gpu_context *context, int n, cuda_run_way run, void *user, int *best)
{
    stk_status status = STK_OK;
    cu_event begin = NULL, end = NULL;
    float least = 0, taken = 0;
    STK_TRY(cuda_check(cu.cuEventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate"));
    STK_TRY(cuda_check(cu.cuEventCreate(&end, CU_EVENT_DEFAULT), "cuEventCreate"));
    for (int i = 0; i < n; i++) {
        STK_TRY(time_way(context, i, run, user, begin, end, &taken));
        if (i > 0 && !(taken < 0.97f * least)) continue;
        least = taken;
        *best = i;
    }
done:
    if (begin && !context->hangs) cu.cuEventDestroy(begin);
    if (end && !context->hangs) cu.cuEventDestroy(end);
    return status;
}

bool cuda_has_types(int32_t dtype, int32_t dtype_out)
{
    if (dtype != STK_F32 && dtype != STK_BF16 && dtype != STK_F16) return false;
    return dtype_out == STK_F32 || dtype_out == dtype;
}
