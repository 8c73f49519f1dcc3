/* What CUDA's errors mean, where they came from, and waiting. A failure of the chip's work shows in whatever call comes
 * next, so that the program that was last launched is named with it. */
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/gpu/cuda/cuda.h"

static const struct {
    int code;
    stk_status status;
    const char *text;
} known[] = {
    {CU_OUT_OF_MEMORY, STK_NO_MEMORY, "the device's memory does not suffice"},
    {34, STK_NO_DEVICE, "this libcuda is a stub for linking, and no driver; the driver's folder must come before it"},
    {46, STK_DEVICE, "the device is busy or unavailable: another process may have it for itself (nvidia-smi -c)"},
    {100, STK_NO_DEVICE,
     "the driver sees no GPU: none is here, CUDA_VISIBLE_DEVICES hides it, or this container has none (--gpus all)"},
    {101, STK_NO_DEVICE, "there is no such device"},
    {209, STK_DEVICE, "the program is made for another chip"},
    {214, STK_DEVICE, "the device's memory has an error that ECC could not correct; it has to be reset"},
    {220, STK_DEVICE, "an NVLink error that could not be corrected"},
    {222, STK_DEVICE, "the program is made for a newer driver"},
    {700, STK_DEVICE, "a kernel read or wrote memory that is not there"},
    {701, STK_DEVICE, "a kernel needs more registers or memory of its group than there are"},
    {702, STK_DEVICE, "a kernel ran for longer than this system lets one (a GPU with a display)"},
    {716, STK_DEVICE, "a kernel read or wrote at an address that is not aligned"},
    {719, STK_DEVICE, "a kernel failed"},
    {802, STK_NO_DEVICE, "the system is not ready: nvidia-fabricmanager must run on machines with NVSwitch"},
    {803, STK_NO_DEVICE, "the driver's library and the kernel's module are of different versions: restart the machine"},
    {804, STK_NO_DEVICE, "this libcuda is for newer chips (cuda-compat): take the driver's own out of its way"},
    {999, STK_DEVICE, "unknown; the kernel's log may say more (dmesg, 'NVRM: Xid')"},
};

static const char *name_of(int code)
{
    const char *name = NULL;
    return cu.cuGetErrorName && cu.cuGetErrorName(code, &name) == CU_SUCCESS && name ? name : "CUDA_ERROR";
}

stk_status cuda_check(int code, const char *call)
{
    const char *text = NULL;
    if (code == CU_SUCCESS) return STK_OK;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == code)
            return stk_fail(known[i].status, "%s: %s (%s, %d)", call, known[i].text, name_of(code), code);
    if (!cu.cuGetErrorString || cu.cuGetErrorString(code, &text) != CU_SUCCESS || !text) text = "an error of CUDA";
    return stk_fail(STK_DEVICE, "%s: %s (%s, %d)", call, text, name_of(code), code);
}

/* "kernel 'x' (number 3 of 200)", or "a program of 200 kernels, from 'x' to 'y'; ...". */
static void tell_launched(const gpu_context *context, stk_text *out)
{
    const cuda_capture *c = context->launched;
    if (!c || c->n_launches == 0) {
        stk_text_add(out, "work of the device");
    } else if (context->i_launched >= 0 && context->i_launched < c->n_launches) {
        stk_text_add(out, "kernel '%s' (number %d of %d)", c->launch[context->i_launched].name, context->i_launched + 1,
                     c->n_launches);
    } else if (c->n_launches == 1) {
        stk_text_add(out, "kernel '%s'", c->launch[0].name);
    } else {
        stk_text_add(out, "a program of %d kernels, from '%s' to '%s'", c->n_launches, c->launch[0].name,
                     c->launch[c->n_launches - 1].name);
    }
}

static bool is_one_of_many(const gpu_context *context)
{
    return context->launched && context->launched->n_launches > 1 && context->i_launched < 0;
}

static const char one_by_one[] = "; which kernel it is shows with STOKER_CUDA_GRAPHS=0";

stk_status cuda_check_work(const gpu_context *context, int code, const char *call)
{
    if (code == CU_SUCCESS) return STK_OK;
    stk_text text = {0};
    stk_status status = cuda_check(code, call);
    stk_text_add(&text, "%s, in ", stk_error_text());
    tell_launched(context, &text);
    if (is_one_of_many(context)) stk_text_add(&text, "%s", one_by_one);
    stk_fail(status, "%s", stk_text_get(&text));
    stk_text_free(&text);
    return status;
}

/* --- waiting --- */

static stk_status fail_hanging(gpu_context *context)
{
    stk_text text = {0};
    tell_launched(context, &text);
    context->hangs = true;
    stk_status status = stk_fail(STK_DEVICE, "%s has not ended after %g s (STOKER_GPU_TIMEOUT)%s", stk_text_get(&text),
                                 context->wait_seconds, is_one_of_many(context) ? one_by_one : "");
    stk_text_free(&text);
    return status;
}

typedef int (*query)(void *what);

/* It looks again after a sixteenth of what has passed, at least every half millisecond: the driver's own waiting either
 * takes a core, or cannot be given up. */
static stk_status wait_until(gpu_context *context, query is_done, void *what, const char *call)
{
    const int64_t begun = stk_clock_ns(), most_ns = (int64_t)(context->wait_seconds * 1e9);
    int code;
    STK_RETURN_IF_ERROR(cuda_enter(context));
    while ((code = is_done(what)) == CU_NOT_READY) {
        const int64_t passed = stk_clock_ns() - begun;
        if (most_ns && passed > most_ns) return fail_hanging(context);
        int64_t pause_ns = passed / 16;
        pause_ns = pause_ns < 2000 ? 2000 : pause_ns > 500000 ? 500000 : pause_ns;
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    }
    return cuda_check_work(context, code, call);
}

static int query_event(void *event)
{
    return cu.cuEventQuery(event);
}

static int query_stream(void *stream)
{
    return cu.cuStreamQuery(stream);
}

stk_status cuda_wait_event(gpu_context *context, cu_event event)
{
    return wait_until(context, query_event, event, "cuEventQuery");
}

stk_status cuda_wait_stream(gpu_context *context, cu_stream stream)
{
    return wait_until(context, query_stream, stream, "cuStreamQuery");
}
