/* Trained tokenizers: the merges that `tokenizers` learns, the same file for any order of files, limits, and what
 * cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "golden/tokenizer_train_golden.h"
#include "stoker/data/tokenizer.h"
#include "stoker/data/tokenizer_train.h"

#define CORPUS STK_SOURCE_DIR "/tests/golden/tokenizer_train.txt"
enum { N_MERGES = sizeof(golden_merges) / sizeof(golden_merges[0]) };
enum { N_PIECES = sizeof(golden_pieces) / sizeof(golden_pieces[0]) };

static char folder[] = "/tmp/stk-train-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/%s", folder, name);
    return path[i];
}

static stk_tokenizer_training of_kind(stk_tokenizer_kind kind)
{
    stk_tokenizer_training t = stk_tokenizer_training_default();
    t.kind = kind;
    t.vocabulary = kind == STK_TOKENIZER_BPE ? GOLDEN_BPE : GOLDEN_WORDPIECE;
    return t;
}

static stk_status train(const char *text, const stk_tokenizer_training *training, const char *out,
                        stk_tokenizer_result *result)
{
    return stk_tokenizer_train(&text, 1, out, training, result);
}

static json_t *load_model(const char *path, json_t **root)
{
    *root = json_load_file(path, 0, NULL);
    assert_non_null(*root);
    return json_object_get(*root, "model");
}

static void merges(void **state)
{
    (void)state;
    stk_tokenizer_training training = of_kind(STK_TOKENIZER_BPE);
    stk_tokenizer_result result;
    json_t *root;
    if (train(CORPUS, &training, in_folder("bpe.json"), &result) != STK_OK) fail_msg("%s", stk_error_text());
    json_t *model = load_model(in_folder("bpe.json"), &root);
    const json_t *list = json_object_get(model, "merges"), *vocab = json_object_get(model, "vocab");
    assert_int_equal(json_array_size(list), N_MERGES);
    assert_int_equal(result.n_merges, N_MERGES);
    for (size_t i = 0; i < N_MERGES; i++)
        for (size_t side = 0; side < 2; side++)
            assert_string_equal(json_string_value(json_array_get(json_array_get(list, i), side)),
                                golden_merges[i][side]);
    assert_int_equal(json_object_size(vocab), sizeof(golden_tokens) / sizeof(golden_tokens[0]));
    for (size_t i = 0; i < json_object_size(vocab); i++)
        assert_int_equal(json_integer_value(json_object_get(vocab, golden_tokens[i])), i);
    json_decref(root);
}

static void pieces(void **state)
{
    (void)state;
    stk_tokenizer_training training = of_kind(STK_TOKENIZER_WORDPIECE);
    stk_tokenizer *t;
    size_t n;
    int32_t ids[8];
    char text[64] = {0};
    if (train(CORPUS, &training, in_folder("pieces.json"), NULL) != STK_OK) fail_msg("%s", stk_error_text());
    if (stk_tokenizer_open(in_folder("pieces.json"), NULL, &t) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_tokenizer_vocabulary(t), N_PIECES); /* no pair is left that occurs twice */
    for (size_t i = 0; i < N_PIECES; i++)
        if (stk_tokenizer_find(t, golden_pieces[i]) < 0) fail_msg("'%s' is no token", golden_pieces[i]);
    assert_int_equal(stk_tokenizer_find(t, "[PAD]"), 0);
    /* Lower case, without accents, and framed. */
    assert_int_equal(stk_tokenizer_encode(t, "THE \xc3\x9c", 6, true, ids, 8, &n), STK_OK);
    assert_int_equal(ids[0], stk_tokenizer_find(t, "[CLS]"));
    assert_int_equal(ids[1], stk_tokenizer_find(t, "the"));
    assert_int_equal(ids[2], stk_tokenizer_find(t, "u"));
    assert_int_equal(ids[n - 1], stk_tokenizer_find(t, "[SEP]"));
    assert_int_equal(stk_tokenizer_decode(t, ids, n, true, text, sizeof(text), &n), STK_OK);
    assert_string_equal(text, "the u");
    stk_tokenizer_free(t);
}

static void check_tokens(const char *path, const char *const *want, int n)
{
    stk_tokenizer *t;
    if (stk_tokenizer_open(path, NULL, &t) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_tokenizer_vocabulary(t), n);
    for (int i = 0; i < n; i++)
        assert_int_equal(stk_tokenizer_find(t, want[i]), i);
    stk_tokenizer_free(t);
}

/* In the order of their numbers; the rarest go first, of equally rare ones the last. */
static void characters(void **state)
{
    (void)state;
    static const char text[] = "abcab\nc\xff\xc3\xbc\n\xf0\x9f\x98\x80"
                               "ba\xc3\xbc";
    static const char *const all[] = {"[UNK]", "<|endoftext|>", "\n", "a", "b", "c", "\xc3\xbc", "\xf0\x9f\x98\x80"};
    static const char *const few[] = {"[UNK]", "<|endoftext|>", "\n", "a", "b"};
    static const char *const listed[] = {"[UNK]", "<pad>", "c", "\xc3\xbc", "a"};
    static const char *const pad[] = {"<pad>"};
    stk_tokenizer_training t = of_kind(STK_TOKENIZER_CHARACTERS);
    stk_tokenizer_result result;
    t.vocabulary = 100;
    assert_int_equal(stk_file_write_durably(in_folder("few.txt"), text, sizeof(text) - 1), STK_OK);
    assert_int_equal(train(in_folder("few.txt"), &t, in_folder("few.json"), &result), STK_OK);
    check_tokens(in_folder("few.json"), all, 8);
    assert_int_equal(result.n_words, 13);
    assert_int_equal(result.n_different, 6);
    assert_int_equal(result.n_tokens, 8);
    t.min_count = 2;
    assert_int_equal(train(in_folder("few.txt"), &t, in_folder("few.json"), NULL), STK_OK);
    check_tokens(in_folder("few.json"), all, 7);
    t.vocabulary = 5; /* a and b come three times, three others twice */
    assert_int_equal(train(in_folder("few.txt"), &t, in_folder("few.json"), NULL), STK_OK);
    check_tokens(in_folder("few.json"), few, 5);
    t.vocabulary = 2;
    assert_int_equal(train(in_folder("few.txt"), &t, in_folder("none.json"), NULL), STK_INVALID);
    t.characters = "c\xc3\xbc"
                   "ca";
    t.special = pad;
    t.n_special = 1;
    assert_int_equal(train(in_folder("few.txt"), &t, in_folder("none.json"), NULL), STK_INVALID); /* both */
    assert_int_equal(stk_tokenizer_train(NULL, 0, in_folder("few.json"), &t, NULL), STK_OK);
    check_tokens(in_folder("few.json"), listed, 5);
    t.characters = "c\xc3";
    assert_int_equal(stk_tokenizer_train(NULL, 0, in_folder("none.json"), &t, NULL), STK_INVALID);
    t.characters = "";
    assert_int_equal(stk_tokenizer_train(NULL, 0, in_folder("none.json"), &t, NULL), STK_INVALID);
    t.kind = STK_TOKENIZER_BPE;
    t.characters = "c";
    assert_int_equal(stk_tokenizer_train(NULL, 0, in_folder("none.json"), &t, NULL), STK_INVALID);
}

/* The lines of the corpus in two files, and these the other way round. */
static void order_of_files(void **state)
{
    (void)state;
    stk_span all;
    uint8_t *bytes[2] = {NULL, NULL};
    size_t room[2] = {0}, n[2];
    assert_int_equal(stk_file_load(CORPUS, &all), STK_OK);
    size_t cut = all.n / 2;
    while (all.data[cut - 1] != '\n')
        cut++;
    assert_int_equal(stk_file_write_durably(in_folder("a.txt"), all.data, cut), STK_OK);
    assert_int_equal(stk_file_write_durably(in_folder("b.txt"), all.data + cut, all.n - cut), STK_OK);
    stk_file_unload(all);
    for (int kind = 0; kind < 3; kind++) {
        stk_tokenizer_training training = of_kind((stk_tokenizer_kind)kind);
        const char *order[2] = {in_folder("b.txt"), in_folder("a.txt")};
        assert_int_equal(stk_tokenizer_train(order, 2, in_folder("two.json"), &training, NULL), STK_OK);
        assert_int_equal(train(CORPUS, &training, in_folder("one.json"), NULL), STK_OK);
        assert_int_equal(stk_file_read(in_folder("one.json"), &bytes[0], &room[0], &n[0]), STK_OK);
        assert_int_equal(stk_file_read(in_folder("two.json"), &bytes[1], &room[1], &n[1]), STK_OK);
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(bytes[0], bytes[1], n[0]);
    }
    free(bytes[0]);
    free(bytes[1]);
}

static bool stop(void *user, int64_t n_done, int64_t n_all, bool merging)
{
    (void)user;
    (void)n_done;
    (void)n_all;
    return merging;
}

static void refused(void **state)
{
    (void)state;
    stk_tokenizer_training t = of_kind(STK_TOKENIZER_BPE);
    const char *out = in_folder("none.json"), *empty[] = {""};
    t.vocabulary = 256;
    assert_int_equal(train(CORPUS, &t, out, NULL), STK_INVALID);
    assert_non_null(strstr(stk_error_text(), "257 together"));
    t.vocabulary = 0;
    assert_int_equal(train(CORPUS, &t, out, NULL), STK_INVALID);
    t = of_kind(STK_TOKENIZER_BPE);
    t.memory_bytes = 30000; /* the words' table */
    assert_int_equal(train(CORPUS, &t, out, NULL), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "different words"));
    t.memory_bytes = 100000; /* the pairs */
    assert_int_equal(train(CORPUS, &t, out, NULL), STK_NO_MEMORY);
    assert_non_null(strstr(stk_error_text(), "pairs of"));
    t = of_kind(STK_TOKENIZER_WORDPIECE);
    t.special = empty;
    t.n_special = 1;
    assert_int_equal(train(CORPUS, &t, out, NULL), STK_INVALID);
    t = of_kind(STK_TOKENIZER_BPE);
    t.on_progress = stop;
    assert_int_equal(train(CORPUS, &t, out, NULL), STK_INTERRUPTED);
    assert_int_equal(stk_file_write_durably(in_folder("empty.txt"), "", 0), STK_OK);
    t.on_progress = NULL;
    assert_int_equal(train(in_folder("empty.txt"), &t, in_folder("none.json"), NULL), STK_INVALID);
    assert_int_equal(train("/nowhere.txt", &t, in_folder("none.json"), NULL), STK_NOT_FOUND);
    assert_int_not_equal(access(in_folder("none.json"), F_OK), 0);
}

/* Fewer tokens than asked for, where no pair occurs often enough; tokens of one's own first. */
static void few_words(void **state)
{
    (void)state;
    static const char *const special[] = {"<pad>", "<end>"};
    stk_tokenizer_training t = of_kind(STK_TOKENIZER_BPE);
    stk_tokenizer_result result;
    stk_tokenizer *tokenizer;
    t.special = special;
    t.n_special = 2;
    assert_int_equal(stk_file_write_durably(in_folder("few.txt"), "ab ab\ncd\n", 9), STK_OK);
    assert_int_equal(train(in_folder("few.txt"), &t, in_folder("few.json"), &result), STK_OK);
    assert_int_equal(result.n_words, 5); /* with the line ends */
    assert_int_equal(result.n_different, 4);
    assert_int_equal(result.n_merges, 1);
    assert_int_equal(result.n_tokens, 2 + 256 + 1);
    if (stk_tokenizer_open(in_folder("few.json"), NULL, &tokenizer) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(stk_tokenizer_find(tokenizer, "<end>"), 1);
    assert_int_equal(stk_tokenizer_find(tokenizer, "ab"), 258);
    stk_tokenizer_free(tokenizer);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"bpe.json", "pieces.json", "a.txt",   "b.txt",   "one.json",
                                        "two.json", "empty.txt",   "few.txt", "few.json"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlink(in_folder(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(merges),     cmocka_unit_test(pieces),
                                       cmocka_unit_test(characters), cmocka_unit_test(order_of_files),
                                       cmocka_unit_test(refused),    cmocka_unit_test(few_words)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
