/* Groups that end in a reduction, large enough to be shared: the reference device's values, and the same bits for any
 * number of threads and every instruction set.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "device/cpu/call.h"

static const char *const isas[] = {"baseline", "avx2", "avx512"};

typedef struct group_case {
    int64_t rows, columns;
    int kind;
    uint32_t axes;
    bool is_stored;
} group_case;

/* (x y + y), y by column, and what it adds up to. */
static void make_call(const group_case *from, call *c, stk_fused *program, stk_fused_input input[2])
{
    static const stk_fused_instr instr[] = {
        {.op = STK_OP_binary, .kind = STK_BINARY_mul, .dtype = STK_F32, .src_dtype = STK_F32, .operand = {0, 1, -1}},
        {.op = STK_OP_binary, .kind = STK_BINARY_add, .dtype = STK_F32, .src_dtype = STK_F32, .operand = {2, 1, -1}}};
    static const int32_t out[] = {3};
    stk_shape space = STK_SHAPE(from->rows, from->columns), y = {.rank = 0};
    for (int i = 0; i < 2; i++)
        if (!(from->axes >> i & 1)) y.dim[y.rank++] = space.dim[i];
    memset(c, 0, sizeof(*c));
    input[0] = (stk_fused_input){STK_F32, {from->columns, 1}};
    input[1] = (stk_fused_input){STK_F32, {0, 1}};
    *program = (stk_fused){.shape = space,
                           .n_in = 2,
                           .n_instr = 2,
                           .n_out = from->is_stored,
                           .input = input,
                           .instr = instr,
                           .out = out,
                           .reduce = {.axes = from->axes, .src = 3, .kind = from->kind}};
    c->op = STK_OP_fused;
    c->attrs = stk_attrs_zero();
    c->attrs.fused.program = program;
    call_add(c, STK_F32, space, -1, 1);
    call_add(c, STK_F32, STK_SHAPE(from->columns), 0.5, 1);
    if (from->is_stored) call_add_out(c, STK_F32, space);
    call_add_out(c, STK_F32, y);
}

static void compare_values(const call *c, void *const *got, void *const *want)
{
    for (int o = 0; o < c->n_out; o++)
        for (int64_t i = 0, n = stk_shape_count(c->out_desc[o].shape); i < n; i++) {
            double x = (double)((float *)got[o])[i], y = (double)((float *)want[o])[i];
            if (fabs(x - y) > 2e-6 * (fabs(y) + 1)) fail_msg("output %d, element %lld", o, (long long)i);
        }
}

static void threads_and_instruction_sets_agree(void **state)
{
    static const group_case cases[] = {
        {1, 300007, STK_REDUCE_SUM, 3, false},  {517, 613, STK_REDUCE_MEAN, 3, true},
        {70, 5003, STK_REDUCE_SUM, 2, false},   {5, 70001, STK_REDUCE_MAX, 2, true},
        {9001, 37, STK_REDUCE_SUM, 2, true},    {3001, 200, STK_REDUCE_MEAN, 2, false},
        {2049, 770, STK_REDUCE_SUM, 1, true},   {9001, 37, STK_REDUCE_SUM, 1, true},
        {100003, 3, STK_REDUCE_MEAN, 1, false}, {701, 1030, STK_REDUCE_MIN, 1, false},
        {11, 90001, STK_REDUCE_SUM, 1, true},
    };
    stk_device *reference = NULL;
    (void)state;
    assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        call c;
        stk_fused program;
        stk_fused_input input[2];
        void *want[CALL_MOST], *first[CALL_MOST] = {0}, *got[CALL_MOST];
        make_call(&cases[i], &c, &program, input);
        assert_int_equal(call_run(&c, reference, -1, want, NULL), STK_OK);
        for (int k = 0; k < 3 * 4; k++) {
            stk_device *device = call_open(isas[k / 4], 1 + k % 4);
            if (!device) continue; /* not on this machine */
            assert_int_equal(call_run(&c, device, -1, got, NULL), STK_OK);
            stk_device_close(device);
            if (!first[0]) {
                memcpy(first, got, sizeof(first));
                compare_values(&c, first, want);
                continue;
            }
            for (int o = 0; o < c.n_out; o++)
                if (memcmp(got[o], first[o], stk_desc_bytes(c.out_desc[o])))
                    fail_msg("case %d: output %d has other bits with %d threads on %s", (int)i, o, 1 + k % 4,
                             isas[k / 4]);
            call_free_outputs(got);
        }
        call_free_outputs(first);
        call_free_outputs(want);
        call_free(&c);
    }
    stk_device_close(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_instruction_sets_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
