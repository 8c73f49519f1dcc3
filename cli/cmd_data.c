/* stoker data: the input pipeline of a recipe, without its network. One file for each of its verbs. */
#include <string.h>

#include "cli.h"
#include "data.h"
#include "stoker/data/cache.h"
#include "stoker/data/sources.h"

#define SPLIT                                                                                                          \
    {                                                                                                                  \
        "--split", "train|valid|test", "the part of the recipe; default: train"                                        \
    }
#define SET                                                                                                            \
    {                                                                                                                  \
        "--set", "KEY=VALUE", "changes a key of the recipe: --set data.train.source.files=photos; may be given often"  \
    }
#define THREADS                                                                                                        \
    {                                                                                                                  \
        "--threads", "N", "worker threads; default: as the recipe says, or as many as cores"                           \
    }
#define JSON                                                                                                           \
    {                                                                                                                  \
        "--json", NULL, "prints JSON"                                                                                  \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, NULL, NULL                                                                                               \
    }

static const cli_option bench_options[] = {
    SPLIT, SET, THREADS, {"--seconds", "S", "how long to measure, and how long to wait for a server; default: 5"},
    JSON,  END};
static const cli_option explain_options[] = {
    SPLIT, SET, THREADS, {"--seconds", "S", "runs for so long, too, to see what tuning chooses"}, JSON, END};
static const cli_option lint_options[] = {
    {"--split", "train|valid|test", "one part of the recipe; default: all"}, SET, JSON, END};
static const cli_option verify_options[] = {SPLIT, SET, THREADS, JSON, END};
static const cli_option show_options[] = {
    {"--out", "FILE", "the PNG file to write; needed"},
    {"--rows", "N", "rows of pictures; default: 4"},
    {"--columns", "N", "pictures in a row; default: 8"},
    {"--epoch", "N", "the epoch whose first samples are shown, from 0; default: 0"},
    SPLIT,
    SET,
    THREADS,
    END};

typedef struct data_verb {
    const cli_verb *verb;
    int (*run)(data_job *job);
    bool opens_recipe, keeps; /* keeps: what it finds out about the data is for the next run, too */
} data_verb;

static const data_verb verbs[] = {{&cli_data_bench, data_bench, true, true},
                                  {&cli_data_show, data_show, true, false},
                                  {&cli_data_explain, data_explain, true, false},
                                  {&cli_data_lint, data_lint, false, false},
                                  {&cli_data_verify, data_verify, false, false}};
enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]) };

/* The options into the job. False: a message is out. */
static bool read_options(const data_verb *data, data_job *job)
{
    const cli_args *args = job->args;
    /* Every record is to be read, however few there are. */
    if (data->run == data_verify) job->sets[job->n_sets++] = "batch=1";
    for (int i = 0; i < args->n_found; i++) {
        if (!strcmp(args->found[i].option->name, "--set")) job->sets[job->n_sets++] = args->found[i].value;
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
    if (note[0]) cli_warn("%s", cli_shown(note));
    return true;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static data_job job;
    const data_verb *data = verbs;
    for (int i = 0; i < N_VERBS; i++)
        if (verbs[i].verb == verb) data = &verbs[i];
    job = (data_job){.verb = verb, .args = &args};
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1) return cli_usage(verb, "%s takes one recipe, and there are %d", verb->name, args.n_words);
    job.recipe = args.word[0];
    stk_keep_data(data->keeps);
    if (!read_options(data, &job)) return CLI_USAGE;
    /* Until the first batch is there: --seconds is a promise, whatever a server does. */
    if (data->run == data_bench) stk_addresses_give_up_after((double)job.seconds);
    if (data->opens_recipe && !data_open(&job)) return CLI_FAILED;
    int code = data->run(&job);
    stk_dataset_free(job.dataset);
    return code;
}

static int run_group(const cli_verb *verb, int argc, char **argv)
{
    if (argc == 0 || argv[0][0] == '-') return cli_usage(verb, "data takes a verb of its own and a recipe");
    return cli_refuse_verb(verb, argv[0]);
}

static const cli_option no_options[] = {END};

const cli_verb cli_data = {"data", "VERB RECIPE [OPTION...]", "The input pipeline of a recipe, without its network.",
                           no_options, .run = run_group};
const cli_verb cli_data_bench = {"data bench", "RECIPE [OPTION...]",
                                 "Measures what a recipe's input pipeline delivers. It says what each stage takes, "
                                 "too.",
                                 bench_options, .run = run};
const cli_verb cli_data_show = {"data show",
                                "RECIPE --out FILE [OPTION...]",
                                "Draws a sheet of samples with their labels, as the network will see them.",
                                show_options,
                                .run = run,
                                .makes_files = true};
const cli_verb cli_data_explain = {"data explain", "RECIPE [OPTION...]",
                                   "Says what a pipeline is made of, what it promises and what it needs.",
                                   explain_options, .run = run};
const cli_verb cli_data_lint = {"data lint", "RECIPE [OPTION...]",
                                "Looks for known mistakes in a recipe's pipelines. Ends with 1 when it finds one.",
                                lint_options, .run = run};
const cli_verb cli_data_verify = {"data verify", "RECIPE|DIR|FILE [OPTION...]",
                                  "Decodes every record in full, and lists those that are corrupt. They are those of "
                                  "a recipe's source, of a folder or of shards. Ends with 1 when one is corrupt.",
                                  verify_options, .run = run};
