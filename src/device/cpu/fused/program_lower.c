/* Lowering: 16-bit floats are computed in f32 and rounded after each instruction. For f16 that is a cast down and one
 * up again; bf16 has loops that round what they leave in f32 (program_bf16.c). See device/cpu/fused/program_build.h.
 */
#include "device/cpu/fused/program_build.h"

#include "base/error.h"

static bool is_half(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F16;
}

stk_dtype stk_fused_program_dtype(const stk_fused_program_builder *b, int32_t r)
{
    return r < b->n_in ? b->group->input[r].dtype : b->instr[r - b->n_in].dtype;
}

bool stk_fused_program_reads(const stk_fused_program_builder *b, int32_t r, bool elements)
{
    for (int32_t j = 0; j < b->n_instr; j++)
        for (int i = 0; i < 3; i++) {
            bool is_scalar = b->instr[j].op == STK_OP_dropout && i > 0;
            if (b->instr[j].operand[i] == r && is_scalar != elements) return true;
        }
    for (int32_t o = 0; elements && o < b->group->n_out; o++)
        if (b->out[o] == r) return true;
    return false;
}

int32_t stk_fused_program_emit(stk_fused_program_builder *b, stk_fused_instr instr)
{
    b->instr[b->n_instr] = instr;
    int32_t r = b->n_in + b->n_instr;
    b->wide[r] = b->stored[r] = b->share[r] = -1;
    return b->n_in + b->n_instr++;
}

int32_t stk_fused_program_emit_cast(stk_fused_program_builder *b, int32_t r, stk_dtype to)
{
    return stk_fused_program_emit(
        b, (stk_fused_instr){
               .op = STK_OP_cast, .dtype = to, .src_dtype = stk_fused_program_dtype(b, r), .operand = {r, -1, -1}});
}

int32_t stk_fused_program_widen(stk_fused_program_builder *b, int32_t r)
{
    if (r < 0 || !is_half(stk_fused_program_dtype(b, r))) return r;
    if (b->wide[r] < 0) b->wide[r] = stk_fused_program_emit_cast(b, r, STK_F32);
    return b->wide[r];
}

static int32_t lower_cast(stk_fused_program_builder *b, stk_fused_instr instr)
{
    if (instr.src_dtype == instr.dtype && is_half(instr.dtype)) return instr.operand[0];
    if (b->table->cast[instr.src_dtype][instr.dtype]) return stk_fused_program_emit(b, instr);
    return stk_fused_program_emit_cast(b, stk_fused_program_emit_cast(b, instr.operand[0], STK_F32), instr.dtype);
}

/* operand holds lowered registers already. */
static int32_t lower_instr(stk_fused_program_builder *b, stk_fused_instr instr)
{
    stk_dtype dtype = instr.dtype;
    if (dtype == STK_BF16 || instr.src_dtype == STK_BF16) return stk_fused_program_lower_bf16(b, instr);
    switch (instr.op) {
    case STK_OP_cast: return lower_cast(b, instr);
    case STK_OP_compare:
        if (is_half(instr.src_dtype)) instr.src_dtype = STK_F32;
        for (int i = 0; i < 2; i++)
            instr.operand[i] = stk_fused_program_widen(b, instr.operand[i]);
        return stk_fused_program_emit(b, instr);
    case STK_OP_unary:
    case STK_OP_binary:
    case STK_OP_dropout:
        if (!is_half(dtype)) return stk_fused_program_emit(b, instr);
        for (int i = 0; i < 2; i++)
            instr.operand[i] = stk_fused_program_widen(b, instr.operand[i]);
        instr.dtype = instr.src_dtype = STK_F32;
        return stk_fused_program_emit_cast(b, stk_fused_program_emit(b, instr), dtype);
    default: return stk_fused_program_emit(b, instr);
    }
}

stk_element_fn stk_fused_program_find_loop(const stk_fused_program_builder *b, const stk_fused_instr *instr)
{
    const stk_element_table *t = b->table;
    if (instr->dtype == STK_BF16 || instr->src_dtype == STK_BF16) {
        stk_element_fn rounded = stk_fused_program_find_bf16_loop(b, instr);
        if (rounded) return rounded;
    }
    switch (instr->op) {
    case STK_OP_unary: return t->unary[instr->kind][instr->dtype];
    case STK_OP_binary: return t->binary[instr->kind][instr->dtype];
    case STK_OP_compare: return t->compare[instr->kind][instr->src_dtype];
    case STK_OP_select: return t->select[stk_dtype_log2(instr->dtype)];
    case STK_OP_cast: return t->cast[instr->src_dtype][instr->dtype];
    case STK_OP_fused:
        return t->whole[instr->kind / STK_N_WHOLE_STEPS][instr->kind % STK_N_WHOLE_STEPS][instr->src_dtype == STK_BF16];
    default: return NULL;
    }
}

static stk_status check_instr(const stk_fused_program_builder *b, const stk_fused_instr *instr, int32_t n_registers)
{
    for (int i = 0; i < 3; i++)
        if (instr->operand[i] >= n_registers)
            return stk_fail(STK_INTERNAL, "an instruction of a fused group reads a later register");
    bool is_known = instr->op == STK_OP_constant || stk_fused_program_find_loop(b, instr) ||
                    (instr->op == STK_OP_dropout &&
                     (instr->dtype == STK_F32 || instr->dtype == STK_F64 || instr->dtype == STK_BF16));
    if (is_known) return STK_OK;
    const char *kind = instr->op == STK_OP_unary     ? stk_unary_name(instr->kind)
                       : instr->op == STK_OP_binary  ? stk_binary_name(instr->kind)
                       : instr->op == STK_OP_compare ? stk_compare_name(instr->kind)
                                                     : "";
    return stk_fail(STK_UNSUPPORTED, "the cpu device has no '%s'%s%s of %s", stk_op_name(instr->op), *kind ? " " : "",
                    kind, stk_dtype_name(instr->op == STK_OP_select ? instr->dtype : instr->src_dtype));
}

static stk_dtype group_dtype(const stk_fused *g, int32_t r)
{
    return r < g->n_in ? g->input[r].dtype : g->instr[r - g->n_in].dtype;
}

static stk_status check_order(const stk_fused *g)
{
    for (int32_t j = 0; j < g->n_instr; j++)
        for (int i = 0; i < 3; i++)
            if (g->instr[j].operand[i] >= g->n_in + j)
                return stk_fail(STK_INTERNAL, "instruction %d of a fused group reads a later register", (int)j);
    return STK_OK;
}

stk_status stk_fused_program_lower(stk_fused_program_builder *b)
{
    const stk_fused *g = b->group;
    /* An instruction becomes six at most: three operands widened, itself, and a rounding of its result; an output may
     * take one more. */
    size_t most = (size_t)g->n_instr * 6 + (size_t)g->n_out + 1;
    b->n_instr = 0;
    int32_t *map = stk_arena_alloc(b->arena, ((size_t)g->n_in + (size_t)g->n_instr + 1) * sizeof(*map));
    b->instr = stk_arena_alloc(b->arena, most * sizeof(*b->instr));
    b->wide = stk_arena_alloc(b->arena, (most + (size_t)g->n_in) * sizeof(*b->wide));
    b->stored = stk_arena_alloc(b->arena, (most + (size_t)g->n_in) * sizeof(*b->stored));
    b->share = stk_arena_alloc(b->arena, (most + (size_t)g->n_in) * sizeof(*b->share));
    b->out = stk_arena_alloc(b->arena, ((size_t)g->n_out + 1) * sizeof(*b->out));
    if (!map || !b->instr || !b->wide || !b->stored || !b->share || !b->out)
        return stk_fail_memory(most * sizeof(*b->instr));
    for (int32_t i = 0; i < g->n_in; i++) {
        map[i] = i;
        b->wide[i] = b->stored[i] = b->share[i] = -1;
    }
    STK_RETURN_IF_ERROR(check_order(g));
    STK_RETURN_IF_ERROR(stk_fused_program_find_parts(b));
    for (int32_t j = 0; j < g->n_instr; j++) {
        if (!b->is_needed[j]) continue;
        b->i_instr = j;
        stk_fused_program_part part = b->part[j];
        if (part.kind >= 0) {
            for (int i = 0; i < 3; i++)
                if (part.operand[i] >= 0) part.operand[i] = map[part.operand[i]];
            map[g->n_in + j] = stk_fused_program_lower_part(b, part);
            continue;
        }
        stk_fused_instr instr = g->instr[j];
        if (instr.op == STK_OP_constant) instr.src_dtype = instr.dtype;
        for (int i = 0; i < 3; i++)
            if (instr.operand[i] >= 0) instr.operand[i] = map[instr.operand[i]];
        map[g->n_in + j] = lower_instr(b, instr);
    }
    for (int32_t o = 0; o < g->n_out; o++)
        b->out[o] = stk_fused_program_store(b, map[g->out[o]], group_dtype(g, g->out[o]));
    for (int32_t j = 0; j < b->n_instr; j++)
        STK_RETURN_IF_ERROR(check_instr(b, &b->instr[j], b->n_in + j));
    return STK_OK;
}
