/* stoker bench cost: what work costs on machines whose prices a file says. */
#include <math.h>

#include "bench/price.h"
#include "cli.h"

static const cli_option options[] = {
    {"--out", "FILE", "writes a page with the tables and a plot of what is paid over the hours: cost.html"},
    {"--json", NULL, "prints one JSON object"},
    {NULL, NULL, NULL}};

enum { MOST_RESULTS = 16 };

static void put_number(const char *name, double x)
{
    printf(", \"%s\": ", name);
    cli_json_number(stdout, x);
}

static void put_text(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text)
        cli_json_text(stdout, text);
    else
        printf("null");
}

static void print_machine(const stk_bench_prices *p, int i)
{
    const stk_bench_priced *m = &p->machine[i];
    printf("{\"name\": ");
    cli_json_text(stdout, m->name);
    put_text("source", m->source);
    put_text("date", m->date);
    put_number("hourly", m->hourly);
    put_number("purchase", m->purchase);
    put_number("lifetime_h", m->lifetime_h);
    put_number("utilisation", m->utilisation);
    put_text("result", m->result);
    put_text("case", m->case_name);
    printf(", \"disturbed\": %s", m->is_disturbed ? "true" : "false");
    put_number("rate", m->rate);
    put_number("rate_low", m->rate_low);
    put_number("rate_high", m->rate_high);
    put_number("power_w", m->power_w);
    printf(", \"power_measured\": %s", m->power_is_measured ? "true" : "false");
    put_number("hour", m->hour);
    put_number("energy_hour", m->energy_hour);
    put_number("million", m->million);
    put_number("work", m->epoch);
    put_number("rate_for_1000", m->rate_for_1000);
    printf(", \"million_with\": {");
    for (int k = 0; k < STK_BENCH_N_VARIATIONS; k++) {
        printf("%s\"%s\": ", k ? ", " : "", stk_bench_variation_key(k));
        cli_json_number(stdout, stk_bench_prices_varied(p, i, k));
    }
    printf("}}");
}

/* hours: null where it never is, in its lifetime or at all. */
static void print_break_even(const stk_bench_prices *p)
{
    const char *comma = "";
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->n; k++) {
            const stk_bench_priced *rented = &p->machine[i], *bought = &p->machine[k];
            if (!stk_bench_is_rent_or_buy(rented, bought)) continue;
            double hours = stk_bench_break_even_h(rented, bought);
            if (hours > stk_bench_life_h(bought)) hours = NAN;
            printf("%s{\"rented\": ", comma);
            cli_json_text(stdout, rented->name);
            put_text("bought", bought->name);
            put_number("hours", hours);
            put_number("years", stk_bench_years_of(bought, hours));
            printf("}");
            comma = ", ";
        }
}

static void print_json(const stk_bench_prices *p)
{
    printf("{\"date\": \"%s\", \"currency\": \"%s\"", p->date, p->currency);
    put_text("unit", p->unit);
    put_number("units_of_work", p->work);
    put_number("electricity_kwh", p->electricity);
    put_number("pue", p->pue);
    printf(", \"machines\": [");
    for (int i = 0; i < p->n; i++) {
        printf("%s", i ? ", " : "");
        print_machine(p, i);
    }
    printf("], \"break_even\": [");
    print_break_even(p);
    printf("]}\n");
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static stk_bench_prices prices;
    static stk_bench_kept kept[MOST_RESULTS];
    stk_text text = {0};
    int code = CLI_OK, n = 0;
    stk_status status = STK_OK;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words < 1 || args.n_words > 1 + MOST_RESULTS)
        return cli_usage(verb, "bench cost takes a file of prices, and at most %d results", MOST_RESULTS);
    status = stk_bench_prices_read(args.word[0], &prices);
    while (status == STK_OK && n + 1 < args.n_words) {
        status = stk_bench_kept_read(args.word[n + 1], &kept[n]);
        n += status == STK_OK;
    }
    if (status == STK_OK) status = stk_bench_prices_fill(&prices, kept, n);
    if (status == STK_OK && cli_value(&args, "--out"))
        status = stk_bench_prices_page(&prices, cli_value(&args, "--out"));
    if (status == STK_OK && cli_value(&args, "--out") && !cli_has(&args, "--json"))
        fprintf(stderr, "wrote %s\n", cli_shown(cli_value(&args, "--out")));
    if (status != STK_OK) {
        code = cli_fail();
    } else if (cli_has(&args, "--json")) {
        print_json(&prices);
    } else {
        stk_bench_prices_tell(&prices, &text);
        if (stk_text_status(&text) == STK_OK)
            cli_put_text(stk_text_get(&text));
        else
            code = cli_fail();
    }
    stk_text_free(&text);
    stk_bench_prices_free(&prices);
    for (int i = 0; i < n; i++)
        stk_bench_kept_free(&kept[i]);
    return code;
}

const cli_verb cli_bench_cost = {
    "bench cost",
    "PRICES [DIR...] [OPTION...]",
    "Says what work costs, by a dated file of prices: an hour, a million samples or tokens, an epoch; from how many "
    "hours "
    "on buying is cheaper than renting; and what other prices would do. Rates may be those of results of 'stoker "
    "bench'. A "
    "price without date or unit is refused.",
    options,
    .run = run,
    .makes_files = true};
