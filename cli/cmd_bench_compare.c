/* stoker bench compare: results that were measured apart, with each other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench/tell.h"
#include "cli.h"

static const cli_option options[] = {
    {"--allowance", "P%", "by how much the machine may have changed between: nothing less is told; default: 2%"},
    {"--json", NULL, "prints one JSON object"},
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

/* The case of that name; where both results have one alone, that. NULL: there is none. */
static const stk_bench_kept_case *find_case(const stk_bench_kept *kept, const char *name, bool is_only)
{
    if (is_only && kept->n_cases == 1) return &kept->cases[0];
    for (int i = 0; i < kept->n_cases; i++)
        if (!strcmp(kept->cases[i].name, name)) return &kept->cases[i];
    return NULL;
}

static void print_json(const stk_bench_comparison *c, const char *a, const char *b, const char *name, bool is_first)
{
    static const char *const verdicts[] = {"worse", "no difference shown", "better"};
    printf("%s{\"from\": ", is_first ? "" : ", ");
    cli_json_place(stdout, a);
    printf(", \"to\": ");
    cli_json_place(stdout, b);
    printf(", \"case\": ");
    cli_json_place(stdout, name);
    printf(", \"verdict\": \"%s\", \"change\": ", verdicts[c->verdict + 1]);
    cli_json_number(stdout, c->change.value);
    printf(", \"low\": ");
    cli_json_number(stdout, c->change.low);
    printf(", \"high\": ");
    cli_json_number(stdout, c->change.high);
    printf(", \"share_better\": ");
    cli_json_number(stdout, c->share_better);
    printf(", \"runs\": %d, \"further_runs\": %lld}", c->n, (long long)c->n_further);
}

/* Cases that both have; *n_told grows. */
static stk_status compare_two(const stk_bench_kept *a, const stk_bench_kept *b, const cli_args *args, double allowance,
                              int *n_told)
{
    bool json = cli_has(args, "--json");
    char sentence[STK_BENCH_SENTENCE];
    for (int i = 0; i < a->n_cases; i++) {
        const stk_bench_kept_case *first = &a->cases[i], *second = find_case(b, first->name, a->n_cases == 1);
        stk_bench_comparison c;
        if (!second) continue;
        if (strcmp(first->unit, second->unit) || first->less_is_better != second->less_is_better)
            return stk_fail(STK_MISMATCH, "'%s' is measured in %s in '%s' and in %s in '%s'", first->name, first->unit,
                            a->path, second->unit, b->path);
        STK_RETURN_IF_ERROR(stk_bench_compare_apart(first->figure, first->n, second->figure, second->n,
                                                    first->less_is_better, allowance, &c));
        if (json)
            print_json(&c, a->path, b->path, first->name, *n_told == 0);
        else
            cli_printf(
                "%s%s%s\n", a->n_cases > 1 ? cli_shown(first->name) : "", a->n_cases > 1 ? ": " : "",
                stk_bench_verdict_text(&c, cli_shown(a->path), cli_shown(b->path), first->less_is_better, sentence));
        (*n_told)++;
    }
    return STK_OK;
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
    static stk_bench_kept first, other;
    double allowance;
    int n_told = 0;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words < 2) return cli_usage(verb, "bench compare needs two results: A B");
    if (!read_allowance(&args, &allowance)) return CLI_USAGE;
    if (stk_bench_kept_read(args.word[0], &first) != STK_OK) return cli_fail();
    bool json = cli_has(&args, "--json");
    stk_status status = STK_OK;
    if (json) printf("{\"allowance\": %.6g, \"comparisons\": [", allowance);
    for (int i = 1; i < args.n_words && status == STK_OK; i++) {
        status = stk_bench_kept_read(args.word[i], &other);
        if (status != STK_OK) break;
        warn_of(&first, &other);
        status = compare_two(&first, &other, &args, allowance, &n_told);
        if (status == STK_OK && n_told == 0)
            status = stk_fail(STK_MISMATCH, "'%s' and '%s' have no case in common", first.path, other.path);
        stk_bench_kept_free(&other);
    }
    int code = status == STK_OK ? CLI_OK : cli_fail();
    if (json) printf("]}\n");
    if (!json && code == CLI_OK)
        cli_printf(
            "measured apart: a machine changes from hour to hour, so that less than %.3g %% is not told; in turns "
            "(stoker bench --compare ... --with ...) less can be\n",
            100 * allowance);
    stk_bench_kept_free(&first);
    return code;
}

const cli_verb cli_bench_compare = {"bench compare", "DIR DIR [DIR...] [OPTION...]",
                                    "Says which of results that 'stoker bench' wrote is faster, each compared with the "
                                    "first. What was different between the "
                                    "machines is told first.",
                                    options, .run = run};
