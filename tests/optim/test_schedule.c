/* Rates against torch.optim.lr_scheduler's closed forms, worked out beforehand, and the optimisers' defaults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "stoker/status.h"
#include "stoker/train/optim.h"

#define CHECK_NEAR(have, want) assert_true(fabs((have) - (want)) <= 1e-12)

static void constant(void **state)
{
    (void)state;
    stk_schedule schedule = {0};
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 0, 100, 10), 0.1);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 99, 100, 10), 0.1);
    CHECK_NEAR(stk_schedule_rate(NULL, 0.1, 5, 100, 10), 0.1);
}

static void warm_up(void **state)
{
    (void)state;
    stk_schedule schedule = {.warmup_epochs = 0.5};
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.4, 0, 100, 16), 0.05);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.4, 3, 100, 16), 0.2);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.4, 7, 100, 16), 0.4);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.4, 8, 100, 16), 0.4);
}

/* StepLR(step_size=30) gives lr * 0.1 ** (epoch // 30). */
static void steps(void **state)
{
    (void)state;
    stk_schedule schedule = stk_step_schedule(.every_epochs = 30, .warmup_epochs = 5);
    static const struct {
        int64_t epoch;
        double rate;
    } want[] = {{5, 0.1}, {29, 0.1}, {30, 0.01}, {59, 0.01}, {60, 0.001}, {89, 0.001}};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        for (int64_t step = 0; step < 7; step++)
            CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, want[i].epoch * 7 + step, 90 * 7, 7), want[i].rate);
    schedule.gamma = 0.5;
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 60 * 7, 90 * 7, 7), 0.025);
    schedule.every_epochs = 0;
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 60 * 7, 90 * 7, 7), 0.1);
}

/* CosineAnnealingLR(T_max=10, eta_min=0) at lr 0.1: 0.05 * (1 + cos(pi * t / 10)). */
static void cosine(void **state)
{
    (void)state;
    static const double want[] = {
        0.1,  0.09755282581475769, 0.09045084971874738,  0.07938926261462367,  0.06545084971874737,
        0.05, 0.03454915028125264, 0.020610737385376346, 0.009549150281252634, 0.0024471741852423235,
        0.0};
    stk_schedule schedule = {.kind = STK_SCHEDULE_COSINE};
    for (int i = 0; i <= 10; i++)
        CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, i, 10, 5), want[i]);
    /* Two epochs of three steps in front move the same curve. */
    schedule.warmup_epochs = 2;
    for (int i = 0; i <= 10; i++)
        CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 6 + i, 16, 3), want[i]);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 2, 16, 3), 0.05);
    /* eta_min = 0.01 */
    schedule.final_share = 0.1;
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 6 + 5, 16, 3), 0.055);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 1000, 16, 3), 0.01);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 7, 4, 3), 0.01);
}

/* numpy.interp(step, [0, 9, 40], [0.2, 1, 0.07]) */
static void triangle(void **state)
{
    (void)state;
    stk_schedule schedule = {.kind = STK_SCHEDULE_TRIANGLE, .first_share = 0.2, .peak = 0.23, .final_share = 0.07};
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 0, 40, 10), 0.4);
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 3, 40, 10), 2 * (0.2 + 0.8 / 3));
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 9, 40, 10), 2);
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 10, 40, 10), 2 * 0.97);
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 39, 40, 10), 2 * 0.1);
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 100, 40, 10), 2 * 0.07);
    /* No way up, and no way down. */
    schedule.peak = 0;
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 0, 40, 10), 2);
    schedule.peak = 1;
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 39, 40, 10), 2 * (0.2 + 0.8 * 39 / 40));
    CHECK_NEAR(stk_schedule_rate(&schedule, 2, 40, 40, 10), 2 * 0.07);
}

static void defaults(void **state)
{
    (void)state;
    stk_optimizer o = stk_sgd(.momentum = 0.9);
    assert_true(o.kind == STK_OPTIMIZER_SGD && o.lr == 0.01 && o.momentum == 0.9 && o.weight_decay == 0);
    o = stk_adam(.lr = 0.5);
    assert_true(o.lr == 0.5 && o.beta1 == 0.9 && o.beta2 == 0.999 && o.eps == 1e-8 && o.weight_decay == 0);
    o = stk_adamw();
    assert_true(o.kind == STK_OPTIMIZER_ADAMW && o.lr == 0.001 && o.weight_decay == 0.01);
    o = stk_adamw(.like_keras = true);
    assert_true(o.eps == 1e-7 && o.weight_decay == 0.004);
    o = stk_optimizer_fill(o.kind, o); /* Once more changes nothing. */
    assert_true(o.eps == 1e-7 && o.weight_decay == 0.004);
    o = stk_optimizer_default(STK_OPTIMIZER_ADAMW, true);
    assert_true(o.like_keras && o.eps == 1e-7 && o.weight_decay == 0.004);
    o = stk_lars_default();
    assert_true(o.kind == STK_OPTIMIZER_LARS && o.lr == 0.1 && o.momentum == 0.9 && o.trust == 0.001);
    stk_schedule s = stk_triangle_schedule_default();
    assert_true(s.kind == STK_SCHEDULE_TRIANGLE && s.peak == 0.25 && s.first_share == 0 && s.gamma == 0);
    assert_true(stk_step_schedule_default().gamma == 0.1);
    assert_true(stk_lookahead_default().alpha == 0.5);
}

/* What is 0 because somebody said so is no default. */
static void zeros_are_zeros(void **state)
{
    (void)state;
    stk_optimizer o = stk_adamw(.beta1 = 0, .beta2 = 0, .eps = 0, .weight_decay = 0, .lr = 0);
    assert_true(o.beta1 == 0 && o.beta2 == 0 && o.eps == 0 && o.weight_decay == 0 && o.lr == 0);
    o = stk_lars(.momentum = 0, .trust = 0);
    assert_true(o.momentum == 0 && o.trust == 0 && o.weight_decay == 1e-4);
    stk_schedule schedule = stk_step_schedule(.every_epochs = 1, .gamma = 0);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 4, 100, 5), 0.1);
    CHECK_NEAR(stk_schedule_rate(&schedule, 0.1, 5, 100, 5), 0);
    schedule = stk_triangle_schedule(.peak = 0);
    assert_true(schedule.peak == 0);
}

static void unknown_kinds(void **state)
{
    (void)state;
    stk_schedule schedule = {.kind = STK_N_SCHEDULES};
    assert_true(isnan(stk_schedule_rate(&schedule, 0.1, 5, 100, 10)));
    assert_int_equal(stk_schedule_check(&schedule), STK_INVALID);
    assert_string_equal(stk_error_text(), "schedule: there is no kind 4");
    schedule = stk_cosine_schedule(.final_share = NAN);
    assert_int_equal(stk_schedule_check(&schedule), STK_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant),        cmocka_unit_test(warm_up),       cmocka_unit_test(steps),
        cmocka_unit_test(cosine),          cmocka_unit_test(triangle),      cmocka_unit_test(defaults),
        cmocka_unit_test(zeros_are_zeros), cmocka_unit_test(unknown_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
