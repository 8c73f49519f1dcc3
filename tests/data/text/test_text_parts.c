/* A text that is fetched becomes what the recipes of language models read: two texts, and both as tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "stoker/data/download.h"
#include "stoker/data/loader.h"
#include "stoker/data/text.h"

enum { N_BYTES = 1003, N_TRAIN = 902 };

static char folder[] = "/tmp/stk-text-parts-XXXXXX";

static void check_file(const char *name, const uint8_t *want, size_t n_want)
{
    char path[256];
    uint8_t *bytes = NULL;
    size_t capacity = 0, n = 0;
    snprintf(path, sizeof(path), "%s/plays/%s", folder, name);
    assert_int_equal(stk_file_read(path, &bytes, &capacity, &n), STK_OK);
    assert_int_equal(n, n_want);
    assert_memory_equal(bytes, want, n);
    free(bytes);
}

static void a_text_that_is_fetched_can_be_trained_on(void **state)
{
    (void)state;
    char path[300], out[256];
    uint8_t text[N_BYTES], tokens[2 * N_BYTES];
    for (int i = 0; i < N_BYTES; i++) {
        text[i] = tokens[2 * i] = (uint8_t)(i * 7 % 256);
        tokens[2 * i + 1] = 0;
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/input.txt", folder);
    snprintf(out, sizeof(out), "%s/plays", folder);
    assert_int_equal(stk_file_write_durably(path, text, sizeof(text)), STK_OK);
    stk_download_file file = {.name = "input.txt", .url = "http://127.0.0.1:9/input.txt", .n_bytes = N_BYTES};
    stk_download_set set = {
        .name = "plays", .about = "a text", .licence = "ours", .file = &file, .n_files = 1, .form = STK_DOWNLOAD_TEXT};
    assert_int_equal(stk_download(&set, out, folder, NULL, NULL), STK_OK);
    check_file("train.txt", text, N_TRAIN);
    check_file("valid.txt", text + N_TRAIN, N_BYTES - N_TRAIN);
    check_file("train.bin", tokens, 2 * N_TRAIN);
    check_file("valid.bin", tokens + 2 * N_TRAIN, 2 * (N_BYTES - N_TRAIN));

    snprintf(path, sizeof(path), "%s/valid.bin", out);
    const char *files[] = {path};
    stk_tokens_config config = {.length = 50};
    stk_dataset *windows = stk_dataset_tokens(files, 1, &config);
    assert_int_equal(stk_dataset_status(windows), STK_OK);
    assert_int_equal(stk_dataset_count(windows), 2);
    stk_dataset_free(windows);
    /* What is there is not fetched again. */
    assert_int_equal(stk_download(&set, out, "/nowhere", NULL, NULL), STK_OK);
    assert_int_equal(stk_tree_remove(folder), STK_OK);
}

static void the_recipes_set_is_listed(void **state)
{
    (void)state;
    const stk_download_set *set = NULL;
    for (int i = 0; (set = stk_download_at(i)) && strcmp(set->name, "shakespeare"); i++)
        ;
    assert_non_null(set);
    assert_int_equal(set->form, STK_DOWNLOAD_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_text_that_is_fetched_can_be_trained_on),
                                       cmocka_unit_test(the_recipes_set_is_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
