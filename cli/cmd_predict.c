/* stoker predict */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "stoker/train/run.h"

enum { MOST_TOP = 1000 };

static const cli_option options[] = {
    {"--top", "N", "how many classes to print; default: 5, of images in folders 1. Numbers are all printed"},
    {"--device", "DEVICE", "where to compute; default: as the run"},
    {"--checkpoint", "best|last|N", "best, last or a step's number; default: best where there was validation"},
    {"--json", NULL, "prints a line of JSON for each file, also for one that cannot be predicted"},
    {NULL, NULL, NULL}};

static void on_event(void *user, const stk_train_event *event)
{
    (void)user;
    if (event->kind == STK_EVENT_WARNING) cli_warn("%s", cli_shown(event->text));
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
    char text[CLI_TEXT];
    cli_printf("%s\n", cli_shown(file));
    for (int i = 0; i < n; i++) {
        if (p[i].kind == STK_PREDICTION_NUMBER)
            cli_printf("  %s\n", cli_number_text(p[i].probability, text));
        else if (p[i].class_name)
            cli_printf("  %6.2f %%  %s\n", 100 * p[i].probability, cli_shown(p[i].class_name));
        else
            cli_printf("  %6.2f %%  class %lld\n", 100 * p[i].probability, (long long)p[i].class_number);
    }
}

/* FILE  98.21 % cat  1.04 % dog */
static void print_line(const char *file, const stk_prediction *p, int n)
{
    printf("%s", cli_shown(file));
    for (int i = 0; i < n; i++) {
        if (p[i].kind == STK_PREDICTION_NUMBER)
            printf("  %.6g", p[i].probability);
        else if (p[i].class_name)
            printf("  %.2f %% %s", 100 * p[i].probability, cli_shown(p[i].class_name));
        else
            printf("  %.2f %% class %lld", 100 * p[i].probability, (long long)p[i].class_number);
    }
    printf("\n");
}

typedef struct job {
    stk_run *run;
    bool json, in_folder;
    int n_top;             /* 0: not given */
    int64_t n_done, n_bad; /* files */
    int n_bad_folders;
} job;

static void print_error(const char *file)
{
    printf("{\"file\": ");
    cli_json_text(stdout, file);
    printf(", \"error\": ");
    cli_json_text(stdout, stk_error_text());
    printf("}\n");
}

/* A file that cannot be predicted does not keep the others from it. */
static bool show(void *user, const char *file, stk_status status, const stk_prediction *p, int n)
{
    job *j = user;
    int n_top = j->n_top ? j->n_top : j->in_folder ? 1 : 5;
    j->n_done++;
    if (status != STK_OK) {
        j->n_bad++;
        cli_fail();
        if (j->json) print_error(file);
        return true;
    }
    if (n > n_top && p[0].kind != STK_PREDICTION_NUMBER) n = n_top;
    if (j->json)
        print_json(file, p, n);
    else if (j->in_folder)
        print_line(file, p, n);
    else
        print_table(file, p, n);
    return true;
}

static void show_folder(job *j, const char *folder)
{
    if (stk_run_predict_folder(j->run, folder, MOST_TOP, show, j) == STK_OK) return;
    j->n_bad_folders++;
    cli_fail();
    if (j->json) print_error(folder);
}

static int predict(job *j, const cli_args *args)
{
    static stk_prediction room[MOST_TOP];
    struct stat info;
    if (stk_run_check_predict(j->run) != STK_OK) return cli_fail();
    for (int i = 1; i < args->n_words; i++) {
        const char *path = args->word[i];
        int n = 0;
        j->in_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
        if (j->in_folder) {
            show_folder(j, path);
        } else {
            stk_status status = stk_run_predict(j->run, path, room, MOST_TOP, &n);
            show(j, path, status, room, n);
        }
    }
    if (j->n_bad == 0) return j->n_bad_folders ? CLI_FAILED : CLI_OK;
    fflush(stdout);
    if (j->n_done > 1)
        cli_error("%lld of %lld files could not be predicted", (long long)j->n_bad, (long long)j->n_done);
    return CLI_FAILED;
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
    if (!cli_number(&args, "--top", 1, MOST_TOP, 0, &n_top)) return CLI_USAGE;
    const char *device = cli_value(&args, "--device");
    if (device) snprintf(set, sizeof(set), "device=%s", device);
    stk_run_options run_options = {.set = list,
                                   .n_set = device ? 2 : 1,
                                   .checkpoint = cli_value(&args, "--checkpoint"),
                                   .without_data = true,
                                   .on_event = on_event};
    if (stk_run_load(args.word[0], &run_options, &loaded) != STK_OK) return cli_fail();
    job j = {.run = loaded, .json = cli_has(&args, "--json"), .n_top = (int)n_top};
    int code = predict(&j, &args);
    stk_run_close(loaded);
    return code;
}

const cli_verb cli_predict = {
    "predict", "RUN FILE|FOLDER... [OPTION...]",
    "Says what a trained network sees in image files, likeliest first; of all JPEG, PNG and WebP files in a folder in "
    "a line "
    "each. A file or folder that cannot be predicted is named, the others go on, and the exit code is 1. The run's "
    "stages of "
    "evaluation are done to images; those of sizes that these do not take are resized by their shorter side, and the "
    "middle is taken.",
    options, .run = run};
