/* The defaults that the public headers write down are those that their functions give. (Optimisers: test_recipe.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "stoker/stoker.h"

#define IS_ALL_ZERO(x)                                                                                                 \
    do {                                                                                                               \
        static const char zero[sizeof(x)];                                                                             \
        assert_memory_equal(&(x), zero, sizeof(x));                                                                    \
    } while (0)

static void of_sources(void **state)
{
    (void)state;
    stk_csv_config csv = stk_csv_config_default();
    IS_ALL_ZERO(csv);
    stk_text_config text = stk_text_config_default();
    IS_ALL_ZERO(text);
    stk_tokens_config tokens = stk_tokens_config_default();
    assert_true(tokens.length == 1024 && tokens.stride == 0 && tokens.type == STK_TOKENS_AUTO &&
                tokens.vocabulary == 0);
    stk_digits_config digits = stk_digits_config_default();
    assert_true(digits.n_train == 60000 && digits.n_test == 10000 && digits.size == 28 && digits.quality == 90);
    stk_filter_rule rule = stk_filter_rule_default();
    assert_true(!rule.field && !rule.values && !rule.drop && isinf(rule.least) && isinf(rule.most));
    assert_true(rule.least_bytes == 0 && rule.most_bytes == INT64_MAX && rule.most_length == INT64_MAX);
}

static void of_stages(void **state)
{
    (void)state;
    stk_resize_config resize = stk_resize_config_default();
    assert_true(resize.filter == STK_FILTER_BILINEAR && resize.like == STK_LIKE_PIL && resize.antialias);
    assert_true(resize.height == 0 && resize.width == 0 && resize.shorter == 0);
    stk_random_erasing_config erasing = stk_random_erasing_config_default();
    assert_true(erasing.chance == 0.5 && erasing.scale[0] == 0.02 && erasing.scale[1] == 0.33);
    assert_true(erasing.ratio[0] == 0.3 && erasing.ratio[1] == 3.3 && erasing.value == 0);
    stk_random_affine_config affine = stk_random_affine_config_default();
    assert_true(affine.scale[0] == 1 && affine.scale[1] == 1 && affine.filter == STK_FILTER_NEAREST);
    assert_true(affine.degrees[0] == 0 && affine.degrees[1] == 0 && affine.move_x == 0 && affine.shear_x[1] == 0);
    stk_tokenize_config tokenize = stk_tokenize_config_default();
    assert_true(tokenize.length == 0 && tokenize.special && !tokenize.pad && tokenize.pad_id == -1);
}

static void of_text(void **state)
{
    (void)state;
    assert_true(stk_tokenizer_config_default().lowercase);
    stk_tokenizer_training training = stk_tokenizer_training_default();
    assert_true(training.kind == STK_TOKENIZER_BPE && training.vocabulary == 8000 && training.min_count == 0);
    stk_sampling sampling = stk_sampling_default();
    assert_true(sampling.temperature == 1 && sampling.top_k == 0 && sampling.top_p == 1 && sampling.seed == 0);
    stk_linear_cross_entropy loss = stk_linear_cross_entropy_default();
    assert_true(loss.ignore_index == -100 && loss.smoothing == 0);
}

/* What 0 stands for is in the headers, and asked of those who read it. */
static void of_loading_and_training(void **state)
{
    (void)state;
    stk_loader_config loader = stk_loader_config_default();
    IS_ALL_ZERO(loader);
    stk_trainer_config trainer = stk_trainer_config_default();
    assert_true(trainer.loss_scale.kind == STK_LOSS_SCALE_AUTO && trainer.schedule.kind == STK_SCHEDULE_CONSTANT);
    assert_true(trainer.lookahead.every == 0 && trainer.lookahead.alpha == 0.5);
    assert_true(trainer.whiten.n_samples == 5000 && trainer.whiten.eps == 5e-4);
    trainer.lookahead = (stk_lookahead){0};
    trainer.whiten = (stk_whiten){.layer = trainer.whiten.layer};
    trainer.loss_scale = (stk_loss_scale){0};
    IS_ALL_ZERO(trainer);
    stk_loss_scale scale = stk_loss_scale_default();
    assert_true(scale.initial == 65536 && scale.growth == 2 && scale.backoff == 0.5 && scale.every == 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_sources), cmocka_unit_test(of_stages),
                                       cmocka_unit_test(of_text), cmocka_unit_test(of_loading_and_training)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
