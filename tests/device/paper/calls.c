/* See calls.h. */
#include "device/paper/calls.h"

#include <stdlib.h>

#include "base/error.h"
#include "harness/harness.h"

typedef struct caller {
    stk_device *device;
    paper_tally *tally;
} caller;

static stk_status ask_for_kernel(void *user, const case_run *run)
{
    caller *c = user;
    stk_kernel kernel;
    stk_status status = c->device->class->kernel(c->device, &run->call, &kernel);
    if (status == STK_OK) {
        c->tally->n_calls++;
        stk_kernel_free(&kernel);
    }
    c->tally->n_refused += status == STK_UNSUPPORTED;
    return status == STK_UNSUPPORTED ? STK_OK : status;
}

static stk_status launch(void *user, const case_run *run)
{
    caller *c = user;
    void *out[CASE_MOST_OUT] = {0};
    stk_status status = case_call(run, c->device, CASE_APART, out, NULL);
    for (int i = 0; i < CASE_MOST_OUT; i++)
        free(out[i]);
    if (status == STK_UNSUPPORTED) return STK_OK;
    return status == STK_OK ? status : stk_fail_prefix(status, "%s: ", case_text(run));
}

stk_status paper_build_cases(stk_device *device, paper_tally *out)
{
    caller c = {device, out};
    *out = (paper_tally){0};
    STK_RETURN_IF_ERROR(harness_each_call(ask_for_kernel, &c));
    STK_RETURN_IF_ERROR(paper_build(device));
    return harness_each_call(launch, &c);
}
