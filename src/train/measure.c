/* Metrics: names, settings, plans, and what sums come to. See train/measure.h. */
#include "train/measure.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tensor/shape.h"

static const stk_measure_class *const classes[STK_N_MEASURES] = {
#define X(KIND, name) [STK_MEASURE_##KIND] = &stk_measure_class_##name,
    STK_MEASURE_LIST(X)
#undef X
};

const stk_key *const stk_measure_kinds[] = {
#define X(KIND, name) &stk_measure_class_##name.key,
    STK_MEASURE_LIST(X)
#undef X
        NULL};

const stk_measure_class *stk_measure_class_of(stk_measure_kind kind)
{
    return (unsigned)kind < STK_N_MEASURES ? classes[kind] : NULL;
}

const char *stk_measure_name(stk_measure_kind kind)
{
    return (unsigned)kind < STK_N_MEASURES ? classes[kind]->key.name : NULL;
}

void stk_measure_text(const stk_measure *measure, char out[16])
{
    const stk_measure_class *class = stk_measure_class_of(measure->kind);
    if (class && class->prefix)
        snprintf(out, 16, "%.10s%u", class->prefix, (unsigned)measure->k % 100000u);
    else
        snprintf(out, 16, "%.15s", class ? class->key.name : "?");
}

stk_status stk_measure_read(const stk_yaml_node *node, stk_measure *out)
{
    for (int kind = 0; kind < STK_N_MEASURES; kind++) {
        const stk_key *key = &classes[kind]->key, *average = key->keys ? stk_key_find(key, "average") : NULL;
        if (strcmp(key->name, node->key)) continue;
        *out = (stk_measure){.kind = (stk_measure_kind)kind, .k = (int)stk_yaml_int(node, "k", 0)};
        for (int i = 0; average && average->words[i]; i++)
            if (stk_yaml_is(node, "average", average->words[i])) out->average = (stk_average_kind)i;
        return STK_OK;
    }
    return stk_yaml_fail_key(node, "no metric '%.60s'", node->key);
}

/* --- the plan --- */

bool stk_measure_needs(const stk_measure_plan *plan, const stk_measure_sums *sums)
{
    for (int i = 0; sums && i < plan->n; i++)
        if (classes[plan->list[i].kind]->sums == sums) return true;
    return false;
}

/* One after the other in the order of all metrics, which checkpoints rely on; those of equal sums share them. */
static void place_sums(stk_measure_plan *plan)
{
    for (int kind = 0; kind < STK_N_MEASURES; kind++) {
        const stk_measure_sums *sums = classes[kind]->sums;
        int first = 0;
        if (!stk_measure_needs(plan, sums)) continue;
        while (classes[first]->sums != sums)
            first++;
        plan->start[kind] = first < kind ? plan->start[first] : plan->n_sums;
        if (first == kind) plan->n_sums += sums->count(plan);
    }
}

static stk_status check_one(const stk_measure_plan *plan, const stk_measure *m)
{
    const stk_measure_class *class = stk_measure_class_of(m->kind);
    if (!class) return stk_fail(STK_INVALID, "metrics: there is no kind %d", (int)m->kind);
    bool fits = plan->are_classes ? class->of_classes : class->of_labels || class->of_numbers;
    if (!fits)
        return stk_fail(STK_INVALID,
                        plan->are_classes ? "metric '%s' is of numbers, and the target holds classes"
                                          : "metric '%s' is of classes, and the target holds no class numbers",
                        class->key.name);
    return class->check ? class->check(plan, m) : STK_OK;
}

stk_status stk_measure_plan_make(const stk_measure *list, int n, stk_value output, stk_value target, bool shares,
                                 stk_measure_plan *out)
{
    *out = (stk_measure_plan){.n = n};
    if (n == 0) return STK_OK;
    if (n < 0 || n > STK_MOST_MEASURES)
        return stk_fail(STK_INVALID, "%d metrics; there may be %d at most", n, STK_MOST_MEASURES);
    if (output.id < 0 || target.id < 0)
        return stk_fail(STK_INVALID, "metrics compare the model's output with its target, and it has not both");
    stk_shape x = stk_value_shape(output), y = stk_value_shape(target);
    out->are_classes = shares || (stk_value_dtype(target) == STK_I32 && y.rank == x.rank - 1);
    out->is_row = x.rank == 2 && y.rank == 1;
    out->n_classes = x.rank > 1 ? x.dim[x.rank - 1] : 1;
    if (!out->are_classes && !stk_shape_equal(x, y)) {
        char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
        return stk_fail(STK_INVALID, "metrics cannot compare the output %s with the target %s", stk_shape_text(x, a),
                        stk_desc_text(stk_desc_make(stk_value_dtype(target), y), b));
    }
    for (int i = 0; i < n; i++) {
        out->list[i] = list[i];
        STK_RETURN_IF_ERROR(check_one(out, &list[i]));
    }
    place_sums(out);
    return STK_OK;
}

/* --- values --- */

double stk_measure_divide(double a, double b)
{
    return b > 0 ? a / b : 0;
}

int stk_measure_finish(const stk_measure_plan *plan, const double *sums, double loss, stk_measured *out,
                       double *accuracy)
{
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        const stk_measure *m = &plan->list[i];
        const stk_measure_class *class = classes[m->kind];
        if (!class->finish) continue;
        double value = class->finish(plan, m, sums + plan->start[m->kind], loss);
        if (m->kind == STK_MEASURE_ACCURACY) {
            *accuracy = value;
            continue;
        }
        stk_measure_text(m, out[n].name);
        out[n++].value = value;
    }
    return n;
}
