/* The number of parts that a memory limit leads to, of networks and limits drawn by a generator: every number of parts
 * is planned; where fewer fit, they recompute more or compute more rows twice, and take 5 % longer by the model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/engine.h"
#include "stoker/data/dataset.h"
#include "stoker/train/trainer.h"
#include "train/trainer_state.h"

enum { N_CASES = 24, N_IMAGES = 400, SIDE = 32 };

typedef struct drawn {
    int64_t batch;
    int n_convs, filters, n_dense, width;
    double share; /* of what a step takes without a limit */
} drawn;

static int64_t pick(uint64_t i_case, uint64_t what, const int64_t *of, int n)
{
    return of[stk_philox(34, i_case, what).v[0] % (uint32_t)n];
}

static drawn draw(uint64_t i)
{
    static const int64_t batches[] = {12, 40, 61, 96, 160}, convs[] = {0, 1, 2}, filters[] = {8, 32, 64},
                         denses[] = {1, 3, 8}, widths[] = {32, 256, 1024}, shares[] = {95, 85, 70, 50, 30};
    return (drawn){.batch = pick(i, 0, batches, 5),
                   .n_convs = (int)pick(i, 1, convs, 3),
                   .filters = (int)pick(i, 2, filters, 3),
                   .n_dense = (int)pick(i, 3, denses, 3),
                   .width = (int)pick(i, 4, widths, 3),
                   .share = (double)pick(i, 5, shares, 5) / 100};
}

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    (void)user;
    memset(out[0], 0, sizeof(float) * SIDE * SIDE * 3);
    *(int32_t *)out[1] = (int32_t)(i_sample % 7);
    return STK_OK;
}

static stk_trainer *make_trainer(const drawn *d)
{
    static const stk_array_field fields[] = {{.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(SIDE, SIDE, 3)},
                                             {.name = "label", .dtype = STK_I32}};
    stk_dataset *data = stk_dataset_function(N_IMAGES, fields, 2, make_sample, NULL);
    stk_dataset_batch(data, d->batch, true);
    stk_model *model = stk_model_new("drawn");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 3);
    for (int i = 0; i < d->n_convs; i++)
        x = stk_gelu(stk_conv2d(x, d->filters, 3));
    x = d->n_convs > 0 ? stk_flatten(stk_max_pool(x, 2)) : stk_global_pool(x);
    for (int i = 0; i < d->n_dense; i++)
        x = stk_gelu(stk_dense(x, d->width));
    x = stk_dense(x, 7);
    stk_model_output(model, x);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_trainer *trainer = stk_trainer_new(model, data, stk_adam(.lr = 0.001));
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    stk_trainer_configure(trainer, &config);
    assert_int_equal(stk_trainer_open(trainer), STK_OK);
    return trainer;
}

static stk_status plan(stk_trainer *trainer, int64_t batch, int64_t accumulate, size_t limit, stk_memory_choice *choice,
                       stk_program_info *out)
{
    stk_program *program;
    trainer->config.accumulate = accumulate;
    trainer->config.memory_limit_bytes = limit;
    stk_status status = stk_memory_choose(trainer, batch, choice);
    if (status == STK_OK) status = stk_step_compile_with(trainer, batch, choice->micro, STK_STEP_TRY, &program);
    if (status != STK_OK) return status;
    *out = stk_program_get_info(program);
    stk_engine_discard(trainer->engine, program);
    return STK_OK;
}

static double rows_of(const stk_memory_choice *choice)
{
    return (double)(choice->micro * choice->n_micro);
}

/* As docs/memory.md has it: operations, bytes and starts of kernels. */
static double cost_of(const stk_program_info *info)
{
    return info->flops + 6 * info->bytes + 200000. * info->n_entries;
}

/* The parts taken; 0: refused, and then no number fits. */
static int64_t check(uint64_t i_case, int *n_recomputing)
{
    drawn d = draw(i_case);
    stk_trainer *trainer = make_trainer(&d);
    stk_memory_choice taken, other;
    stk_program_info all, info;
    assert_int_equal(plan(trainer, d.batch, 0, 0, &taken, &all), STK_OK);
    size_t least, wanted, limit = all.variable_bytes + all.program_bytes + (size_t)(d.share * (double)all.arena_bytes);
    trainer->config.memory_limit_bytes = 4 * limit;
    assert_int_equal(stk_memory_ask_pipeline(trainer, &least, &wanted), STK_OK);
    limit += i_case % 2 ? least : wanted;
    stk_status status = plan(trainer, d.batch, 0, limit, &taken, &info);
    if (status != STK_OK) assert_int_equal(status, STK_NO_MEMORY);
    *n_recomputing += status == STK_OK && info.recompute_flops > all.recompute_flops;
    double recomputed = status == STK_OK ? info.recompute_flops / rows_of(&taken) : 0;
    int64_t n_taken = status == STK_OK ? taken.n_micro : 0;
    int64_t most = n_taken > 0 ? n_taken - 1 : d.batch, fewest = n_taken;
    for (int64_t n = most; n >= 1; n--) {
        stk_program_info few;
        if (plan(trainer, d.batch, n, limit, &other, &few) != STK_OK) continue;
        fewest = other.n_micro;
        bool saves =
            few.recompute_flops / rows_of(&other) > recomputed * (1 + 1e-9) || rows_of(&other) > rows_of(&taken);
        if (n_taken == 0 || !saves || cost_of(&info) > 0.95 * cost_of(&few))
            fail_msg("case %d: %lld parts of %lld taken, %lld would fit and do", (int)i_case, (long long)n_taken,
                     (long long)d.batch, (long long)n);
    }
    if (n_taken > 1) assert_int_equal(fewest, taken.n_fewest);
    stk_trainer_free(trainer);
    return n_taken;
}

static void no_fewer_parts_would_do(void **state)
{
    (void)state;
    int n_whole = 0, n_divided = 0, n_divisors = 0, n_recomputing = 0;
    for (uint64_t i = 0; i < N_CASES; i++) {
        int64_t n = check(i, &n_recomputing);
        n_whole += n == 1;
        n_divided += n > 1;
        n_divisors += n > 1 && draw(i).batch % n == 0;
    }
    print_message("%d whole, %d divided, %d of them by a divisor of the batch; %d recompute more\n", n_whole, n_divided,
                  n_divisors, n_recomputing);
    assert_true(n_divided >= N_CASES / 3 && n_divisors < n_divided && n_whole > 0 && n_recomputing > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_fewer_parts_would_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
