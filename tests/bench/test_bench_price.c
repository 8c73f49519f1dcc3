/* Costs, computed by hand; and prices that say too little, which are refused with their place. */
#include "bench/price.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char good[] =
    "date: 2026-11-01\ncurrency: EUR\nelectricity: 0.30 EUR/kWh\npue: 1.3\nwork: 50000 samples\nmachines:\n"
    "  - {name: rented, source: 'an offer', hourly: 2.40 EUR/h, rate: '1,200 samples/s'}\n"
    "  - {name: bought, source: 'a shop', date: 2026-10-01, purchase: 2000 EUR, lifetime: 3 years, power: 450 W,\n"
    "     utilisation: 50%, rate: 800 samples/s}\n";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static const char path[] = STK_BINARY_DIR "/test_bench_price.yaml";

/* The good file with `from` in another way, which must be refused with these words. */
static void refuse(const char *from, const char *to, const char *words)
{
    char text[2048];
    stk_bench_prices prices;
    const char *at = strstr(good, from);
    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    write_file(path, text);
    assert_int_not_equal(stk_bench_prices_read(path, &prices), STK_OK);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' is not in '%s'", words, stk_error_text());
    stk_bench_prices_free(&prices);
}

static void assert_close(double x, double y)
{
    if (!(fabs(x - y) <= 2e-6 * fabs(y))) fail_msg("%.9g is not %.9g", x, y);
}

/* examples/prices-h100.yaml. */
static void test_an_h100(void **state)
{
    (void)state;
    stk_bench_prices p;
    assert_int_equal(stk_bench_prices_read(STK_SOURCE_DIR "/examples/prices-h100.yaml", &p), STK_OK);
    assert_int_equal(p.n, 2);
    assert_string_equal(p.unit, "tokens");
    /* 436,777 tokens/s are 1,572.3972 million an hour: 4.916 / 1572.3972, and 9,035.582198 million of them. */
    assert_close(p.machine[0].million, 0.003126437);
    assert_close(p.machine[0].epoch, 28.24918);
    /* 4 years are 35,064 hours, 70 % of them 24,544.8: 39625 / 24544.8 = 1.614395; 1.275 kW * 1.58 * 0.1282 =
     * 0.2582589. */
    assert_close(p.machine[1].energy_hour, 0.2582589);
    assert_close(p.machine[1].hour, 1.872653);
    assert_close(p.machine[1].million, 0.001190954);
    /* 39625 / (4.916 - 0.2582589) */
    assert_close(stk_bench_break_even_h(&p.machine[0], &p.machine[1]), 8507.343);
    stk_bench_prices_free(&p);
}

static void test_by_hand(void **state)
{
    (void)state;
    stk_bench_prices p;
    write_file(path, good);
    assert_int_equal(stk_bench_prices_read(path, &p), STK_OK);
    assert_int_equal(p.n, 2);
    assert_string_equal(p.unit, "samples");
    /* 2.40 EUR/h / (1200 * 3600 samples/h) */
    assert_close(p.machine[0].million, 0.5555556);
    assert_close(p.machine[0].epoch, 0.02777778);
    assert_true(isnan(p.machine[0].rate_for_1000));
    assert_string_equal(p.machine[0].date, "2026-11-01");
    /* 3 years are 26,298 hours, of which it works 13,149: 2000 / 13149 = 0.152103; 0.45 kW * 1.3 * 0.30 = 0.1755. */
    assert_close(p.machine[1].energy_hour, 0.1755);
    assert_close(p.machine[1].hour, 0.3276029);
    /* 0.3276029 / 2.88 million samples an hour */
    assert_close(p.machine[1].million, 0.1137510);
    assert_close(p.machine[1].rate_for_1000, 400);
    assert_string_equal(p.machine[1].date, "2026-10-01");
    /* An hour of it saves 2.40 * 800 / 1200 - 0.1755 = 1.4245: 2000 / 1.4245. */
    assert_close(stk_bench_break_even_h(&p.machine[0], &p.machine[1]), 1404.0014);
    /* Rented for less than its electricity: never. */
    p.machine[0].hourly = 0.26;
    assert_true(isinf(stk_bench_break_even_h(&p.machine[0], &p.machine[1])));
    stk_text text = {0};
    stk_bench_prices_tell(&p, &text);
    assert_int_equal(stk_text_status(&text), STK_OK);
    assert_non_null(strstr(stk_text_get(&text), "never within its lifetime"));
    assert_non_null(strstr(stk_text_get(&text), "samples/s for 1,000 EUR"));
    stk_text_free(&text);
    stk_bench_prices_free(&p);
}

/* A result of three cases, in a folder whose name the prices say. */
static void make_result(stk_bench_kept *kept, const char *energy)
{
    char text[2048];
    static stk_bench_kept_case none;
    snprintf(text, sizeof(text),
             "{\"cases\": [{\"name\": \"train\", \"unit\": \"samples/s\", \"summary\": {\"median\": {\"value\": 800, "
             "\"low\": "
             "700, \"high\": 900}, \"wall_s\": 10, \"joules\": %s, \"gpu_joules\": null}}, {\"name\": \"to 97 %%\", "
             "\"unit\": "
             "\"s\", \"summary\": {\"median\": {\"value\": 90, \"low\": 80, \"high\": 120}, \"wall_s\": 90}}]}",
             energy);
    *kept = (stk_bench_kept){.path = "runs/bench-mine/result.json", .root = json_loads(text, 0, NULL), .cases = &none};
    assert_non_null(kept->root);
}

static void fill(const char *machine, const char *work, const char *energy, const char *words, stk_bench_prices *p)
{
    char text[1024];
    stk_bench_kept kept;
    snprintf(text, sizeof(text),
             "date: 2026-11-01\ncurrency: EUR\nelectricity: 0.30 EUR/kWh\nwork: %s\nmachines:\n  - {name: m, "
             "source: a shop, %s}\n",
             work, machine);
    write_file(path, text);
    assert_int_equal(stk_bench_prices_read(path, p), STK_OK);
    make_result(&kept, energy);
    stk_status status = stk_bench_prices_fill(p, &kept, 1);
    if (!words) {
        assert_int_equal(status, STK_OK);
    } else {
        assert_int_not_equal(status, STK_OK);
        if (!strstr(stk_error_text(), words)) fail_msg("'%s' is not in '%s'", words, stk_error_text());
    }
    json_decref(kept.root);
}

#define BUY "purchase: 2000 EUR, lifetime: 1 years, "
static void test_measured(void **state)
{
    (void)state;
    stk_bench_prices p;
    fill("hourly: 2.88 EUR/h, result: bench-mine, case: train", "1000 samples", "null", NULL, &p);
    assert_close(p.machine[0].rate, 800);
    assert_close(p.machine[0].rate_low, 700);
    assert_close(p.machine[0].million, 1); /* 2.88 / (800 * 3600) * 10^6 */
    stk_bench_prices_free(&p);
    /* 4500 J in 10 s are 450 W: 0.45 kW * 0.30 EUR/kWh */
    fill(BUY "result: bench-mine, case: train", "1000 samples", "4500", NULL, &p);
    assert_close(p.machine[0].energy_hour, 0.135);
    assert_true(p.machine[0].power_is_measured);
    stk_bench_prices_free(&p);
    /* 90 s at 4 EUR an hour to the accuracy */
    fill("hourly: 4 EUR/h, result: bench-mine, case: 'to 97 %'", "1 runs", "null", NULL, &p);
    assert_close(p.machine[0].epoch, 0.1);
    static const char page[] = STK_BINARY_DIR "/test_bench_price.html";
    remove(page);
    assert_int_equal(stk_bench_prices_page(&p, page), STK_OK);
    if (stk_bench_prices_page(&p, page) != STK_OK) fail_msg("%s", stk_error_text());
    FILE *other = fopen(page, "w");
    assert_non_null(other);
    assert_true(fputs("somebody's page", other) >= 0 && fclose(other) == 0);
    assert_int_equal(stk_bench_prices_page(&p, page), STK_BUSY); /* and no other */
    assert_int_equal(stk_bench_prices_page(&p, path), STK_UNSUPPORTED);
    stk_bench_prices_free(&p);
    fill(BUY "result: bench-mine, case: train", "1000 samples", "null", "needs its 'power'", &p);
    stk_bench_prices_free(&p);
    fill("hourly: 4 EUR/h, result: bench-mine, case: train", "10 tokens", "null", "the prices are for tokens", &p);
    stk_bench_prices_free(&p);
    fill("hourly: 4 EUR/h, result: bench-mine, case: 'to 97 %'", "10 samples", "null", "'work' is '1 runs'", &p);
    stk_bench_prices_free(&p);
    fill("hourly: 4 EUR/h, result: mine, case: train", "1000 samples", "null", "not among those given", &p);
    stk_bench_prices_free(&p);
    fill("hourly: 4 EUR/h, result: bench-mine, case: other", "1000 samples", "null", "no case 'other'", &p);
    stk_bench_prices_free(&p);
}

static void test_refused(void **state)
{
    (void)state;
    refuse("date: 2026-11-01\n", "", "date");
    refuse("date: 2026-11-01\n", "date: last week\n", "must be a date");
    refuse("date: 2026-11-01\n", "date: 2026-13-01\n", "must be a date");
    refuse("date: 2026-10-01,", "date: soon,", "must be a date");
    refuse("currency: EUR\n", "", "currency");
    refuse("currency: EUR\n", "currency: euro\n", "three capitals");
    refuse("hourly: 2.40 EUR/h", "hourly: 2.40", "with the unit EUR/h");
    refuse("hourly: 2.40 EUR/h", "hourly: 240 ct/h", "with the unit EUR/h");
    refuse("hourly: 2.40 EUR/h", "hourly: 2.40 USD/h", "with the unit EUR/h");
    refuse("hourly: 2.40 EUR/h", "hourly: 2.40 EUR", "with the unit EUR/h");
    refuse("hourly: 2.40 EUR/h", "hourly: -2.40 EUR/h", "above 0");
    refuse("purchase: 2000 EUR", "purchase: 2000", "with the unit EUR");
    refuse("lifetime: 3 years", "lifetime: 3", "with the unit years");
    refuse("lifetime: 3 years, ", "", "needs its 'lifetime'");
    refuse("power: 450 W", "power: 0.45 kW", "with the unit W");
    refuse("electricity: 0.30 EUR/kWh", "electricity: 30 ct/kWh", "with the unit EUR/kWh");
    refuse("rate: 800 samples/s", "rate: 800 tokens/s", "with the unit samples/s");
    refuse("work: 50000 samples", "work: 50000", "a unit");
    refuse("hourly: 2.40 EUR/h, ", "", "needs one of");
    refuse("rate: 800 samples/s", "result: x", "go together");
    refuse("rate: 800 samples/s", "rate: 800 samples/s, result: x, case: y", "not both");
    refuse(", rate: 800 samples/s", "", "needs its 'rate'");
    refuse("source: 'an offer', ", "", "source");
    refuse("utilisation: 50%", "utilisation: 150%", "utilisation");
    refuse("pue: 1.3", "pue: 0.9", "pue");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand), cmocka_unit_test(test_an_h100),
                                       cmocka_unit_test(test_measured), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
