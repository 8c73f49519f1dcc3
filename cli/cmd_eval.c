/* stoker eval */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stoker/train/run.h"

static const cli_option options[] = {
    {"--part", "test|valid|train", "the part of the recipe's data; default: test"},
    {"--device", "DEVICE", "where to compute; default: as the run"},
    {"--batch", "N", "samples at once; default: as the run"},
    {"--threads", "N", "threads; default: as the run"},
    {"--checkpoint", "best|last|N", "best, last or a step's number; default: best where there was validation"},
    {"--set", "KEY=VALUE", "changes a key of the recipe: --set data.test.on_error=skip; may be given often"},
    {"--json", NULL, "prints one line of JSON"},
    {NULL, NULL, NULL}};

static void on_event(void *user, const stk_train_event *event)
{
    (void)user;
    if (event->kind == STK_EVENT_WARNING) cli_warn("%s", cli_shown(event->text));
}

static void print_metrics(const stk_run *run, const char *part, const stk_metrics *m, bool json)
{
    char a[CLI_TEXT], b[CLI_TEXT];
    if (json) {
        printf("{\"part\": \"%s\", \"step\": %lld, \"samples\": %lld, \"loss\": ", part, (long long)stk_run_step(run),
               (long long)m->n_samples);
        cli_json_number(stdout, m->loss);
        printf(", \"accuracy\": ");
        cli_json_number(stdout, m->accuracy >= 0 ? m->accuracy : 0.0 / 0.0);
        if (m->top5 >= 0) printf(", \"top5\": %.6g", m->top5);
        if (m->perplexity > 0) printf(", \"perplexity\": %.6g", m->perplexity);
        cli_json_values("", m);
        printf(", \"skipped\": %lld}\n", (long long)stk_run_n_skipped(run));
        return;
    }
    cli_printf("%s, step %s: ", part, cli_count(stk_run_step(run), a));
    if (m->accuracy >= 0) cli_printf("accuracy %.2f %%, ", 100 * m->accuracy);
    if (m->top5 >= 0) cli_printf("top-5 %.2f %%, ", 100 * m->top5);
    for (int i = 0; i < m->n_values; i++)
        cli_printf("%s %s, ", m->value[i].name, cli_number_text(m->value[i].value, a));
    if (m->perplexity > 0) cli_printf("perplexity %s, ", cli_number_text(m->perplexity, a));
    cli_printf("loss %s on %s samples\n", cli_loss(m->loss, a), cli_count(m->n_samples, b));
}

static void list_skipped(const stk_run *run)
{
    for (int64_t i = 0; stk_run_skipped(run, i); i++)
        fprintf(stderr, "        skipped %s\n", cli_shown(stk_run_skipped(run, i)));
}

static void print_skipped(const stk_run *run)
{
    char count[CLI_TEXT];
    int64_t n = stk_run_n_skipped(run);
    if (n == 0) return;
    cli_printf("skipped %s record%s\n", cli_count(n, count), n == 1 ? "" : "s");
    fflush(stdout); /* before the list, where both go to one place */
    list_skipped(run);
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static const char *const names[] = {"--device", "--batch", "--threads"};
    char sets[3][256];
    static const char *list[CLI_MOST_ARGS + 3];
    int n = 0;
    stk_run *loaded = NULL;
    stk_metrics metrics;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 1) return cli_usage(verb, "eval takes one run folder, and there are %d", args.n_words);
    const char *part = cli_value(&args, "--part");
    if (!part) part = "test";
    if (strcmp(part, "test") && strcmp(part, "valid") && strcmp(part, "train"))
        return cli_usage(verb, "option '--part' must be test, valid or train, not '%s'", part);
    for (int i = 0; i < 3; i++) {
        const char *value = cli_value(&args, names[i]);
        if (!value) continue;
        snprintf(sets[n], sizeof(sets[n]), "%s=%s", names[i] + 2, value);
        list[n] = sets[n];
        n++;
    }
    for (int i = 0; i < args.n_found; i++) {
        if (strcmp(args.found[i].option->name, "--set") != 0) continue;
        if (!strchr(args.found[i].value, '='))
            return cli_usage(verb, "option '--set' needs KEY=VALUE, not '%s'", args.found[i].value);
        list[n++] = args.found[i].value;
    }
    stk_run_options run_options = {
        .set = list, .n_set = n, .checkpoint = cli_value(&args, "--checkpoint"), .on_event = on_event};
    stk_status status = stk_run_load(args.word[0], &run_options, &loaded);
    if (status == STK_OK) status = stk_run_evaluate(loaded, part, &metrics);
    int code = CLI_OK;
    if (status == STK_OK)
        print_metrics(loaded, part, &metrics, cli_has(&args, "--json"));
    else
        code = cli_fail();
    if (status == STK_OK && !cli_has(&args, "--json")) print_skipped(loaded);
    if (status != STK_OK) list_skipped(loaded);
    stk_run_close(loaded);
    return code;
}

const cli_verb cli_eval = {"eval", "RUN [OPTION...]",
                           "Evaluates a checkpoint of a run: the loss and all metrics of its recipe.", options,
                           .run = run};
