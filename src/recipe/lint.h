/* What the rules of stoker/data/lint.h share. Threads: one at a time. */
#ifndef STK_RECIPE_LINT_H
#define STK_RECIPE_LINT_H

#include "data/inspect/sample.h"
#include "data/source/reader.h"
#include "recipe/recipe.h"
#include "stoker/data/lint.h"

/* A part that is looked at. */
typedef struct stk_lint_part {
    int i_part;
    const stk_recipe_part *part;
    const stk_yaml_node *stages; /* that it is built with; NULL: none */
    const stk_dataset *dataset;
    stk_record_sample sample;
    stk_lint_fn on_finding;
    void *user;
    int *n_found;
} stk_lint_part;

/* node: where the recipe says it. format: the reason. */
void stk_lint_report(stk_lint_part *p, const char *rule, const stk_yaml_node *node, const char *remedy,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
void stk_lint_stages(stk_lint_part *p);

#endif
