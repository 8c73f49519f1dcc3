/* From a group to a program. See device/cpu/fused/program_build.h for the steps. */
#include "device/cpu/fused/program_reduce.h"

#include "base/error.h"

static void write_instr(stk_fused_program_builder *b, int32_t j)
{
    stk_element_program *p = b->program;
    const stk_fused_instr *from = &b->instr[j];
    int32_t slot = b->slot[b->n_in + j];
    if (from->op == STK_OP_constant) {
        p->fill[p->n_fills++] = (stk_fused_program_fill){slot, stk_dtype_log2(from->dtype),
                                                         stk_element_bits(b->isa, from->dtype, from->value)};
        return;
    }
    stk_fused_program_instr *to = &p->instr[p->n_instr++];
    *to = (stk_fused_program_instr){.run = stk_fused_program_find_loop(b, from), .dst = slot};
    for (int i = 0; i < 3; i++)
        to->src[i] = from->operand[i] < 0 ? 0 : b->slot[from->operand[i]];
    if (from->op != STK_OP_dropout) return;
    bool is_stored = stk_fused_program_dtype(b, from->operand[0]) == STK_BF16;
    to->dropout = from->dtype == STK_F64        ? b->table->dropout_f64
                  : from->src_dtype == STK_BF16 ? b->table->dropout_bf16[is_stored][from->dtype == STK_BF16]
                                                : b->table->dropout_f32;
    to->seed = from->operand[1];
    to->sample = from->operand[2];
    to->stream = from->stream;
    to->rate = from->value;
}

static void write_copies(stk_fused_program_builder *b)
{
    stk_element_program *p = b->program;
    for (int32_t o = 0; o < p->n_out; o++)
        if (b->slot[b->out[o]] != p->n_in + o) p->copy[p->n_copies++] = (stk_fused_program_copy){o, b->slot[b->out[o]]};
}

/* In units of one simple instruction, a guess. */
static double instr_weight(const stk_fused_instr *instr)
{
    if (instr->op == STK_OP_constant) return 0;
    if (instr->op == STK_OP_dropout) return 8;
    if (instr->op == STK_OP_fused) return 16;
    if (instr->op == STK_OP_binary) return instr->kind == STK_BINARY_pow ? 50 : instr->kind == STK_BINARY_div ? 2 : 1;
    if (instr->op != STK_OP_unary) return 1;
    switch (instr->kind) {
    case STK_UNARY_exp:
    case STK_UNARY_log:
    case STK_UNARY_log1p:
    case STK_UNARY_expm1:
    case STK_UNARY_tanh:
    case STK_UNARY_sigmoid:
    case STK_UNARY_erf:
    case STK_UNARY_sin:
    case STK_UNARY_cos: return instr->dtype == STK_F32 ? 8 : 40;
    default: return 1;
    }
}

static stk_status compile(stk_fused_program_builder *b)
{
    stk_element_program *p = b->program;
    const stk_fused *g = b->group;
    int64_t widest = 1;
    STK_RETURN_IF_ERROR(stk_fused_program_lower(b));
    p->input = stk_arena_alloc(b->arena, ((size_t)g->n_in + 1) * sizeof(*p->input));
    p->out_log2_bytes = stk_arena_alloc(b->arena, ((size_t)g->n_out + 1) * sizeof(*p->out_log2_bytes));
    p->instr = stk_arena_alloc(b->arena, ((size_t)b->n_instr + 1) * sizeof(*p->instr));
    p->fill = stk_arena_alloc(b->arena, ((size_t)b->n_instr + 1) * sizeof(*p->fill));
    p->copy = stk_arena_alloc(b->arena, ((size_t)g->n_out + 1) * sizeof(*p->copy));
    if (!p->input || !p->out_log2_bytes || !p->instr || !p->fill || !p->copy)
        return stk_fail_memory((size_t)b->n_instr * sizeof(*p->instr));
    p->n_in = g->n_in;
    p->n_out = g->n_out;
    stk_fused_program_collapse(b);
    double work = p->n_in + p->n_out;
    for (int32_t r = 0; r < b->n_in + b->n_instr; r++) {
        int64_t bytes = (int64_t)stk_dtype_bytes(stk_fused_program_dtype(b, r));
        if (bytes > widest && (r >= b->n_in || p->input[r].load != STK_LOAD_NONE)) widest = bytes;
        if (r >= b->n_in) work += instr_weight(&b->instr[r - b->n_in]);
    }
    for (int32_t o = 0; o < p->n_out; o++)
        p->out_log2_bytes[o] = stk_dtype_log2(stk_fused_program_dtype(b, b->out[o]));
    STK_RETURN_IF_ERROR(stk_fused_program_assign_slots(b));
    stk_fused_program_choose_block(b, p->n_slots - p->n_in - p->n_out, widest);
    for (int32_t j = 0; j < b->n_instr; j++)
        write_instr(b, j);
    write_copies(b);
    if (g->reduce.axes) work++;
    p->n_threads = stk_cpu_threads_for((double)p->count * work / 2, p->n_threads);
    return STK_OK;
}

static void release(void *state)
{
    stk_arena_free(((stk_element_program *)state)->arena);
}

stk_status stk_fused_program_kernel(const stk_cpu_device *device, const stk_fused *group, stk_kernel *out)
{
    stk_arena *arena = stk_arena_new();
    stk_element_program *program = arena ? stk_arena_alloc(arena, sizeof(*program)) : NULL;
    if (!program) {
        stk_arena_free(arena);
        return stk_fail_memory(sizeof(*program));
    }
    program->arena = arena;
    program->table = stk_element_of(device->isa);
    program->n_threads = device->base.n_threads;
    out->run = stk_fused_program_interpret;
    out->state = program;
    out->release = release;
    program->band_output = -1;
    stk_fused with = *group;
    int32_t i_value = 0;
    if (group->reduce.axes) {
        STK_RETURN_IF_ERROR(stk_fused_program_reduce_extend(arena, group, &with, &i_value));
        if (with.n_out > group->n_out) program->band_output = i_value;
        out->run = stk_fused_program_reduce_run;
    }
    stk_fused_program_builder b = {.group = &with,
                                   .program = program,
                                   .isa = device->isa,
                                   .table = program->table,
                                   .arena = arena,
                                   .n_in = group->n_in,
                                   .in_place = out->in_place};
    STK_RETURN_IF_ERROR(compile(&b));
    if (group->reduce.axes) {
        STK_RETURN_IF_ERROR(stk_fused_program_reduce_make(&b, i_value, stk_reduce_of(device->isa)));
        if (i_value < 8 && program->band_output >= 0) out->in_place[i_value] = 0;
        out->scratch_bytes = stk_fused_program_reduce_scratch(program);
        return STK_OK;
    }
    out->scratch_bytes = program->thread_bytes * (size_t)program->n_threads;
    return STK_OK;
}
