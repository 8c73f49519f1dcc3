/* YAML trees: places in messages, what is refused, --set, and printing that parses to the same tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "settings/yaml.h"

static stk_yaml *parse(const char *text)
{
    stk_yaml *yaml = NULL;
    if (stk_yaml_parse("r.yaml", text, strlen(text), &yaml) != STK_OK) fail_msg("%s", stk_error_text());
    return yaml;
}

static void assert_refused(const char *text, const char *message)
{
    stk_yaml *yaml = (stk_yaml *)1;
    assert_int_equal(stk_yaml_parse("r.yaml", text, strlen(text), &yaml), STK_INVALID);
    assert_null(yaml);
    if (!strstr(stk_error_text(), message)) fail_msg("'%s' lacks '%s'", stk_error_text(), message);
}

static void nodes_know_their_place(void **state)
{
    (void)state;
    stk_yaml *yaml = parse("a: 1\nb:\n  - x\n  - {c: 'two words'}\n");
    const stk_yaml_node *b = stk_yaml_get(yaml->root, "b"), *map = b->child->next, *c = stk_yaml_get(map, "c");
    assert_int_equal(yaml->root->n_children, 2);
    assert_int_equal(b->key_line, 2);
    assert_int_equal(b->key_column, 1);
    assert_int_equal(b->child->line, 3);
    assert_int_equal(b->child->column, 5);
    assert_string_equal(c->text, "two words");
    assert_true(c->quoted);
    assert_int_equal(c->line, 4);
    assert_int_equal(c->column, 9);
    stk_yaml_fail(c, "no");
    assert_string_equal(stk_error_text(), "r.yaml:4:9: no");
    stk_yaml_fail_key(c, "no");
    assert_string_equal(stk_error_text(), "r.yaml:4:6: no");
    stk_yaml_free(yaml);
}

static void what_recipes_do_not_need_is_refused(void **state)
{
    (void)state;
    assert_refused("", "r.yaml: empty");
    assert_refused("# a comment\n", "empty");
    assert_refused("a: 1\nb: 2\na: 3\n", "r.yaml:3:1: key 'a' is given twice, first on line 1");
    assert_refused("a:\n\tb: 1\n", "r.yaml:2:1: a tab, and YAML indents by spaces alone");
    assert_refused("a:\n  b: 1\n  \tc: 2\n", "r.yaml:3:3: a tab, and");
    assert_refused("\ta: 1", "r.yaml:1:1: a tab, and");
    assert_refused("a: {b: 1\n\t, c]\n", "r.yaml:2:1: a tab, and");
    assert_refused("a: {b: [1],\n\t}}", "r.yaml:2:3: "); /* where it may be */
    assert_refused("a: &x 1\n", "r.yaml:1:4: anchors (&x)");
    assert_refused("a: *x\n", "r.yaml:1:4: aliases (*x)");
    assert_refused("a: !!int 1\n", "r.yaml:1:4: tags");
    assert_refused("a: 1\n---\nb: 2\n", "r.yaml:2:1: more than one document");
    assert_refused("a: [1, 2\nb: 3\n", "r.yaml:2:");
    assert_refused("a: 1\n b: 2\n", "r.yaml:2:");
    assert_refused("? [a, b]\n: 1\n", "a list cannot be a key");
    assert_refused("a: \"\\0\"\n", "zero byte");
    assert_refused("a: \xff\n", "UTF-8");
    assert_refused("\t- a: b\n", "r.yaml:1:");
}

static void depth_and_size_are_limited(void **state)
{
    (void)state;
    char text[STK_YAML_MOST_DEPTH * 2 + 8];
    memset(text, '[', sizeof(text));
    text[sizeof(text) - 1] = 0;
    assert_refused(text, "deep");
    size_t n = STK_YAML_MOST_BYTES + 1;
    char *large = malloc(n);
    assert_non_null(large);
    memset(large, ' ', n);
    stk_yaml *yaml;
    assert_int_equal(stk_yaml_parse("r.yaml", large, n, &yaml), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "too many"));
    n = (size_t)STK_YAML_MOST_NODES * 2 + 16;
    for (size_t i = 0; i < n; i++)
        large[i] = i == 0 ? '[' : i + 1 == n ? ']' : i % 2 ? 'a' : ',';
    assert_int_equal(stk_yaml_parse("r.yaml", large, n, &yaml), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "more than"));
    free(large);
}

static void assert_set(const char *text, const char *set, const char *want)
{
    stk_yaml *yaml = parse(text);
    stk_text out = {0};
    if (stk_yaml_set(yaml, set) != STK_OK) fail_msg("%s", stk_error_text());
    stk_yaml_print_flow(yaml->root, &out);
    assert_string_equal(stk_text_get(&out), want);
    stk_text_free(&out);
    stk_yaml_free(yaml);
}

static void set_changes_the_tree(void **state)
{
    (void)state;
    assert_set("a: 1", "a=2", "{a: 2}");
    assert_set("a: 1", "b.c.d=x y", "{a: 1, b: {c: {d: x y}}}");
    assert_set("a: {b: 1, c: 2}", "a.b=[1, 2]", "{a: {b: [1, 2], c: 2}}");
    assert_set("a: [{b: 1}, {c: 2}]", "a.1.c=3", "{a: [{b: 1}, {c: 3}]}");
    assert_set("a: cosine", "a.cosine.warmup=2", "{a: {cosine: {warmup: 2}}}");
    assert_set("a:", "a.b=1", "{a: {b: 1}}");
    assert_set("a: 1", "a={b: {c: 1}}", "{a: {b: {c: 1}}}");
    assert_set("a: 1", "a='null'", "{a: \"null\"}");
    assert_set("a: 1", "a=null", "{a: null}");
    assert_set("a: 1", "a=x=y", "{a: \"x=y\"}");
}

static void assert_set_refused(const char *text, const char *set, const char *message)
{
    stk_yaml *yaml = parse(text);
    assert_int_equal(stk_yaml_set(yaml, set), STK_INVALID);
    if (!strstr(stk_error_text(), message)) fail_msg("'%s' lacks '%s'", stk_error_text(), message);
    stk_yaml_free(yaml);
}

static void set_says_what_is_wrong(void **state)
{
    (void)state;
    assert_set_refused("a: 1", "a", "give it as key=value");
    assert_set_refused("a: 1", "=1", "give it as key=value");
    assert_set_refused("a: 1", "a=", "--set a: empty");
    assert_set_refused("a: 1", "a=[1", "--set a: ");
    assert_set_refused(
        "a: 1", "a.b=1",
        "--set a.b: 'a' is '1', which has no keys; where that is short for a map, give all of it: --set 'a={...}'");
    assert_set_refused("a: [1, 2]", "a.2=1", "--set a.2: '2' is not a number from 0 to 1");
    assert_set_refused("a: 1", "b..c=1", "--set b..c: an empty key");
    stk_yaml *yaml = parse("a: 1");
    assert_int_equal(stk_yaml_set(yaml, "b.c=5"), STK_OK);
    stk_yaml_fail(stk_yaml_get(stk_yaml_get(yaml->root, "b"), "c"), "no");
    assert_string_equal(stk_error_text(), "--set b.c: no");
    stk_yaml_free(yaml);
}

static void what_is_printed_reads_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a: 1\nb: [x, 'y z', \"\\ttab\", -5, 1e-3, '#no', 'a: b', '', ' pad ', '- x', 'true', null, ~]\n",
        "a: {b: {c: {d: [1, [2, [3, {e: f}]]]}}}\n",
        "a: []\nb: {}\nc: 'it''s'\nd: \"quote \\\" back \\\\ bell \\a nel \\N line \\L bom \\uFEFF\"\n",
        "- 1\n- {a: 2}\n- [3, 4]\n",
        "lonely\n",
        "long: {aaaaaaaaaaaaaaaaaaaa: bbbbbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccccccccccccc: ddddddddddddddddddddd, "
        "eeeeeeeeeee: [fffffffffffffffffffffff, ggggggggggggggggggggggggggg, hhhhhhhhhhhhhhhhhhhhhhhhhh]}\n",
        "'odd key: #': 1\n'': 2\n\"\\n\": 3\n",
        "text: |\n  two\n  lines\n",
        "umlaut: äöü 漢字 \xf0\x9f\x94\xa5\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        stk_text first = {0}, second = {0};
        stk_yaml *yaml = parse(texts[i]);
        stk_yaml_print(yaml->root, &first);
        stk_yaml *again = parse(stk_text_get(&first));
        stk_yaml_print(again->root, &second);
        assert_string_equal(stk_text_get(&first), stk_text_get(&second));
        stk_yaml_free(yaml);
        stk_yaml_free(again);
        stk_text_free(&first);
        stk_text_free(&second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_know_their_place),     cmocka_unit_test(what_recipes_do_not_need_is_refused),
        cmocka_unit_test(depth_and_size_are_limited), cmocka_unit_test(set_changes_the_tree),
        cmocka_unit_test(set_says_what_is_wrong),     cmocka_unit_test(what_is_printed_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
