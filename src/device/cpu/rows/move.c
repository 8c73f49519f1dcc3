/* broadcast, reshape, transpose, slice and its gradient, pad, concat: each is one strided copy or several, some after
 * a fill of the whole output.
 *
 * A copy is collapsed to few axes and cut into pieces: runs along the last axis, or tiles of the last axis and the one
 * along which the source is contiguous. Threads share the pieces.
 */
#include "device/cpu/rows/move.h"

#include <string.h>

#include "device/cpu/cpu.h"
#include "device/cpu/element/element.h"

enum { RUN_PIECE = 16384, TILE_PIECE = 64 };

typedef struct copy_part {
    int rank;
    int64_t dim[STK_MAX_RANK], src_stride[STK_MAX_RANK], dst_stride[STK_MAX_RANK];
    int64_t src_first, dst_first;
    int across; /* the axis to tile with the last one; -1: runs */
    int64_t n_pieces;
} copy_part;

typedef struct move_state {
    const stk_move_table *table;
    int log2_bytes, n_threads;
    bool fills, stays; /* stays: in place where both are one, which a reshape alone may */
    uint64_t fill_bits;
    int64_t n_dst; /* elements of the output */
    int n_parts;
    copy_part part[];
} move_state;

/* --- running --- */

static void copy_piece(const move_state *s, const copy_part *p, int64_t piece, const char *src, char *dst)
{
    int last = p->rank - 1, split = p->across >= 0 ? p->across : last;
    int64_t size = p->across >= 0 ? TILE_PIECE : RUN_PIECE, n_splits = (p->dim[split] + size - 1) / size;
    int64_t begin = piece % n_splits * size, from = p->src_first, to = p->dst_first;
    int64_t n = p->dim[split] - begin < size ? p->dim[split] - begin : size;
    piece /= n_splits;
    from += begin * p->src_stride[split];
    to += begin * p->dst_stride[split];
    for (int axis = last - 1; axis >= 0; axis--) {
        if (axis == p->across) continue;
        int64_t digit = piece % p->dim[axis];
        piece /= p->dim[axis];
        from += digit * p->src_stride[axis];
        to += digit * p->dst_stride[axis];
    }
    src += (size_t)from << s->log2_bytes;
    dst += (size_t)to << s->log2_bytes;
    if (p->across >= 0)
        s->table->transpose[s->log2_bytes](n, p->dim[last], dst, p->dst_stride[p->across], src, p->src_stride[last]);
    else
        s->table->strided[s->log2_bytes](n, dst, p->dst_stride[last], src, p->src_stride[last]);
}

static void fill_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const move_state *s = task->state;
    int64_t begin, end;
    stk_cpu_share(s->n_dst, 64, i_part, n_parts, &begin, &end);
    char *dst = (char *)task->args->out[0] + ((size_t)begin << s->log2_bytes);
    s->table->strided[s->log2_bytes](end - begin, dst, 1, &s->fill_bits, 0);
}

static void copy_share(const void *p, int i_part, int n_parts)
{
    const stk_cpu_task *task = p;
    const move_state *s = task->state;
    int64_t begin, end;
    for (int i = 0; i < s->n_parts; i++) {
        stk_cpu_share(s->part[i].n_pieces, 1, i_part, n_parts, &begin, &end);
        for (int64_t piece = begin; piece < end; piece++)
            copy_piece(s, &s->part[i], piece, task->args->in[i], task->args->out[0]);
    }
}

static stk_status run(const void *p, const stk_kernel_args *args)
{
    const move_state *s = p;
    /* Equal addresses alone say nothing: a value without elements has the address of its neighbour. */
    if (s->n_dst == 0 || (s->stays && args->in[0] == args->out[0])) return STK_OK;
    if (s->fills) stk_cpu_parallel(s->n_threads, fill_share, &(stk_cpu_task){p, args});
    stk_cpu_parallel(s->n_threads, copy_share, &(stk_cpu_task){p, args});
    return STK_OK;
}

/* --- preparing --- */

static void fill_strides(stk_shape shape, int64_t stride[STK_MAX_RANK])
{
    int64_t n = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= shape.dim[i];
    }
}

/* Drops axes of length 1, joins neighbours, and finds out how to walk. */
static void collapse(copy_part *p)
{
    int rank = 0;
    p->n_pieces = 1;
    p->across = -1;
    for (int axis = 0; axis < p->rank; axis++) {
        if (p->dim[axis] == 1) continue;
        int64_t dim = p->dim[axis], src = p->src_stride[axis], dst = p->dst_stride[axis];
        bool joins = rank > 0 && p->src_stride[rank - 1] == src * dim && p->dst_stride[rank - 1] == dst * dim;
        if (joins) dim *= p->dim[--rank];
        p->dim[rank] = dim;
        p->src_stride[rank] = src;
        p->dst_stride[rank++] = dst;
    }
    if (rank == 0) {
        p->dim[0] = p->src_stride[0] = p->dst_stride[0] = 1;
        rank = 1;
    }
    p->rank = rank;
    for (int axis = 0; axis < rank - 1; axis++)
        if (p->src_stride[axis] == 1 && p->dst_stride[rank - 1] == 1 && p->src_stride[rank - 1] > 1) p->across = axis;
    int split = p->across >= 0 ? p->across : rank - 1;
    int64_t size = p->across >= 0 ? TILE_PIECE : RUN_PIECE;
    for (int axis = 0; axis < rank; axis++) {
        if (axis == split)
            p->n_pieces *= (p->dim[axis] + size - 1) / size;
        else if (axis != rank - 1)
            p->n_pieces *= p->dim[axis];
    }
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *call, int n_parts, move_state **state,
                       stk_kernel *out)
{
    STK_RETURN_IF_ERROR(stk_cpu_new_state(sizeof(move_state) + (size_t)n_parts * sizeof(copy_part), run, out));
    *state = out->state;
    (*state)->table = stk_move_of(device->isa);
    (*state)->log2_bytes = stk_dtype_log2(call->out[0].dtype);
    (*state)->n_dst = stk_shape_count(call->out[0].shape);
    (*state)->n_threads = stk_cpu_threads_for((double)(*state)->n_dst * 2, device->base.n_threads);
    (*state)->n_parts = n_parts;
    return STK_OK;
}

/* A part that visits `shape`; the side whose tensor has that shape is contiguous. */
static copy_part part_over(stk_shape shape)
{
    copy_part part = {.rank = shape.rank};
    memcpy(part.dim, shape.dim, sizeof(part.dim));
    fill_strides(shape, part.src_stride);
    fill_strides(shape, part.dst_stride);
    return part;
}

static void set_part(move_state *state, int i, copy_part part)
{
    state->part[i] = part;
    collapse(&state->part[i]);
}

stk_status stk_cpu_reshape_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    move_state *state;
    STK_RETURN_IF_ERROR(make(device, call, 1, &state, out));
    set_part(state, 0, part_over((stk_shape){.rank = 1, .dim = {state->n_dst}}));
    state->stays = true;
    out->in_place[0] = 1;
    return STK_OK;
}

stk_status stk_cpu_broadcast_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    stk_shape x = call->in[0].shape, y = call->out[0].shape;
    int64_t stride[STK_MAX_RANK];
    move_state *state;
    STK_RETURN_IF_ERROR(make(device, call, 1, &state, out));
    copy_part part = part_over(y);
    fill_strides(x, stride);
    for (int i = 0; i < y.rank; i++) {
        int k = i - (y.rank - x.rank);
        part.src_stride[i] = k < 0 || x.dim[k] == 1 ? 0 : stride[k];
    }
    set_part(state, 0, part);
    return STK_OK;
}

stk_status stk_cpu_transpose_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    int64_t stride[STK_MAX_RANK];
    move_state *state;
    STK_RETURN_IF_ERROR(make(device, call, 1, &state, out));
    copy_part part = part_over(call->out[0].shape);
    fill_strides(call->in[0].shape, stride);
    for (int i = 0; i < part.rank; i++)
        part.src_stride[i] = stride[call->attrs->permutation[i]];
    set_part(state, 0, part);
    return STK_OK;
}

/* Strides and first element of what the slice takes of `whole`. */
static int64_t slice_strides(const stk_attrs *attrs, stk_shape whole, int64_t stride[STK_MAX_RANK])
{
    int64_t first = 0;
    fill_strides(whole, stride);
    for (int i = 0; i < whole.rank; i++) {
        first += attrs->slice.start[i] * stride[i];
        stride[i] *= attrs->slice.step[i];
    }
    return first;
}

stk_status stk_cpu_slice_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    move_state *state;
    STK_RETURN_IF_ERROR(make(device, call, 1, &state, out));
    copy_part part = part_over(call->out[0].shape);
    part.src_first = slice_strides(call->attrs, call->in[0].shape, part.src_stride);
    set_part(state, 0, part);
    return STK_OK;
}

stk_status stk_cpu_slice_grad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    move_state *state;
    STK_RETURN_IF_ERROR(make(device, call, 1, &state, out));
    copy_part part = part_over(call->in[0].shape);
    part.dst_first = slice_strides(call->attrs, call->out[0].shape, part.dst_stride);
    state->fills = true;
    set_part(state, 0, part);
    return STK_OK;
}

stk_status stk_cpu_pad_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    const stk_attrs *attrs = call->attrs;
    move_state *state;
    STK_RETURN_IF_ERROR(make(device, call, 1, &state, out));
    copy_part part = part_over(call->in[0].shape);
    fill_strides(call->out[0].shape, part.dst_stride);
    for (int i = 0; i < part.rank; i++)
        part.dst_first += attrs->pad.low[i] * part.dst_stride[i];
    state->fills = true;
    state->fill_bits = stk_element_bits(device->isa, call->out[0].dtype, attrs->pad.value);
    set_part(state, 0, part);
    return STK_OK;
}

stk_status stk_cpu_concat_kernel(const stk_cpu_device *device, const stk_op_call *call, stk_kernel *out)
{
    int axis = call->attrs->concat.axis;
    int64_t at = 0;
    move_state *state;
    STK_RETURN_IF_ERROR(make(device, call, call->n_in, &state, out));
    for (int i = 0; i < call->n_in; i++) {
        copy_part part = part_over(call->in[i].shape);
        fill_strides(call->out[0].shape, part.dst_stride);
        part.dst_first = at * part.dst_stride[axis];
        at += call->in[i].shape.dim[axis];
        set_part(state, i, part);
    }
    return STK_OK;
}
