/* Metrics of a trainer's runs: planned with the step, added up over an epoch. See train/measure.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/query.h"
#include "train/trainer_state.h"

static stk_value find_target(const stk_trainer *trainer, bool *ignores, int64_t *ignore_index)
{
    stk_value target = stk_model_get_target(trainer->model, ignores, ignore_index);
    return target.id >= 0 ? target : stk_graph_find(stk_model_graph(trainer->model), STK_OP_input, "label");
}

static const stk_measure_class *class_of(const stk_trainer *trainer, int i)
{
    return stk_measure_class_of(trainer->measure[i].kind);
}

stk_status stk_measures_plan(stk_trainer *trainer, bool shares)
{
    bool ignores;
    int64_t ignore_index;
    if (trainer->n_measures == 0 || trainer->train_sums) return STK_OK;
    for (int i = 0; i < trainer->n_measures; i++)
        if (!stk_measure_class_of(trainer->measure[i].kind))
            return stk_fail(STK_INVALID, "metrics: there is no kind %d", (int)trainer->measure[i].kind);
    for (int i = 0; i < trainer->n_measures && stk_model_is_embedding(trainer->model); i++)
        if (!class_of(trainer, i)->of_rows)
            return stk_fail(STK_INVALID,
                            "the model's output are rows to compare, which only 'recall_at' measures, not '%s'",
                            stk_measure_name(trainer->measure[i].kind));
    stk_value output = stk_model_get_output(trainer->model), target = find_target(trainer, &ignores, &ignore_index);
    bool only_loss = true;
    for (int i = 0; i < trainer->n_measures; i++)
        only_loss = only_loss && !class_of(trainer, i)->sums && !class_of(trainer, i)->of_rows;
    if (only_loss) { /* It needs no output. */
        memcpy(trainer->measures.list, trainer->measure, sizeof(trainer->measure));
        trainer->measures.n = trainer->n_measures;
    } else {
        STK_RETURN_IF_ERROR(
            stk_measure_plan_make(trainer->measure, trainer->n_measures, output, target, shares, &trainer->measures));
    }
    size_t n = (size_t)trainer->measures.n_sums + 1;
    trainer->train_sums = calloc(n, sizeof(double));
    trainer->eval_sums = calloc(n, sizeof(double));
    if (!trainer->train_sums || !trainer->eval_sums) return stk_fail_memory(n * sizeof(double));
    return STK_OK;
}

static int64_t count_sums(const stk_trainer *trainer)
{
    return trainer->measures.n_sums;
}

int stk_measures_n_sums(const stk_trainer *trainer)
{
    return trainer->measures.n_sums;
}

stk_named_tensor stk_measures_tensor(const stk_trainer *trainer)
{
    stk_tensor_desc desc = stk_desc_make(STK_F64, STK_SHAPE(count_sums(trainer)));
    return (stk_named_tensor){.name = STK_METRIC_SUMS, .view = {.desc = desc, .data = trainer->train_sums}};
}

void stk_measures_build(const stk_trainer *trainer, stk_graph *graph, stk_value weight)
{
    bool ignores;
    int64_t ignore_index;
    /* Values of a graph that failed have no shape to divide by. */
    if (count_sums(trainer) == 0 || stk_graph_status(graph) != STK_OK) return;
    stk_value target = find_target(trainer, &ignores, &ignore_index);
    stk_value output = stk_value_of(graph, stk_model_get_output(trainer->model).id);
    stk_graph_output(
        graph, STK_METRIC_SUMS,
        stk_measure_build(&trainer->measures, output, stk_value_of(graph, target.id), weight, ignores, ignore_index));
}

void stk_measures_add(const stk_trainer *trainer, const stk_bound_program *bound, double *sums)
{
    stk_tensor_desc desc;
    const void *own = count_sums(trainer) ? stk_program_output(bound->program, STK_METRIC_SUMS, &desc) : NULL;
    for (int64_t i = 0; own && i < count_sums(trainer); i++)
        sums[i] += desc.dtype == STK_F64 ? ((const double *)own)[i] : (double)((const float *)own)[i];
}

void stk_measures_reset(const stk_trainer *trainer, double *sums)
{
    if (sums) memset(sums, 0, (size_t)count_sums(trainer) * sizeof(*sums));
}

void stk_measures_finish(const stk_trainer *trainer, const double *sums, stk_metrics *out)
{
    if (!sums) return;
    out->n_values = stk_measure_finish(&trainer->measures, sums, out->loss, out->value, &out->accuracy);
    /* Those two have had places of their own for longer. */
    for (int i = 0; i < out->n_values; i++) {
        if (strcmp(out->value[i].name, stk_measure_name(STK_MEASURE_PERPLEXITY))) continue;
        out->perplexity = out->value[i].value;
        memmove(out->value + i, out->value + i + 1, (size_t)(out->n_values - i - 1) * sizeof(out->value[0]));
        out->n_values--;
        i--;
    }
}

const double *stk_trainer_confusion(const stk_trainer *trainer, int64_t *n_classes)
{
    if (!trainer) return NULL;
    const stk_measure_plan *plan = &trainer->measures;
    *n_classes = plan->n_classes;
    bool is_there = stk_measure_needs(plan, stk_measure_class_confusion.sums);
    return trainer->eval_sums && is_there ? trainer->eval_sums + plan->start[STK_MEASURE_CONFUSION] : NULL;
}

/* --- rows --- */

static bool needs_rows(const stk_trainer *trainer)
{
    bool any = false;
    for (int i = 0; i < trainer->n_measures; i++)
        any |= class_of(trainer, i)->of_rows;
    return any;
}

void stk_measures_show_rows(const stk_trainer *trainer, stk_graph *graph)
{
    bool ignores;
    int64_t ignore_index;
    if (!needs_rows(trainer)) return;
    stk_value row = stk_value_of(graph, stk_model_get_output(trainer->model).id);
    stk_value label = stk_value_of(graph, find_target(trainer, &ignores, &ignore_index).id);
    stk_graph_output(graph, "rows", stk_cast_to(row, STK_F32));
    stk_graph_output(graph, "rows.label", stk_cast_to(label, STK_I32));
}

stk_status stk_measures_keep(const stk_trainer *trainer, const stk_bound_program *bound, int64_t n,
                             stk_neighbours *rows)
{
    stk_tensor_desc desc;
    if (!needs_rows(trainer)) return STK_OK;
    const int32_t *label = stk_program_output(bound->program, "rows.label", &desc);
    const float *row = stk_program_output(bound->program, "rows", &desc);
    if (!row || !label || desc.shape.rank != 2 || n > desc.shape.dim[0])
        return stk_fail(STK_INTERNAL, "an evaluation gave no rows");
    return stk_neighbours_add(rows, row, label, n, desc.shape.dim[1]);
}

stk_status stk_measures_finish_rows(const stk_trainer *trainer, const stk_neighbours *rows, stk_metrics *out)
{
    int n = 0;
    int64_t k[STK_MOST_MEASURES];
    double value[STK_MOST_MEASURES];
    for (int i = 0; i < trainer->n_measures; i++)
        if (class_of(trainer, i)->of_rows) k[n++] = trainer->measure[i].k;
    if (n == 0) return STK_OK;
    STK_RETURN_IF_ERROR(stk_neighbours_recall(rows, k, n, value));
    for (int i = 0, at = 0; i < trainer->n_measures; i++) {
        if (!class_of(trainer, i)->of_rows) continue;
        stk_measure_text(&trainer->measure[i], out->value[out->n_values].name);
        out->value[out->n_values++].value = value[at++];
    }
    return STK_OK;
}
