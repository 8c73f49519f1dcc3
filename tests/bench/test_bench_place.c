/* Links to raw runs, seen from the file that they are in; texts of a result that are never markup. */
#include "bench/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static const char root[] = STK_BINARY_DIR "/test_bench_place";

static void write_file(const char *path)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void assert_place(const char *path, const char *from, const char *wanted)
{
    char out[STK_BENCH_PLACE];
    stk_bench_kept kept;
    snprintf(kept.path, sizeof(kept.path), "%s", path);
    assert_string_equal(stk_bench_raw_place(&kept, from, out), wanted);
}

static void test_places(void **state)
{
    (void)state;
    (void)stk_tree_remove(root);
    assert_int_equal(mkdir(root, 0777) | chdir(root) | mkdir("runs", 0777) | mkdir("runs/a", 0777), 0);
    assert_int_equal(mkdir("runs/ab", 0777) | mkdir("pages", 0777), 0);
    write_file("runs/a/result.json");
    write_file("runs/ab/result.json");
    write_file("runs/ab/runs.csv");
    write_file("alone.json");
    assert_place("runs/ab/result.json", NULL, "runs/ab/runs.csv");
    assert_place("./runs/ab/result.json", "t.md", "runs/ab/runs.csv");
    assert_place("runs/a/result.json", NULL, "runs/a/result.json"); /* no runs.csv is there */
    assert_place("alone.json", "pages/t.md", "../alone.json");
    assert_place("runs/ab/result.json", "pages/t.md", "../runs/ab/runs.csv");
    assert_place("runs/ab/result.json", "runs/a/t.md", "../ab/runs.csv"); /* "a" is not the beginning of "ab" */
    assert_place("runs/ab/result.json", "runs/ab/t.md", "runs.csv");
    assert_place("runs/ab/result.json", "runs/t.md", "ab/runs.csv");
    assert_place("nowhere/result.json", "pages/t.md", "nowhere/result.json");
    stk_bench_kept kept;
    char out[STK_BENCH_PLACE];
    snprintf(kept.path, sizeof(kept.path), "runs/ab/result.json");
    assert_string_equal(stk_bench_folder_of(&kept, out), "runs/ab");
}

static void test_cells(void **state)
{
    (void)state;
    static const char *const pairs[][3] = {
        {"plain 1", NULL, " plain 1 |"},      {"a|b", NULL, " a\\|b |"},
        {"<b>&", NULL, " &lt;b>&amp; |"},     {"[x](y)", "z", " [\\[x\\](y)](z) |"},
        {"two\nlines", NULL, " two lines |"}, {"x", "a b/(c).csv", " [x](a%20b/%28c%29.csv) |"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        stk_text text = {0};
        stk_bench_put_cell(&text, pairs[i][0], pairs[i][1]);
        assert_string_equal(stk_text_get(&text), pairs[i][2]);
        stk_text_free(&text);
    }
    stk_text text = {0};
    stk_bench_put_field(&text, "a \"b\", c");
    assert_string_equal(stk_text_get(&text), "\"a \"\"b\"\", c\"");
    stk_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
