/* Random fused groups: a few inputs of several dtypes, some broadcast, and instructions over whatever fits. */
#ifndef STK_TESTS_DEVICE_CPU_RANDOM_PROGRAM_H
#define STK_TESTS_DEVICE_CPU_RANDOM_PROGRAM_H

#include "device/cpu/call.h"

enum { MOST_INSTR = 14 };

typedef struct maker {
    uint64_t seed, i;
    int n_floats; /* dtypes of floats; all but bf16, which is the last one, by even seeds */
    stk_fused_input input[CALL_MOST];
    stk_fused_instr instr[MOST_INSTR];
    int32_t out[CALL_MOST];
    stk_fused program;
    call call;
} maker;

static inline int draw(maker *m, int n)
{
    return (int)(stk_philox(m->seed, 1, m->i++).v[0] % (unsigned)n);
}

static inline stk_dtype register_dtype(const maker *m, int r)
{
    return r < m->program.n_in ? m->input[r].dtype : m->instr[r - m->program.n_in].dtype;
}

/* A register of that dtype; -1 when there is none. Seeds and samples, the first two inputs, are left alone. */
static inline int pick(maker *m, stk_dtype dtype)
{
    int n = m->program.n_in + m->program.n_instr, from = draw(m, n);
    for (int k = 0; k < n; k++) {
        int r = (from + k) % n;
        if (r >= 2 && register_dtype(m, r) == dtype) return r;
    }
    return -1;
}

/* An input that is broadcast along some axes: its own shape has 1 there. */
static inline void add_input(maker *m, stk_dtype dtype, bool is_dense)
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

static inline void add_instr(maker *m)
{
    static const int unaries[] = {STK_UNARY_neg,     STK_UNARY_abs,  STK_UNARY_exp,    STK_UNARY_tanh,
                                  STK_UNARY_sigmoid, STK_UNARY_relu, STK_UNARY_square, STK_UNARY_erf};
    static const int binaries[] = {STK_BINARY_mul, STK_BINARY_mul, STK_BINARY_add, STK_BINARY_add, STK_BINARY_max};
    static const stk_dtype floats[] = {STK_F32, STK_F32, STK_F32, STK_F64, STK_BF16};
    stk_fused_instr instr = {.operand = {-1, -1, -1}};
    stk_dtype dtype = floats[draw(m, m->n_floats)];
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
        instr.kind = binaries[draw(m, 5)];
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
        instr.dtype = floats[draw(m, m->n_floats)];
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

/* Half of the programs end in a reduction of their last value, over some first or last axes, where it is a float. */
static inline void add_reduction(maker *m)
{
    static const int kinds[] = {STK_REDUCE_SUM, STK_REDUCE_MEAN, STK_REDUCE_MAX, STK_REDUCE_MIN};
    stk_shape space = m->program.shape, y = {.rank = 0};
    int32_t src = m->program.n_in + m->program.n_instr - 1;
    stk_dtype dtype = register_dtype(m, src);
    int n = 1 + draw(m, space.rank), kind = kinds[draw(m, dtype == STK_BF16 ? 2 : 4)];
    uint32_t first = (1u << n) - 1, axes = draw(m, 2) ? first : first << (space.rank - n);
    bool wide = kind <= STK_REDUCE_MEAN && draw(m, 2);
    if (draw(m, 2) || !stk_dtype_is_float(dtype)) return;
    for (int i = 0; i < space.rank; i++)
        if (!(axes >> i & 1)) y.dim[y.rank++] = space.dim[i];
    m->program.reduce = (stk_fused_reduce){.axes = axes, .src = src, .kind = kind, .wide = wide};
    call_add_out(&m->call, wide && dtype == STK_BF16 ? STK_F32 : dtype, y);
    if (draw(m, 2)) return;
    /* Nothing but the reduced value comes out. */
    m->call.out_desc[0] = m->call.out_desc[m->call.n_out - 1];
    m->call.n_out = 1;
    m->program.n_out = 0;
}

static inline void make_program(maker *m, uint64_t seed)
{
    static const int64_t sides[] = {1, 2, 3, 7, 16, 33, 64, 130};
    memset(m, 0, sizeof(*m));
    m->seed = seed;
    m->n_floats = seed % 2 ? 5 : 4;
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
    if (seed % 2) add_input(m, STK_BF16, draw(m, 2));
    add_input(m, STK_BOOL, draw(m, 2));
    int n = 1 + draw(m, MOST_INSTR - 1);
    while (m->program.n_instr < n)
        add_instr(m);
    m->program.n_out = 1 + draw(m, 3);
    for (int o = 0; o < m->program.n_out; o++) {
        m->out[o] = m->program.n_in + (o ? draw(m, n) : n - 1);
        call_add_out(&m->call, register_dtype(m, m->out[o]), m->program.shape);
    }
    add_reduction(m);
    m->program.input = m->input;
    m->program.instr = m->instr;
    m->program.out = m->out;
    m->call.op = STK_OP_fused;
    m->call.attrs = stk_attrs_zero();
    m->call.attrs.fused.program = &m->program;
}

#endif
