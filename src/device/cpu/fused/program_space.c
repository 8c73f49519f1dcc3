/* The iteration space of a program: axes, how inputs walk over them, blocks. See device/cpu/fused/program_build.h. */
#include "device/cpu/fused/program_reduce.h"

enum { L1_BYTES = 24576, LEAST_BLOCK = 128, MOST_BLOCK = 1024 };

static bool merges(const stk_fused_program_builder *b, int axis, int64_t inner_dim)
{
    for (int32_t i = 0; i < b->n_in; i++)
        if (b->program->input[i].stride[axis - 1] != b->program->input[i].stride[axis] * inner_dim) return false;
    return true;
}

/* Drops axes of length 1 and joins neighbours that every input walks as one. */
static void collapse_axes(stk_fused_program_builder *b)
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

static bool is_dense(const stk_element_program *p, const stk_fused_program_input *input)
{
    int64_t step = 1;
    for (int axis = p->rank - 1; axis >= 0; axis--) {
        if (p->dim[axis] != 1 && input->stride[axis] != step) return false;
        step *= p->dim[axis];
    }
    return true;
}

static void classify_inputs(stk_fused_program_builder *b)
{
    stk_element_program *p = b->program;
    for (int32_t i = 0; i < p->n_in; i++) {
        stk_fused_program_input *input = &p->input[i];
        input->log2_bytes = stk_dtype_log2(b->group->input[i].dtype);
        input->load = !stk_fused_program_reads(b, i, true) ? STK_LOAD_NONE
                      : is_dense(p, input)                 ? STK_LOAD_DENSE
                                                           : STK_LOAD_WALK;
    }
}

void stk_fused_program_collapse(stk_fused_program_builder *b)
{
    collapse_axes(b);
    classify_inputs(b);
}

/* After how many elements the input starts again from its first one; 0: never. */
static int64_t find_period(const stk_element_program *p, const stk_fused_program_input *input)
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
void stk_fused_program_choose_block(stk_fused_program_builder *b, int32_t n_buffers, int64_t element_bytes)
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
        bool is_aligned = !b->group->reduce.axes || (period && stk_fused_program_reduce_repeats(b->group, period));
        if (period && p->block % period == 0 && is_aligned) p->input[i].load = STK_LOAD_ONCE;
    }
    p->slot_bytes = ((size_t)(p->block * element_bytes) + 63) / 64 * 64;
    p->thread_bytes = ((size_t)p->n_slots * sizeof(void *) + 63) / 64 * 64 + (size_t)n_buffers * p->slot_bytes;
}
