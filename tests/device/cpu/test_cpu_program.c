/* Fused groups: random programs in the block interpreter against the reference device, which evaluates them point by
 * point; in place wherever the kernel allows it; dropout against its formula.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "device/cpu/call.h"
#include "graph/dropout.h"

enum { MOST_INSTR = 14, N_PROGRAMS = 400 };

typedef struct maker {
    uint64_t seed, i;
    stk_fused_input input[CALL_MOST];
    stk_fused_instr instr[MOST_INSTR];
    int32_t out[CALL_MOST];
    stk_fused program;
    call call;
} maker;

static int draw(maker *m, int n)
{
    return (int)(stk_philox(m->seed, 1, m->i++).v[0] % (unsigned)n);
}

static stk_dtype register_dtype(const maker *m, int r)
{
    return r < m->program.n_in ? m->input[r].dtype : m->instr[r - m->program.n_in].dtype;
}

/* A register of that dtype; -1 when there is none. Seeds and samples, the first two inputs, are left alone. */
static int pick(maker *m, stk_dtype dtype)
{
    int n = m->program.n_in + m->program.n_instr, from = draw(m, n);
    for (int k = 0; k < n; k++) {
        int r = (from + k) % n;
        if (r >= 2 && register_dtype(m, r) == dtype) return r;
    }
    return -1;
}

/* An input that is broadcast along some axes: its own shape has 1 there. */
static void add_input(maker *m, stk_dtype dtype, bool is_dense)
{
    stk_fused_input *input = &m->input[m->program.n_in++];
    stk_shape space = m->program.shape, shape = space;
    int64_t step = 1;
    for (int axis = space.rank - 1; axis >= 0; axis--) {
        if (!is_dense && draw(m, 2)) shape.dim[axis] = 1;
        input->stride[axis] = shape.dim[axis] == 1 ? 0 : step;
        step *= shape.dim[axis];
    }
    input->dtype = dtype;
    call_add(&m->call, dtype, shape, 0.25, dtype == STK_I32 ? 9 : 2);
}

static void add_instr(maker *m)
{
    static const int unaries[] = {STK_UNARY_neg,     STK_UNARY_abs,  STK_UNARY_exp,    STK_UNARY_tanh,
                                  STK_UNARY_sigmoid, STK_UNARY_relu, STK_UNARY_square, STK_UNARY_erf};
    static const stk_dtype floats[] = {STK_F32, STK_F32, STK_F32, STK_F64, STK_BF16};
    stk_fused_instr instr = {.operand = {-1, -1, -1}};
    stk_dtype dtype = floats[draw(m, 5)];
    int a = pick(m, dtype), b = pick(m, dtype), condition = pick(m, STK_BOOL);
    if (a < 0) return;
    instr.dtype = instr.src_dtype = dtype;
    instr.operand[0] = a;
    switch (draw(m, 7)) {
    case 0:
        instr.op = STK_OP_unary;
        instr.kind = unaries[draw(m, 8)];
        break;
    case 1:
        instr.op = STK_OP_binary;
        instr.kind = draw(m, 3) ? STK_BINARY_mul : STK_BINARY_max;
        instr.operand[1] = b;
        break;
    case 2:
        instr.op = STK_OP_compare;
        instr.kind = STK_COMPARE_less;
        instr.dtype = STK_BOOL;
        instr.operand[1] = b;
        break;
    case 3:
        if (condition < 0) return;
        instr.op = STK_OP_select;
        instr.operand[0] = condition;
        instr.operand[1] = a;
        instr.operand[2] = b;
        break;
    case 4:
        instr.op = STK_OP_cast;
        instr.dtype = floats[draw(m, 5)];
        break;
    case 5:
        instr.op = STK_OP_constant;
        instr.operand[0] = -1;
        instr.value = 0.75;
        break;
    default:
        instr.op = STK_OP_dropout;
        instr.operand[1] = 0;
        instr.operand[2] = 1;
        instr.value = 0.3;
        instr.stream = 5;
        break;
    }
    m->instr[m->program.n_instr++] = instr;
}

static void make_program(maker *m, uint64_t seed)
{
    static const int64_t sides[] = {1, 2, 3, 7, 16, 33, 64, 130};
    memset(m, 0, sizeof(*m));
    m->seed = seed;
    m->program.shape.rank = 1 + draw(m, 4);
    for (int i = 0; i < m->program.shape.rank; i++)
        m->program.shape.dim[i] = sides[draw(m, m->program.shape.rank > 3 ? 6 : 8)];
    for (int i = 0; i < 2; i++) {
        m->input[m->program.n_in++].dtype = STK_I64;
        call_add(&m->call, STK_I64, (stk_shape){.rank = 0}, 0, 1e6);
    }
    add_input(m, STK_F32, true);
    add_input(m, STK_F32, false);
    add_input(m, STK_F32, draw(m, 2));
    add_input(m, STK_F64, draw(m, 2));
    add_input(m, STK_BF16, draw(m, 2));
    add_input(m, STK_BOOL, draw(m, 2));
    int n = 1 + draw(m, MOST_INSTR - 1);
    while (m->program.n_instr < n)
        add_instr(m);
    m->program.n_out = 1 + draw(m, 3);
    for (int o = 0; o < m->program.n_out; o++) {
        m->out[o] = m->program.n_in + (o ? draw(m, n) : n - 1);
        call_add_out(&m->call, register_dtype(m, m->out[o]), m->program.shape);
    }
    m->program.input = m->input;
    m->program.instr = m->instr;
    m->program.out = m->out;
    m->call.op = STK_OP_fused;
    m->call.attrs = stk_attrs_zero();
    m->call.attrs.fused.program = &m->program;
}

static double load(stk_dtype dtype, const void *data, int64_t i)
{
    float x;
    switch (dtype) {
    case STK_F32: return (double)((const float *)data)[i];
    case STK_F64: return ((const double *)data)[i];
    case STK_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&x, &bits, 4);
        return (double)x;
    }
    default: return ((const uint8_t *)data)[i];
    }
}

/* A result next to a rounding or comparison edge may fall on its other side, so a few elements may differ. */
static int count_differences(stk_tensor_desc desc, const void *got, const void *want)
{
    int n_different = 0;
    for (int64_t i = 0, n = stk_shape_count(desc.shape); i < n; i++) {
        double x = load(desc.dtype, got, i), y = load(desc.dtype, want, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        n_different += !(fabs(x - y) <= 2e-5 * fabs(y));
    }
    return n_different;
}

static void random_programs(void **state)
{
    static maker m;
    stk_device *reference = NULL, *device = call_open(NULL, 2);
    (void)state;
    assert_non_null(device);
    assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
    for (uint64_t seed = 0; seed < N_PROGRAMS; seed++) {
        void *want[CALL_MOST], *got[CALL_MOST], *placed[CALL_MOST];
        uint32_t in_place[8] = {0};
        make_program(&m, seed);
        assert_int_equal(call_run(&m.call, reference, -1, want, NULL), STK_OK);
        assert_int_equal(call_run(&m.call, device, -1, got, in_place), STK_OK);
        for (int o = 0; o < m.call.n_out; o++) {
            int64_t n = stk_shape_count(m.program.shape);
            int n_different = count_differences(m.call.out_desc[o], got[o], want[o]);
            if (n_different > 2 + n / 500)
                fail_msg("program %d, output %d: %d of %lld elements differ", (int)seed, o, n_different, (long long)n);
        }
        for (int k = 0; k < m.call.n_out * 32; k++) {
            if (!(in_place[k / 32] >> k % 32 & 1)) continue;
            assert_int_equal(call_run(&m.call, device, k, placed, NULL), STK_OK);
            for (int o = 0; o < m.call.n_out; o++)
                assert_memory_equal(placed[o], got[o], stk_desc_bytes(m.call.out_desc[o]));
            call_free_outputs(placed);
        }
        call_free_outputs(want);
        call_free_outputs(got);
        call_free(&m.call);
    }
    stk_device_close(device);
    stk_device_close(reference);
}

static void dropout_follows_its_formula(void **state)
{
    static const int64_t shapes[][2] = {{40000, 1}, {9001, 3}, {1003, 10}, {77, 257}, {5, 20000}, {2, 7}};
    (void)state;
    for (int i = 0; i < 6 * 3; i++) {
        int64_t n_rows = shapes[i / 3][0], n_columns = shapes[i / 3][1];
        stk_device *device = call_open(NULL, 1 + i % 3);
        call c = {.op = STK_OP_dropout, .attrs = stk_attrs_zero()};
        void *out[CALL_MOST];
        c.attrs.dropout.rate = 0.3;
        c.attrs.dropout.stream = -4;
        call_add(&c, STK_F32, STK_SHAPE(n_rows, n_columns), 1, 2);
        call_add(&c, STK_I64, (stk_shape){.rank = 0}, 0, 1e9);
        call_add(&c, STK_I64, (stk_shape){.rank = 0}, 0, 1e9);
        call_add_out(&c, STK_F32, STK_SHAPE(n_rows, n_columns));
        assert_int_equal(call_run(&c, device, -1, out, NULL), STK_OK);
        uint64_t key = stk_dropout_key(*(int64_t *)c.in[1], -4);
        for (int64_t k = 0; k < n_rows * n_columns; k++) {
            float x = ((float *)c.in[0])[k], y = ((float *)out[0])[k];
            bool keeps = stk_dropout_keeps(key, *(int64_t *)c.in[2], k / n_columns, k % n_columns, 0.3);
            if (keeps ? fabsf(y - x / 0.7f) > 1e-6f * y : y != 0)
                fail_msg("element %lld is %g", (long long)k, (double)y);
        }
        call_free_outputs(out);
        call_free(&c);
        stk_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
        cmocka_unit_test(dropout_follows_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
