/* stoker bench compare: results that were measured apart, with each other. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench.h"
#include "bench/apart.h"
#include "bench/tell.h"
#include "cli.h"

enum { MOST_RESULTS = 64 };

static const cli_option options[] = {
    {"--allowance", "P%", "by how much the machine may have changed between: nothing less is told; default: 2%"},
    {"--json", NULL, "prints one JSON object"},
    {"--markdown", NULL, "prints a table in Markdown, whose cells lead to the raw runs"},
    {"--csv", NULL, "prints the same as CSV"},
    {NULL, NULL, NULL}};

/* "2%", "0.02". */
static bool read_allowance(const cli_args *args, double *out)
{
    const char *text = cli_value(args, "--allowance");
    char *end;
    *out = 0.02;
    if (!text) return true;
    *out = strtod(text, &end);
    if (*end == '%') *out /= 100, end++;
    if (end != text && !*end && *out >= 0 && *out < 1) return true;
    cli_usage(args->verb, "option '--allowance' must be a share from 0%% to 99%%, not '%s'", text);
    return false;
}

static void put_sentences(const stk_bench_apart *apart)
{
    char sentence[STK_BENCH_SENTENCE];
    for (int i = 0; i < apart->n; i++) {
        const stk_bench_apart_row *r = &apart->row[i];
        const stk_bench_kept_case *c = &r->a->cases[r->i_a];
        char both[STK_BENCH_PLACE];
        const char *name = stk_bench_apart_name(r, both);
        bool is_named = r->a->n_cases > 1 || name == both;
        cli_printf("%s%s%s\n", is_named ? cli_shown(name) : "", is_named ? ": " : "",
                   stk_bench_verdict_text(&r->comparison, cli_shown(r->a->path), cli_shown(r->b->path),
                                          c->less_is_better, sentence));
    }
    cli_printf("measured apart: a machine changes from hour to hour, so that less than %.3g %% is not told; in turns "
               "(stoker bench --compare ... --with ...) less can be\n",
               100 * apart->allowance);
}

static int put_json(const stk_bench_apart *apart)
{
    unsigned mark = stk_json_mark();
    char *text;
    json_t *root = json_object();
    json_object_set_new(root, "allowance", json_real(apart->allowance));
    json_object_set_new(root, "comparisons", stk_bench_apart_json(apart, NULL));
    if (stk_json_print(root, mark, JSON_INDENT(1) | JSON_REAL_PRECISION(12), &text) != STK_OK) return cli_fail();
    printf("%s\n", text);
    free(text);
    return CLI_OK;
}

static int put_table(const stk_bench_apart *apart, bool is_csv)
{
    stk_text text = {0};
    if (is_csv)
        stk_bench_apart_csv(apart, NULL, &text);
    else
        stk_bench_apart_markdown(apart, NULL, &text);
    int code = stk_text_status(&text) == STK_OK ? CLI_OK : cli_fail();
    if (code == CLI_OK) fputs(stk_text_get(&text), stdout);
    stk_text_free(&text);
    return code;
}

static void warn_of(const stk_bench_kept *a, const stk_bench_kept *b)
{
    stk_text text = {0};
    if (stk_bench_kept_differences(a, b, &text) > 0) {
        const char *line = stk_text_get(&text);
        cli_warn("'%s' and '%s' were measured under other conditions:", cli_shown(a->path), cli_shown(b->path));
        for (size_t n; *line; line += n + (line[n] == '\n')) {
            char part[512];
            n = strcspn(line, "\n");
            snprintf(part, sizeof(part), "%.*s", (int)n, line);
            cli_warn("  %s", cli_shown(part));
        }
    }
    stk_text_free(&text);
    if (a->is_disturbed) cli_warn("'%s' was disturbed: its marks say by what", cli_shown(a->path));
    if (b->is_disturbed) cli_warn("'%s' was disturbed: its marks say by what", cli_shown(b->path));
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static stk_bench_kept kept[MOST_RESULTS];
    stk_bench_apart apart = {0};
    stk_status status = STK_OK;
    int n = 0, code;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words < 2) return cli_usage(verb, "bench compare needs two results: A B");
    if (args.n_words > MOST_RESULTS) return cli_usage(verb, "bench compare is for %d results at most", MOST_RESULTS);
    if (cli_has(&args, "--json") + cli_has(&args, "--csv") + cli_has(&args, "--markdown") > 1)
        return cli_usage(verb, "of '--json', '--csv' and '--markdown' one goes at a time");
    if (!read_allowance(&args, &apart.allowance)) return CLI_USAGE;
    for (; n < args.n_words && status == STK_OK; n++) {
        status = stk_bench_kept_read(args.word[n], &kept[n]);
        if (status == STK_OK && n > 0) {
            warn_of(&kept[0], &kept[n]);
            status = stk_bench_apart_add(&apart, &kept[0], &kept[n], true);
        }
    }
    if (status != STK_OK) {
        code = cli_fail();
    } else if (cli_has(&args, "--json")) {
        code = put_json(&apart);
    } else if (cli_has(&args, "--csv") || cli_has(&args, "--markdown")) {
        code = put_table(&apart, cli_has(&args, "--csv"));
    } else {
        put_sentences(&apart);
        code = CLI_OK;
    }
    stk_bench_apart_free(&apart);
    for (int i = 0; i < n; i++) {
        if (code == CLI_OK && cli_bench_impossible(&kept[i]) > 0) code = CLI_FAILED;
        stk_bench_kept_free(&kept[i]);
    }
    return code;
}

const cli_verb cli_bench_compare = {"bench compare", "DIR DIR [DIR...] [OPTION...]",
                                    "Says which of results that 'stoker bench' wrote is faster, each compared with the "
                                    "first. What was different between the "
                                    "machines is told first.",
                                    options, .run = run};
