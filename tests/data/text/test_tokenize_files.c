/* Text files to a file of tokens: the same tokens for any pieces and threads, what lies next to it, nothing left
 * behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/source/files.h"
#include "data/source/text_records.h"
#include "data/text/pieces.h"
#include "stoker/data/tokenize.h"

static stk_tokenizer *open_golden(const char *name)
{
    char path[1024];
    stk_tokenizer *t = NULL;
    snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/%s", STK_SOURCE_DIR, name);
    if (stk_tokenizer_open(path, NULL, &t) != STK_OK) fail_msg("%s", stk_error_text());
    return t;
}

/* Lines, empty lines, spaces before and behind line ends, and characters of several bytes around them. */
static size_t make_text(char *text, size_t room)
{
    static const char *const parts[] = {
        "the training", " of the",   "\n",       "\n\n",       " \n", "\n ",  "\r\n", "data.",
        "\xe6\x97\xa5", "e\xcc\x81", "\xc2\xa0", "\n\xc2\xa0", "'s",  "1234", "\t",   "it's\n"};
    uint32_t x = 7;
    size_t n = 0;
    while (n + 32 < room) {
        x = x * 1664525 + 1013904223;
        const char *part = parts[x >> 28];
        memcpy(text + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

static size_t read_tokens(const char *path, uint16_t *out, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(out, 2, room, file);
    fclose(file);
    return n;
}

static void same_for_any_pieces(void **state)
{
    (void)state;
    enum { BYTES = 60000 };
    static char text[BYTES];
    static int32_t want[BYTES];
    static uint16_t got[BYTES];
    size_t n_text = make_text(text, BYTES), n_want;
    char copy[512], out[512];
    const char *path = copy;
    snprintf(copy, sizeof(copy), "%s", write_file("big.txt", text, n_text));
    snprintf(out, sizeof(out), "%s", in_folder("out.bin"));
    static const char *const names[] = {"gpt2.json", "llama.json", "bert.json", "roberta.json", "squeezed.json"};
    for (int i = 0; i < 5; i++) {
        stk_tokenizer *t = open_golden(names[i]);
        assert_int_equal(stk_tokenizer_encode(t, text, n_text, false, want, BYTES, &n_want), STK_OK);
        for (int64_t piece = 64; piece <= 65536; piece *= 8) {
            stk_tokenize_options options = {.separator = "", .n_threads = piece == 64 ? 1 : 3, .piece_bytes = piece};
            stk_tokenize_progress result;
            if (stk_tokenize_files(&path, 1, t, out, &options, &result) != STK_OK) fail_msg("%s", stk_error_text());
            if (result.n_tokens != (int64_t)n_want)
                fail_msg("%s, pieces of %d: %d tokens, not %zu", names[i], (int)piece, (int)result.n_tokens, n_want);
            assert_int_equal(result.n_documents, 1);
            assert_int_equal(read_tokens(out, got, BYTES), n_want);
            for (size_t k = 0; k < n_want; k++)
                if (got[k] != want[k]) fail_msg("%s, pieces of %d: token %zu", names[i], (int)piece, k);
        }
        stk_tokenizer_free(t);
    }
}

static void cuts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t cut, cut_lines;
    } cases[] = {{"one\ntwo there", 4, 4},
                 {"one\n\ntwo there", 0, 5},
                 {"one \ntwo there", 0, 5},
                 {"one\n two there", 0, 4},
                 {"one\r\ntwo there", 0, 5},
                 {"a\xc2\xa0\nbcde", 0, 4},
                 {"a\xe6\x97\xa5\nbcde", 5, 5},
                 {"one\n\xcc\x81two there", 0, 4},
                 {"one two", 0, 0},
                 {"one\ntwo\n", 4, 8},
                 {"\nabcd", 0, 1}};
    stk_tokenizer *t = open_golden("gpt2.json"); /* loads the classes of characters */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_span text = {(const uint8_t *)cases[i].text, strlen(cases[i].text)};
        assert_int_equal(stk_find_cut(text, false), cases[i].cut);
        assert_int_equal(stk_find_cut(text, true), cases[i].cut_lines);
    }
    stk_tokenizer_free(t);
}

/* What is written is what the source of windows reads. */
static void documents_and_windows(void **state)
{
    (void)state;
    stk_tokenizer *bytes;
    assert_int_equal(stk_tokenizer_open("bytes", NULL, &bytes), STK_OK);
    write_file("d/1.txt", "ab\n\ncd\r\n", 8);
    write_file("d/2.txt", "efg", 3);
    const char *path = in_folder("d/*.txt");
    static const uint16_t files[] = {'a', 'b', '\n', '\n', 'c', 'd', '\r', '\n', 256, 'e', 'f', 'g', 256};
    static const uint16_t lines[] = {'a', 'b', 256, 'c', 'd', 256, 'e', 'f', 'g', 256};
    for (int by_line = 0; by_line < 2; by_line++) {
        uint16_t got[32];
        const char *out = in_folder("w.bin");
        stk_tokenize_options options = {.lines = by_line};
        stk_tokenize_progress result;
        assert_int_equal(stk_tokenize_files(&path, 1, bytes, out, &options, &result), STK_OK);
        assert_int_equal(result.n_documents, by_line ? 3 : 2);
        size_t n = read_tokens(out, got, 32), n_want = by_line ? 10 : 13;
        assert_int_equal(n, n_want);
        assert_memory_equal(got, by_line ? lines : files, n_want * 2);
        stk_source *source;
        stk_tokens_config config = {.length = 4, .stride = 1};
        if (stk_source_open_tokens(&out, 1, &config, &source) != STK_OK) fail_msg("%s", stk_error_text());
        assert_int_equal(source->n_records, n_want - 4);
        source->class->close(source);
    }
    /* Another file of that name is found out. */
    const char *out = write_file("w.bin", "abcdefghijklmnopqrst12", 22);
    stk_source *source;
    assert_int_equal(stk_source_open_tokens(&out, 1, &(stk_tokens_config){.length = 4}, &source), STK_MISMATCH);
    stk_tokenizer_free(bytes);
}

static bool stop(void *user, const stk_tokenize_progress *progress)
{
    *(int64_t *)user = progress->n_bytes_done;
    return false;
}

static void nothing_left_behind(void **state)
{
    (void)state;
    stk_tokenizer *bytes;
    int64_t n_done = 0;
    assert_int_equal(stk_tokenizer_open("bytes", NULL, &bytes), STK_OK);
    const char *path = write_file("s.txt", "some text", 9), *out = in_folder("s.bin");
    stk_tokenize_options options = {.on_progress = stop, .user = &n_done};
    assert_int_equal(stk_tokenize_files(&path, 1, bytes, out, &options, NULL), STK_INTERRUPTED);
    assert_int_equal(n_done, 9);
    assert_false(stk_path_exists(out) || stk_path_exists(in_folder("s.bin.part")));
    options = (stk_tokenize_options){.separator = "[NONE]"};
    assert_int_equal(stk_tokenize_files(&path, 1, bytes, out, &options, NULL), STK_NOT_FOUND);
    path = in_folder("none.txt");
    assert_int_equal(stk_tokenize_files(&path, 1, bytes, out, NULL, NULL), STK_NOT_FOUND);
    path = in_folder("s.txt");
    assert_int_equal(stk_tokenize_files(&path, 1, bytes, in_folder("s.txt/x.bin"), NULL, NULL), STK_IO);
    assert_non_null(strstr(stk_error_text(), "a file is in the way"));
    assert_int_equal(stk_tokenize_files(&path, 1, bytes, in_folder("new/s.bin"), NULL, NULL), STK_OK);
    assert_true(stk_path_exists(in_folder("new/s.bin")));
    stk_tokenizer_free(bytes);
}

int main(void)
{
    stk_normalizer normalizer = {0};
    if (stk_normalizer_add(&normalizer, STK_STEP_LOWER) != STK_OK) {
        puts("SKIP: this build has no libutf8proc");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_for_any_pieces), cmocka_unit_test(cuts),
                                       cmocka_unit_test(documents_and_windows), cmocka_unit_test(nothing_left_behind)};
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
