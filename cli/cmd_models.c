/* stoker models */
#include <string.h>

#include "cli.h"
#include "stoker/nn/models.h"

static const cli_option options[] = {{"--json", NULL, "prints one line of JSON for each model or layer"},
                                     {NULL, NULL, NULL}};

typedef struct listing {
    const stk_known_model *model; /* NULL: the layers of one */
    bool json;
} listing;

/* name, parameters, arithmetic, shape in columns, which are narrower on a terminal; a longer name stands above. */
static void print_row(const char *name, const char *count, const char *flops, const char *rest)
{
    int column = cli_is_terminal(stdout) && cli_width(stdout, 1000) < 110 ? 22 : 58;
    if ((int)strlen(name) > column) {
        cli_printf("%s\n", name);
        name = "";
    }
    cli_printf(flops ? "%-*s %13s  %11s  %s\n" : "%-*s %13s  %s%s\n", column, name, count, flops ? flops : "", rest);
}

static void print_line(void *user, const stk_model_line *line)
{
    const listing *l = user;
    char count[CLI_TEXT], flops[CLI_TEXT], rest[CLI_TEXT + 16];
    const char *name = l->model ? l->model->name : line->name ? line->name : "all";
    cli_count(line->n_parameters, count);
    cli_flops(line->forward_flops, flops);
    snprintf(rest, sizeof(rest), "%s forward", flops);
    if (l->json && line->name)
        printf("{\"layer\": \"%s\", \"shape\": %s, \"parameters\": %lld}\n", name, line->shape,
               (long long)line->n_parameters);
    else if (l->json)
        printf("{\"model\": \"%s\", \"parameters\": %lld, \"forward_flops\": %.6g}\n", name,
               (long long)line->n_parameters, line->forward_flops);
    else if (l->model)
        print_row(name, count, flops, l->model->sample);
    else
        print_row(name, count, NULL, line->name ? line->shape : rest);
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    stk_known_model model;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words > 1) return cli_usage(verb, "models takes one name at most, and there are %d", args.n_words);
    listing l = {.json = cli_has(&args, "--json")};
    if (args.n_words == 1)
        return stk_known_model_show(args.word[0], true, print_line, &l) == STK_OK ? CLI_OK : cli_fail();
    if (!l.json) print_row("model", "parameters", "forward", "for samples of");
    for (int i = 0; stk_known_model_get(i, &model); i++) {
        l.model = &model;
        if (stk_known_model_show(model.name, false, print_line, &l) != STK_OK) return cli_fail();
    }
    return CLI_OK;
}

const cli_verb cli_models = {"models", "[MODEL] [OPTION...]",
                             "Lists the networks that a recipe can name, or the layers of one.", options, .run = run};
