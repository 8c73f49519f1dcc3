/* What a path with a slip was meant to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/neighbour.h"

static char folder[] = "neighbour-XXXXXX";

static void finds_what_is_near(void **state)
{
    (void)state;
    char out[100], hint[STK_PATH_HINT];
    assert_int_equal(stk_dir_make("photos/test"), STK_OK);
    assert_int_equal(stk_dir_make("photos/train"), STK_OK);
    assert_true(stk_path_neighbour("photos/tets", out, sizeof(out)));
    assert_string_equal(out, "photos/test");
    assert_false(stk_path_neighbour("fotos", out, sizeof(out))); /* two letters of five */
    assert_true(stk_path_neighbour("photo", out, sizeof(out)));
    assert_string_equal(out, "photos");
    assert_false(stk_path_neighbour("photos/tets", out, 5));
    assert_false(stk_path_neighbour("nowhere/test", out, sizeof(out)));
    assert_string_equal(stk_path_hint("photos/trian", hint), " (did you mean 'photos/train'?)");
    assert_string_equal(stk_path_hint("photos/", hint), "");
    assert_string_equal(stk_path_hint("photso/train", hint), " (did you mean 'photos/train'?)");
    assert_string_equal(stk_path_hint("photso/", hint), " (did you mean 'photos/'?)");
    assert_string_equal(stk_path_hint("./phtos//trian", hint), " (did you mean './photos//train'?)");
    assert_false(stk_path_neighbour("photso/thesis", out, sizeof(out))); /* there is none in what is near */
    assert_false(stk_path_neighbour("/", out, sizeof(out)));
    assert_false(stk_path_neighbour("", out, sizeof(out)));
}

int main(void)
{
    if (!mkdtemp(folder) || chdir(folder)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_is_near)};
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir("..") || stk_tree_remove(folder) != STK_OK) return 1;
    return n_failed;
}
