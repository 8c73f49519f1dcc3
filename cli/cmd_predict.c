/* stoker predict */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stoker/run.h"

enum { MOST_TOP = 1000 };

static const cli_option options[] = {
    {"--top", "N", "how many classes to print; default: 5. Numbers are all printed"},
    {"--device", "NAME", "where to compute; default: as the run"},
    {"--checkpoint", "WHICH", "best, last or a step's number; default: best where there was validation"},
    {"--json", NULL, "prints a line of JSON for each file"},
    {NULL, NULL, NULL}};

static void on_event(void *user, const stk_train_event *event)
{
    (void)user;
    if (event->kind == STK_EVENT_WARNING) fprintf(stderr, "stoker: warning: %s\n", event->text);
}

/* Of a regression: "numbers": [0.25, 3] */
static void print_json_numbers(const stk_prediction *p, int n)
{
    printf(", \"numbers\": [");
    for (int i = 0; i < n; i++) {
        if (i) printf(", ");
        cli_json_number(stdout, p[i].probability);
    }
    printf("]}\n");
}

static void print_json(const char *file, const stk_prediction *p, int n)
{
    printf("{\"file\": ");
    cli_json_text(stdout, file);
    if (n > 0 && p[0].kind == STK_PREDICTION_NUMBER) {
        print_json_numbers(p, n);
        return;
    }
    printf(", \"classes\": [");
    for (int i = 0; i < n; i++) {
        printf("%s{\"class\": %lld, \"name\": ", i ? ", " : "", (long long)p[i].class_number);
        if (p[i].class_name)
            cli_json_text(stdout, p[i].class_name);
        else
            printf("null");
        printf(", \"probability\": ");
        cli_json_number(stdout, p[i].probability);
        printf("}");
    }
    printf("]}\n");
}

static void print_table(const char *file, const stk_prediction *p, int n)
{
    printf("%s\n", file);
    for (int i = 0; i < n; i++) {
        if (p[i].kind == STK_PREDICTION_NUMBER)
            printf("  %.6g\n", p[i].probability);
        else if (p[i].class_name)
            printf("  %6.2f %%  %s\n", 100 * p[i].probability, p[i].class_name);
        else
            printf("  %6.2f %%  class %lld\n", 100 * p[i].probability, (long long)p[i].class_number);
    }
}

/* A file that cannot be read does not keep the others from being predicted. */
static int predict(stk_run *loaded, const cli_args *args, int n_top)
{
    static stk_prediction predictions[MOST_TOP];
    bool json = cli_has(args, "--json");
    int code = CLI_OK;
    for (int i = 1; i < args->n_words; i++) {
        int n;
        if (stk_run_predict(loaded, args->word[i], predictions, MOST_TOP, &n) != STK_OK) {
            code = cli_fail();
            continue;
        }
        if (n > n_top && predictions[0].kind != STK_PREDICTION_NUMBER) n = n_top;
        if (json)
            print_json(args->word[i], predictions, n);
        else
            print_table(args->word[i], predictions, n);
    }
    return code;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    /* In f32, as exports compute, whatever the training's precision: the same answers everywhere. */
    char set[256];
    const char *list[2] = {"precision=f32", set};
    int64_t n_top;
    stk_run *loaded = NULL;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words < 2) return cli_usage(verb, "predict needs a run folder and at least one file");
    if (!cli_number(&args, "--top", 1, MOST_TOP, 5, &n_top)) return CLI_USAGE;
    const char *device = cli_value(&args, "--device");
    if (device) snprintf(set, sizeof(set), "device=%s", device);
    stk_run_options run_options = {.set = list,
                                   .n_set = device ? 2 : 1,
                                   .checkpoint = cli_value(&args, "--checkpoint"),
                                   .without_data = true,
                                   .on_event = on_event};
    if (stk_run_load(args.word[0], &run_options, &loaded) != STK_OK) return cli_fail();
    int code = predict(loaded, &args, (int)n_top);
    stk_run_close(loaded);
    return code;
}

const cli_verb cli_predict = {"predict", "RUN FILE... [OPTION...]",
                              "Says what a trained network sees in image files, likeliest first.", options, run};
