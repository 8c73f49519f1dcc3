/* Lowering of bf16 for the interpreter. A value lives in a register of f32 that holds a number which bf16 has: it is
 * widened once at most and never where a loop reads 16 bits itself, and made 16 bits only where it leaves the group.
 */
#include "device/cpu/fused/program_build.h"

/* How often the group's register is read; outputs do not count. */
static int count_reads(const stk_fused_program_builder *b, int32_t group_register)
{
    int n = 0;
    for (int32_t j = 0; j < b->group->n_instr; j++)
        for (int i = 0; i < 3; i++)
            n += b->group->instr[j].operand[i] == group_register;
    return n;
}

static bool is_output(const stk_fused_program_builder *b, int32_t group_register)
{
    for (int32_t o = 0; o < b->group->n_out; o++)
        if (b->group->out[o] == group_register) return true;
    return false;
}

/* An input of 16 bits that nothing else reads: the loop may as well widen it itself. */
static bool is_read_here_alone(const stk_fused_program_builder *b, int32_t r)
{
    return r < b->n_in && stk_fused_program_dtype(b, r) == STK_BF16 && count_reads(b, r) == 1;
}

/* Sums and products are symmetric, so the operand of 16 bits comes first. */
static int32_t lower_stored(stk_fused_program_builder *b, stk_fused_instr instr, int32_t group_register)
{
    bool stays[2] = {is_read_here_alone(b, instr.operand[0]), is_read_here_alone(b, instr.operand[1])};
    for (int i = 0; i < 2; i++)
        if (!stays[i]) instr.operand[i] = stk_fused_program_widen(b, instr.operand[i]);
    if (stays[1] && !stays[0]) {
        int32_t r = instr.operand[0];
        instr.operand[0] = instr.operand[1];
        instr.operand[1] = r;
    }
    bool leaves_at_once = is_output(b, group_register) && count_reads(b, group_register) == 0;
    instr.dtype = leaves_at_once ? STK_BF16 : STK_F32;
    instr.src_dtype = STK_BF16;
    return stk_fused_program_emit(b, instr);
}

static int32_t lower_dropout(stk_fused_program_builder *b, stk_fused_instr instr, int32_t group_register)
{
    if (!is_read_here_alone(b, instr.operand[0])) instr.operand[0] = stk_fused_program_widen(b, instr.operand[0]);
    bool leaves_at_once = is_output(b, group_register) && count_reads(b, group_register) == 0;
    instr.dtype = leaves_at_once ? STK_BF16 : STK_F32;
    instr.src_dtype = STK_BF16;
    return stk_fused_program_emit(b, instr);
}

/* NULL where rounding changes nothing or has no loop; *is_exact says which. */
static stk_element_fn find_rounded(const stk_element_table *t, const stk_fused_instr *instr, bool *is_exact)
{
    int kind = instr->kind;
    if (instr->op == STK_OP_unary) {
        *is_exact = kind == STK_UNARY_neg || kind == STK_UNARY_abs || kind == STK_UNARY_relu ||
                    kind == STK_UNARY_sign || kind == STK_UNARY_floor || kind == STK_UNARY_ceil ||
                    kind == STK_UNARY_round;
        return t->unary_bf16[kind];
    }
    *is_exact = kind == STK_BINARY_max || kind == STK_BINARY_min;
    return t->binary_bf16[kind];
}

static int32_t lower_arithmetic(stk_fused_program_builder *b, stk_fused_instr instr)
{
    bool is_exact = false, has_loop = find_rounded(b->table, &instr, &is_exact);
    for (int i = 0; i < 2; i++)
        instr.operand[i] = stk_fused_program_widen(b, instr.operand[i]);
    instr.dtype = STK_F32;
    instr.src_dtype = is_exact || !has_loop ? STK_F32 : STK_BF16;
    int32_t r = stk_fused_program_emit(b, instr);
    return is_exact || has_loop ? r : stk_fused_program_emit_cast(b, r, STK_BF16);
}

static int32_t lower_constant(stk_fused_program_builder *b, stk_fused_instr instr)
{
    uint64_t bits = stk_element_bits(b->isa, STK_BF16, instr.value);
    const void *from = &bits;
    float value = 0;
    b->table->cast[STK_BF16][STK_F32](1, &value, &from);
    instr.value = (double)value;
    instr.dtype = instr.src_dtype = STK_F32;
    return stk_fused_program_emit(b, instr);
}

/* Bits are moved: 16 of them where both values are stored so. */
static int32_t lower_select(stk_fused_program_builder *b, stk_fused_instr instr)
{
    stk_dtype first = stk_fused_program_dtype(b, instr.operand[1]),
              second = stk_fused_program_dtype(b, instr.operand[2]);
    if (first == STK_F32 || second == STK_F32) {
        for (int i = 1; i < 3; i++)
            instr.operand[i] = stk_fused_program_widen(b, instr.operand[i]);
        instr.dtype = STK_F32;
    }
    instr.src_dtype = instr.dtype;
    return stk_fused_program_emit(b, instr);
}

static int32_t lower_cast(stk_fused_program_builder *b, stk_fused_instr instr)
{
    int32_t r = instr.operand[0];
    if (instr.src_dtype == instr.dtype) return r;
    if (instr.src_dtype == STK_BF16) {
        r = stk_fused_program_widen(b, r);
        return instr.dtype == STK_F32 ? r : stk_fused_program_emit_cast(b, r, instr.dtype);
    }
    r = stk_fused_program_widen(b, r); /* of f16 */
    if (stk_fused_program_dtype(b, r) != STK_F32) r = stk_fused_program_emit_cast(b, r, STK_F32);
    return stk_fused_program_emit_cast(b, r, STK_BF16);
}

int32_t stk_fused_program_lower_bf16(stk_fused_program_builder *b, stk_fused_instr instr)
{
    switch (instr.op) {
    case STK_OP_cast: return lower_cast(b, instr);
    case STK_OP_constant: return lower_constant(b, instr);
    case STK_OP_select: return lower_select(b, instr);
    case STK_OP_compare:
        for (int i = 0; i < 2; i++)
            instr.operand[i] = stk_fused_program_widen(b, instr.operand[i]);
        instr.src_dtype = STK_F32;
        return stk_fused_program_emit(b, instr);
    case STK_OP_dropout: return lower_dropout(b, instr, b->n_in + b->i_instr);
    default:
        if (instr.op == STK_OP_binary && b->table->binary_stored[instr.kind][0][0])
            return lower_stored(b, instr, b->n_in + b->i_instr);
        return lower_arithmetic(b, instr);
    }
}

int32_t stk_fused_program_store(stk_fused_program_builder *b, int32_t r, stk_dtype dtype)
{
    if (dtype != STK_BF16 || stk_fused_program_dtype(b, r) == STK_BF16) return r;
    if (b->stored[r] >= 0) return b->stored[r];
    stk_fused_instr store = {.op = STK_OP_cast, .dtype = STK_BF16, .src_dtype = STK_BF16, .operand = {r, -1, -1}};
    return b->stored[r] = stk_fused_program_emit(b, store);
}

stk_element_fn stk_fused_program_find_bf16_loop(const stk_fused_program_builder *b, const stk_fused_instr *instr)
{
    const stk_element_table *t = b->table;
    if (instr->op == STK_OP_cast && instr->src_dtype == instr->dtype) return t->store_bf16;
    if (instr->src_dtype != STK_BF16) return NULL;
    if (instr->op == STK_OP_unary) return t->unary_bf16[instr->kind];
    if (instr->op != STK_OP_binary) return NULL;
    if (!t->binary_stored[instr->kind][0][0]) return t->binary_bf16[instr->kind];
    int n_stored = 0;
    for (int i = 0; i < 2; i++)
        n_stored += stk_fused_program_dtype(b, instr->operand[i]) == STK_BF16;
    return t->binary_stored[instr->kind][n_stored][instr->dtype == STK_BF16];
}
