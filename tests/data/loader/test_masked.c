/* Hidden tokens: shares of what becomes of them, what is never chosen, the same samples for any number of workers and
 * any size of a batch, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/loader/masked.h"
#include "stoker/data/loader.h"
#include "stoker/data/masked.h"

enum { SPECIAL = 5, MASK = 4, WORDS = 1000, VOCABULARY = SPECIAL + WORDS, SAMPLES = 90, LENGTH = 24 };

static int32_t tokens[SAMPLES][LENGTH], targets[SAMPLES][LENGTH];

static stk_tokenizer *open_tokenizer(bool has_mask)
{
    const char *path = STK_BINARY_DIR "/masked-vocab.txt";
    stk_tokenizer *tokenizer;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n%s\n", has_mask ? "[MASK]" : "other");
    for (int i = 0; i < WORDS; i++)
        fprintf(file, "w%d\n", i);
    assert_int_equal(fclose(file), 0);
    if (stk_tokenizer_open(path, NULL, &tokenizer) != STK_OK) fail_msg("%s", stk_error_text());
    return tokenizer;
}

static stk_dataset *make(double share, bool has_mask, int n_fields)
{
    const stk_array_field fields[] = {{"tokens", STK_I32, STK_SHAPE(LENGTH), tokens},
                                      {"targets", STK_I32, STK_SHAPE(LENGTH), targets}};
    stk_tokenizer *tokenizer = open_tokenizer(has_mask);
    stk_dataset *dataset = stk_dataset_arrays(SAMPLES, fields, n_fields);
    stk_dataset_mask_tokens(dataset, tokenizer, share);
    stk_tokenizer_free(tokenizer);
    return dataset;
}

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * LENGTH; i++) {
        tokens[i / LENGTH][i % LENGTH] = i % 7 == 0 ? i % SPECIAL : SPECIAL + i % WORDS;
        targets[i / LENGTH][i % LENGTH] = 1;
    }
    return 0;
}

/* Within five deviations of n draws with probability p. */
static void check_share(double n_hits, double n, double p)
{
    if (fabs(n_hits - n * p) > 5 * sqrt(n * p * (1 - p))) fail_msg("%g of %g are not %g", n_hits, n, p);
}

static void shares_are_those_of_bert(void **state)
{
    enum { N = 200000 };
    (void)state;
    stk_dataset *dataset = make(0.15, true, 2);
    int32_t *x = malloc(N * sizeof(*x)), *y = malloc(N * sizeof(*y));
    double n_words = 0, n_chosen = 0, n_masked = 0, n_same = 0, n_other = 0;
    assert_int_equal(stk_dataset_status(dataset), STK_OK);
    assert_true(x && y);
    for (int i = 0; i < N; i++)
        x[i] = i % 11 == 0 ? i % SPECIAL : i % 13 == 0 ? VOCABULARY + 5 : SPECIAL + i % WORDS;
    stk_masked_run(dataset->masked, stk_rng_make(1, 2, 3, 4), x, y, N);
    for (int i = 0; i < N; i++) {
        int32_t was = i % 11 == 0 ? i % SPECIAL : i % 13 == 0 ? VOCABULARY + 5 : SPECIAL + i % WORDS;
        bool is_word = was >= SPECIAL && was < VOCABULARY;
        assert_true(y[i] == STK_NO_TARGET || (is_word && y[i] == was));
        if (y[i] == STK_NO_TARGET) assert_int_equal(x[i], was);
        assert_true(x[i] >= 0 && (x[i] < VOCABULARY || x[i] == was));
        n_words += is_word;
        n_chosen += y[i] != STK_NO_TARGET;
        n_masked += y[i] != STK_NO_TARGET && x[i] == MASK;
        n_same += y[i] != STK_NO_TARGET && x[i] == was;
        n_other += y[i] != STK_NO_TARGET && x[i] != was && x[i] != MASK;
    }
    check_share(n_chosen, n_words, 0.15);
    check_share(n_masked, n_chosen, 0.8);
    check_share(n_same, n_chosen, 0.1);
    check_share(n_other, n_chosen, 0.1);
    free(x);
    free(y);
    stk_dataset_free(dataset);
}

/* All samples of two epochs in the order of the data, tokens and then targets of each. */
static void read_all(int64_t n_rows, int n_threads, int32_t (*out)[2][LENGTH])
{
    stk_loader *loader;
    stk_loader_config config = {.n_epochs = 2, .seed = 5, .n_threads = n_threads};
    int64_t n = 0;
    stk_dataset *dataset = make(0.3, true, 2);
    stk_dataset_batch(dataset, n_rows, false);
    if (stk_loader_open(dataset, &config, &loader) != STK_OK) fail_msg("%s", stk_error_text());
    for (const stk_batch *batch; (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
        const int32_t *x = stk_batch_data(batch, "tokens"), *y = stk_batch_data(batch, "targets");
        for (int64_t row = 0; row < stk_batch_count(batch); row++, n++) {
            memcpy(out[n][0], x + row * LENGTH, sizeof(out[n][0]));
            memcpy(out[n][1], y + row * LENGTH, sizeof(out[n][1]));
        }
    }
    assert_int_equal(stk_loader_status(loader), STK_OK);
    assert_int_equal(n, 2 * SAMPLES);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
}

static void workers_and_batches_change_nothing(void **state)
{
    static int32_t one[2 * SAMPLES][2][LENGTH], other[2 * SAMPLES][2][LENGTH];
    (void)state;
    read_all(10, 1, one);
    read_all(10, 4, other);
    assert_memory_equal(one, other, sizeof(one));
    read_all(7, 2, other);
    assert_memory_equal(one, other, sizeof(one));
    assert_true(memcmp(one[0], one[SAMPLES], sizeof(one[0]))); /* again in each epoch */
    assert_true(memcmp(one[0][1], one[1][1], sizeof(one[0][1])));
}

static void check_refused(stk_dataset *dataset, const char *words)
{
    stk_loader *loader;
    stk_status status = stk_dataset_status(dataset);
    stk_dataset_batch(dataset, 4, true);
    if (status == STK_OK) status = stk_loader_open(dataset, NULL, &loader);
    assert_int_equal(status, STK_INVALID);
    if (!strstr(stk_error_text(), words)) fail_msg("'%s' lacks '%s'", stk_error_text(), words);
    stk_dataset_free(dataset);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    check_refused(make(0, true, 2), "a share of 0 is not between 0 and 1");
    check_refused(make(1, true, 2), "a share of 1 is not between 0 and 1");
    check_refused(make(0.15, false, 2), "no token [MASK] or <mask>");
    check_refused(make(0.15, true, 1), "'masked' works on tokens and targets");
    stk_dataset *dataset = make(0.15, true, 2);
    stk_dataset_apply_to(dataset, "targets", stk_one_hot(4));
    check_refused(dataset, "'one_hot'");
    dataset = make(0.15, true, 2);
    stk_dataset_apply_to(dataset, "tokens", stk_cast(STK_F32));
    check_refused(dataset, "'masked' needs 'tokens' i32 [length], all of one length, not f32[24]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_those_of_bert),
        cmocka_unit_test(workers_and_batches_change_nothing),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
