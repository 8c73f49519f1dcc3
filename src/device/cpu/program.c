/* From a group to a program: lower what the loops lack, collapse axes, give every register a slot. */
#include "device/cpu/program.h"

#include <string.h>

enum { L1_BYTES = 24576, LEAST_BLOCK = 128, MOST_BLOCK = 1024 };

typedef struct builder {
    const stk_op_call *call; /* for messages */
    const stk_fused *group;
    stk_element_program *program;
    stk_isa isa;
    const stk_element_table *table;
    stk_arena *arena;
    /* After lowering: registers 0 .. n_in-1 are inputs, then the instructions' results. */
    stk_fused_instr *instr;
    int32_t n_instr, n_in;
    int32_t *wide;     /* by register: its f32 version, -1: none yet */
    int32_t *out;      /* by output: register */
    int32_t *last_use; /* by register: instruction; n_instr: read after the last one */
    int32_t *slot;     /* by register */
    uint32_t *in_place;
} builder;

static bool is_half(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F16;
}

static stk_dtype register_dtype(const builder *b, int32_t r)
{
    return r < b->n_in ? b->group->input[r].dtype : b->instr[r - b->n_in].dtype;
}

/* --- lowering: 16-bit floats are computed in f32 and rounded after each instruction --- */

static int32_t emit(builder *b, stk_fused_instr instr)
{
    b->instr[b->n_instr] = instr;
    b->wide[b->n_in + b->n_instr] = -1;
    return b->n_in + b->n_instr++;
}

static int32_t emit_cast(builder *b, int32_t r, stk_dtype to)
{
    return emit(b, (stk_fused_instr){
                       .op = STK_OP_cast, .dtype = to, .src_dtype = register_dtype(b, r), .operand = {r, -1, -1}});
}

static int32_t widen(builder *b, int32_t r)
{
    if (r < 0 || !is_half(register_dtype(b, r))) return r;
    if (b->wide[r] < 0) b->wide[r] = emit_cast(b, r, STK_F32);
    return b->wide[r];
}

static int32_t lower_cast(builder *b, stk_fused_instr instr)
{
    if (b->table->cast[instr.src_dtype][instr.dtype]) return emit(b, instr);
    return emit_cast(b, emit_cast(b, instr.operand[0], STK_F32), instr.dtype);
}

/* operand holds lowered registers already. */
static int32_t lower_instr(builder *b, stk_fused_instr instr)
{
    stk_dtype dtype = instr.dtype;
    switch (instr.op) {
    case STK_OP_cast: return lower_cast(b, instr);
    case STK_OP_compare:
        if (is_half(instr.src_dtype)) instr.src_dtype = STK_F32;
        for (int i = 0; i < 2; i++)
            instr.operand[i] = widen(b, instr.operand[i]);
        return emit(b, instr);
    case STK_OP_unary:
    case STK_OP_binary:
    case STK_OP_dropout:
        if (!is_half(dtype)) return emit(b, instr);
        for (int i = 0; i < 2; i++)
            instr.operand[i] = widen(b, instr.operand[i]);
        instr.dtype = instr.src_dtype = STK_F32;
        return emit_cast(b, emit(b, instr), dtype);
    default: return emit(b, instr);
    }
}

static stk_element_fn find_loop(const builder *b, const stk_fused_instr *instr)
{
    const stk_element_table *t = b->table;
    switch (instr->op) {
    case STK_OP_unary: return t->unary[instr->kind][instr->dtype];
    case STK_OP_binary: return t->binary[instr->kind][instr->dtype];
    case STK_OP_compare: return t->compare[instr->kind][instr->src_dtype];
    case STK_OP_select: return t->select[stk_dtype_log2(instr->dtype)];
    case STK_OP_cast: return t->cast[instr->src_dtype][instr->dtype];
    default: return NULL;
    }
}

static stk_status check_instr(const builder *b, const stk_fused_instr *instr, int32_t n_registers)
{
    for (int i = 0; i < 3; i++)
        if (instr->operand[i] >= n_registers)
            return stk_fail(STK_INTERNAL, "an instruction of a fused group reads a later register");
    bool is_known = instr->op == STK_OP_constant || find_loop(b, instr) ||
                    (instr->op == STK_OP_dropout && (instr->dtype == STK_F32 || instr->dtype == STK_F64));
    if (is_known) return STK_OK;
    const char *kind = instr->op == STK_OP_unary     ? stk_unary_name(instr->kind)
                       : instr->op == STK_OP_binary  ? stk_binary_name(instr->kind)
                       : instr->op == STK_OP_compare ? stk_compare_name(instr->kind)
                                                     : "";
    return stk_fail(STK_UNSUPPORTED, "the cpu device has no '%s'%s%s of %s", stk_op_name(instr->op), *kind ? " " : "",
                    kind, stk_dtype_name(instr->op == STK_OP_select ? instr->dtype : instr->src_dtype));
}

static stk_status lower(builder *b)
{
    const stk_fused *g = b->group;
    /* An instruction becomes six at most: three operands widened, itself, and a rounding of its result. */
    size_t most = (size_t)g->n_instr * 6 + 1;
    int32_t *map = stk_arena_alloc(b->arena, ((size_t)g->n_in + (size_t)g->n_instr + 1) * sizeof(*map));
    b->instr = stk_arena_alloc(b->arena, most * sizeof(*b->instr));
    b->wide = stk_arena_alloc(b->arena, (most + (size_t)g->n_in) * sizeof(*b->wide));
    b->out = stk_arena_alloc(b->arena, ((size_t)g->n_out + 1) * sizeof(*b->out));
    if (!map || !b->instr || !b->wide || !b->out) return stk_fail_memory(most * sizeof(*b->instr));
    for (int32_t i = 0; i < g->n_in; i++) {
        map[i] = i;
        b->wide[i] = -1;
    }
    for (int32_t j = 0; j < g->n_instr; j++) {
        stk_fused_instr instr = g->instr[j];
        if (instr.op == STK_OP_constant) instr.src_dtype = instr.dtype;
        for (int i = 0; i < 3; i++) {
            if (instr.operand[i] >= g->n_in + j)
                return stk_fail(STK_INTERNAL, "instruction %d of a fused group reads a later register", (int)j);
            if (instr.operand[i] >= 0) instr.operand[i] = map[instr.operand[i]];
        }
        map[g->n_in + j] = lower_instr(b, instr);
    }
    for (int32_t j = 0; j < b->n_instr; j++)
        STK_RETURN_IF_ERROR(check_instr(b, &b->instr[j], b->n_in + j));
    for (int32_t o = 0; o < g->n_out; o++)
        b->out[o] = map[g->out[o]];
    return STK_OK;
}

/* --- the iteration space --- */

static bool merges(const builder *b, int axis, int64_t inner_dim)
{
    for (int32_t i = 0; i < b->n_in; i++)
        if (b->program->input[i].stride[axis - 1] != b->program->input[i].stride[axis] * inner_dim) return false;
    return true;
}

/* Drops axes of length 1 and joins neighbours that every input walks as one. */
static void collapse(builder *b)
{
    stk_element_program *p = b->program;
    stk_shape shape = b->group->shape;
    int rank = 0;
    for (int axis = 0; axis < shape.rank; axis++) {
        if (shape.dim[axis] == 1) continue;
        for (int32_t i = 0; i < b->n_in; i++)
            p->input[i].stride[rank] = b->group->input[i].stride[axis];
        p->dim[rank] = shape.dim[axis];
        if (rank > 0 && merges(b, rank, p->dim[rank])) {
            p->dim[rank - 1] *= p->dim[rank];
            for (int32_t i = 0; i < b->n_in; i++)
                p->input[i].stride[rank - 1] = p->input[i].stride[rank];
        } else {
            rank++;
        }
    }
    if (rank == 0) p->dim[rank++] = 1;
    p->rank = rank;
    p->count = stk_shape_count(shape);
    p->n_columns = shape.rank ? stk_shape_product(shape, 1, shape.rank) : 1;
}

static bool is_dense(const stk_element_program *p, const stk_program_input *input)
{
    int64_t step = 1;
    for (int axis = p->rank - 1; axis >= 0; axis--) {
        if (p->dim[axis] != 1 && input->stride[axis] != step) return false;
        step *= p->dim[axis];
    }
    return true;
}

/* After how many elements the input starts again from its first one; 0: never. */
static int64_t find_period(const stk_element_program *p, const stk_program_input *input)
{
    int first = 0;
    int64_t period = 1;
    while (first < p->rank && input->stride[first] == 0)
        first++;
    if (first == 0) return 0;
    for (int axis = first; axis < p->rank; axis++)
        period *= p->dim[axis];
    return period;
}

/* A block is a multiple of the longest period that fits: shorter ones divide it, being products of the last axes. */
static void choose_block(builder *b, int32_t n_buffers, int64_t element_bytes)
{
    stk_element_program *p = b->program;
    int64_t block = L1_BYTES / ((n_buffers + p->n_in + p->n_out) * element_bytes) / 16 * 16, longest = 1;
    block = block < LEAST_BLOCK ? LEAST_BLOCK : block > MOST_BLOCK ? MOST_BLOCK : block;
    for (int32_t i = 0; i < p->n_in; i++) {
        int64_t period = p->input[i].load == STK_LOAD_WALK ? find_period(p, &p->input[i]) : 0;
        if (period > longest && period <= block) longest = period;
    }
    p->block = block / longest * longest;
    for (int32_t i = 0; i < p->n_in; i++) {
        int64_t period = p->input[i].load == STK_LOAD_WALK ? find_period(p, &p->input[i]) : 0;
        if (period && p->block % period == 0) p->input[i].load = STK_LOAD_ONCE;
    }
    p->slot_bytes = ((size_t)(p->block * element_bytes) + 63) / 64 * 64;
    p->thread_bytes = ((size_t)p->n_slots * sizeof(void *) + 63) / 64 * 64 + (size_t)n_buffers * p->slot_bytes;
}

/* --- slots --- */

static stk_status find_last_uses(builder *b)
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

/* True for a register that is read as seed or sample; elements: that is read element by element. */
static bool is_read(const builder *b, int32_t r, bool elements)
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

static void classify_inputs(builder *b)
{
    stk_element_program *p = b->program;
    for (int32_t i = 0; i < p->n_in; i++) {
        stk_program_input *input = &p->input[i];
        input->log2_bytes = stk_dtype_log2(b->group->input[i].dtype);
        input->load = !is_read(b, i, true) ? STK_LOAD_NONE : is_dense(p, input) ? STK_LOAD_DENSE : STK_LOAD_WALK;
    }
}

/* An output may lie where a dense input lies, unless that one is needed as a whole or to the end. */
static void find_in_place(builder *b)
{
    stk_element_program *p = b->program;
    for (int32_t o = 0; o < p->n_out && o < 8; o++) {
        if (b->out[o] < b->n_in) continue;
        for (int32_t i = 0; i < p->n_in && i < 32; i++)
            if (p->input[i].load == STK_LOAD_DENSE && p->input[i].log2_bytes == p->out_log2_bytes[o] &&
                b->last_use[i] < b->n_instr && !is_read(b, i, false))
                b->in_place[o] |= 1u << i;
    }
}

/* True when instruction j may write output o at once: nothing that may lie there is read later. */
static bool may_write(const builder *b, int32_t o, int32_t j)
{
    if (o >= 8) return true;
    for (int32_t i = 0; i < b->n_in && i < 32; i++)
        if ((b->in_place[o] >> i & 1) && b->last_use[i] > j) return false;
    return true;
}

/* The output whose memory the result of instruction j can be made in, or -1. */
static int32_t find_output(const builder *b, int32_t j)
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
static void release_operands(const builder *b, slot_pool *pool, int32_t j)
{
    for (int i = 0; i < 3; i++) {
        int32_t r = b->instr[j].operand[i];
        bool again = (i > 0 && b->instr[j].operand[0] == r) || (i > 1 && b->instr[j].operand[1] == r);
        if (r < b->n_in || again || b->last_use[r] != j || b->instr[r - b->n_in].op == STK_OP_constant) continue;
        if (b->slot[r] >= b->program->n_in + b->program->n_out) pool->unused[pool->n_unused++] = b->slot[r];
    }
}

static bool widths_are_equal(const builder *b, int32_t j)
{
    int own = stk_dtype_log2(b->instr[j].dtype);
    for (int i = 0; i < 3; i++) {
        int32_t r = b->instr[j].operand[i];
        if (r >= 0 && stk_dtype_log2(register_dtype(b, r)) != own) return false;
    }
    return true;
}

/* Constants and loaded inputs keep their buffers; results share. A loop may write where it reads if elements are
 * equally wide. */
static stk_status assign_slots(builder *b)
{
    stk_element_program *p = b->program;
    slot_pool pool = {.next = p->n_in + p->n_out};
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

/* --- writing down --- */

static void write_instr(builder *b, int32_t j)
{
    stk_element_program *p = b->program;
    const stk_fused_instr *from = &b->instr[j];
    int32_t slot = b->slot[b->n_in + j];
    if (from->op == STK_OP_constant) {
        p->fill[p->n_fills++] =
            (stk_program_fill){slot, stk_dtype_log2(from->dtype), stk_element_bits(b->isa, from->dtype, from->value)};
        return;
    }
    stk_program_instr *to = &p->instr[p->n_instr++];
    *to = (stk_program_instr){.run = find_loop(b, from), .dst = slot};
    for (int i = 0; i < 3; i++)
        to->src[i] = from->operand[i] < 0 ? 0 : b->slot[from->operand[i]];
    if (from->op != STK_OP_dropout) return;
    to->dropout = from->dtype == STK_F64 ? b->table->dropout_f64 : b->table->dropout_f32;
    to->seed = from->operand[1];
    to->sample = from->operand[2];
    to->stream = from->stream;
    to->rate = from->value;
}

static void write_copies(builder *b)
{
    stk_element_program *p = b->program;
    for (int32_t o = 0; o < p->n_out; o++)
        if (b->slot[b->out[o]] != p->n_in + o) p->copy[p->n_copies++] = (stk_program_copy){o, b->slot[b->out[o]]};
}

/* In units of one simple instruction, a guess. */
static double instr_weight(const stk_fused_instr *instr)
{
    if (instr->op == STK_OP_constant) return 0;
    if (instr->op == STK_OP_dropout) return 8;
    if (instr->op == STK_OP_binary) return instr->kind == STK_BINARY_pow ? 50 : instr->kind == STK_BINARY_div ? 2 : 1;
    if (instr->op != STK_OP_unary) return 1;
    switch (instr->kind) {
    case STK_UNARY_exp:
    case STK_UNARY_log:
    case STK_UNARY_tanh:
    case STK_UNARY_sigmoid:
    case STK_UNARY_erf:
    case STK_UNARY_sin:
    case STK_UNARY_cos: return instr->dtype == STK_F32 ? 8 : 40;
    default: return 1;
    }
}

static stk_status compile(builder *b)
{
    stk_element_program *p = b->program;
    const stk_fused *g = b->group;
    int64_t widest = 1;
    STK_RETURN_IF_ERROR(lower(b));
    p->input = stk_arena_alloc(b->arena, ((size_t)g->n_in + 1) * sizeof(*p->input));
    p->out_log2_bytes = stk_arena_alloc(b->arena, ((size_t)g->n_out + 1) * sizeof(*p->out_log2_bytes));
    p->instr = stk_arena_alloc(b->arena, ((size_t)b->n_instr + 1) * sizeof(*p->instr));
    p->fill = stk_arena_alloc(b->arena, ((size_t)b->n_instr + 1) * sizeof(*p->fill));
    p->copy = stk_arena_alloc(b->arena, ((size_t)g->n_out + 1) * sizeof(*p->copy));
    if (!p->input || !p->out_log2_bytes || !p->instr || !p->fill || !p->copy)
        return stk_fail_memory((size_t)b->n_instr * sizeof(*p->instr));
    p->n_in = g->n_in;
    p->n_out = g->n_out;
    collapse(b);
    classify_inputs(b);
    double work = p->n_in + p->n_out;
    for (int32_t r = 0; r < b->n_in + b->n_instr; r++) {
        int64_t bytes = (int64_t)stk_dtype_bytes(register_dtype(b, r));
        if (bytes > widest && (r >= b->n_in || p->input[r].load != STK_LOAD_NONE)) widest = bytes;
        if (r >= b->n_in) work += instr_weight(&b->instr[r - b->n_in]);
    }
    for (int32_t o = 0; o < p->n_out; o++)
        p->out_log2_bytes[o] = stk_dtype_log2(register_dtype(b, b->out[o]));
    STK_RETURN_IF_ERROR(find_last_uses(b));
    find_in_place(b);
    STK_RETURN_IF_ERROR(assign_slots(b));
    choose_block(b, p->n_slots - p->n_in - p->n_out, widest);
    for (int32_t j = 0; j < b->n_instr; j++)
        write_instr(b, j);
    write_copies(b);
    p->n_threads = stk_cpu_threads_for((double)p->count * work / 2, p->n_threads);
    return STK_OK;
}

static void release(void *state)
{
    stk_arena_free(((stk_element_program *)state)->arena);
}

stk_status stk_program_kernel(const stk_cpu_device *device, const stk_op_call *call, const stk_fused *group,
                              stk_kernel *out)
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
    out->run = stk_program_interpret;
    out->state = program;
    out->release = release;
    builder b = {.call = call,
                 .group = group,
                 .program = program,
                 .isa = device->isa,
                 .table = program->table,
                 .arena = arena,
                 .n_in = group->n_in,
                 .in_place = out->in_place};
    STK_RETURN_IF_ERROR(compile(&b));
    out->scratch_bytes = program->thread_bytes * (size_t)program->n_threads;
    return STK_OK;
}
