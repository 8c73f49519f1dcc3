/* What all kernels of the reference device share: the copy of the call, and doubles for the wide ones. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "device/reference/reference.h"
#include "graph/fused.h"

struct stk_ref_state {
    stk_op_call call; /* points into the arena */
    stk_arena *arena;
    stk_ref_wide wide;
    stk_ref_plain plain;
};

static void release(void *p)
{
    stk_ref_state *state = p;
    if (state) stk_arena_free(state->arena);
    free(state);
}

static void *copy_array(stk_arena *arena, const void *src, size_t bytes)
{
    void *dst = stk_arena_alloc(arena, bytes ? bytes : 1);
    return dst && bytes ? memcpy(dst, src, bytes) : dst;
}

/* A copy of the call that lives as long as the kernel. */
static stk_status copy_call(const stk_op_call *call, stk_ref_state **out)
{
    stk_ref_state *state = calloc(1, sizeof(*state));
    stk_status status = STK_OK;
    stk_attrs *attrs = NULL;
    if (!state || !(state->arena = stk_arena_new())) STK_TRY(stk_fail_memory(sizeof(*state)));
    state->call = *call;
    state->call.in = copy_array(state->arena, call->in, (size_t)call->n_in * sizeof(*call->in));
    state->call.out = copy_array(state->arena, call->out, (size_t)call->n_out * sizeof(*call->out));
    state->call.attrs = attrs = copy_array(state->arena, call->attrs, sizeof(*call->attrs));
    if (!state->call.in || !state->call.out || !attrs) STK_TRY(stk_fail_memory(sizeof(*attrs)));
    if (call->op == STK_OP_fused) {
        attrs->fused.program = stk_fused_copy(state->arena, call->attrs->fused.program);
        if (!attrs->fused.program) STK_TRY(stk_fail_memory(sizeof(stk_fused)));
    }
    *out = state;
    state = NULL;
done:
    release(state);
    return status;
}

static stk_status run_plain(const void *p, const stk_kernel_args *args)
{
    const stk_ref_state *state = p;
    return state->plain(&state->call, args);
}

static void widen(stk_tensor_desc desc, const void *src, double *dst)
{
    int64_t n = stk_shape_count(desc.shape);
    for (int64_t i = 0; i < n; i++)
        dst[i] = stk_ref_load(desc.dtype, src, i);
}

static void narrow(stk_tensor_desc desc, const double *src, void *dst)
{
    int64_t n = stk_shape_count(desc.shape);
    for (int64_t i = 0; i < n; i++)
        stk_ref_store(desc.dtype, dst, i, src[i]);
}

static stk_status run_wide(const void *p, const stk_kernel_args *args)
{
    const stk_ref_state *state = p;
    const stk_op_call *call = &state->call;
    const double *in[STK_REF_MOST];
    double *out[STK_REF_MOST], nothing, *scratch = args->scratch ? args->scratch : &nothing;
    for (int i = 0; i < call->n_in; i++) {
        widen(call->in[i], args->in[i], scratch);
        in[i] = scratch;
        scratch += stk_shape_count(call->in[i].shape);
    }
    for (int i = 0; i < call->n_out; i++) {
        out[i] = scratch;
        scratch += stk_shape_count(call->out[i].shape);
    }
    STK_RETURN_IF_ERROR(state->wide(call, in, out));
    for (int i = 0; i < call->n_out; i++)
        narrow(call->out[i], out[i], args->out[i]);
    return STK_OK;
}

uint32_t stk_ref_same_bytes(const stk_op_call *call, int i)
{
    uint32_t bits = 0;
    for (int j = 0; j < call->n_in && j < 32; j++)
        if (stk_desc_bytes(call->in[j]) == stk_desc_bytes(call->out[i])) bits |= 1u << j;
    return bits;
}

stk_status stk_ref_make_plain(const stk_op_call *call, stk_ref_plain body, uint32_t in_place, stk_kernel *out)
{
    stk_ref_state *state;
    STK_RETURN_IF_ERROR(copy_call(call, &state));
    state->plain = body;
    *out = (stk_kernel){.run = run_plain, .state = state, .release = release, .in_place = {in_place}};
    return STK_OK;
}

stk_status stk_ref_make_wide(const stk_op_call *call, stk_ref_wide body, stk_kernel *out)
{
    stk_ref_state *state;
    if (call->n_in > STK_REF_MOST || call->n_out > STK_REF_MOST)
        return stk_fail(STK_INTERNAL, "'%s' has too many inputs or outputs", stk_op_name(call->op));
    STK_RETURN_IF_ERROR(copy_call(call, &state));
    state->wide = body;
    *out = (stk_kernel){.run = run_wide, .state = state, .release = release};
    for (int i = 0; i < call->n_in; i++)
        out->scratch_bytes += (size_t)stk_shape_count(call->in[i].shape) * sizeof(double);
    for (int i = 0; i < call->n_out; i++) {
        out->scratch_bytes += (size_t)stk_shape_count(call->out[i].shape) * sizeof(double);
        /* Every input has been read before the first output is written. */
        out->in_place[i] = stk_ref_same_bytes(call, i);
    }
    return STK_OK;
}

void stk_ref_strides(stk_shape shape, int64_t stride[STK_MAX_RANK])
{
    int64_t n = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= shape.dim[i];
    }
}

int64_t stk_ref_offset(stk_shape shape, int64_t i, const int64_t stride[STK_MAX_RANK])
{
    int64_t offset = 0;
    for (int axis = shape.rank - 1; axis >= 0; axis--) {
        offset += i % shape.dim[axis] * stride[axis];
        i /= shape.dim[axis];
    }
    return offset;
}
