/* A place for every register: an output, an input, or a buffer. See device/cpu/fused/program_build.h. */
#include "device/cpu/fused/program_build.h"

#include "base/error.h"

static stk_status find_last_uses(stk_fused_program_builder *b)
{
    size_t n = (size_t)b->n_in + (size_t)b->n_instr + 1;
    b->last_use = stk_arena_alloc(b->arena, n * sizeof(*b->last_use));
    b->slot = stk_arena_alloc(b->arena, n * sizeof(*b->slot));
    if (!b->last_use || !b->slot) return stk_fail_memory(n * sizeof(*b->slot));
    for (int32_t r = 0; r < b->n_in + b->n_instr; r++) {
        b->last_use[r] = r < b->n_in ? -1 : r - b->n_in;
        b->slot[r] = -1;
    }
    for (int32_t j = 0; j < b->n_instr; j++)
        for (int i = 0; i < 3; i++)
            if (b->instr[j].operand[i] >= 0) b->last_use[b->instr[j].operand[i]] = j;
    for (int32_t o = 0; o < b->group->n_out; o++)
        b->last_use[b->out[o]] = b->n_instr;
    return STK_OK;
}

/* An output may lie where a dense input lies, unless that one is needed as a whole or to the end. */
static void find_in_place(stk_fused_program_builder *b)
{
    stk_element_program *p = b->program;
    for (int32_t o = 0; o < p->n_out && o < 8; o++) {
        if (b->out[o] < b->n_in) continue;
        for (int32_t i = 0; i < p->n_in && i < 32; i++)
            if (p->input[i].load == STK_LOAD_DENSE && p->input[i].log2_bytes == p->out_log2_bytes[o] &&
                b->last_use[i] < b->n_instr && !stk_fused_program_reads(b, i, false))
                b->in_place[o] |= 1u << i;
    }
}

/* True when instruction j may write output o at once: nothing that may lie there is read later. */
static bool may_write(const stk_fused_program_builder *b, int32_t o, int32_t j)
{
    if (o >= 8) return true;
    for (int32_t i = 0; i < b->n_in && i < 32; i++)
        if ((b->in_place[o] >> i & 1) && b->last_use[i] > j) return false;
    return true;
}

/* The output whose memory the result of instruction j can be made in, or -1. */
static int32_t find_output(const stk_fused_program_builder *b, int32_t j)
{
    for (int32_t o = 0; o < b->program->n_out; o++)
        if (b->out[o] == b->n_in + j && may_write(b, o, j)) return o;
    return -1;
}

typedef struct slot_pool {
    int32_t *unused, n_unused, next;
} slot_pool;

static int32_t take_slot(slot_pool *pool)
{
    return pool->n_unused ? pool->unused[--pool->n_unused] : pool->next++;
}

/* Gives the buffers of registers that instruction j reads last back to the pool. */
static void release_operands(const stk_fused_program_builder *b, slot_pool *pool, int32_t j)
{
    for (int i = 0; i < 3; i++) {
        int32_t r = b->instr[j].operand[i];
        bool again = (i > 0 && b->instr[j].operand[0] == r) || (i > 1 && b->instr[j].operand[1] == r);
        if (r < b->n_in || again || b->last_use[r] != j || b->instr[r - b->n_in].op == STK_OP_constant) continue;
        if (b->slot[r] >= b->program->n_in + b->program->n_out) pool->unused[pool->n_unused++] = b->slot[r];
    }
}

static bool widths_are_equal(const stk_fused_program_builder *b, int32_t j)
{
    int own = stk_dtype_log2(b->instr[j].dtype);
    for (int i = 0; i < 3; i++) {
        int32_t r = b->instr[j].operand[i];
        if (r >= 0 && stk_dtype_log2(stk_fused_program_dtype(b, r)) != own) return false;
    }
    return true;
}

/* Constants and loaded inputs keep their buffers; results share. A loop may write where it reads if elements are
 * equally wide. */
stk_status stk_fused_program_assign_slots(stk_fused_program_builder *b)
{
    stk_element_program *p = b->program;
    slot_pool pool = {.next = p->n_in + p->n_out};
    STK_RETURN_IF_ERROR(find_last_uses(b));
    find_in_place(b);
    pool.unused = stk_arena_alloc(b->arena, ((size_t)b->n_instr + 1) * sizeof(*pool.unused));
    if (!pool.unused) return stk_fail_memory((size_t)b->n_instr * sizeof(*pool.unused));
    for (int32_t i = 0; i < b->n_in; i++) {
        b->slot[i] = i;
        if (p->input[i].load == STK_LOAD_WALK) p->input[i].buffer = pool.next++;
    }
    for (int32_t j = 0; j < b->n_instr; j++)
        if (b->instr[j].op == STK_OP_constant) b->slot[b->n_in + j] = pool.next++;
    for (int32_t j = 0; j < b->n_instr; j++) {
        int32_t r = b->n_in + j;
        if (b->instr[j].op == STK_OP_constant) continue;
        bool early = widths_are_equal(b, j);
        if (early) release_operands(b, &pool, j);
        int32_t o = find_output(b, j);
        b->slot[r] = o >= 0 ? p->n_in + o : take_slot(&pool);
        if (!early) release_operands(b, &pool, j);
        bool unused = b->last_use[r] == j;
        if (unused && o < 0) pool.unused[pool.n_unused++] = b->slot[r];
    }
    p->n_slots = pool.next;
    return STK_OK;
}
