#include "train/nan_guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain_number.h"
#include "graph/graph.h"
#include "optim/average.h"
#include "train/trainer_state.h"

static bool skips(const stk_trainer *trainer)
{
    return trainer->config.on_nan == STK_ON_NAN_SKIP;
}

bool stk_nan_counts(const stk_trainer *trainer, double loss)
{
    return isfinite(loss) || (!skips(trainer) && trainer->loss_scale.kind != STK_LOSS_SCALE_DYNAMIC);
}

/* --- which parameters --- */

static bool is_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* The trained tensor of that name: "w.raw" where "w" is its mean. */
static const stk_named_tensor *find_tensor(const stk_named_tensor *tensors, size_t n_tensors, const char *name)
{
    const stk_named_tensor *found = NULL;
    size_t n = strlen(name);
    for (size_t i = 0; i < n_tensors; i++) {
        const char *end = tensors[i].name + (strncmp(tensors[i].name, name, n) ? 0 : n);
        if (end == tensors[i].name) continue;
        if (!strcmp(end, STK_AVERAGE_RAW)) return &tensors[i];
        if (!*end) found = &tensors[i];
    }
    return found;
}

/* The parameters that are not finite, from the loss back. */
typedef struct lost_parameters {
    int n, n_all;
    const char *nearest; /* to the loss; NULL: none */
} lost_parameters;

static stk_status find_lost(stk_trainer *trainer, lost_parameters *out)
{
    const stk_graph *graph = stk_model_graph(trainer->model);
    const stk_named_tensor *tensors;
    size_t n_tensors;
    *out = (lost_parameters){0};
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensors, &n_tensors));
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const stk_node *node = &graph->node[i];
        if (node->op != STK_OP_variable || !node->attrs.leaf.trainable) continue;
        const stk_named_tensor *tensor = find_tensor(tensors, n_tensors, node->name);
        if (!tensor || tensor->view.desc.dtype != STK_F32) continue;
        out->n_all++;
        if (is_finite(tensor->view.data, stk_shape_count(tensor->view.desc.shape))) continue;
        out->n++;
        if (!out->nearest) out->nearest = node->name;
    }
    return STK_OK;
}

/* --- what is said --- */

static stk_status explain_stop(stk_trainer *trainer, int64_t step, double loss, double lr)
{
    char number[STK_PLAIN_TEXT], loss_text[STK_PLAIN_TEXT];
    lost_parameters lost;
    stk_text where = {0};
    STK_RETURN_IF_ERROR(find_lost(trainer, &lost));
    if (isfinite(trainer->last_loss))
        stk_text_add(&where, " (it was %s at step %lld)", stk_plain_number(trainer->last_loss, number),
                     (long long)step - 1);
    if (lost.n > 0)
        stk_text_add(&where, "; %d of %d parameters are no longer finite, nearest the loss '%s'", lost.n, lost.n_all,
                     lost.nearest);
    else
        stk_text_add(&where, "; all parameters are finite, so it overflowed in the forward pass or the data has such "
                             "numbers");
    stk_fail(STK_INVALID,
             "the loss is %s at step %lld, learning rate %s%s; try a lower rate, clip_norm or warmup, or pass over "
             "such steps with on_nan: skip",
             stk_plain_number(loss, loss_text), (long long)step, stk_plain_number(lr, number), stk_text_get(&where));
    stk_text_free(&where);
    return STK_INVALID;
}

static stk_status watch_skipped(stk_trainer *trainer, int64_t step, double loss)
{
    trainer->result.n_skipped_steps = (int64_t)stk_step_scalar(&trainer->train, "n_skipped");
    int64_t in_a_row = (int64_t)stk_step_scalar(&trainer->train, "n_skipped_in_a_row");
    trainer->n_bad_losses = isfinite(loss) ? 0 : trainer->n_bad_losses + 1;
    if (in_a_row < STK_MOST_SKIPPED && trainer->n_bad_losses < STK_MOST_SKIPPED) return STK_OK;
    return stk_fail(STK_INVALID,
                    "%s of the last %d steps, up to step %lld, were not finite, and %lld steps were skipped in all: "
                    "on_nan: skip ends here; try a lower rate, clip_norm or warmup, or look at the data",
                    in_a_row < STK_MOST_SKIPPED ? "losses" : "gradients", STK_MOST_SKIPPED, (long long)step,
                    (long long)trainer->result.n_skipped_steps);
}

stk_status stk_nan_watch(stk_trainer *trainer, int64_t step, double loss, double lr)
{
    stk_status status = STK_OK;
    if (trainer->loss_scale.kind == STK_LOSS_SCALE_DYNAMIC) return STK_OK;
    if (skips(trainer))
        status = watch_skipped(trainer, step, loss);
    else if (!isfinite(loss))
        status = explain_stop(trainer, step, loss, lr);
    trainer->last_loss = loss;
    return status;
}
