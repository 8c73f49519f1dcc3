/* A steady training step allocates nothing in our own code, and neither does a generated token. Every allocation in the
 * process is counted by who called: this program (which holds all of Stoker) or a library. Libraries' own are listed,
 * and must stay the same each step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/data/dataset.h"
#include "stoker/train/generate.h"
#include "stoker/train/trainer.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    puts("SKIP sanitizers bring their own malloc");
    return 77;
}
#else

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_bool counting;
static atomic_long n_own, n_libraries;
static const char *own_file; /* as dladdr names this program */
static void *last_own;

static void note(void *caller)
{
    Dl_info info;
    if (!atomic_load(&counting)) return;
    if (dladdr(caller, &info) && info.dli_fname && own_file && strcmp(info.dli_fname, own_file)) {
        atomic_fetch_add(&n_libraries, 1);
        return;
    }
    last_own = caller;
    atomic_fetch_add(&n_own, 1);
}

void *malloc(size_t n)
{
    note(__builtin_return_address(0));
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    note(__builtin_return_address(0));
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    note(__builtin_return_address(0));
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t a, size_t n)
{
    note(__builtin_return_address(0));
    return __libc_memalign(a, n);
}

void *memalign(size_t a, size_t n)
{
    note(__builtin_return_address(0));
    return __libc_memalign(a, n);
}

int posix_memalign(void **out, size_t a, size_t n)
{
    note(__builtin_return_address(0));
    *out = __libc_memalign(a, n);
    return *out ? 0 : ENOMEM;
}

enum { SIDE = 12, N = 4096, BATCH = 32, WARM = 20, STEADY = 100 };
static float images[N * SIDE * SIDE];
static int32_t labels[N];
static long by_step[STEADY];

static void on_event(void *user, const stk_train_event *event)
{
    (void)user;
    if (event->kind != STK_EVENT_STEP) return;
    if (event->step >= WARM && event->step < WARM + STEADY)
        by_step[event->step - WARM] = atomic_exchange(&n_libraries, 0);
    atomic_store(&counting, event->step >= WARM && event->step < WARM + STEADY);
}

static stk_trainer *make_trainer(void)
{
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, 1), images},
                                      {"label", STK_I32, {0}, labels}};
    stk_dataset *data = stk_dataset_arrays(N, fields, 2);
    stk_dataset_shuffle(data, 1);
    stk_dataset_apply(data, stk_random_crop(SIDE, 2), stk_random_flip(), stk_scale(0.5), NULL);
    stk_dataset_batch(data, BATCH, true);
    stk_model *model = stk_model_new("small");
    const int64_t widths[] = {8, 16};
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 1);
    x = stk_dropout(stk_cnn(x, widths, 2, 10), 0.1);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    return stk_trainer_new(model, data, stk_sgd(.lr = 0.01, .momentum = 0.9));
}

static void steady_step_allocates_nothing(void **state)
{
    (void)state;
    Dl_info info;
    if (dladdr((void *)(uintptr_t)make_trainer, &info)) own_file = info.dli_fname;
    for (int i = 0; i < N; i++)
        labels[i] = i % 10;
    stk_trainer *trainer = make_trainer();
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 2;
    config.on_event = on_event;
    stk_trainer_configure(trainer, &config);
    stk_status status = stk_trainer_run(trainer, 1);
    atomic_store(&counting, false);
    if (status != STK_OK) fail_msg("%s", stk_error_text());
    if (atomic_load(&n_own) && dladdr(last_own, &info))
        fail_msg("%ld allocations of our own, the last one by %s (%p)", atomic_load(&n_own),
                 info.dli_sname ? info.dli_sname : "?", last_own);
    long least = by_step[1], most = by_step[1];
    for (int i = 1; i < STEADY; i++) {
        least = by_step[i] < least ? by_step[i] : least;
        most = by_step[i] > most ? by_step[i] : most;
    }
    printf("libraries' allocations a step: %ld to %ld\n", least, most);
    assert_int_equal(least, most);
    stk_trainer_free(trainer);
}

static void token_allocates_nothing(void **state)
{
    (void)state;
    stk_transformer_config config = {.layers = 2, .heads = 2, .width = 64, .vocabulary = 300, .positions = 256};
    stk_generator_options options = {.n_threads = 2};
    stk_sampling sampling = {.temperature = 1, .top_k = 40, .top_p = 0.9};
    stk_generator *g;
    int32_t token = 1;
    if (stk_generator_new(&config, 1, &options, &g) != STK_OK) fail_msg("%s", stk_error_text());
    atomic_store(&n_own, 0);
    for (int i = 0; i < 100; i++) {
        atomic_store(&counting, i > 2); /* The first ones compile the prompt's program and make the pool. */
        assert_int_equal(stk_generator_feed(g, &token, 1), STK_OK);
        assert_int_equal(stk_generator_sample(g, &sampling, &token), STK_OK);
    }
    atomic_store(&counting, false);
    assert_int_equal(atomic_load(&n_own), 0);
    stk_generator_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steady_step_allocates_nothing),
                                       cmocka_unit_test(token_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
