/* Waiting for the device: never for ever, and with the kernel's name where it is known. */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/gpu/opencl/opencl.h"

static cl_int status_of(cl_event event)
{
    cl_int status = CL_COMPLETE;
    cl_int code = cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    return code == CL_SUCCESS ? status : code;
}

/* The kernel that runs, or failed: the first of the list that is not done. */
static const opencl_launch *find_running(const opencl_capture *launched)
{
    for (int i = 0; launched && !launched->buffer && i < launched->n_launches; i++)
        if (launched->launch[i].done && status_of(launched->launch[i].done) != CL_COMPLETE) return &launched->launch[i];
    return NULL;
}

static stk_status fail_hanging(gpu_context *context)
{
    const opencl_capture *launched = context->launched;
    const opencl_launch *running = find_running(launched);
    context->hangs = true;
    if (running)
        return stk_fail(STK_DEVICE, "kernel '%s' (number %d of %d) has not ended after %g s (STOKER_GPU_TIMEOUT)",
                        running->name, (int)(running - launched->launch) + 1, launched->n_launches,
                        context->wait_seconds);
    return stk_fail(STK_DEVICE,
                    "a program of %d kernels has not ended after %g s (STOKER_GPU_TIMEOUT); which kernel it is shows "
                    "with STOKER_OPENCL_BUFFERS=0",
                    launched ? launched->n_launches : 0, context->wait_seconds);
}

static stk_status fail_work(const opencl_capture *launched, cl_int code)
{
    const opencl_launch *failed = find_running(launched);
    stk_status status = opencl_check(code, "work of the device");
    return failed ? stk_fail_prefix(status, "kernel '%s': ", failed->name) : status;
}

stk_status opencl_wait(gpu_context *context, cl_event mark)
{
    int64_t begun = stk_clock_ns(), pause_ns = 2000;
    const int64_t most_ns = (int64_t)(context->wait_seconds * 1e9);
    cl_int status;
    while ((status = status_of(mark)) > CL_COMPLETE) {
        if (most_ns && stk_clock_ns() - begun > most_ns) return fail_hanging(context);
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        if (pause_ns < 500000) pause_ns *= 2;
    }
    return status == CL_COMPLETE ? STK_OK : fail_work(context->launched, status);
}
