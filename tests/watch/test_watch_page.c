/* Curves of a page: what a sample says that came at once behind a late one is no spike, and numbers are those of
 * people. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "watch/page.h"

enum { ROWS = 100 };

static void late_samples_make_no_spikes(void **state)
{
    static stk_watch_row row[ROWS];
    static stk_watch_report report;
    const stk_watch_report *one = &report;
    stk_watch_history history = {.row = row, .n = ROWS};
    stk_text text = {0};
    double at_s = 0;
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        bool is_short = i % 2;
        memset(&row[i], 0, sizeof(row[i]));
        row[i].length_s = is_short ? 0.001 : 0.2;
        row[i].at_s = at_s += row[i].length_s;
        row[i].cores = is_short ? 40 : 1.9;
        row[i].top = is_short ? 0 : 0.9;
        row[i].waited = NAN;
        row[i].put_mbs = is_short ? 0 : 1500;
    }
    report.history = &history;
    stk_watch_page_curves(&one, NULL, 1, &text);
    const char *shown = stk_text_get(&text);
    assert_non_null(strstr(shown, "cores in use"));
    assert_non_null(strstr(shown, ">5</text>")); /* 2.1 cores at most; 40 would be 50 */
    assert_null(strstr(shown, ">50</text>"));
    assert_non_null(strstr(shown, ">2,000</text>"));
    assert_null(strstr(shown, "e+"));
    assert_null(strstr(shown, "wait for a core")); /* Nobody knows it. */
    /* No point of the busiest thread lies at the bottom. */
    const char *top = strstr(shown, "busiest thread</figcaption>"), *points = top ? strstr(top, "points=\"") : NULL;
    assert_non_null(points);
    assert_true(strcspn(points + 8, "\"") > 100);
    const char *bottom = strstr(points, ",110.0 ");
    assert_true(!bottom || bottom > points + 8 + strcspn(points + 8, "\""));
    stk_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(late_samples_make_no_spikes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
