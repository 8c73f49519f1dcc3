/* All kernels of the harness as a real chip's compiler sees them: they compile, their launches fit them, and what must
 * not spill does not. The chip is one on paper (device/paper), the compiler NVIDIA's, where it can be found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "device/paper/calls.h"
#include "device/paper/nvrtc.h"
#include "device/paper/paper.h"

static stk_device *device;

static void all_cases_build_and_launch(void **state)
{
    (void)state;
    paper_tally tally;
    if (paper_build_cases(device, &tally) != STK_OK) fail_msg("%s", stk_error_text());
    print_message("%s: %d calls have kernels, %d have none\n", nvrtc_version(), tally.n_calls, tally.n_refused);
    assert_true(tally.n_calls > 0);
}

static bool starts_with(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (!strncmp(text, *prefixes, strlen(*prefixes))) return true;
    return false;
}

/* Spills as such are the compiler's choice, for more groups at a time; what is hot has none. */
static void hot_kernels_spill_nothing_and_multiply_tiles(void **state)
{
    (void)state;
    const gpu_device *gpu = (const gpu_device *)device;
    int n = 0, n_hot = 0, n_bad = 0;
    for (int i = 0; i < gpu->n_modules; i++)
        for (int j = 0; j < gpu->module[i]->n_kernels; j++, n++) {
            const paper_kernel *k = &gpu->module[i]->kernel[j];
            bool spills = k->spill_store_bytes || k->spill_load_bytes, lacks = !k->n_mma && !k->n_wgmma;
            assert_true(k->file[0] && k->registers > 0 && k->registers <= 255);
            assert_true(k->group > 0 && k->group <= 256);
            assert_true(k->shared_bytes <= 48 << 10);
            n_hot += paper_is_hot(k);
            if (paper_is_hot(k) && spills)
                print_message("%s: %s (%s) spills %d bytes\n", k->file, k->name, k->settings, k->spill_store_bytes);
            if (paper_wants_tiles(k) && lacks)
                print_message("%s: %s (%s) has %d fma and no mma.sync\n", k->file, k->name, k->settings, k->n_fma);
            n_bad += (paper_is_hot(k) && spills) || (paper_wants_tiles(k) && lacks);
        }
    print_message("%d kernels, of which %d are hot\n", n, n_hot);
    assert_true(n > 0);
    assert_int_equal(n_bad, 0);
}

/* What the compiler refuses is told with its file and line. */
static void an_error_names_its_line(void **state)
{
    (void)state;
    gpu_unit *unit;
    assert_int_equal(gpu_unit_of_text((gpu_device *)device, "wrong.dev", "", "\n\nint x = y;\n", &unit), STK_OK);
    assert_int_equal(paper_build(device), STK_DEVICE);
    const char *const wanted[] = {"NVRTC refuses kernels for sm_90 (6): wrong.dev(3): error: ", NULL};
    if (!starts_with(stk_error_text(), wanted)) fail_msg("%s", stk_error_text());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases_build_and_launch),
        cmocka_unit_test(hot_kernels_spill_nothing_and_multiply_tiles),
        cmocka_unit_test(an_error_names_its_line),
    };
    if (nvrtc_load() != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return 77;
    }
    paper_add();
    if (stk_device_open("paper:1", NULL, &device) != STK_OK) {
        fprintf(stderr, "%s\n", stk_error_text());
        return 1;
    }
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    stk_device_close(device);
    return n_failed;
}
