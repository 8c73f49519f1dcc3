/* See recipe/expect.h. */
#include "recipe/expect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/judge.h"

static const char PREFIX[] = "test_";

/* "test_NAME >= NUMBER". */
static bool read_one(const char *text, stk_expected *out)
{
    char name[STK_METRIC_NAME_BYTES + sizeof(PREFIX)], sign[3], *end;
    int n = 0;
    if (sscanf(text, " %28[a-z0-9_] %2[<>=]%n", name, sign, &n) != 2) return false;
    if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) || (strcmp(sign, ">=") && strcmp(sign, "<="))) return false;
    *out = (stk_expected){.text = text, .at_least = sign[0] == '>', .bound = strtod(text + n, &end), .value = NAN};
    snprintf(out->name, sizeof(out->name), "%.23s", name + sizeof(PREFIX) - 1);
    bool any = end != text + n && isfinite(out->bound);
    while (*end == ' ')
        end++;
    return any && !*end;
}

stk_status stk_expect_read(const stk_yaml_node *list, stk_expected *out, int *n)
{
    *n = 0;
    for (const stk_yaml_node *node = list ? list->child : NULL; node; node = node->next) {
        if (*n == STK_MOST_EXPECTED)
            return stk_yaml_fail(list, "a run may be expected to reach %d figures at most", STK_MOST_EXPECTED);
        if (!read_one(node->text, &out[(*n)++]))
            return stk_yaml_fail(node,
                                 "'%.60s' is nothing to expect: write a figure of result.json and a bound, as "
                                 "'test_accuracy >= 0.98' or 'test_loss <= 0.1'",
                                 node->text);
    }
    return STK_OK;
}

stk_status stk_expect_check(const stk_expected *expected, int n, const stk_trainer *trainer)
{
    for (int i = 0; i < n; i++) {
        stk_status status = stk_metric_check(trainer, expected[i].name);
        if (status != STK_OK) return stk_fail_prefix(status, "expect '%s': ", expected[i].text);
    }
    return STK_OK;
}

void stk_expect_set(stk_expected *expected, double value)
{
    expected->value = value;
    expected->is_met = expected->at_least ? value >= expected->bound : value <= expected->bound;
}

void stk_expect_judge(stk_expected *expected, int n, const stk_metrics *test)
{
    for (int i = 0; i < n; i++)
        stk_expect_set(&expected[i], test->n_samples > 0 ? stk_metric_get(test, expected[i].name) : (double)NAN);
}
