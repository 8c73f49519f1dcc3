/* Every case on every device that opens, against the reference device, and on the awkward one, bit for bit; and every
 * op has cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/awkward/awkward.h"
#include "harness/harness.h"

static stk_device *reference;

static bool needs_cases(stk_op op)
{
    /* Ranks compute the last together, without devices: tests/train/test_replicas.c. */
    return stk_op_get_rule(op)->kind != STK_KIND_LEAF && !stk_op_is_of_ranks(op);
}

static void every_op_has_cases(void **state)
{
    (void)state;
    int n_cases[STK_N_OPS] = {0}, n_lists, n_missing = 0;
    const case_list *lists = harness_case_lists(&n_lists);
    for (int l = 0; l < n_lists; l++)
        for (int i = 0; i < lists[l].n; i++)
            n_cases[lists[l].cases[i].op] += !lists[l].cases[i].large;
    for (int op = 0; op < STK_N_OPS; op++) {
        if (n_cases[op] || !needs_cases((stk_op)op)) continue;
        print_message("'%s' has no case in tests/harness/cases_*.c\n", stk_op_name((stk_op)op));
        n_missing++;
    }
    assert_int_equal(n_missing, 0);
}

typedef struct tally {
    int n_compared, n_in_place, n_kept, n_wrong;
    uint16_t skipped[STK_N_OPS]; /* bits of the dtypes */
} tally;

static void free_outputs(void *out[CASE_MOST_OUT])
{
    for (int i = 0; i < CASE_MOST_OUT; i++)
        free(out[i]);
}

static void complain(tally *t, const stk_device *device, const case_run *run, const char *what)
{
    print_message("%s on %s: %s\n", case_text(run), device->class->name, what);
    t->n_wrong++;
}

/* The same bits as before are wanted. */
static void check_again(tally *t, stk_device *device, const case_run *run, int in_place, void *const *want,
                        const char *what)
{
    void *out[CASE_MOST_OUT];
    if (case_call(run, device, in_place, out, NULL) != STK_OK)
        complain(t, device, run, stk_error_text());
    else
        for (int k = 0; k < run->call.n_out; k++)
            if (memcmp(out[k], want[k], stk_desc_bytes(run->out_desc[k]))) complain(t, device, run, what);
    free_outputs(out);
}

/* Where the kernel says that output i may use the memory of input j, the bits must be the same that way. */
static void check_in_place(tally *t, stk_device *device, const case_run *run, void *const *want)
{
    stk_kernel kernel;
    if (device->class->kernel(device, &run->call, &kernel) != STK_OK) return;
    for (int i = 0; i < run->call.n_out && i < 8; i++) {
        for (int j = 0; j < run->call.n_in; j++) {
            if (!(kernel.in_place[i] >> j & 1)) continue;
            if (stk_desc_bytes(run->in_desc[j]) != stk_desc_bytes(run->out_desc[i])) {
                complain(t, device, run, "in place between different sizes");
                continue;
            }
            check_again(t, device, run, 32 * i + j, want, "other bits in place");
            t->n_in_place++;
        }
    }
    stk_kernel_free(&kernel);
}

/* And so they must where a weight is kept packed. */
static void check_kept(tally *t, stk_device *device, const case_run *run, void *const *want)
{
    stk_kernel kernel;
    if (device->class->kernel(device, &run->call, &kernel) != STK_OK) return;
    if (kernel.packed_bytes) {
        check_again(t, device, run, CASE_KEPT, want, "other bits of a weight that is kept packed");
        t->n_kept++;
    }
    stk_kernel_free(&kernel);
}

static void check_case(tally *t, stk_device *device, const op_case *source, stk_dtype main)
{
    case_run run;
    void *want[CASE_MOST_OUT] = {0}, *got[CASE_MOST_OUT] = {0};
    if (case_run_open(source, main, reference, &run) != STK_OK ||
        case_call(&run, reference, CASE_APART, want, NULL) != STK_OK) {
        complain(t, reference, &run, stk_error_text());
        goto done;
    }
    stk_status status = case_call(&run, device, CASE_APART, got, NULL);
    if (status == STK_UNSUPPORTED) {
        t->skipped[source->op] |= (uint16_t)(1u << main);
    } else if (status != STK_OK) {
        complain(t, device, &run, stk_error_text());
    } else {
        for (int i = 0; i < run.call.n_out; i++) {
            const char *difference = case_compare(&run, i, got[i], want[i]);
            if (device->class == &awkward_class && memcmp(got[i], want[i], stk_desc_bytes(run.out_desc[i])))
                difference = "other bits than the reference device's, whose kernel this is";
            if (difference) complain(t, device, &run, difference);
        }
        check_in_place(t, device, &run, got);
        check_kept(t, device, &run, got);
        t->n_compared++;
    }
done:
    free_outputs(want);
    free_outputs(got);
    case_run_close(&run);
}

/* Devices that have a kernel for every case; what another one lacks is only told. */
static bool is_complete(const stk_device_class *class)
{
    return !strcmp(class->name, "cpu") || !strcmp(class->name, "reference") || class == &awkward_class;
}

static const char *only_op; /* what the names of ops have in common that are wanted; NULL: all ops */
static int i_part, n_parts = 1;
static const char *only_dtypes; /* "f32,i32"; NULL: all */

static bool is_wanted_dtype(stk_dtype dtype)
{
    const char *name = stk_dtype_name(dtype);
    size_t n = strlen(name);
    for (const char *p = only_dtypes; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, name, n) && (!p[n] || p[n] == ',')) return true;
    }
    return !only_dtypes;
}

static bool is_wanted_op(stk_op op)
{
    return (int)op % n_parts == i_part && (!only_op || strstr(stk_op_name(op), only_op));
}

static stk_status ask_for_kernel(void *device, const case_run *run)
{
    if (!is_wanted_op(run->call.op)) return STK_OK;
    stk_kernel kernel;
    if (((stk_device *)device)->class->kernel(device, &run->call, &kernel) == STK_OK) stk_kernel_free(&kernel);
    return STK_OK;
}

static void check_device(const stk_device_class *class, const char *name)
{
    stk_device *device;
    int n_lists;
    const case_list *lists = harness_case_lists(&n_lists);
    static tally t;
    memset(&t, 0, sizeof(t));
    if (stk_device_open(name, NULL, &device) != STK_OK) {
        print_message("device '%s' is left out: %s\n", name, stk_error_text());
        return;
    }
    /* Each case's kernel is asked for first, so that a device which builds programs builds one. */
    if (!class->on_host) harness_each_call(ask_for_kernel, device);
    for (int l = 0; l < n_lists; l++) {
        for (int i = 0; i < lists[l].n; i++) {
            const op_case *source = &lists[l].cases[i];
            if (source->large || !is_wanted_op(source->op)) continue;
            for (int d = 0; d < STK_N_DTYPES; d++)
                if (case_mains(source) >> d & 1 && is_wanted_dtype((stk_dtype)d))
                    check_case(&t, device, source, (stk_dtype)d);
        }
    }
    for (int op = 0; op < STK_N_OPS; op++)
        for (int d = 0; d < STK_N_DTYPES; d++)
            if (t.skipped[op] >> d & 1) {
                print_message("skipped: %s has no kernel for some case of %s in %s\n", class->name,
                              stk_op_name((stk_op)op), stk_dtype_name((stk_dtype)d));
                t.n_wrong += is_complete(class);
            }
    print_message("%s: %d calls compared, %d in place, %d of kept weights, %d wrong\n", class->name, t.n_compared,
                  t.n_in_place, t.n_kept, t.n_wrong);
    stk_device_close(device);
    assert_int_equal(t.n_wrong, 0);
}

static const char *only; /* a device's name, maybe with its number; NULL: those that are here in any case */

static bool is_wanted(const stk_device_class *class)
{
    if (!only) return class->on_host || class == &awkward_class;
    return strcspn(only, ":") == strlen(class->name) && !strncmp(only, class->name, strlen(class->name));
}

static void devices_match_the_reference(void **state)
{
    (void)state;
    int n_checked = 0;
    for (int i = 0; stk_device_classes[i]; i++)
        if (is_wanted(stk_device_classes[i])) {
            n_checked++;
            check_device(stk_device_classes[i], only ? only : stk_device_classes[i]->name);
        }
    assert_true(n_checked > 0 || (only && !strcmp(only, awkward_class.name)));
}

static void kernels_know_no_device(void **state)
{
    (void)state;
    awkward_add();
    if (is_wanted(&awkward_class)) check_device(&awkward_class, awkward_class.name);
}

/* The reference needs no permission to lack an op. */
static void reference_has_every_op(void **state)
{
    (void)state;
    int n_lists;
    const case_list *lists = harness_case_lists(&n_lists);
    for (int l = 0; l < n_lists; l++) {
        for (int i = 0; i < lists[l].n; i++) {
            case_run run;
            stk_kernel kernel;
            if (lists[l].cases[i].large) continue;
            assert_int_equal(case_run_open(&lists[l].cases[i], STK_F32, reference, &run), STK_OK);
            assert_int_equal(reference->class->kernel(reference, &run.call, &kernel), STK_OK);
            stk_kernel_free(&kernel);
            case_run_close(&run);
        }
    }
}

/* test_op_values [DEVICE [OP|I/N [DTYPES]]]   I/N: the ops of one of N parts, from 0 on; DTYPES: f32,i32 */
int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    only_op = argc > 2 ? argv[2] : NULL;
    only_dtypes = argc > 3 ? argv[3] : NULL;
    if (only_op && sscanf(only_op, "%d/%d", &i_part, &n_parts) == 2) {
        only_op = NULL;
        if (n_parts < 1 || i_part < 0 || i_part >= n_parts) {
            fprintf(stderr, "no part '%s'\n", argv[2]);
            return 2;
        }
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_has_cases),
        cmocka_unit_test(reference_has_every_op),
        cmocka_unit_test(devices_match_the_reference),
        cmocka_unit_test(kernels_know_no_device),
    };
    if (stk_device_open("reference", NULL, &reference) != STK_OK) {
        fprintf(stderr, "%s\n", stk_error_text());
        return 1;
    }
    awkward_add();
    stk_device *chosen;
    if (only && stk_device_open(only, NULL, &chosen) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return 77;
    }
    if (only) stk_device_close(chosen);
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    stk_device_close(reference);
    return n_failed;
}
