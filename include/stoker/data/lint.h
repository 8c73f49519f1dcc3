/* Known mistakes in a recipe's input pipelines, each with its reason and a remedy.
 *
 * Threads: any; each call reads the recipe for itself.
 */
#ifndef STOKER_DATA_LINT_H
#define STOKER_DATA_LINT_H

#include "stoker/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are borrowed for the call. */
typedef struct stk_lint_finding {
    const char *rule;  /* "no-shuffle"; docs/pipelines.md lists them */
    const char *part;  /* "train" */
    const char *place; /* "recipe.yaml:12:5", or "--set data.train.take" */
    int line;          /* 0: not from the file */
    const char *reason, *remedy;
} stk_lint_finding;

typedef void (*stk_lint_fn)(void *user, const stk_lint_finding *finding);

/* Looks at every part of a recipe, or at one: part NULL, "train", "valid" or "test". Opens the data and reads up to a
 * few hundred records. set: as in stk_run_options. An error means that the recipe itself does not work; findings are
 * not errors. n_found may be NULL. */
STK_API stk_status stk_recipe_lint(const char *recipe, const char *const *set, int n_set, const char *part,
                                   stk_lint_fn on_finding, void *user, int *n_found);

#ifdef __cplusplus
}
#endif
#endif
