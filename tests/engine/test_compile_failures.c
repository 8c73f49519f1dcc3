/* Memory that runs out at any point of compiling is a status, and what was taken before is given back. The k-th
 * allocation of our own code fails, for each k until compiling succeeds; libraries' own succeed.
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
#include <unistd.h>

#include "engine/engine.h"
#include "optim/update.h"
#include "passes/parts.h"
#include "stoker/nn/nn.h"

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

static atomic_long n_left; /* own allocations until one fails; 0: none fails */
static atomic_bool has_failed;
static const char *own_file; /* as dladdr names this program */

static bool must_fail(void *caller)
{
    Dl_info info;
    if (atomic_load(&n_left) == 0) return false;
    if (!own_file || !dladdr(caller, &info) || !info.dli_fname || strcmp(info.dli_fname, own_file)) return false;
    if (atomic_fetch_sub(&n_left, 1) != 1) return false;
    atomic_store(&has_failed, true);
    return true;
}

void *malloc(size_t n)
{
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t a, size_t n)
{
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(a, n);
}

int posix_memalign(void **out, size_t a, size_t n)
{
    *out = must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(a, n);
    return *out ? 0 : ENOMEM;
}

enum { ROWS = 4, BATCH = 8, SIDE = 8 };

static stk_graph *make_graph(void)
{
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input(model, STK_F32, SIDE, SIDE, 3);
    x = stk_relu(stk_batch_norm(stk_conv2d(x, 4, 3)));
    x = stk_dropout(stk_gelu(stk_batch_norm(stk_conv2d(x, 4, 3))), 0.25);
    x = stk_dense(stk_global_pool(stk_max_pool(x, 2)), 3);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_graph *graph = stk_graph_clone(stk_model_graph(model), ROWS);
    stk_value loss = stk_reduce_mean(stk_value_of(graph, stk_model_get_loss(model).id), 0);
    stk_graph_output(graph, "loss", loss);
    stk_optim_options options = {.optimizer = stk_adam(.lr = 0.1), .clip_norm = 1};
    stk_optim_build(graph, loss, &options);
    stk_model_free(model);
    return graph;
}

/* Opens an engine and compiles; own allocation number k of that fails, 0: none. */
static stk_status compile(const char *device, const stk_compile_options *options, long k)
{
    stk_engine *engine = NULL;
    stk_program *program;
    stk_device_config config = {.n_threads = 2};
    stk_graph *graph = make_graph();
    atomic_store(&has_failed, false);
    atomic_store(&n_left, k);
    stk_status status = stk_engine_open(device, &config, 3, &engine);
    if (status == STK_OK)
        status = stk_engine_compile(engine, graph, options, &program);
    else
        stk_graph_free(graph);
    atomic_store(&n_left, 0);
    stk_engine_close(engine);
    return status;
}

static void fail_everywhere(const char *device, const stk_compile_options *options)
{
    long k = 1;
    for (int i = 0; i < 3; i++)
        if (compile(device, options, 0) != STK_OK) fail_msg("%s", stk_error_text());
    for (;; k += 1 + k / 200) {
        size_t before = mallinfo2().uordblks;
        stk_status status = compile(device, options, k);
        size_t after = mallinfo2().uordblks;
        if (!atomic_load(&has_failed)) {
            assert_int_equal(status, STK_OK);
            break;
        }
        if (status != STK_OK && status != STK_NO_MEMORY) fail_msg("allocation %ld: %s", k, stk_error_text());
        if (after > before + 64) fail_msg("allocation %ld: %zu bytes were not given back", k, after - before);
        /* Only where a plan may do without may a failure pass. */
        if (status == STK_OK) fail_msg("allocation %ld failed, and compiling succeeded", k);
    }
    print_message("%s: %ld allocations\n", device, k);
    assert_true(k > 100);
}

static int set_up(void **state)
{
    Dl_info info;
    (void)state;
    if (dladdr((void *)(uintptr_t)make_graph, &info)) own_file = info.dli_fname;
    return 0;
}

static void plain(void **state)
{
    (void)state;
    const stk_compile_options options = {.no_fuse = false};
    fail_everywhere("reference", &options);
    fail_everywhere("cpu", &options);
    const stk_compile_options kept = {.compute = STK_BF16, .keep_packed = true};
    fail_everywhere("cpu", &kept);
}

/* What the step needs where nothing, or all that helps, is recomputed. */
static size_t plan_bytes(int recompute_most)
{
    stk_engine *engine;
    stk_program *program;
    stk_device_config config = {.n_threads = 2};
    const stk_compile_options options = {
        .plan_only = true, .recompute = "auto", .recompute_most = recompute_most, .batch = BATCH, .micro = ROWS};
    assert_int_equal(stk_engine_open("cpu", &config, 3, &engine), STK_OK);
    assert_int_equal(stk_engine_compile(engine, make_graph(), &options, &program), STK_OK);
    stk_program_info info = stk_program_get_info(program);
    stk_engine_close(engine);
    return info.arena_bytes + info.variable_bytes + info.program_bytes;
}

/* With a limit, what is recomputed, and slices. */
static void within_a_limit(void **state)
{
    (void)state;
    const stk_compile_options options = {
        .fit = true, .memory_limit_bytes = plan_bytes(1000), .batch = BATCH, .micro = ROWS};
    assert_true(options.memory_limit_bytes < plan_bytes(0));
    fail_everywhere("cpu", &options);
}

static void in_evaluation(void **state)
{
    (void)state;
    const stk_compile_options options = {.inference = true};
    fail_everywhere("cpu", &options);
}

int main(int argc, char **argv)
{
    /* Blocks that a thread keeps for itself count as used: without such keeping the sums are exact. */
    if (argc == 1 && setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1) == 0)
        execv("/proc/self/exe", (char *[]){argv[0], (char *)"again", NULL});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(within_a_limit),
        cmocka_unit_test(in_evaluation),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
#endif
