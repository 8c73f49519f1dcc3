#include "bench/price.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain_number.h"
#include "base/printable.h"
#include "bench/number.h"
#include "settings/schema.h"

static const double YEAR_H = 365.25 * 24;

static const stk_key machine_keys[] = {
    {.name = "name", .type = STK_KEY_TEXT, .required = true, .doc = "of the machine"},
    {.name = "source", .type = STK_KEY_TEXT, .required = true, .doc = "where the price is from"},
    {.name = "date", .type = STK_KEY_TEXT, .doc = "of the price, where it is not the file's"},
    {.name = "hourly", .type = STK_KEY_TEXT, .doc = "rent, with its energy: 2.40 EUR/h"},
    {.name = "purchase", .type = STK_KEY_TEXT, .doc = "2000 EUR"},
    {.name = "lifetime", .type = STK_KEY_TEXT, .doc = "3 years"},
    {.name = "power", .type = STK_KEY_TEXT, .doc = "while it works: 450 W"},
    {.name = "utilisation",
     .type = STK_KEY_SHARE,
     .default_value = "100%",
     .least = 0,
     .most = 1,
     .above = true,
     .doc = "the share of its lifetime in which it works"},
    {.name = "rate", .type = STK_KEY_TEXT, .doc = "1200 samples/s"},
    {.name = "result", .type = STK_KEY_TEXT, .doc = "in place of rate: the folder's name of a result of stoker bench"},
    {.name = "case", .type = STK_KEY_TEXT, .doc = "of that result"},
    STK_KEY_END};
static const stk_key machine_element = {.name = "machine", .type = STK_KEY_MAP, .keys = machine_keys, .no_short = true};
static const stk_key price_keys[] = {
    {.name = "date", .type = STK_KEY_TEXT, .required = true, .doc = "of the prices: 2026-11-01"},
    {.name = "currency", .type = STK_KEY_TEXT, .required = true, .doc = "EUR"},
    {.name = "electricity", .type = STK_KEY_TEXT, .required = true, .doc = "0.30 EUR/kWh"},
    {.name = "pue",
     .type = STK_KEY_REAL,
     .default_value = "1",
     .least = 1,
     .most = 5,
     .doc = "the building's energy for each of the machine's"},
    {.name = "work", .type = STK_KEY_TEXT, .required = true, .doc = "an epoch: 50000 samples"},
    {.name = "machines",
     .type = STK_KEY_LIST,
     .element = &machine_element,
     .required = true,
     .doc = "what is compared"},
    STK_KEY_END};
static const stk_key price_root = {.name = "prices", .type = STK_KEY_MAP, .keys = price_keys, .no_short = true};

/* The number that begins a text, and what follows after blanks. */
static bool parse_number(const char *text, double *out, const char **rest)
{
    size_t n = stk_bench_read_number(text, strlen(text), out);
    *rest = text + n + strspn(text + n, " ");
    return n > 0 && isfinite(*out) && *out > 0;
}

bool stk_bench_parse_amount(const char *text, const char *unit, double *out)
{
    const char *rest;
    return parse_number(text, out, &rest) && !strcmp(rest, unit);
}

/* NaN where the key is not there. */
static stk_status read_amount(const stk_yaml_node *node, const char *key, const char *unit, double *out)
{
    const char *text = stk_yaml_text(node, key);
    *out = NAN;
    if (!text || stk_bench_parse_amount(text, unit, out)) return STK_OK;
    return stk_yaml_fail(stk_yaml_get(node, key), "'%s' is '%s', and must be a number above 0 with the unit %s", key,
                         text, unit);
}

/* 2026-11-01; a price without a date says nothing. */
static stk_status check_date(const stk_yaml_node *node, const char *key)
{
    static const char form[] = "dddd-dd-dd";
    const char *text = stk_yaml_text(node, key);
    bool fits = text && strlen(text) == strlen(form);
    for (size_t i = 0; fits && form[i]; i++)
        fits = form[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == '-';
    fits = fits && atoi(text + 5) >= 1 && atoi(text + 5) <= 12 && atoi(text + 8) >= 1 && atoi(text + 8) <= 31;
    return fits ? STK_OK
                : stk_yaml_fail(stk_yaml_get(node, key), "'%s' must be a date like 2026-11-01, not '%s'", key,
                                text ? text : "");
}

static stk_status read_machine(stk_bench_prices *p, const stk_yaml_node *node)
{
    char unit[48];
    if (p->n == STK_BENCH_MOST_MACHINES) return stk_yaml_fail(node, "more than %d machines", STK_BENCH_MOST_MACHINES);
    stk_bench_priced *m = &p->machine[p->n++];
    m->name = stk_yaml_text(node, "name");
    m->source = stk_yaml_text(node, "source");
    m->date = stk_yaml_text(node, "date");
    if (m->date) STK_RETURN_IF_ERROR(check_date(node, "date"));
    if (!m->date) m->date = p->date;
    snprintf(unit, sizeof(unit), "%s/h", p->currency);
    STK_RETURN_IF_ERROR(read_amount(node, "hourly", unit, &m->hourly));
    STK_RETURN_IF_ERROR(read_amount(node, "purchase", p->currency, &m->purchase));
    STK_RETURN_IF_ERROR(read_amount(node, "lifetime", "years", &m->lifetime_h));
    m->lifetime_h *= YEAR_H;
    STK_RETURN_IF_ERROR(read_amount(node, "power", "W", &m->power_w));
    m->utilisation = stk_yaml_real(node, "utilisation", 1);
    snprintf(unit, sizeof(unit), "%s/s", p->unit);
    STK_RETURN_IF_ERROR(read_amount(node, "rate", unit, &m->rate));
    for (int k = 0; k + 1 < p->n; k++)
        if (!strcmp(p->machine[k].name, m->name))
            return stk_yaml_fail(stk_yaml_get(node, "name"), "there are two machines '%s'", m->name);
    if (isnan(m->hourly) == isnan(m->purchase))
        return stk_yaml_fail(node, "'%s' needs one of 'hourly' and 'purchase'%s", m->name,
                             isnan(m->hourly) ? "" : ", not both");
    m->result = stk_yaml_text(node, "result");
    m->case_name = stk_yaml_text(node, "case");
    m->rate_low = m->rate_high = NAN;
    if (!m->result != !m->case_name) return stk_yaml_fail(node, "'%s': 'result' and 'case' go together", m->name);
    if (isnan(m->rate) != (m->result != NULL))
        return stk_yaml_fail(node, "'%s' needs its 'rate', or the 'result' and 'case' that measured it, not both",
                             m->name);
    if (!isnan(m->purchase) && isnan(m->lifetime_h))
        return stk_yaml_fail(node, "'%s' is bought, and needs its 'lifetime'", m->name);
    if (!isnan(m->purchase) && isnan(m->power_w) && !m->result)
        return stk_yaml_fail(node, "'%s' is bought, and needs its 'power'", m->name);
    return STK_OK;
}

static stk_status read_prices(stk_bench_prices *p)
{
    const stk_yaml_node *root = p->yaml->root, *list = stk_yaml_get(root, "machines");
    char unit[32];
    const char *rest;
    STK_RETURN_IF_ERROR(check_date(root, "date"));
    p->date = stk_yaml_text(root, "date");
    p->currency = stk_yaml_text(root, "currency");
    if (strlen(p->currency) != 3 || strspn(p->currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3)
        return stk_yaml_fail(stk_yaml_get(root, "currency"), "'currency' must be three capitals as EUR, not '%s'",
                             p->currency);
    snprintf(unit, sizeof(unit), "%s/kWh", p->currency);
    STK_RETURN_IF_ERROR(read_amount(root, "electricity", unit, &p->electricity));
    p->pue = stk_yaml_real(root, "pue", 1);
    const char *work = stk_yaml_text(root, "work");
    if (!parse_number(work, &p->work, &rest) || !*rest || strlen(rest) >= sizeof(p->unit))
        return stk_yaml_fail(stk_yaml_get(root, "work"),
                             "'work' must be a number with a unit like 50000 samples, not '%s'", work);
    snprintf(p->unit, sizeof(p->unit), "%s", rest);
    for (const stk_yaml_node *node = list->child; node; node = node->next)
        STK_RETURN_IF_ERROR(read_machine(p, node));
    if (!p->n) return stk_yaml_fail(list, "there is no machine");
    stk_bench_prices_compute(p);
    return STK_OK;
}

stk_status stk_bench_prices_parse(const char *origin, const void *text, size_t n, stk_bench_prices *out)
{
    memset(out, 0, sizeof(*out));
    STK_RETURN_IF_ERROR(stk_yaml_parse(origin, text, n, &out->yaml));
    STK_RETURN_IF_ERROR(stk_schema_check(out->yaml, out->yaml->root, &price_root));
    return read_prices(out);
}

stk_status stk_bench_prices_read(const char *path, stk_bench_prices *out)
{
    memset(out, 0, sizeof(*out));
    STK_RETURN_IF_ERROR(stk_yaml_read(path, &out->yaml));
    STK_RETURN_IF_ERROR(stk_schema_check(out->yaml, out->yaml->root, &price_root));
    return read_prices(out);
}

void stk_bench_prices_free(stk_bench_prices *p)
{
    stk_yaml_free(p->yaml);
    memset(p, 0, sizeof(*p));
}

void stk_bench_prices_compute(stk_bench_prices *p)
{
    for (int i = 0; i < p->n; i++) {
        stk_bench_priced *m = &p->machine[i];
        bool is_bought = !isnan(m->purchase);
        m->energy_hour = is_bought ? m->power_w / 1000 * p->pue * p->electricity : 0;
        m->hour = is_bought ? m->purchase / (m->lifetime_h * m->utilisation) + m->energy_hour : m->hourly;
        double unit_cost = m->hour / (m->rate * 3600);
        m->million = unit_cost * 1e6;
        m->epoch = unit_cost * p->work;
        m->rate_for_1000 = is_bought ? m->rate / (m->purchase / 1000) : NAN;
    }
}

double stk_bench_break_even_h(const stk_bench_priced *rented, const stk_bench_priced *bought)
{
    /* An hour of the bought machine's work takes rate_buy / rate_rent hours of the rented one. */
    double saved = rented->hourly * bought->rate / rented->rate - bought->energy_hour;
    return saved > 0 ? bought->purchase / saved : INFINITY;
}

bool stk_bench_is_rent_or_buy(const stk_bench_priced *rented, const stk_bench_priced *bought)
{
    return !isnan(rented->hourly) && !isnan(bought->purchase) && !isnan(rented->rate) && !isnan(bought->rate);
}

double stk_bench_life_h(const stk_bench_priced *bought)
{
    return bought->lifetime_h * bought->utilisation;
}

double stk_bench_years_of(const stk_bench_priced *bought, double hours)
{
    return hours / (YEAR_H * bought->utilisation);
}

static const struct {
    const char *key, *title;
} variations[] = {
#define X(key, title) {#key, title},
    STK_BENCH_VARIATIONS(X)
#undef X
};

const char *stk_bench_variation_key(int variation)
{
    return variations[variation].key;
}

double stk_bench_prices_varied(const stk_bench_prices *p, int i, int variation)
{
    stk_bench_prices other = *p;
    stk_bench_priced *m = &other.machine[i];
    double price = variation == STK_BENCH_VARIATION_price_less_20   ? 0.8
                   : variation == STK_BENCH_VARIATION_price_more_20 ? 1.2
                                                                    : 1;
    m->purchase *= price;
    m->hourly *= price;
    if (variation == STK_BENCH_VARIATION_electricity_x2) other.electricity *= 2;
    if (variation == STK_BENCH_VARIATION_utilisation_100) m->utilisation = 1;
    if (variation == STK_BENCH_VARIATION_utilisation_50) m->utilisation = 0.5;
    if (variation == STK_BENCH_VARIATION_utilisation_25) m->utilisation = 0.25;
    stk_bench_prices_compute(&other);
    return m->million;
}

static void add_amount(stk_text *out, double x)
{
    char text[STK_PLAIN_TEXT];
    stk_text_add(out, " %s |", isnan(x) ? "-" : stk_plain_number(x, text));
}

static const char *shown(const char *text, char out[256])
{
    stk_printable(text, out, 256);
    for (char *p = out; *p; p++)
        if (*p == '|') *p = '/';
    return out;
}

static void tell_break_even(const stk_bench_prices *p, stk_text *out)
{
    char a[256], b[256], text[STK_PLAIN_TEXT], years[STK_PLAIN_TEXT];
    bool has_head = false;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->n; k++) {
            const stk_bench_priced *rented = &p->machine[i], *bought = &p->machine[k];
            if (!stk_bench_is_rent_or_buy(rented, bought)) continue;
            if (!has_head)
                stk_text_add(out, "\n| Renting | Buying | Buying is cheaper from so many hours of its work on | Years "
                                  "at its utilisation |\n"
                                  "|---|---|---:|---:|\n");
            has_head = true;
            double hours = stk_bench_break_even_h(rented, bought);
            stk_text_add(out, "| %s | %s |", shown(rented->name, a), shown(bought->name, b));
            if (hours > stk_bench_life_h(bought))
                stk_text_add(out, " never within its lifetime | |\n");
            else
                stk_text_add(out, " %s | %s |\n", stk_plain_number(hours, text),
                             stk_plain_number(stk_bench_years_of(bought, hours), years));
        }
}

/* What a million units cost where one thing is different. */
static void tell_sensitivity(const stk_bench_prices *p, stk_text *out)
{
    char name[256];
    stk_text_add(out, "\n| A million %s, %s |", p->unit, p->currency);
    for (int k = 0; k < STK_BENCH_N_VARIATIONS; k++)
        stk_text_add(out, " %s |", variations[k].title);
    stk_text_add(out, "\n|---|");
    for (int k = 0; k < STK_BENCH_N_VARIATIONS; k++)
        stk_text_add(out, "---:|");
    stk_text_add(out, "\n");
    for (int i = 0; i < p->n; i++) {
        stk_text_add(out, "| %s |", shown(p->machine[i].name, name));
        for (int k = 0; k < STK_BENCH_N_VARIATIONS; k++)
            add_amount(out, stk_bench_prices_varied(p, i, k));
        stk_text_add(out, "\n");
    }
}

/* Rates of different work cannot be set against each other. */
static void tell_cases(const stk_bench_prices *p, stk_text *out)
{
    char a[256], b[256];
    const char *first = NULL;
    for (int i = 0; i < p->n; i++) {
        const char *name = p->machine[i].case_name;
        if (name && first && strcmp(name, first) != 0) {
            stk_text_add(out, "\nThe rates are of different cases, '%s' and '%s': see that they are the same work.\n",
                         shown(first, a), shown(name, b));
            return;
        }
        if (name) first = name;
    }
}

void stk_bench_prices_tell(const stk_bench_prices *p, stk_text *out)
{
    char name[256], source[256], text[STK_PLAIN_TEXT];
    stk_text_add(out, "Prices of %s in %s; electricity %s %s/kWh, PUE %.3g.\n\n", p->date, p->currency,
                 stk_plain_number(p->electricity, text), p->currency, p->pue);
    stk_text_add(out,
                 "| Machine | %s/s | An hour of work, %s | of which energy | A million %s, %s | %s %s, %s | %s/s for "
                 "1,000 %s | Price of | Source |\n"
                 "|---|---:|---:|---:|---:|---:|---:|---|---|\n",
                 p->unit, p->currency, p->unit, p->currency, stk_plain_number(p->work, text), p->unit, p->currency,
                 p->unit, p->currency);
    for (int i = 0; i < p->n; i++) {
        const stk_bench_priced *m = &p->machine[i];
        stk_text_add(out, "| %s |", shown(m->name, name));
        add_amount(out, m->rate);
        add_amount(out, m->hour);
        add_amount(out, isnan(m->purchase) ? NAN : m->energy_hour);
        add_amount(out, m->million);
        add_amount(out, m->epoch);
        add_amount(out, m->rate_for_1000);
        stk_text_add(out, " %s | %s |\n", m->date, shown(m->source, source));
    }
    for (int i = 0; i < p->n; i++)
        if (p->machine[i].is_disturbed)
            stk_text_add(out, "\nThe rate of '%s' was disturbed when it was measured.\n",
                         shown(p->machine[i].name, name));
    tell_cases(p, out);
    tell_break_even(p, out);
    tell_sensitivity(p, out);
}
