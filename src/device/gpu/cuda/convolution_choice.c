/* Which of cuDNN's plans a convolution takes. The library proposes some; the fastest on this chip is measured once, and
 * kept on disk, as the library writes it, by shape, version and chip: a run that goes on, and each run after it, takes
 * the same. Where nothing can be kept, it is the library's first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/gpu/cuda/convolution.h"
#include "device/gpu/cuda/ways.h"
#include "device/kept.h"

/* --- what was chosen before --- */

static bool name_choice(const gpu_context *context, const gpu_library_convolution *what, char *out, size_t n)
{
    cuda_library library;
    size_t version;
    if (cuda_load_convolutions(&library, &version) != STK_OK) return false;
    uint64_t key = stk_hash64(what, sizeof(*what), version);
    key = stk_hash64(context->chip->name, strlen(context->chip->name), key);
    return (size_t)snprintf(out, n, "convolution-%016llx", (unsigned long long)key) < n;
}

/* A file: what was asked, and the plan. */
static bool read_choice(const cuda_dnn *dnn, const char *name, const gpu_library_convolution *asked, cuda_dnn_plan *out)
{
    void *bytes;
    size_t n;
    if (!stk_kept_read("gpu", name, &bytes, &n, NULL)) return false;
    bool fits = n > sizeof(*asked) && !memcmp(bytes, asked, sizeof(*asked)) &&
                cuda_dnn_read_plan(dnn, (const char *)bytes + sizeof(*asked), n - sizeof(*asked), out);
    free(bytes);
    return fits;
}

static bool write_choice(const char *name, const gpu_library_convolution *asked, const cuda_dnn_plan *plan)
{
    size_t n = 0;
    char *text = cuda_dnn_write_plan(plan, &n), *all = text ? malloc(sizeof(*asked) + n) : NULL;
    if (all) {
        memcpy(all, asked, sizeof(*asked));
        memcpy(all + sizeof(*asked), text, n);
    }
    const bool kept = all && stk_kept_write("gpu", name, all, sizeof(*asked) + n);
    free(all);
    free(text);
    return kept;
}

/* --- measuring --- */

static size_t count_bytes(int n_sides, int64_t outer, int64_t channels, const int64_t *sides, int32_t dtype)
{
    int64_t n = outer * channels;
    for (int i = 0; i < n_sides; i++)
        n *= sides[i];
    return (size_t)n * stk_dtype_bytes((stk_dtype)dtype);
}

static stk_status take_memory(gpu_context *context, const gpu_library_convolution *w, size_t scratch,
                              cuda_convolution_memory *at)
{
    const bool forward = w->pass == GPU_CONVOLUTION_FORWARD, weight = w->pass == GPU_CONVOLUTION_GRAD_WEIGHT;
    const int64_t group = w->x_channels / w->groups;
    const int32_t in = w->dtype, out = w->dtype_out;
    const size_t x = count_bytes(w->n_sides, w->n_images, w->x_channels, w->x_side, !forward && !weight ? out : in);
    const size_t y = count_bytes(w->n_sides, w->n_images, w->y_channels, w->y_side, forward ? out : in);
    const size_t taps = count_bytes(w->n_sides, w->y_channels, group, w->taps, weight ? out : in);
    const size_t bias = (size_t)(forward ? w->y_channels : w->x_channels) * sizeof(float);
    STK_RETURN_IF_ERROR(cuda_alloc(context, forward || weight ? x : y, &at->in[0]));
    STK_RETURN_IF_ERROR(cuda_alloc(context, weight ? y : taps, &at->in[1]));
    STK_RETURN_IF_ERROR(cuda_alloc(context, forward ? y : weight ? taps : x, &at->out));
    if (w->has_bias) STK_RETURN_IF_ERROR(cuda_alloc(context, bias, &at->bias));
    return scratch ? cuda_alloc(context, scratch + CUDA_DNN_WORKSPACE_GRAIN, &at->scratch) : STK_OK;
}

static void give_memory(gpu_context *context, const cuda_convolution_memory *at)
{
    void *const all[] = {at->in[0], at->in[1], at->out, at->bias, at->scratch};
    for (int i = 0; i < 5; i++)
        if (all[i]) cuda_free(context, all[i]);
}

typedef struct trial {
    const gpu_library_convolution *what;
    const cuda_dnn_plan *plan;
    cuda_convolution_memory at;
} trial;

static stk_status run_plan(void *user, int i, cu_stream stream)
{
    const trial *t = user;
    return cuda_run_convolution(t->what, &t->plan[i], &t->at, stream);
}

static stk_status measure(gpu_context *context, const gpu_library_convolution *what, const cuda_dnn_plan *plans, int n,
                          int *best)
{
    trial t = {.what = what, .plan = plans};
    size_t scratch = 0;
    for (int i = 0; i < n; i++)
        if (plans[i].workspace_bytes > scratch) scratch = plans[i].workspace_bytes;
    stk_status status = take_memory(context, what, scratch, &t.at);
    if (status == STK_OK) status = cuda_measure_ways(context, n, run_plan, &t, best);
    give_memory(context, &t.at);
    return status;
}

/* --- choosing --- */

static stk_status propose(const cuda_dnn *dnn, cuda_dnn_choice *c)
{
    cuda_descriptors list = {0};
    stk_status status = STK_OK;
    cudnn_descriptor graph = cuda_dnn_describe(dnn, &c->of->what, &list);
    STK_TRY(cuda_dnn_check(list.code, "cuDNN's description of a convolution"));
    c->n = cuda_dnn_propose(dnn, graph, &c->of->what, CUDA_MOST_PLANS, c->plan);
    if (c->n == 0) status = STK_UNSUPPORTED;
done:
    cuda_dnn_free(&list);
    return status;
}

void cuda_dnn_begin_choice(const gpu_context *context, const cuda_dnn *dnn, cuda_dnn_choice *c)
{
    if (!name_choice(context, &c->of->what, c->name, sizeof(c->name))) c->name[0] = '\0';
    c->was_kept = c->name[0] && read_choice(dnn, c->name, &c->of->what, &c->plan[0]);
    c->n = c->was_kept;
    if (!c->was_kept) c->status = propose(dnn, c);
    if (c->status != STK_OK) snprintf(c->complaint, sizeof(c->complaint), "%s", stk_error_text());
}

stk_status cuda_dnn_choose(gpu_context *context, const cuda_dnn *dnn, cuda_dnn_choice *c)
{
    cuda_convolution *of = c->of;
    int best = 0;
    stk_status status = STK_OK;
    if (c->status != STK_OK && c->status != STK_UNSUPPORTED) return stk_fail(c->status, "%s", c->complaint);
    of->is_planned = true;
    if (c->status != STK_OK) return STK_OK;
    if (c->n > 1 && c->name[0]) status = measure(context, &of->what, c->plan, c->n, &best);
    if (status == STK_NO_MEMORY) status = STK_OK; /* The first then. */
    of->is_planned = status == STK_OK;
    STK_RETURN_IF_ERROR(status);
    /* Another process may have been faster; and what is not kept would be another one the next time. */
    if (!c->was_kept && c->name[0] && read_choice(dnn, c->name, &of->what, &of->plan)) return STK_OK;
    if (!c->was_kept && (!c->name[0] || !write_choice(c->name, &of->what, &c->plan[best]))) best = 0;
    of->plan = c->plan[best];
    c->plan[best] = (cuda_dnn_plan){0};
    return STK_OK;
}

void cuda_dnn_end_choice(cuda_dnn_choice *c)
{
    for (int i = 0; i < c->n; i++)
        cuda_dnn_free_plan(&c->plan[i]);
}
