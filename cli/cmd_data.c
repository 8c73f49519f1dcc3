/* stoker data: the input pipeline of a recipe, without its network. One file for each of its verbs. */
#include <string.h>

#include "cli.h"
#include "data.h"

static const cli_option options[] = {
    {"--split", "NAME", "train, valid or test; default: train"},
    {"--set", "KEY=VALUE", "changes a key of the recipe: --set data.train.source.files=photos; may be given often"},
    {"--threads", "N", "worker threads; default: as the recipe says, or as many as cores"},
    {"--seconds", "S", "bench: how long to measure; default: 5"},
    {"--json", NULL, "prints one line of JSON"},
    {NULL, NULL, NULL}};

typedef struct data_verb {
    const char *name;
    int (*run)(const data_job *job);
} data_verb;

static const data_verb verbs[] = {{"bench", data_bench}};
enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static int refuse_verb(const cli_verb *verb, const char *word)
{
    const char *names[N_VERBS];
    for (int i = 0; i < N_VERBS; i++)
        names[i] = verbs[i].name;
    const char *nearest = cli_nearest(word, names, N_VERBS);
    if (nearest) return cli_usage(verb, "no verb 'data %s' (did you mean '%s'?)", word, nearest);
    return cli_usage(verb, "no verb 'data %s'", word);
}

static int open_and_run(const data_verb *data, data_job *job)
{
    const char *sets[CLI_MOST_ARGS];
    int n = 0;
    for (int i = 0; i < job->args->n_found; i++)
        if (!strcmp(job->args->found[i].option->name, "--set")) sets[n++] = job->args->found[i].value;
    if (stk_recipe_dataset(job->recipe, sets, n, job->split, &job->dataset, &job->config) != STK_OK) return cli_fail();
    if (job->n_threads) job->config.n_threads = (int)job->n_threads;
    int code = data->run(job);
    stk_dataset_free(job->dataset);
    return code;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    data_job job = {.args = &args};
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words == 0) return cli_usage(verb, "data takes a verb of its own and a recipe");
    const data_verb *data = NULL;
    for (int i = 0; i < N_VERBS; i++)
        if (!strcmp(args.word[0], verbs[i].name)) data = &verbs[i];
    if (!data) return refuse_verb(verb, args.word[0]);
    if (args.n_words != 2)
        return cli_usage(verb, "data %s takes one recipe, and there are %d", data->name, args.n_words - 1);
    job.recipe = args.word[1];
    job.split = cli_value(&args, "--split");
    if (!job.split) job.split = "train";
    if (strcmp(job.split, "test") && strcmp(job.split, "valid") && strcmp(job.split, "train"))
        return cli_usage(verb, "option '--split' must be train, valid or test, not '%s'", job.split);
    if (!cli_number(&args, "--threads", 1, 4096, 0, &job.n_threads) ||
        !cli_number(&args, "--seconds", 1, 86400, 5, &job.seconds))
        return CLI_USAGE;
    return open_and_run(data, &job);
}

const cli_verb cli_data = {"data", "bench RECIPE [OPTION...]",
                           "Measures the input pipeline of a recipe, without its network.", options, run};
