/* What ops say of themselves without being run, for every case: FLOPs, bytes, outputs and printed attributes, as
 * recorded in tests/golden/op_costs.txt. Planning, reports and recomputing choose by these numbers.
 *
 * test_op_costs --record FILE writes them again, to be read before they are committed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "harness/harness.h"

static void describe(const op_case *source, stk_dtype main, stk_text *out)
{
    static case_run run;
    char text[STK_SHAPE_TEXT_BYTES];
    if (case_run_describe(source, main, &run) != STK_OK) fail_msg("%s: %s", source->name, stk_error_text());
    stk_cost cost = stk_op_cost(&run.call);
    const stk_op_rule *rule = stk_op_get_rule(source->op);
    stk_text_add(out, "%s: %.17g FLOPs, %.17g bytes,", case_text(&run), cost.flops, cost.bytes);
    for (int i = 0; i < run.call.n_out; i++)
        stk_text_add(out, " %s", stk_desc_text(run.out_desc[i], text));
    stk_text_add(out, ";");
    if (rule->print) rule->print(&run.attrs, out);
    stk_text_add(out, "\n");
}

static void describe_all(stk_text *out)
{
    int n_lists;
    const case_list *lists = harness_case_lists(&n_lists);
    for (int l = 0; l < n_lists; l++)
        for (int i = 0; i < lists[l].n; i++) {
            unsigned mains = case_mains(&lists[l].cases[i]);
            int main = STK_F32; /* or the first that it has */
            for (int d = 0; d < STK_N_DTYPES && !(mains >> main & 1); d++)
                main = d;
            describe(&lists[l].cases[i], (stk_dtype)main, out);
        }
}

static void costs_are_as_recorded(void **state)
{
    (void)state;
    stk_span want;
    stk_text have = {0};
    describe_all(&have);
    assert_int_equal(stk_file_load(STK_SOURCE_DIR "/tests/golden/op_costs.txt", &want), STK_OK);
    const char *a = stk_text_get(&have), *b = (const char *)want.data;
    for (size_t i = 0, line = 0; i < want.n || i < have.n; i++) {
        if (i < want.n && i < have.n && a[i] == b[i]) {
            if (a[i] == '\n') line = i + 1;
            continue;
        }
        fail_msg("it is     %.*s\nrecorded: %.*s", (int)strcspn(a + line, "\n"), a + line,
                 (int)(want.n - line < 200 ? want.n - line : 200), b + line);
    }
    stk_file_unload(want);
    stk_text_free(&have);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--record")) {
        stk_text text = {0};
        describe_all(&text);
        FILE *f = fopen(argv[2], "w");
        return !f || fwrite(stk_text_get(&text), 1, text.n, f) != text.n || fclose(f) != 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs_are_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
