/* stoker data lint: known mistakes in a recipe's pipelines. */
#include "data.h"
#include "stoker/data/lint.h"

typedef struct lint_view {
    bool json;
    int n;
} lint_view;

static void show(void *user, const stk_lint_finding *f)
{
    lint_view *view = user;
    if (!view->json) {
        cli_printf("%s: %s: %s [%s]\n    remedy: %s\n", cli_shown(f->place), f->part, cli_shown(f->reason), f->rule,
                   cli_shown(f->remedy));
        return;
    }
    printf("%s{\"line\": %d, \"rule\": ", view->n++ ? ", " : "", f->line);
    cli_json_place(stdout, f->rule);
    printf(", \"part\": ");
    cli_json_place(stdout, f->part);
    printf(", \"place\": ");
    cli_json_place(stdout, f->place);
    printf(", \"reason\": ");
    cli_json_place(stdout, f->reason);
    printf(", \"remedy\": ");
    cli_json_place(stdout, f->remedy);
    printf("}");
}

int data_lint(data_job *job)
{
    lint_view view = {.json = cli_has(job->args, "--json")};
    const char *part = cli_has(job->args, "--split") ? job->split : NULL;
    int n = 0;
    if (view.json) printf("{\"findings\": [");
    stk_status status = stk_recipe_lint(job->recipe, job->sets, job->n_sets, part, show, &view, &n);
    if (view.json) printf("], \"n\": %d}\n", n);
    if (status != STK_OK) return cli_fail();
    if (!view.json && n == 0) cli_printf("%s: no known mistake\n", cli_shown(job->recipe));
    return n ? CLI_FAILED : CLI_OK;
}
