/* Kernels read as many pointers of inputs and outputs as their op has, and no more: both arrays end where a page does,
 * and the next page cannot be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "harness/harness.h"

typedef struct guarded {
    char *page; /* readable, and the one behind it not */
    size_t bytes;
} guarded;

static guarded new_guarded(void)
{
    guarded g = {.bytes = (size_t)sysconf(_SC_PAGESIZE)};
    g.page = mmap(NULL, 2 * g.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.page == MAP_FAILED || mprotect(g.page + g.bytes, g.bytes, PROT_NONE) != 0) fail_msg("no guarded page");
    return g;
}

static void **at_end(const guarded *g, int n)
{
    return (void **)(g->page + g->bytes) - n;
}

static void call(stk_device *device, stk_device *reference, const op_case *source, stk_dtype main,
                 const guarded pages[2])
{
    case_run run;
    stk_kernel kernel;
    int i_failed;
    if (case_run_open(source, main, reference, &run) != STK_OK) fail_msg("%s", stk_error_text());
    if (device->class->kernel(device, &run.call, &kernel) == STK_OK) {
        void **in = at_end(&pages[0], run.call.n_in), **out = at_end(&pages[1], run.call.n_out);
        void *scratch = harness_alloc(kernel.scratch_bytes);
        for (int i = 0; i < run.call.n_in; i++)
            in[i] = run.in[i];
        for (int i = 0; i < run.call.n_out; i++)
            out[i] = harness_alloc(stk_desc_bytes(run.out_desc[i]));
        stk_entry entry = {&kernel, {.in = in, .out = out, .scratch = scratch}};
        if (device->class->run(device, &entry, 1, &i_failed) != STK_OK) fail_msg("%s", stk_error_text());
        for (int i = 0; i < run.call.n_out; i++)
            free(out[i]);
        free(scratch);
        stk_kernel_free(&kernel);
    }
    case_run_close(&run);
}

/* Softmax, which has one input, read a second. */
static void kernels_read_no_input_that_their_op_lacks(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "reference"};
    stk_device *device, *reference;
    guarded pages[2] = {new_guarded(), new_guarded()};
    int n_lists;
    const case_list *lists = harness_case_lists(&n_lists);
    assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
    for (size_t d = 0; d < sizeof(names) / sizeof(names[0]); d++) {
        assert_int_equal(stk_device_open(names[d], NULL, &device), STK_OK);
        for (int l = 0; l < n_lists; l++)
            for (int i = 0; i < lists[l].n; i++)
                for (int t = 0; t < STK_N_DTYPES && !lists[l].cases[i].large; t++)
                    if (case_mains(&lists[l].cases[i]) >> t & 1)
                        call(device, reference, &lists[l].cases[i], (stk_dtype)t, pages);
        stk_device_close(device);
    }
    stk_device_close(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_read_no_input_that_their_op_lacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
