/* See convolution.h: the plans of a program's convolutions. A plan may be of kernels that the library compiles first,
 * which takes seconds, of a plan that was kept as well: so they are made on all cores, each thread with a handle of its
 * own. On the chip they are measured one after the other. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "device/gpu/cuda/convolution.h"
#include "device/gpu/cuda/ways.h"

typedef struct planner {
    gpu_context *context;
    const volatile int *stop;
    cuda_dnn_choice *choice;
    int n;
    atomic_int next, n_threads; /* the choice to begin; threads that have begun */
} planner;

static cuda_convolution *find(const gpu_context *context, const gpu_library_convolution *what)
{
    cuda_convolution *c = context->convolutions;
    while (c && memcmp(&c->what, what, sizeof(*what)) != 0)
        c = c->next;
    return c;
}

stk_status cuda_expect_convolution(gpu_context *context, const gpu_library_convolution *what)
{
    if (!cuda_has_types(what->dtype, what->dtype_out) || find(context, what)) return STK_OK;
    cuda_convolution *c = calloc(1, sizeof(*c));
    if (!c) return stk_fail_memory(sizeof(*c));
    c->what = *what;
    c->next = context->convolutions;
    context->convolutions = c;
    return STK_OK;
}

/* Those that have no plan: after a failure they are not expected any more. */
static void forget(gpu_context *context)
{
    for (cuda_convolution **at = &context->convolutions; *at;) {
        cuda_convolution *c = *at;
        if (c->is_planned) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        free(c);
    }
}

/* Of one thread. */
static void begin_choices(void *arg)
{
    planner *p = arg;
    gpu_context *context = p->context;
    const int thread = atomic_fetch_add(&p->n_threads, 1);
    const cuda_dnn dnn = {.handle = thread ? context->more_handles[thread - 1] : context->convolution_library,
                          .stop = p->stop};
    const stk_status status = cuda_enter(context);
    for (int i; !cuda_dnn_is_stopped(&dnn) && (i = atomic_fetch_add(&p->next, 1)) < p->n;) {
        cuda_dnn_choice *c = &p->choice[i];
        c->status = status;
        if (status == STK_OK) cuda_dnn_begin_choice(context, &dnn, c);
    }
}

/* This thread takes part; others that cannot be started are not missed. */
static void begin_all(planner *p)
{
    stk_thread thread[CUDA_MOST_HANDLES + 1] = {0};
    const int n_cores = stk_n_cores(), n = cuda_dnn_more(p->context, p->n < n_cores ? p->n : n_cores);
    for (int i = 1; i < n; i++)
        (void)!stk_thread_start(&thread[i], "stk-plan", false, begin_choices, p);
    begin_choices(p);
    for (int i = 1; i < n; i++)
        stk_thread_join(&thread[i]);
}

static int list_expected(const gpu_context *context, cuda_dnn_choice *out)
{
    int n = 0;
    for (cuda_convolution *c = context->convolutions; c; c = c->next) {
        if (c->is_planned) continue;
        if (out) out[n].of = c;
        n++;
    }
    return n;
}

stk_status cuda_plan_expected(gpu_context *context, const volatile int *stop)
{
    cuda_dnn dnn;
    planner p = {.context = context, .stop = stop, .n = list_expected(context, NULL)};
    if (p.n == 0) return STK_OK;
    stk_status status = cuda_dnn_of(context, &dnn);
    if (status == STK_UNSUPPORTED) {
        forget(context);
        return STK_OK;
    }
    STK_TRY(status);
    STK_TRY(cuda_enter(context));
    p.choice = calloc((size_t)p.n, sizeof(*p.choice));
    if (!p.choice) STK_TRY(stk_fail_memory((size_t)p.n * sizeof(*p.choice)));
    (void)list_expected(context, p.choice);
    dnn.stop = stop;
    begin_all(&p);
    for (int i = 0; i < p.n; i++) {
        if (cuda_dnn_is_stopped(&dnn)) STK_TRY(stk_fail(STK_INTERRUPTED, "stopped while convolutions were planned"));
        STK_TRY(cuda_dnn_choose(context, &dnn, &p.choice[i]));
    }
done:
    for (int i = 0; i < p.n && p.choice; i++)
        cuda_dnn_end_choice(&p.choice[i]);
    free(p.choice);
    forget(context);
    return status;
}

stk_status cuda_plan_convolution(gpu_context *context, gpu_library_convolution *what)
{
    cuda_dnn dnn;
    if (!cuda_has_types(what->dtype, what->dtype_out)) return STK_UNSUPPORTED;
    STK_RETURN_IF_ERROR(cuda_dnn_of(context, &dnn));
    STK_RETURN_IF_ERROR(cuda_expect_convolution(context, what));
    STK_RETURN_IF_ERROR(cuda_plan_expected(context, NULL));
    const cuda_convolution *c = find(context, what);
    if (!c->plan.plan) return STK_UNSUPPORTED;
    what->plan = c;
    what->scratch_bytes = c->plan.workspace_bytes ? c->plan.workspace_bytes + CUDA_DNN_WORKSPACE_GRAIN : 0;
    return STK_OK;
}
