/* Tokenizers against the package `tokenizers`, token for token; text that is no UTF-8; files that are not supported or
 * lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/text/json.h"
#include "golden/tokenizers_golden.h"
#include "high_water.h"

enum { N_TEXTS = sizeof(golden_texts) / sizeof(golden_texts[0]), ROOM = 8192 };
enum { N_FILES = sizeof(golden_files) / sizeof(golden_files[0]) };

static stk_tokenizer *open_golden(const char *name)
{
    char path[1024];
    stk_tokenizer *t = NULL;
    snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/%s", STK_SOURCE_DIR, name);
    stk_status status = stk_tokenizer_open(path, NULL, &t);
    if (status != STK_OK) fail_msg("%s", stk_error_text());
    return t;
}

static void check_ids(const stk_tokenizer *t, const char *file, int i_text, bool special, const short *want, int n_want)
{
    static int32_t ids[ROOM];
    size_t n = 0;
    assert_int_equal(stk_tokenizer_encode(t, golden_texts[i_text].text, golden_texts[i_text].n, special, ids, ROOM, &n),
                     STK_OK);
    if (n != (size_t)n_want) fail_msg("%s, text %d: %zu tokens, not %d", file, i_text, n, n_want);
    for (int i = 0; special && i < n_want; i++)
        if (ids[i] != want[i]) fail_msg("%s, text %d: token %d is %d, not %d", file, i_text, i, ids[i], want[i]);
}

static void as_tokenizers_does(void **state)
{
    (void)state;
    const short *at = golden_ids;
    int i_decoded = 0;
    for (int f = 0; f < N_FILES; f++) {
        stk_tokenizer *t = open_golden(golden_files[f]);
        int n_decoded = 0;
        for (int i = 0; i < N_TEXTS; i++) {
            int n_plain = at[0], n_all = at[1];
            check_ids(t, golden_files[f], i, false, NULL, n_plain);
            check_ids(t, golden_files[f], i, true, at + 2, n_all);
            /* The golden texts there and back are chosen by characters. */
            size_t n_characters = 0, n = 0;
            for (size_t k = 0; k < golden_texts[i].n; k++)
                n_characters += (golden_texts[i].text[k] & 0xc0) != 0x80;
            if (n_characters > 0 && n_characters < 120 && n_decoded < 10) {
                int32_t ids[ROOM];
                char text[ROOM];
                for (int k = 0; k < n_all; k++)
                    ids[k] = at[2 + k];
                assert_int_equal(stk_tokenizer_decode(t, ids, (size_t)n_all, true, text, ROOM - 1, &n), STK_OK);
                text[n] = 0;
                assert_string_equal(text, golden_decoded[i_decoded]);
                i_decoded++;
                n_decoded++;
            }
            at += 2 + n_all;
        }
        stk_tokenizer_free(t);
    }
    assert_int_equal(at - golden_ids, sizeof(golden_ids) / sizeof(golden_ids[0]));
}

/* Any bytes come back from a byte-level tokenizer, and their number does not depend on the room. */
static void any_bytes(void **state)
{
    (void)state;
    stk_tokenizer *t[3] = {open_golden("gpt2.json"), open_golden("llama.json"), NULL};
    assert_int_equal(stk_tokenizer_open("bytes", NULL, &t[2]), STK_OK);
    uint32_t x = 1;
    for (int round = 0; round < 300; round++) {
        char text[300], back[300];
        int32_t ids[300], some[300];
        size_t n = (size_t)round, n_ids, n_back;
        for (size_t i = 0; i < n; i++) {
            x = x * 1664525 + 1013904223;
            text[i] = (char)(x >> 24 & (round % 3 ? 0xff : 0xf3));
        }
        for (int k = 0; k < 3; k++) {
            assert_int_equal(stk_tokenizer_encode(t[k], text, n, false, ids, 300, &n_ids), STK_OK);
            assert_int_equal(stk_tokenizer_decode(t[k], ids, n_ids, false, back, 300, &n_back), STK_OK);
            assert_int_equal(n_back, n);
            assert_memory_equal(back, text, n);
            size_t n_some, room = n_ids / 2;
            assert_int_equal(stk_tokenizer_encode(t[k], text, n, false, some, room, &n_some), STK_OK);
            assert_int_equal(n_some, n_ids);
            assert_memory_equal(some, ids, room * sizeof(*ids));
        }
    }
    for (int k = 0; k < 3; k++)
        stk_tokenizer_free(t[k]);
}

/* What an expensive word would cost if merging were quadratic: minutes. */
static void long_words(void **state)
{
    (void)state;
    stk_tokenizer *t = open_golden("gpt2.json");
    size_t n = 1 << 20, n_ids, n_back;
    char *text = malloc(n), *back = malloc(n);
    int32_t *ids = malloc(n * sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        text[i] = "the"[i % 3];
    assert_int_equal(stk_tokenizer_encode(t, text, n, false, ids, n, &n_ids), STK_OK);
    assert_true(n_ids < n / 2);
    assert_int_equal(stk_tokenizer_decode(t, ids, n_ids, false, back, n, &n_back), STK_OK);
    assert_int_equal(n_back, n);
    assert_memory_equal(back, text, n);
    free(text);
    free(back);
    free(ids);
    stk_tokenizer_free(t);
}

/* Cut at a number of tokens: the first ones, with the special ones around them in their places. */
static void cut_texts(void **state)
{
    (void)state;
    stk_tokenizer *t = open_golden("bert.json");
    static const char text[] = "the training of the network, and the data";
    int32_t whole[64], cut[64];
    size_t n_whole, n_cut;
    stk_scratch scratch = {0};
    assert_int_equal(stk_tokenizer_encode(t, text, sizeof(text) - 1, true, whole, 64, &n_whole), STK_OK);
    for (size_t room = 2; room < 64; room++) {
        stk_span span = {(const uint8_t *)text, sizeof(text) - 1};
        assert_int_equal(stk_tokenizer_run(t, span, true, true, &scratch, cut, room, &n_cut), STK_OK);
        assert_int_equal(n_cut, room < n_whole ? room : n_whole);
        assert_memory_equal(cut, whole, (n_cut - 1) * sizeof(*cut));
        assert_int_equal(cut[n_cut - 1], stk_tokenizer_find(t, "[SEP]"));
    }
    stk_span span = {(const uint8_t *)text, sizeof(text) - 1};
    assert_int_equal(stk_tokenizer_run(t, span, true, true, &scratch, cut, 1, &n_cut), STK_INVALID);
    stk_scratch_free(&scratch);
    stk_tokenizer_free(t);
}

static void names_and_numbers(void **state)
{
    (void)state;
    stk_tokenizer *t = open_golden("gpt2.json"), *bytes;
    assert_int_equal(stk_tokenizer_find(t, "<|endoftext|>"), 0);
    assert_int_equal(stk_tokenizer_vocabulary(t), 380);
    assert_true(stk_tokenizer_find(t, " the") > 0);
    assert_int_equal(stk_tokenizer_find(t, "no such token"), -1);
    stk_tokenizer *again = stk_tokenizer_share(t);
    stk_tokenizer_free(t);
    assert_int_equal(stk_tokenizer_vocabulary(again), 380);
    size_t n;
    assert_int_equal(stk_tokenizer_decode(again, &(int32_t){380}, 1, true, NULL, 0, &n), STK_INVALID);
    assert_int_equal(stk_tokenizer_decode(again, &(int32_t){-1}, 1, true, NULL, 0, &n), STK_INVALID);
    stk_tokenizer_free(again);
    assert_int_equal(stk_tokenizer_open("bytes", NULL, &bytes), STK_OK);
    assert_int_equal(stk_tokenizer_vocabulary(bytes), 257);
    assert_int_equal(stk_tokenizer_find(bytes, "<|endoftext|>"), 256);
    char text[32];
    assert_int_equal(stk_tokenizer_decode(bytes, (int32_t[]){65, 256}, 2, false, text, 32, &n), STK_OK);
    assert_int_equal(n, 14);
    assert_memory_equal(text, "A<|endoftext|>", 14);
    stk_tokenizer_free(bytes);
}

/* What has no token is the unknown one, or nothing where the file names none; a byte that is no character likewise. */
static void unknown_characters(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xb1z\xff\xc3";
    static const char none[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\xc3\xb1\":3,\"zz\":1},\"merges\":[]}}";
    stk_tokenizer *t = open_golden("characters.json");
    int32_t ids[8], unknown = stk_tokenizer_find(t, "[UNK]");
    size_t n;
    assert_int_equal(stk_tokenizer_encode(t, text, sizeof(text) - 1, true, ids, 8, &n), STK_OK);
    assert_int_equal(n, 5);
    assert_int_equal(ids[0], stk_tokenizer_find(t, "a"));
    assert_int_equal(ids[1], stk_tokenizer_find(t, "\xc3\xb1"));
    assert_int_equal(ids[3], unknown);
    assert_int_equal(ids[4], unknown);
    stk_tokenizer_free(t);
    assert_int_equal(stk_tokenizer_parse_json((stk_span){(const uint8_t *)none, sizeof(none) - 1}, &t), STK_OK);
    assert_int_equal(stk_tokenizer_encode(t, text, sizeof(text) - 1, true, ids, 8, &n), STK_OK);
    assert_int_equal(n, 2);
    assert_int_equal(ids[1], 3);
    stk_tokenizer_free(t);
}

/* Each is refused by the name of what is wrong. */
static void bad_files(void **state)
{
    (void)state;
#define PIECES    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define BPE(more) "{" PIECES ",\"model\":{\"type\":\"BPE\"," more "}}"
    static const struct {
        const char *json;
        stk_status status;
        const char *text;
    } cases[] = {
        {"{", STK_CORRUPT, "line 1"},
        {"[]", STK_UNSUPPORTED, "model ''"},
        {"{\"model\":{\"type\":\"Unigram\"}}", STK_UNSUPPORTED, "'Unigram'"},
        {"{\"model\":{\"type\":\"BPE\"}}", STK_UNSUPPORTED, "needs 'ByteLevel'"},
        {"{\"pre_tokenizer\":{\"type\":\"Metaspace\"},\"model\":{\"type\":\"WordPiece\"}}", STK_UNSUPPORTED,
         "'Metaspace'"},
        {"{\"normalizer\":{\"type\":\"Precompiled\"},\"model\":{\"type\":\"WordPiece\"}}", STK_UNSUPPORTED,
         "'Precompiled'"},
        {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
         "\"a+\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\"}]},\"model\":{\"type\":\"BPE\"}}",
         STK_UNSUPPORTED, "'a+'"},
        {BPE("\"vocab\":[]"), STK_CORRUPT, "no map"},
        {BPE("\"vocab\":{\"a\":0.5}"), STK_CORRUPT, "'a'"},
        {BPE("\"vocab\":{\"a\":-1}"), STK_INVALID, "-1"},
        {BPE("\"vocab\":{\"a\":999999999999}"), STK_INVALID, "999999999999"},
        {BPE("\"vocab\":{\"a\":0,\"b\":0}"), STK_INVALID, "two tokens"},
        {BPE("\"vocab\":{\"a\":0}"), STK_CORRUPT, "merges"},
        {BPE("\"vocab\":{\"a\":0},\"merges\":[\"ab\"]"), STK_CORRUPT, "'ab'"},
        {BPE("\"vocab\":{\"a\":0},\"merges\":[\"a b c\"]"), STK_CORRUPT, "'a b c'"},
        {BPE("\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]"), STK_CORRUPT, "no pair"},
        {BPE("\"vocab\":{\"a\":0},\"merges\":[\"a b\"]"), STK_INVALID, "the second"},
        {BPE("\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]"), STK_INVALID, "both together"},
        {BPE("\"vocab\":{\"a\":0},\"byte_fallback\":true"), STK_UNSUPPORTED, "byte_fallback"},
        {BPE("\"vocab\":{\"a\":0},\"end_of_word_suffix\":\"</w>\""), STK_UNSUPPORTED, "end_of_word_suffix"},
        {BPE("\"vocab\":{\"a\":0},\"dropout\":0.1"), STK_UNSUPPORTED, "dropout"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"unk_token\":\"[UNK]\"}}", STK_CORRUPT, "unk_token"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"},\"decoder\":{\"type\":\"CTC\"}}",
         STK_UNSUPPORTED, "'CTC'"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"},\"added_tokens\":[{\"id\":1}]}",
         STK_CORRUPT, "added token 0"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"?\"}}", STK_UNSUPPORTED,
         "'?' is no token"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"ignore_merges\":true}}", STK_UNSUPPORTED,
         "ignore_merges"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"decoder\":{\"type\":\"ByteLevel\"}}",
         STK_UNSUPPORTED, "'ByteLevel'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_tokenizer *t = NULL;
        stk_span json = {(const uint8_t *)cases[i].json, strlen(cases[i].json)};
        stk_status status = stk_tokenizer_parse_json(json, &t);
        if (status != cases[i].status || !strstr(stk_error_text(), cases[i].text))
            fail_msg("%s: %s, %s", cases[i].json, stk_status_text(status), stk_error_text());
        assert_null(t);
    }
    stk_tokenizer *t = NULL;
    static const char lines[] = "[PAD]\n[UNK]\n[CLS]\nword\n";
    assert_int_equal(stk_tokenizer_parse_vocab((stk_span){(const uint8_t *)lines, sizeof(lines) - 1}, true, &t),
                     STK_CORRUPT);
    assert_non_null(strstr(stk_error_text(), "[SEP]"));
    assert_int_equal(stk_tokenizer_open("/none/tokenizer.json", NULL, &t), STK_NOT_FOUND);
    assert_int_equal(stk_tokenizer_open("/dev/null", NULL, &t), STK_IO);
}

/* Three bytes of text would become 200 of tree. */
static void a_file_takes_no_more_than_its_bound(void **state)
{
    (void)state;
    enum { N = 24 << 20 };
    stk_tokenizer *t;
    char *text = malloc(N);
    assert_non_null(text);
    memcpy(text, "[{}", 3);
    for (size_t i = 3; i < N; i++)
        text[i] = ",{}"[i % 3];
    memcpy(text + N - 3, "1 ]", 3);
    if (text[N - 4] == '{') text[N - 4] = ' ';
    size_t before = high_water();
    assert_int_equal(stk_tokenizer_parse_json((stk_span){(const uint8_t *)text, N}, &t), STK_UNSUPPORTED);
    if (!strstr(stk_error_text(), "and may take 512")) fail_msg("%s", stk_error_text());
    assert_true(high_water() - before < (size_t)64 << 20);
    free(text);
}

int main(void)
{
    stk_normalizer normalizer = {0};
    if (stk_normalizer_add(&normalizer, STK_STEP_LOWER) != STK_OK) {
        puts("SKIP: this build has no libutf8proc");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_tokenizers_does), cmocka_unit_test(any_bytes),
        cmocka_unit_test(long_words),         cmocka_unit_test(cut_texts),
        cmocka_unit_test(names_and_numbers),  cmocka_unit_test(bad_files),
        cmocka_unit_test(unknown_characters), cmocka_unit_test(a_file_takes_no_more_than_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
