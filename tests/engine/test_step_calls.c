/* What a steady step calls: no lock and no function of strings in our own code, by whichever thread runs a part of it.
 * Calls are told apart as in train/test_allocations: by whether the caller lies in this program, which holds all of
 * Stoker, or in a library. Threads that find no work sleep behind a lock, so locks are counted with one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "optim/update.h"
#include "stoker/nn/nn.h"
#include "stoker/nn/transformer.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    puts("SKIP sanitizers bring their own locks");
    return 77;
}
#else

static atomic_bool counting;
static atomic_long n_locks, n_strings;
static const char *own_file; /* as dladdr names this program */
static _Atomic(void *) last;

static void note(atomic_long *n, void *caller)
{
    Dl_info info;
    if (!atomic_load(&counting)) return;
    atomic_store(&counting, false); /* dladdr's own */
    if (!dladdr(caller, &info) || info.dli_fname == own_file) {
        atomic_store(&last, caller);
        atomic_fetch_add(n, 1);
    }
    atomic_store(&counting, true);
}

static void *behind(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) abort();
    return function;
}

/* Each calls what it hides. dlsym gives an object's address, which ISO C does not turn into a function's. */
#define HIDE(count, type, name, parameters, arguments)                                                                 \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static _Atomic(void *) found;                                                                                  \
        type(*real) parameters;                                                                                        \
        if (!atomic_load(&found)) atomic_store(&found, behind(#name));                                                 \
        void *address = atomic_load(&found);                                                                           \
        memcpy(&real, &address, sizeof(real));                                                                         \
        note(&count, __builtin_return_address(0));                                                                     \
        return real arguments;                                                                                         \
    }

HIDE(n_locks, int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
HIDE(n_locks, int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))
HIDE(n_locks, int, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
HIDE(n_locks, int, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
HIDE(n_strings, size_t, strlen, (const char *s), (s))
HIDE(n_strings, int, strcmp, (const char *a, const char *b), (a, b))
HIDE(n_strings, int, strncmp, (const char *a, const char *b, size_t n), (a, b, n))
HIDE(n_strings, char *, strchr, (const char *s, int c), (s, c))
HIDE(n_strings, char *, strstr, (const char *a, const char *b), (a, b))
HIDE(n_strings, char *, strcpy, (char *a, const char *b), (a, b))
HIDE(n_strings, int, vsnprintf, (char *s, size_t n, const char *f, va_list v), (s, n, f, v))

int snprintf(char *s, size_t n, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(s, n, format, list); /* which counts: its caller is this program */
    va_end(list);
    return length;
}

enum { SIDE = 16, BATCH = 8, TOKENS = 24, WORDS = 300, N_WARM = 3, N_STEPS = 20 };

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static stk_model *make_convolutions(void)
{
    stk_model *model = stk_model_new("resnet");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 3);
    stk_value y = stk_dropout(stk_resnet(x, 18, 10, STK_STEM_CIFAR), 0.1);
    stk_model_loss(model, stk_cross_entropy(y, stk_model_label(model)));
    return model;
}

static stk_model *make_gpt2(void)
{
    stk_transformer_config config = {
        .layers = 2, .heads = 2, .width = 64, .vocabulary = WORDS, .positions = TOKENS, .dropout = 0.1};
    stk_model *model = stk_model_new("gpt2");
    stk_value tokens = stk_model_input_named(model, "tokens", STK_I32, STK_SHAPE(TOKENS));
    stk_value targets = stk_model_input_named(model, "targets", STK_I32, STK_SHAPE(TOKENS));
    stk_model_loss(model, stk_gpt2(tokens, targets, &config));
    return model;
}

static stk_graph *make_step(stk_model *model)
{
    expect_ok(stk_model_status(model));
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), BATCH);
    stk_value loss = stk_reduce_mean(stk_value_of(graph, stk_model_get_loss(model).id), 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options options = {.optimizer = stk_adam(.lr = 1e-3), .clip_norm = 1};
    expect_ok(stk_optim_build(graph, loss, &options));
    stk_model_free(model);
    return graph;
}

/* Zeros do for images, labels and tokens; the optimiser's own inputs are scalars. */
static void bind_all(stk_program *program)
{
    static const char zeros[BATCH * SIDE * SIDE * 3 * sizeof(float)];
    static const char *const names[] = {"image", "label", "tokens", "targets"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int input = stk_program_input(program, names[i]);
        if (input >= 0) stk_program_bind(program, input, zeros);
    }
    const int64_t step = 1;
    const float lr = 1e-3F;
    static const char *const counters[] = {"step", "seed", "sample"};
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
        expect_ok(stk_program_set(program, stk_program_input(program, counters[i]), &step));
    expect_ok(stk_program_set(program, stk_program_input(program, "lr"), &lr));
}

static void expect_none(const char *what, long n)
{
    Dl_info info;
    if (!n) return;
    void *caller = atomic_load(&last);
    const char *name = dladdr(caller, &info) && info.dli_sname ? info.dli_sname : "?";
    fail_msg("%ld %s in %d steps, the last by %s (%p)", n, what, N_STEPS, name, caller);
}

static void run(stk_model *model, int n_threads, stk_dtype compute)
{
    stk_engine *engine;
    stk_program *program;
    stk_device_config config = {.n_threads = n_threads};
    stk_compile_options options = {.compute = compute};
    expect_ok(stk_engine_open("cpu", &config, 0, &engine));
    expect_ok(stk_engine_compile(engine, make_step(model), &options, &program));
    bind_all(program);
    for (int i = -N_WARM; i < N_STEPS; i++) {
        atomic_store(&counting, i >= 0);
        expect_ok(stk_program_run(program));
        atomic_store(&counting, false);
    }
    expect_none("calls with strings", atomic_exchange(&n_strings, 0));
    long locks = atomic_exchange(&n_locks, 0);
    if (n_threads == 1) expect_none("locks", locks);
    stk_engine_close(engine);
}

static void a_step_takes_no_lock_and_no_string(void **state)
{
    (void)state;
    static const stk_dtype computes[] = {STK_F32, STK_BF16};
    for (int n_threads = 1; n_threads <= 2; n_threads++)
        for (int i = 0; i < 2; i++) {
            run(make_convolutions(), n_threads, computes[i]);
            run(make_gpt2(), n_threads, computes[i]);
        }
}

/* Else the test above could count nothing and pass. */
static void calls_are_counted(void **state)
{
    (void)state;
    volatile size_t length;
    const char *volatile text = "text";
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&counting, true);
    length = strlen(text);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    atomic_store(&counting, false);
    assert_int_equal(length, 4);
    assert_int_equal(atomic_exchange(&n_strings, 0), 1);
    assert_int_equal(atomic_exchange(&n_locks, 0), 1);
}

int main(void)
{
    Dl_info info;
    if (dladdr((void *)(uintptr_t)make_step, &info)) own_file = info.dli_fname;
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_are_counted),
                                       cmocka_unit_test(a_step_takes_no_lock_and_no_string)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
