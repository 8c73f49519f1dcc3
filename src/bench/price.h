/* What the money buys: a dated file of prices, and the cost of work on machines whose rate is known. Arithmetic on what
 * the file says; nothing is measured and nothing is fetched. Every amount needs its unit and every price its date: a
 * price without them is refused.
 *
 *   date: 2026-11-01
 *   currency: EUR
 *   electricity: 0.30 EUR/kWh
 *   pue: 1.3                       # the building's energy for each of the machine's
 *   work: 50000 samples            # what an epoch is
 *   machines:
 *     - {name: rented, source: 'offer of 2026-10-30', hourly: 2.40 EUR/h, rate: 1200 samples/s}
 *     - {name: bought, source: 'shop', date: 2026-10-01, purchase: 2000 EUR, lifetime: 3 years, power: 450 W,
 *        utilisation: 50%, rate: 800 samples/s}
 *     - {name: measured, source: 'shop', hourly: 1.10 EUR/h, result: bench-train, case: resnet50 bf16}
 *
 * A rate, and the power of a bought machine, may be what a result of stoker bench has measured: stk_bench_prices_fill.
 *
 * Threads: one at a time for each.
 */
#ifndef STK_BENCH_PRICE_H
#define STK_BENCH_PRICE_H

#include "base/text.h"
#include "bench/result.h"
#include "settings/yaml.h"

enum { STK_BENCH_MOST_MACHINES = 64 };

/* NaN: not told. */
typedef struct stk_bench_priced {
    const char *name, *source, *date; /* borrowed from the file */
    double hourly;                    /* of a rented one, with its energy */
    double purchase, lifetime_h, power_w, utilisation;
    double rate;                          /* in units of work a second */
    const char *result, *case_name;       /* whose median it is, by the name of the result's folder; NULL: it is told */
    double rate_low, rate_high;           /* the median's interval; NaN: told without one */
    bool power_is_measured, is_disturbed; /* disturbed: as the result says of itself */
    /* What follows. */
    double energy_hour;    /* for electricity, of an hour of work */
    double hour;           /* all that an hour of work costs */
    double million, epoch; /* for a million units, and for the work */
    double rate_for_1000;  /* units a second for 1,000 of the currency of the purchase */
} stk_bench_priced;

typedef struct stk_bench_prices {
    stk_yaml *yaml;
    const char *date, *currency;
    char unit[32]; /* "samples" */
    double electricity, pue, work;
    stk_bench_priced machine[STK_BENCH_MOST_MACHINES];
    int n;
} stk_bench_prices;

/* Errors: STK_INVALID with the place, for what is no price. Free in any case. */
stk_status stk_bench_prices_read(const char *path, stk_bench_prices *out);
/* The same of a text. */
stk_status stk_bench_prices_parse(const char *origin, const void *text, size_t n, stk_bench_prices *out);
void stk_bench_prices_free(stk_bench_prices *prices);
/* Rates and powers of machines that name a result, of the results in kept [n]. A case in seconds is a whole run, whose
 * work is in runs. Then computes. Errors: STK_NOT_FOUND, no such result or case; STK_MISMATCH, another unit;
 * STK_INVALID, a bought machine whose power is neither told nor measured, or a rate that cannot be. */
stk_status stk_bench_prices_fill(stk_bench_prices *prices, const stk_bench_kept *kept, int n);
/* Computes what follows; after a change of the figures, again. */
void stk_bench_prices_compute(stk_bench_prices *prices);

/* Hours of work from which on buying is cheaper than renting at equal work: rate_rent / rate_buy hours are rented for
 * each. Infinite: never. */
double stk_bench_break_even_h(const stk_bench_priced *rented, const stk_bench_priced *bought);
/* Whether the two can be set against each other so. */
bool stk_bench_is_rent_or_buy(const stk_bench_priced *rented, const stk_bench_priced *bought);
/* Hours in which it works until its lifetime ends, and years in which it works so many hours. */
double stk_bench_life_h(const stk_bench_priced *bought);
double stk_bench_years_of(const stk_bench_priced *bought, double hours);

/* What may be different from what the file says: X(key, title). */
#define STK_BENCH_VARIATIONS(X)                                                                                        \
    X(as_it_is, "as it is")                                                                                            \
    X(price_less_20, "price -20 %")                                                                                    \
    X(price_more_20, "price +20 %")                                                                                    \
    X(electricity_x2, "electricity x2")                                                                                \
    X(utilisation_100, "utilisation 100 %")                                                                            \
    X(utilisation_50, "50 %")                                                                                          \
    X(utilisation_25, "25 %")
enum {
#define X(key, title) STK_BENCH_VARIATION_##key,
    STK_BENCH_VARIATIONS(X)
#undef X
        STK_BENCH_N_VARIATIONS
};
const char *stk_bench_variation_key(int variation);
/* For a million units on machine i, where that one thing is different. */
double stk_bench_prices_varied(const stk_bench_prices *prices, int i, int variation);

/* Tables in Markdown: costs, from how many hours on what is cheaper, and what other prices and utilisations would do.
 */
void stk_bench_prices_tell(const stk_bench_prices *prices, stk_text *out);

/* The same as HTML, for a page: tables, and a plot of what is paid over the hours. */
stk_status stk_bench_prices_add(const stk_bench_prices *prices, stk_text *out);
/* The same as one HTML page, with a plot of what is paid over the hours. Errors: STK_BUSY, another kind of file is at
 * path. */
stk_status stk_bench_prices_page(const stk_bench_prices *prices, const char *path);

/* "2.40 EUR/h" with unit "EUR/h" -> 2.4. False: no number above 0, another unit, or none. */
bool stk_bench_parse_amount(const char *text, const char *unit, double *out);

#endif
