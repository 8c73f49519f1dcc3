/* Each example in YAML in README.md and the pages in docs is a part of a recipe that the program takes: its keys, kinds
 * and ranges. Pages that show how something is added use what is not there yet; tools/follow_docs.py runs theirs. An
 * example that says one key several times shows as many recipes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "recipe/recipe.h"

enum { MOST_KEYS = 64, KEY_BYTES = 64 };

static int n_examples, n_wrong;

/* What an example leaves out that every recipe has. */
static const char DATA[] = "data: {train: {source: {images: x}, stages: [decode]}, test: {source: {images: x}}}\n";
/* Keys of data.train, and of a source's kinds, that stand at the begin of an example. */
static const char *const part_keys[] = {"source", "stages", "filter", "pack", "shuffle", "mixup", "cutmix", NULL};
static const char *const others[] = {"scrape_configs", NULL}; /* of other programs */

static bool is_among(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list)) return true;
    return false;
}

/* The key that a line of an example begins with, "-" for a list's, "" for none. */
static void key_of(const char *line, char out[KEY_BYTES])
{
    size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyz_");
    bool is_key = n > 0 && n < KEY_BYTES && line[n] == ':';
    snprintf(out, KEY_BYTES, "%.*s", is_key ? (int)n : line[0] == '-' ? 1 : 0, line);
}

static void add_indented(stk_text *out, const char *text, int n_spaces)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        stk_text_add(out, "%*s%.*s\n", n_spaces, "", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* The lines of one example, as a whole recipe. A list is of stages, or of a model's layers. */
static void wrap(const char *lines, const char *first_key, bool has_data, bool is_layers, stk_text *out)
{
    if (!strcmp(first_key, "-") && is_layers) {
        stk_text_add(out, "%smodel:\n  layers:\n", DATA);
        add_indented(out, lines, 4);
    } else if (!strcmp(first_key, "-")) {
        stk_text_add(out, "data:\n  train:\n    source: {images: x}\n    stages:\n");
        add_indented(out, lines, 6);
    } else if (is_among(first_key, part_keys)) {
        stk_text_add(out, "data:\n  train:\n%s",
                     strncmp(lines, "source", 6) && !strstr(lines, "\nsource:") ? "    source: {images: x}\n" : "");
        add_indented(out, lines, 4);
    } else if (!strcmp(first_key, "train")) {
        stk_text_add(out, "data:\n");
        add_indented(out, lines, 2);
        stk_text_add(out, "    source: {images: x}\n");
    } else {
        stk_text_add(out, "%s%s", has_data ? "" : DATA, lines);
    }
}

static stk_status parse(const char *lines, const char *first_key, bool has_data, bool is_layers)
{
    stk_text text = {0};
    stk_recipe *recipe = NULL;
    wrap(lines, first_key, has_data, is_layers, &text);
    assert_int_equal(stk_text_status(&text), STK_OK);
    stk_status status = stk_recipe_parse("example", stk_text_get(&text), text.n, NULL, 0, &recipe);
    stk_recipe_free(recipe);
    stk_text_free(&text);
    return status;
}

static void try_example(const char *file, int line, const char *lines, const char *first_key, bool has_data)
{
    if (is_among(first_key, others)) return;
    n_examples++;
    if (parse(lines, first_key, has_data, false) == STK_OK) return;
    if (!strcmp(first_key, "-") && parse(lines, first_key, has_data, true) == STK_OK) return;
    n_wrong++;
    print_error("%s, the example from line %d: %s\n%s", file, line, stk_error_text(), lines);
}

typedef struct example {
    const char *file;
    int line, n_keys, indent; /* line: 0 outside of one; indent: of its first line, which others share */
    char key[MOST_KEYS][KEY_BYTES];
    bool has_data;
    stk_text lines;
} example;

static void end_example(example *e)
{
    if (e->n_keys > 0) try_example(e->file, e->line, stk_text_get(&e->lines), e->key[0], e->has_data);
    stk_text_free(&e->lines);
    e->n_keys = 0;
    e->has_data = false;
    e->lines = (stk_text){0};
}

static void take_line(example *e, const char *line)
{
    char key[KEY_BYTES];
    if (e->n_keys == 0) e->indent = (int)strspn(line, " ");
    if ((int)strspn(line, " ") >= e->indent) line += e->indent;
    key_of(line, key);
    for (int i = 0; key[0] && strcmp(key, "-") && i < e->n_keys; i++)
        if (!strcmp(key, e->key[i])) {
            end_example(e);
            break;
        }
    if (key[0] && e->n_keys < MOST_KEYS) snprintf(e->key[e->n_keys++], KEY_BYTES, "%s", key);
    e->has_data = e->has_data || !strcmp(key, "data");
    stk_text_add(&e->lines, "%s\n", line);
}

static void try_file(const char *path)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    example e = {.file = path};
    int n_lines = 0;
    assert_int_equal(stk_file_read(path, &bytes, &capacity, &n), STK_OK);
    for (size_t at = 0; at < n; at++) {
        char line[1024];
        const char *start = (const char *)bytes + at, *end = memchr(start, '\n', n - at);
        snprintf(line, sizeof(line), "%.*s", (int)(end ? end - start : (ptrdiff_t)(n - at)), start);
        at = end ? (size_t)(end - (const char *)bytes) : n;
        n_lines++;
        if (e.line > 0 && !strncmp(line, "```", 3)) {
            end_example(&e);
            e.line = 0;
        } else if (e.line > 0) {
            take_line(&e, line);
        } else if (!strcmp(line, "```yaml")) {
            e.line = n_lines + 1;
        }
    }
    free(bytes);
}

static void examples_in_the_docs_are_parts_of_recipes(void **state)
{
    (void)state;
    stk_names names;
    assert_int_equal(stk_dir_list(STK_SOURCE_DIR "/docs", &names), STK_OK);
    for (size_t i = 0; i < names.n; i++) {
        char path[4096];
        size_t n = strlen(names.name[i]);
        if (n < 3 || strcmp(names.name[i] + n - 3, ".md")) continue;
        if (!strncmp(names.name[i], "adding-", 7))
            continue;                                     /* They name what they add; tools/follow_docs.py runs them. */
        if (!strcmp(names.name[i], "bench.md")) continue; /* Suites and prices; cli/bench reads such. */
        snprintf(path, sizeof(path), "%s/docs/%s", STK_SOURCE_DIR, names.name[i]);
        try_file(path);
    }
    stk_names_free(&names);
    try_file(STK_SOURCE_DIR "/README.md");
    assert_true(n_examples > 40);
    if (n_wrong) fail_msg("%d of %d examples are no recipes", n_wrong, n_examples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_in_the_docs_are_parts_of_recipes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
