/* The instructions of a group as text: print.h. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "device/gpu/ops/print.h"
#include "graph/dropout.h"

stk_dtype gpu_register_type(const stk_fused *program, int r)
{
    return r < program->n_in ? program->input[r].dtype : program->instr[r - program->n_in].dtype;
}

/* By kind, "x" standing for the operand; NULL: none. */
static const char *unary_of_float(int kind, stk_dtype dtype)
{
    switch ((stk_unary_kind)kind) {
    case STK_UNARY_neg: return "-x";
    case STK_UNARY_abs: return "fabs(x)";
    case STK_UNARY_exp: return "exp(x)";
    case STK_UNARY_log: return "log(x)";
    case STK_UNARY_sqrt: return "sqrt(x)";
    case STK_UNARY_rsqrt: return "1.0f / sqrt(x)";
    case STK_UNARY_reciprocal: return "1.0f / x";
    case STK_UNARY_square: return "x * x";
    case STK_UNARY_tanh: return dtype == STK_BF16 ? "tanh_of_bf16(x)" : "tanh(x)";
    case STK_UNARY_sigmoid: return "sigmoid_f(x)";
    case STK_UNARY_relu: return "relu_f(x)";
    case STK_UNARY_sign: return "sign_f(x)";
    case STK_UNARY_erf: return "erf(x)";
    case STK_UNARY_sin: return "sin(x)";
    case STK_UNARY_cos: return "cos(x)";
    case STK_UNARY_floor: return "floor(x)";
    case STK_UNARY_ceil: return "ceil(x)";
    case STK_UNARY_round: return "rint(x)";
    case STK_UNARY_log1p: return "log1p(x)";
    case STK_UNARY_expm1: return "expm1(x)";
    default: return NULL;
    }
}

/* In unsigned arithmetic, which wraps. */
static const char *unary_of_integer(int kind)
{
    switch ((stk_unary_kind)kind) {
    case STK_UNARY_neg: return "(0ul - (u64)x)";
    case STK_UNARY_abs: return "(x < 0 ? 0ul - (u64)x : (u64)x)";
    case STK_UNARY_square: return "((u64)x * (u64)x)";
    case STK_UNARY_sign: return "((x > 0) - (x < 0))";
    case STK_UNARY_relu: return "(x > 0 ? x : 0)";
    default: return NULL;
    }
}

static const char *binary_of_float(int kind)
{
    switch ((stk_binary_kind)kind) {
    case STK_BINARY_add: return "x + y";
    case STK_BINARY_sub: return "x - y";
    case STK_BINARY_mul: return "x * y";
    case STK_BINARY_div: return "x / y";
    case STK_BINARY_max: return "max_f(x, y)";
    case STK_BINARY_min: return "min_f(x, y)";
    case STK_BINARY_pow: return "pow(x, y)";
    default: return NULL;
    }
}

static const char *binary_of_integer(int kind)
{
    switch ((stk_binary_kind)kind) {
    case STK_BINARY_add: return "((u64)x + (u64)y)";
    case STK_BINARY_sub: return "((u64)x - (u64)y)";
    case STK_BINARY_mul: return "((u64)x * (u64)y)";
    case STK_BINARY_max: return "(x > y ? x : y)";
    case STK_BINARY_min: return "(x < y ? x : y)";
    default: return NULL;
    }
}

static const char *comparison(int kind)
{
    switch ((stk_compare_kind)kind) {
    case STK_COMPARE_equal: return "x == y";
    case STK_COMPARE_not_equal: return "x != y";
    case STK_COMPARE_less: return "x < y";
    case STK_COMPARE_less_equal: return "x <= y";
    case STK_COMPARE_greater: return "x > y";
    case STK_COMPARE_greater_equal: return "x >= y";
    default: return NULL;
    }
}

/* pattern with registers for x and y, where these are words of their own. */
static void add_pattern(stk_text *out, const char *pattern, int x, int y)
{
    for (const char *p = pattern; *p; p++) {
        bool is_word = (p > pattern && ((p[-1] >= 'a' && p[-1] <= 'z') || p[-1] == '_')) ||
                       ((p[1] >= 'a' && p[1] <= 'z') || p[1] == '_');
        if ((*p == 'x' || *p == 'y') && !is_word)
            stk_text_add(out, "r%d", *p == 'x' ? x : y);
        else
            stk_text_add(out, "%c", *p);
    }
}

static void add_constant(stk_text *out, stk_dtype dtype, double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof(bits));
    if (stk_dtype_is_float(dtype))
        stk_text_add(out, "FLOAT_OF(0x%08" PRIx32 "u) /* %.9g */", bits, value);
    else
        stk_text_add(out, "%" PRId64 "l", (int64_t)value);
}

static void add_cast(stk_text *out, const stk_fused_instr *instr)
{
    int x = instr->operand[0];
    bool from_float = stk_dtype_is_float(instr->src_dtype);
    if (from_float && !stk_dtype_is_float(instr->dtype))
        stk_text_add(out, "%s_of_float(r%d)", stk_dtype_name(instr->dtype), x);
    else if (instr->dtype == STK_BOOL)
        stk_text_add(out, "r%d != 0", x);
    else
        stk_text_add(out, "r%d", x);
}

/* --- dropout; rows are the first dimension: graph/dropout.h --- */

static int64_t columns_of(const stk_fused *program)
{
    return program->shape.rank ? stk_shape_product(program->shape, 1, program->shape.rank) : 1;
}

/* One block of random numbers is for all of a pack. */
static bool has_block(const stk_fused *program, const stk_fused_instr *instr)
{
    return instr->op == STK_OP_dropout && instr->operand[1] < program->n_in && instr->operand[2] < program->n_in &&
           columns_of(program) % GPU_DROPOUT_BITS == 0;
}

void gpu_print_dropout_blocks(const stk_fused *program, stk_text *out)
{
    const int64_t n = columns_of(program);
    for (int k = 0; k < program->n_instr; k++) {
        const stk_fused_instr *instr = &program->instr[k];
        if (!has_block(program, instr)) continue;
        stk_text_add(out,
                     "    const philox_block block%d = philox((u64)r%d ^ 0x%016" PRIx64
                     "ul, (u64)(r%d + (i64)(first / %" PRId64 ")), (u64)(first %% %" PRId64 " / %d));\n",
                     program->n_in + k, instr->operand[1], stk_mix64((uint64_t)instr->stream), instr->operand[2], n, n,
                     GPU_DROPOUT_BITS);
    }
}

/* block: the number of the pack's, or -1. */
static void add_dropout(stk_text *out, const stk_fused *program, const stk_fused_instr *instr, int block)
{
    const int64_t n_columns = columns_of(program);
    const float scale = (float)(1 / (1 - instr->value));
    const int limit = (int)stk_dropout_limit(instr->value);
    if (block >= 0)
        stk_text_add(out, "(int)(block%d.v[k / 2] >> 16 * (k %% 2) & 0xffffu) >= %d ? r%d * ", block, limit,
                     instr->operand[0]);
    else
        stk_text_add(out,
                     "dropout_keeps((u64)r%d ^ 0x%016" PRIx64 "ul, r%d + (i64)i / %" PRId64 "l, (i64)i %% %" PRId64
                     "l, %d) ? r%d * ",
                     instr->operand[1], stk_mix64((uint64_t)instr->stream), instr->operand[2], n_columns, n_columns,
                     limit, instr->operand[0]);
    add_constant(out, STK_F32, scale);
    stk_text_add(out, " : 0.0f");
}

static bool add_expression(stk_text *out, const stk_fused *program, const stk_fused_instr *instr, int block)
{
    const int32_t *r = instr->operand;
    bool is_float = stk_dtype_is_float(instr->dtype);
    const char *pattern = NULL;
    switch (instr->op) {
    case STK_OP_unary:
        pattern = is_float ? unary_of_float(instr->kind, instr->dtype) : unary_of_integer(instr->kind);
        break;
    case STK_OP_binary: pattern = is_float ? binary_of_float(instr->kind) : binary_of_integer(instr->kind); break;
    case STK_OP_compare: pattern = comparison(instr->kind); break;
    case STK_OP_select: stk_text_add(out, "r%d ? r%d : r%d", r[0], r[1], r[2]); return true;
    case STK_OP_cast: add_cast(out, instr); return true;
    case STK_OP_constant: add_constant(out, instr->dtype, instr->value); return true;
    case STK_OP_dropout: add_dropout(out, program, instr, block); return true;
    default: break;
    }
    if (!pattern) return false;
    add_pattern(out, pattern, r[0], r[1]);
    return true;
}

/* Numbers of 16 bits are computed with as floats, and rounded where they leave for memory, for another type, for a
 * comparison or a sum: rounding each of them is most of what a chip does in a group. */
static bool is_rounded(const stk_fused *program, int k)
{
    const int r = program->n_in + k;
    if (program->instr[k].op == STK_OP_cast || (program->reduce.axes && program->reduce.src == r)) return true;
    for (int i = k + 1; i < program->n_instr; i++) {
        const stk_fused_instr *user = &program->instr[i];
        if (user->op != STK_OP_cast && user->op != STK_OP_compare) continue;
        if (user->operand[0] == r || user->operand[1] == r) return true;
    }
    return false;
}

void gpu_print_instructions(gpu_maker *m, const stk_fused *program, bool in_packs, stk_text *out)
{
    for (int k = 0; k < program->n_instr && m->status == STK_OK; k++) {
        const stk_fused_instr *instr = &program->instr[k];
        const char *type = gpu_type(m, instr->dtype);
        gpu_type(m, instr->op == STK_OP_cast || instr->op == STK_OP_compare ? instr->src_dtype : instr->dtype);
        if (m->status != STK_OK) return;
        const bool is_float = stk_dtype_is_float(instr->dtype) && !is_rounded(program, k);
        stk_text_add(out, "    value_%s r%d = ROUND(%s, (value_%s)(", type, program->n_in + k, is_float ? "f32" : type,
                     type);
        const int block = in_packs && has_block(program, instr) ? program->n_in + k : -1;
        if (!add_expression(out, program, instr, block))
            gpu_fail(m, stk_fail(STK_UNSUPPORTED, "the device '%s' has no '%s' of %s inside a fused group",
                                 m->device->driver->name, stk_op_name(instr->op), type));
        stk_text_add(out, "));\n");
    }
}
