/* stoker data: the input pipeline of a recipe, without its network. One file for each of its verbs. */
#include <string.h>

#include "cli.h"
#include "data.h"
#include "stoker/sources.h"

static const cli_option options[] = {
    {"--split", "NAME", "train, valid or test; default: train"},
    {"--set", "KEY=VALUE", "changes a key of the recipe: --set data.train.source.files=photos; may be given often"},
    {"--threads", "N", "worker threads; default: as the recipe says, or as many as cores"},
    {"--seconds", "S", "bench: how long to measure, default 5; explain: how long to run, to see what tuning chooses"},
    {"--out", "FILE", "show: the PNG file to write; needed"},
    {"--rows", "N", "show: rows of pictures; default: 4"},
    {"--columns", "N", "show: pictures in a row; default: 8"},
    {"--epoch", "N", "show: the epoch whose first samples are shown, from 0; default: 0"},
    {"--json", NULL, "all but show: prints JSON"},
    {NULL, NULL, NULL}};

typedef struct data_verb {
    const char *name;
    int (*run)(data_job *job);
    bool opens_recipe;
    const char *takes[12]; /* options */
} data_verb;

static const data_verb verbs[] = {
    {"bench", data_bench, true, {"--split", "--set", "--threads", "--seconds", "--json"}},
    {"show", data_show, true, {"--split", "--set", "--threads", "--out", "--rows", "--columns", "--epoch"}},
    {"explain", data_explain, true, {"--split", "--set", "--threads", "--seconds", "--json"}},
    {"lint", data_lint, false, {"--split", "--set", "--json"}},
    {"verify", data_verify, false, {"--split", "--set", "--threads", "--json"}},
};
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

static bool takes(const data_verb *data, const char *option)
{
    for (int i = 0; data->takes[i]; i++)
        if (!strcmp(data->takes[i], option)) return true;
    return false;
}

/* The options into the job. False: a message is out. */
static bool read_options(const data_verb *data, data_job *job)
{
    const cli_args *args = job->args;
    /* Every record is to be read, however few there are. */
    if (data->run == data_verify) job->sets[job->n_sets++] = "batch=1";
    for (int i = 0; i < args->n_found; i++) {
        const char *name = args->found[i].option->name;
        if (!takes(data, name)) {
            cli_usage(job->verb, "data %s does not take '%s'", data->name, name);
            return false;
        }
        if (!strcmp(name, "--set")) job->sets[job->n_sets++] = args->found[i].value;
    }
    job->split = cli_value(args, "--split");
    if (!job->split) job->split = "train";
    if (strcmp(job->split, "test") && strcmp(job->split, "valid") && strcmp(job->split, "train")) {
        cli_usage(job->verb, "option '--split' must be train, valid or test, not '%s'", job->split);
        return false;
    }
    return cli_number(args, "--threads", 1, 1024, 0, &job->n_threads) &&
           cli_number(args, "--seconds", 1, 86400, 5, &job->seconds) &&
           cli_number(args, "--rows", 1, 256, 0, &job->n_rows) &&
           cli_number(args, "--columns", 1, 256, 0, &job->n_columns) &&
           cli_number(args, "--epoch", 0, INT64_MAX / 2, 0, &job->i_epoch);
}

bool data_open(data_job *job)
{
    if (stk_recipe_dataset(job->recipe, job->sets, job->n_sets, job->split, &job->dataset, &job->config) != STK_OK) {
        cli_fail();
        return false;
    }
    if (job->n_threads) job->config.n_threads = (int)job->n_threads;
    const char *note = stk_dataset_note(job->dataset);
    if (note[0]) fprintf(stderr, "stoker: warning: %s\n", note);
    return true;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static data_job job;
    job = (data_job){.verb = verb, .args = &args};
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words == 0) return cli_usage(verb, "data takes a verb of its own and a recipe");
    const data_verb *data = NULL;
    for (int i = 0; i < N_VERBS; i++)
        if (!strcmp(args.word[0], verbs[i].name)) data = &verbs[i];
    if (!data) return refuse_verb(verb, args.word[0]);
    if (args.n_words != 2)
        return cli_usage(verb, "data %s takes one recipe, and there are %d", data->name, args.n_words - 1);
    job.recipe = args.word[1];
    if (!read_options(data, &job)) return CLI_USAGE;
    if (data->opens_recipe && !data_open(&job)) return CLI_FAILED;
    int code = data->run(&job);
    stk_dataset_free(job.dataset);
    return code;
}

const cli_verb cli_data = {
    "data", "VERB RECIPE [OPTION...]",
    "The input pipeline of a recipe, without its network. Verbs: bench measures it; show draws a "
    "sheet of samples with their labels; explain says what it is made of, what it promises and "
    "what it needs; lint looks for known mistakes, in all parts without --split; verify decodes "
    "every record of a recipe's source, of a folder or of shards in full, and lists those that "
    "are corrupt. lint and verify end with 1 when they find something.",
    options, run};
