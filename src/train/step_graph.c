/* The three graphs made of the model's: training (mean loss, metrics, gradients, updates), evaluation (sums over real
 * rows) and prediction (probabilities of one sample). The model's graph leaves the batch open; each binds it.
 */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/query.h"
#include "optim/update.h"
#include "train/trainer_state.h"
#include "train/views.h"

static bool has_cross_entropy(const stk_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_cross_entropy) return true;
    return false;
}

/* Class numbers, or shares of classes that a cross-entropy compares with the output. */
static bool has_class_labels(stk_trainer *trainer)
{
    stk_graph *graph = stk_model_graph(trainer->model);
    stk_value label = stk_graph_find(graph, STK_OP_input, "label"), logits = stk_model_get_output(trainer->model);
    if (stk_model_is_embedding(trainer->model)) return false;
    if (label.id < 0 || logits.id < 0 || stk_value_shape(logits).rank != 2) return false;
    if (stk_value_shape(logits).dim[1] < 2) return false; /* a number, not one class of one */
    bool ignores;
    (void)stk_model_get_target(trainer->model, &ignores, NULL);
    /* A label that does not count is no class; the metrics by name leave it out. */
    if (stk_value_dtype(label) == STK_I32) return stk_value_shape(label).rank == 1 && !ignores;
    return has_cross_entropy(graph) && stk_shape_equal(stk_value_shape(label), stk_value_shape(logits));
}

/* Where the target holds shares of classes, which a cross-entropy compares. */
static bool compares_shares(const stk_trainer *trainer)
{
    stk_value target = stk_model_get_target(trainer->model, NULL, NULL), x = stk_model_get_output(trainer->model);
    if (target.id < 0) target = stk_graph_find(stk_model_graph(trainer->model), STK_OP_input, "label");
    return target.id >= 0 && x.id >= 0 && stk_value_dtype(target) != STK_I32 &&
           has_cross_entropy(stk_model_graph(trainer->model)) &&
           stk_shape_equal(stk_value_shape(target), stk_value_shape(x));
}

static stk_value of_clone(stk_graph *clone, stk_value x)
{
    return stk_value_of(clone, x.id); /* Ids stay the same in a clone. */
}

/* 1 where the class with the largest share is among the k largest logits, else 0; logits and label [N,C]. */
static stk_value find_hits_of_shares(stk_value logits, stk_value label, int k)
{
    stk_shape rows = {.rank = 2, .dim = {stk_value_shape(logits).dim[0], 1}};
    stk_value most = stk_reshape(stk_reduce_max(label, 2), rows);
    stk_value low = stk_graph_constant(logits.graph, stk_value_dtype(logits), (stk_shape){0}, -FLT_MAX);
    stk_value own = stk_reduce_max(stk_select(stk_greater_equal(label, most), logits, low), 2);
    stk_value above = stk_cast_to(stk_greater(logits, stk_reshape(own, rows)), STK_F32);
    stk_value n_above = stk_reduce_sum(above, 2);
    stk_value limit = stk_graph_constant(logits.graph, STK_F32, (stk_shape){0}, k);
    return stk_cast_to(stk_less(n_above, limit), STK_F32);
}

/* Of 5 classes and fewer, each is among the first 5, and counting them says nothing. */
static bool has_top5(const stk_trainer *trainer)
{
    return trainer->has_classes && stk_value_shape(stk_model_get_output(trainer->model)).dim[1] > 5;
}

/* Sums over the batch of how often the label was among the first 1 and the first 5; weight may be none. */
static void add_metrics(stk_trainer *trainer, stk_graph *graph, stk_value weight)
{
    stk_value label = stk_graph_find(graph, STK_OP_input, "label");
    stk_value logits = of_clone(graph, stk_model_get_output(trainer->model));
    static const struct {
        const char *name;
        int k;
    } metrics[] = {{"n_correct", 1}, {"n_top5", 5}};
    if (!trainer->has_classes) return;
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        int k = metrics[i].k;
        if (k > 1 && !trainer->has_top5) continue;
        bool is_number = stk_value_dtype(label) == STK_I32;
        stk_value hit = is_number ? stk_in_top_k(logits, label, k) : find_hits_of_shares(logits, label, k);
        if (weight.id >= 0) hit = stk_mul(hit, weight);
        stk_graph_output(graph, metrics[i].name, stk_reduce_sum(hit, 0));
    }
}

static bool is_scalar_input(const char *name)
{
    return !strcmp(name, "lr") || !strcmp(name, "step") || !strcmp(name, "seed") || !strcmp(name, "sample") ||
           !strcmp(name, "weight") || !strcmp(name, STK_STOP_INPUT) || !strcmp(name, STK_WISH_INPUT);
}

/* Notes which fields of a batch the program takes, and sets the trainer's own numbers. */
static stk_status list_bindings(stk_trainer *trainer, stk_bound_program *bound)
{
    stk_graph *model = stk_model_graph(trainer->model);
    stk_program *program = bound->program;
    bound->n_bindings = 0;
    for (int i = 0; i < model->n_nodes; i++) {
        const stk_node *node = &model->node[i];
        if (node->op != STK_OP_input || is_scalar_input(node->name)) continue;
        int input = stk_program_input(program, node->name);
        if (input < 0) continue;
        if (bound->n_bindings == MOST_BINDINGS)
            return stk_fail(STK_UNSUPPORTED, "a model with more than %d inputs is not supported", MOST_BINDINGS);
        bound->binding[bound->n_bindings++] = (stk_binding){node->name, input};
    }
    bound->lr = stk_program_input(program, "lr");
    bound->step = stk_program_input(program, "step");
    bound->seed = stk_program_input(program, "seed");
    bound->sample = stk_program_input(program, "sample");
    bound->weight = stk_program_input(program, "weight");
    bound->stop = stk_program_input(program, STK_STOP_INPUT);
    bound->wish = stk_program_input(program, STK_WISH_INPUT);
    return stk_step_set(trainer, bound, 0, 0);
}

static stk_compile_options compile_options(const stk_trainer *trainer)
{
    return (stk_compile_options){.memory_limit_bytes = trainer->config.memory_limit_bytes,
                                 .reserved_bytes = trainer->reserved_bytes,
                                 .compute = trainer->compute,
                                 .tf32 = trainer->tf32,
                                 .keep_packed = true,
                                 .stop = trainer->comm ? NULL : &trainer->stop, /* ranks agree on it elsewhere */
                                 .dump_after = trainer->dump_graph,
                                 .dump = trainer->config.dump,
                                 .dump_user = trainer->config.event_user};
}

/* The loss of a step and what goes with it. */
typedef struct step_loss {
    stk_value trained; /* what gradients are of */
    stk_value shown;   /* the mean over the batch: a part of it, where parts are to be summed up */
    stk_value weight;  /* of the batch; no value: its number of samples */
    stk_value factor;  /* of the gradients; graph NULL: none */
} step_loss;

static stk_value sum_over_parts(stk_value part, const stk_attrs *attrs)
{
    stk_value row = stk_graph_scalar_input(part.graph, STK_MICRO_ROW, STK_I64);
    return stk_graph_add(part.graph, STK_OP_accumulate, attrs, (stk_value[]){part, row}, 2);
}

/* The weight, or 1 where it is 0. */
static stk_value as_divisor(stk_value weight)
{
    stk_value zero = stk_graph_constant(weight.graph, STK_F32, (stk_shape){0}, 0);
    stk_value one = stk_graph_constant(weight.graph, STK_F32, (stk_shape){0}, 1);
    return stk_select(stk_greater(weight, zero), weight, one);
}

/* sum(loss * weight) / sum(weight), where all weights of 0 give 0. In parts the divisor is known behind the last: the
 * gradients are of the sum over the number of samples, and are corrected then. batch: of all ranks; parts: attributes
 * of sums over parts, NULL: there are none. */
static step_loss mean_of_weighted(stk_value loss, stk_value weight, stk_value fresh, int64_t batch,
                                  const stk_attrs *parts)
{
    step_loss out = {.weight = weight};
    if (fresh.id >= 0) weight = stk_mul(weight, fresh);
    out.trained = stk_reduce_sum(stk_mul(loss, stk_cast_to(weight, stk_value_dtype(loss))), 0);
    out.weight = stk_reduce_sum(weight, 0);
    if (parts) {
        out.trained = stk_scale_by(out.trained, 1 / (double)batch);
        out.weight = sum_over_parts(out.weight, parts);
        out.factor =
            stk_div(stk_graph_constant(loss.graph, STK_F32, (stk_shape){0}, (double)batch), as_divisor(out.weight));
        out.shown = stk_mul(sum_over_parts(stk_cast_to(out.trained, STK_F32), parts), out.factor);
    } else {
        out.shown = out.trained = stk_div(out.trained, stk_cast_to(as_divisor(out.weight), stk_value_dtype(loss)));
    }
    return out;
}

/* fresh: 1 where a row of the slice is in no slice before; no value: all are. Ranks' shares are parts, too. */
static step_loss make_loss(const stk_trainer *trainer, stk_graph *graph, int64_t batch, int64_t micro, stk_value fresh)
{
    bool in_parts = micro < batch || trainer->comm;
    int64_t n_micro = batch / micro;
    batch *= stk_comm_n_ranks(trainer->comm);
    stk_value loss = of_clone(graph, stk_model_get_loss(trainer->model));
    stk_value weight = of_clone(graph, stk_model_get_loss_weight(trainer->model));
    stk_attrs sums = trainer->config.strict ? stk_accumulate_tree(n_micro, micro) : stk_attrs_zero();
    if (weight.id >= 0) return mean_of_weighted(loss, weight, fresh, batch, in_parts ? &sums : NULL);
    if (!in_parts) {
        loss = stk_reduce_mean(loss, 0);
    } else {
        if (fresh.id >= 0) loss = stk_mul(loss, stk_cast_to(fresh, stk_value_dtype(loss)));
        loss = stk_scale_by(stk_reduce_sum(loss, 0), 1 / (double)batch);
    }
    return (step_loss){.trained = loss, .shown = loss, .weight = weight};
}

static bool has_batch_norm(const stk_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->node[i].op == STK_OP_batch_norm) return true;
    return false;
}

static void add_flag(stk_graph *graph, const char *name)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_graph_output(graph, name, sum_over_parts(stk_graph_scalar_input(graph, name, STK_F32), &attrs));
}

/* The training step on slices of `micro` rows of a batch; micro == batch: on all of them at once. */
static stk_graph *make_train_graph(stk_trainer *trainer, int64_t batch, int64_t micro)
{
    stk_graph *graph = stk_graph_clone(stk_model_graph(trainer->model), micro);
    stk_value fresh = stk_value_none(graph);
    if (batch % micro != 0)
        fresh = stk_graph_input(graph, STK_MICRO_FRESH, STK_F32, (stk_shape){.rank = 1, .dim = {micro}});
    step_loss loss = make_loss(trainer, graph, batch, micro, fresh);
    stk_graph_output(graph, "loss", loss.shown);
    if (loss.weight.id >= 0) stk_graph_output(graph, "loss_weight", loss.weight);
    add_metrics(trainer, graph, fresh);
    stk_measures_build(trainer, graph, fresh);
    if (trainer->comm) add_flag(graph, STK_STOP_INPUT);
    if (trainer->shards) add_flag(graph, STK_WISH_INPUT);
    stk_optim_options optim = {.optimizer = trainer->optimizer,
                               .clip_norm = trainer->config.clip_norm,
                               .grad_norm = trainer->config.grad_norm,
                               .keep_gradients = trainer->config.keep_gradients,
                               .no_decay = trainer->no_decay,
                               .groups = trainer->group,
                               .n_groups = trainer->n_groups,
                               .average = trainer->config.average,
                               .lookahead = trainer->config.lookahead,
                               .n_steps = trainer->n_steps,
                               .epoch_steps = trainer->n_batches};
    optim.grad_factor = loss.factor;
    if (optim.lookahead.every > 0 && micro < batch && has_batch_norm(graph))
        stk_graph_keep_error(graph, stk_fail(STK_UNSUPPORTED,
                                             "'lookahead' does not go with micro-batches of a network with batch norm, "
                                             "whose statistics change in each of them; leave out one of the two"));
    stk_optim_build(graph, loss.trained, &optim);
    return graph;
}

stk_status stk_step_compile_with(stk_trainer *trainer, int64_t batch, int64_t micro, stk_step_use use,
                                 stk_program **out)
{
    stk_compile_options options = compile_options(trainer);
    bool plan_only = use != STK_STEP_RUN;
    trainer->has_classes = has_class_labels(trainer);
    trainer->has_top5 = has_top5(trainer);
    STK_RETURN_IF_ERROR(stk_measures_plan(trainer, compares_shares(trainer)));
    options.loss_scale = trainer->loss_scale;
    options.pixels = trainer->pixels.n ? &trainer->pixels : NULL;
    options.skip_nonfinite = trainer->config.on_nan == STK_ON_NAN_SKIP;
    options.fit = !trainer->recompute || !strcmp(trainer->recompute, "auto");
    if (!options.fit && strcmp(trainer->recompute, "none")) options.recompute = trainer->recompute;
    options.batch = batch;
    options.micro = micro;
    options.comm = trainer->comm;
    options.shard_state = trainer->shards;
    options.narrow_sums = trainer->config.narrow_sums;
    options.local_steps = trainer->config.outer.every > 0;
    options.overlap = trainer->overlaps;
    options.sync_norm = trainer->config.sync_batch_norm;
    options.strict = trainer->config.strict > 0;
    options.plan_only = plan_only;
    options.keep_packed = use != STK_STEP_TRY;
    if (use == STK_STEP_TRY) options.dump_after = NULL;
    STK_RETURN_IF_ERROR(stk_engine_compile(trainer->engine, make_train_graph(trainer, batch, micro), &options, out));
    return STK_OK;
}

stk_status stk_step_compile_train(stk_trainer *trainer, int64_t rows, stk_bound_program *out)
{
    int64_t n_micro = trainer->choice.n_micro, micro = trainer->choice.micro;
    if (rows != trainer->choice.micro * n_micro && trainer->shapes.varies) micro = (rows + n_micro - 1) / n_micro;
    out->batch = rows;
    trainer->is_language_model = stk_graph_find(stk_model_graph(trainer->model), STK_OP_input, "targets").id >= 0;
    STK_RETURN_IF_ERROR(stk_step_compile_with(trainer, rows, micro, STK_STEP_RUN, &out->program));
    return list_bindings(trainer, out);
}

/* Frees the graph where it fails. */
static stk_status average_views(const stk_trainer *trainer, stk_graph *graph)
{
    stk_value output = of_clone(graph, stk_model_get_output(trainer->model));
    stk_status status = stk_views_average(graph, output, &trainer->config.views);
    if (status != STK_OK) stk_graph_free(graph);
    return status;
}

/* Evaluation is divided as training is, where its batch can be: into parts of one size. */
static int64_t eval_rows(const stk_trainer *trainer, int64_t batch)
{
    int64_t rows = trainer->choice.micro < batch ? trainer->choice.micro : batch;
    while (rows > 1 && batch % rows != 0)
        rows--;
    return trainer->choice.n_micro > 1 && !stk_model_is_embedding(trainer->model) ? rows : batch;
}

/* The evaluation of slices of N rows. */
static stk_status compile_eval(stk_trainer *trainer, int64_t batch, int64_t rows, stk_bound_program *out)
{
    stk_graph *graph = stk_graph_clone(stk_model_graph(trainer->model), rows);
    stk_value weight =
        stk_graph_input(graph, "weight", STK_F32, (stk_shape){.rank = 1, .dim = {rows}}); /* 1 for real rows, else 0 */
    stk_value loss = of_clone(graph, stk_model_get_loss(trainer->model));
    /* A padded row may give a loss that is NaN; 0 times it must be 0. */
    stk_value real = stk_greater(weight, stk_graph_constant(graph, STK_F32, stk_value_shape(weight), 0.5));
    stk_value zero = stk_graph_constant(graph, STK_F32, stk_value_shape(weight), 0);
    stk_value counts = of_clone(graph, stk_model_get_loss_weight(trainer->model));
    loss = stk_cast_to(loss, STK_F32);
    if (counts.id >= 0) {
        loss = stk_mul(loss, counts);
        stk_graph_output(graph, "loss_weight", stk_reduce_sum(stk_select(real, counts, zero), 0));
    }
    stk_graph_output(graph, "loss_sum", stk_reduce_sum(stk_select(real, loss, zero), 0));
    add_metrics(trainer, graph, weight);
    stk_measures_build(trainer, graph, weight);
    stk_measures_show_rows(trainer, graph);
    STK_RETURN_IF_ERROR(average_views(trainer, graph));
    out->batch = batch;
    stk_compile_options options = compile_options(trainer);
    options.inference = true;
    options.pixels = trainer->eval_is_u8 ? &trainer->pixels : NULL;
    options.batch = batch;
    options.micro = rows;
    options.dump_after = NULL;
    options.reserved_bytes += trainer->copy_bytes;
    STK_RETURN_IF_ERROR(stk_engine_compile(trainer->engine, graph, &options, &out->program));
    return list_bindings(trainer, out);
}

stk_status stk_step_compile_eval(stk_trainer *trainer, int64_t batch, stk_bound_program *out)
{
    int64_t rows = eval_rows(trainer, batch);
    stk_status status = compile_eval(trainer, batch, rows, out);
    bool divides = trainer->config.memory_limit_bytes && !stk_model_is_embedding(trainer->model);
    int64_t first = rows;
    /* Fewer rows need less memory for values, more of them less for lists of kernels. */
    while (status == STK_NO_MEMORY && divides && rows > 1) {
        do
            rows--;
        while (batch % rows != 0);
        status = compile_eval(trainer, batch, rows, out);
    }
    for (rows = first + 1; status == STK_NO_MEMORY && divides && rows <= batch; rows++)
        if (batch % rows == 0) status = compile_eval(trainer, batch, rows, out);
    return status;
}

stk_status stk_step_compile_predict(stk_trainer *trainer, stk_bound_program *out)
{
    stk_graph *graph = stk_graph_clone(stk_model_graph(trainer->model), 1);
    stk_value output = of_clone(graph, stk_model_get_output(trainer->model));
    stk_graph_output(graph, "prediction", trainer->has_classes ? stk_softmax(output) : output);
    out->batch = 1;
    stk_compile_options options = compile_options(trainer);
    options.inference = true;
    options.dump_after = NULL;
    STK_RETURN_IF_ERROR(stk_engine_compile(trainer->engine, graph, &options, &out->program));
    return list_bindings(trainer, out);
}

stk_status stk_step_check_count(const stk_dataset *dataset)
{
    if (stk_dataset_n_batches(dataset) >= 0) return STK_OK;
    return stk_fail(STK_INVALID,
                    "it is not known how many batches an epoch has, which a trainer counts by: say how many "
                    "samples the generator makes (n_samples)");
}

stk_status stk_step_check_dataset(stk_trainer *trainer, const stk_dataset *dataset)
{
    stk_graph *model = stk_model_graph(trainer->model);
    bool may_vary = trainer->config.make_model != NULL;
    if (stk_dataset_batches_vary(dataset) && !may_vary)
        return stk_fail(STK_INVALID, "the batches differ in size: training needs one, so pad to a 'length'");
    for (int i = 0; i < model->n_nodes; i++) {
        const stk_node *node = &model->node[i];
        if (node->op != STK_OP_input || is_scalar_input(node->name)) continue;
        stk_tensor_desc want = model->value[node->first_out].desc, have = {0};
        STK_RETURN_IF_ERROR(stk_dataset_field(dataset, node->name, true, &have.dtype, &have.shape));
        /* Samples of any length may come: a model is made for each. */
        if (!stk_shape_known(have.shape) && may_vary) have.shape.dim[0] = want.shape.dim[1];
        if (!stk_shape_known(have.shape))
            return stk_fail(STK_INVALID,
                            "field '%s' has another length in every batch: training needs one, so pad to a "
                            "'length'",
                            node->name);
        for (int d = 0; d + 1 < want.shape.rank; d++)
            want.shape.dim[d] = want.shape.dim[d + 1]; /* one sample, without the batch */
        want.shape.rank--;
        if (want.dtype == have.dtype && stk_shape_equal(want.shape, have.shape)) continue;
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_MISMATCH, "the model's input '%s' is %s, the data set gives %s", node->name,
                        stk_desc_text(want, a), stk_desc_text(have, b));
    }
    return STK_OK;
}

void stk_step_bind(const stk_bound_program *bound, const stk_batch *batch)
{
    for (int i = 0; i < bound->n_bindings; i++)
        stk_program_bind(bound->program, bound->binding[i].input, stk_batch_data(batch, bound->binding[i].field));
}

stk_status stk_step_set(const stk_trainer *trainer, const stk_bound_program *bound, int64_t n_steps, double lr)
{
    stk_program *program = bound->program;
    float rate = (float)lr;
    int64_t seed = (int64_t)trainer->config.seed, sample = n_steps * trainer->most_rows;
    float stop = trainer->stop ? 1 : 0, wish = trainer->wishes_state ? 1 : 0;
    if (trainer->comm) sample += trainer->comm->rank * bound->batch;
    STK_RETURN_IF_ERROR(stk_program_set(program, bound->stop, &stop));
    STK_RETURN_IF_ERROR(stk_program_set(program, bound->wish, &wish));
    STK_RETURN_IF_ERROR(stk_program_set(program, bound->lr, &rate));
    STK_RETURN_IF_ERROR(stk_program_set(program, bound->step, &n_steps));
    STK_RETURN_IF_ERROR(stk_program_set(program, bound->seed, &seed));
    return stk_program_set(program, bound->sample, &sample);
}

double stk_step_scalar(const stk_bound_program *bound, const char *name)
{
    stk_tensor_desc desc;
    const void *p = stk_program_output(bound->program, name, &desc);
    if (!p) return 0;
    return desc.dtype == STK_F64 ? *(const double *)p : *(const float *)p;
}
