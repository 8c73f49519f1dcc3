/* The kernels of what ranks do together: one call of the communication for each. Several values of a sum go through
 * scratch memory as one, and so does a value that does not divide into equal parts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "engine/program.h"

typedef struct ranks_state {
    stk_comm *comm; /* borrowed */
    stk_dtype dtype;
    int64_t n; /* of all values */
    int n_values;
    size_t bytes[STK_MOST_RANK_SUMS];
} ranks_state;

static stk_status run_sum(const void *p, const stk_kernel_args *args)
{
    const ranks_state *s = p;
    bool alone = s->n_values == 1;
    char *buffer = args->scratch;
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce,
                          .dtype = s->dtype,
                          .n = s->n,
                          .src = alone ? args->in[0] : buffer,
                          .dst = alone ? args->out[0] : buffer};
    size_t at = 0;
    for (int i = 0; !alone && i < s->n_values; at += s->bytes[i++])
        memcpy(buffer + at, args->in[i], s->bytes[i]);
    STK_RETURN_IF_ERROR(stk_comm_run(s->comm, &call, s->comm->timeout_ms));
    at = 0;
    for (int i = 0; !alone && i < s->n_values; at += s->bytes[i++])
        memcpy(args->out[i], buffer + at, s->bytes[i]);
    return STK_OK;
}

/* --- parts --- */

typedef struct parts_state {
    stk_comm *comm; /* borrowed */
    stk_collective kind;
    stk_dtype dtype;
    int64_t n, part; /* elements of the whole, and of a part */
    bool divides;
} parts_state;

static stk_status call_parts(const parts_state *s, const void *src, void *dst)
{
    stk_comm_call call = {.kind = s->kind, .dtype = s->dtype, .n = s->part, .src = src, .dst = dst};
    return stk_comm_run(s->comm, &call, s->comm->timeout_ms);
}

static stk_status run_scatter(const void *p, const stk_kernel_args *args)
{
    const parts_state *s = p;
    size_t element = stk_dtype_bytes(s->dtype), bytes = (size_t)s->n * element;
    if (s->divides) return call_parts(s, args->in[0], args->out[0]);
    char *whole = args->scratch;
    memcpy(whole, args->in[0], bytes);
    memset(whole + bytes, 0, (size_t)s->part * element * (size_t)s->comm->n_ranks - bytes);
    return call_parts(s, whole, args->out[0]);
}

static stk_status run_part(const void *p, const stk_kernel_args *args)
{
    const parts_state *s = p;
    size_t element = stk_dtype_bytes(s->dtype);
    int64_t begin = s->part * s->comm->rank, n = s->n - begin < s->part ? s->n - begin : s->part;
    if (n < 0) n = 0;
    memcpy(args->out[0], (const char *)args->in[0] + (size_t)begin * element, (size_t)n * element);
    memset((char *)args->out[0] + (size_t)n * element, 0, (size_t)(s->part - n) * element);
    return STK_OK;
}

static stk_status run_gather(const void *p, const stk_kernel_args *args)
{
    const parts_state *s = p;
    if (s->divides) return call_parts(s, args->in[0], args->out[0]);
    STK_RETURN_IF_ERROR(call_parts(s, args->in[0], args->scratch));
    memcpy(args->out[0], args->scratch, (size_t)s->n * stk_dtype_bytes(s->dtype));
    return STK_OK;
}

static stk_status make_parts(stk_comm *comm, const stk_op_call *call, stk_kernel *out)
{
    bool gathers = call->op == STK_OP_rank_gather;
    const stk_tensor_desc *whole = gathers ? &call->out[0] : &call->in[0];
    const stk_tensor_desc *part = gathers ? &call->in[0] : &call->out[0];
    if (call->attrs->ranks.n != comm->n_ranks)
        return stk_fail(STK_INVALID, "parts of %d ranks, and there are %d", (int)call->attrs->ranks.n, comm->n_ranks);
    parts_state *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    *s = (parts_state){.comm = comm,
                       .kind = gathers ? STK_COLLECTIVE_all_gather : STK_COLLECTIVE_reduce_scatter,
                       .dtype = whole->dtype,
                       .n = stk_shape_count(whole->shape),
                       .part = stk_shape_count(part->shape)};
    s->divides = s->n == s->part * comm->n_ranks;
    bool copies = call->op != STK_OP_rank_part && !s->divides;
    *out =
        (stk_kernel){.run = gathers                           ? run_gather
                            : call->op == STK_OP_rank_scatter ? run_scatter
                                                              : run_part,
                     .state = s,
                     .impl = comm->class->name,
                     .scratch_bytes = copies ? (size_t)s->part * (size_t)comm->n_ranks * stk_dtype_bytes(s->dtype) : 0};
    if (gathers) out->in_place[0] = 1u << 1; /* It is not read. */
    return STK_OK;
}

/* --- what goes on while the rank does other things --- */

typedef struct begun_state {
    stk_comm *comm; /* borrowed */
    stk_dtype dtype;
    int ticket, n_values;
    bool scatters;
    int64_t n; /* of the call */
    size_t bytes[STK_MOST_RANK_SUMS];
} begun_state;

static stk_status run_begin(const void *p, const stk_kernel_args *args)
{
    const begun_state *s = p;
    char *own = args->out[s->scatters && s->n_values == 2]; /* what is read until the end */
    size_t at = 0, whole = (size_t)s->n * stk_dtype_bytes(s->dtype) * (s->scatters ? (size_t)s->comm->n_ranks : 1);
    const void *src = s->scatters && s->n_values == 1 ? args->in[0] : own;
    stk_comm_call call = {.kind = s->scatters ? STK_COLLECTIVE_reduce_scatter : STK_COLLECTIVE_all_reduce,
                          .dtype = s->dtype,
                          .n = s->n,
                          .src = src,
                          .dst = args->out[0],
                          .early = true};
    int n_copied = s->scatters ? s->n_values - 1 : s->n_values;
    for (int i = 0; i < n_copied; at += s->bytes[i++])
        if (own + at != args->in[i]) memcpy(own + at, args->in[i], s->bytes[i]);
    if (n_copied > 0) memset(own + at, 0, whole - at);
    return stk_comm_start(s->comm, &call, &s->comm->ticket[s->ticket]);
}

static stk_status run_await(const void *p, const stk_kernel_args *args)
{
    const begun_state *s = p;
    STK_RETURN_IF_ERROR(stk_comm_wait(s->comm, s->comm->ticket[s->ticket], s->comm->timeout_ms));
    const char *sum = args->in[s->n_values > 1 ? s->n_values : 0];
    size_t at = 0;
    for (int i = 0; i < s->n_values; at += s->bytes[i++])
        if (sum + at != args->out[i]) memcpy(args->out[i], sum + at, s->bytes[i]);
    return STK_OK;
}

static stk_status make_begun(stk_comm *comm, const stk_op_call *call, stk_kernel *out)
{
    bool begins = call->op == STK_OP_rank_begin, scatters = call->attrs->ranks.n > 0;
    begun_state *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    *s = (begun_state){.comm = comm,
                       .dtype = call->in[0].dtype,
                       .ticket = call->attrs->ranks.ticket,
                       .scatters = scatters,
                       .n = stk_shape_count(call->out[0].shape)};
    s->n_values = !begins ? call->n_out : scatters ? call->n_out : call->n_in;
    for (int i = 0; i < s->n_values; i++)
        s->bytes[i] = stk_desc_bytes(!begins ? call->out[i] : call->in[scatters ? 0 : i]);
    *out = (stk_kernel){.run = begins ? run_begin : run_await,
                        .state = s,
                        .impl = comm->class->name,
                        .each_in_place = !begins || (!scatters && call->n_in == 1)};
    return STK_OK;
}

/* --- sums --- */

static stk_status make_sum(stk_comm *comm, const stk_op_call *call, stk_kernel *out)
{
    *out = (stk_kernel){.run = run_sum, .each_in_place = true};
    ranks_state *s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    *s = (ranks_state){.comm = comm, .dtype = call->in[0].dtype, .n_values = call->n_in};
    for (int i = 0; i < call->n_in; i++) {
        s->n += stk_shape_count(call->in[i].shape);
        s->bytes[i] = stk_desc_bytes(call->in[i]);
    }
    out->state = s;
    out->impl = comm->class->name;
    out->scratch_bytes = call->n_in > 1 ? (size_t)s->n * stk_dtype_bytes(s->dtype) : 0;
    return STK_OK;
}

stk_status stk_ranks_kernel(const stk_device *device, stk_comm *comm, const stk_op_call *call, stk_kernel *out)
{
    *out = (stk_kernel){.run = NULL};
    if (!comm) return stk_fail(STK_INVALID, "a sum over ranks, and there are none: the program was compiled for one");
    if (device->class->rank_kernel) return device->class->rank_kernel((stk_device *)device, comm, call, out);
    if (!device->class->on_host)
        return stk_fail(STK_UNSUPPORTED, "replicas on '%s' are not supported yet: sums over them are made on the host",
                        device->class->name);
    switch (call->op) {
    case STK_OP_rank_sum: return make_sum(comm, call, out);
    case STK_OP_rank_begin:
    case STK_OP_rank_await: return make_begun(comm, call, out);
    default: return make_parts(comm, call, out);
    }
}

stk_rank_calls stk_program_rank_calls(const stk_program *program)
{
    const stk_graph *graph = program->graph;
    stk_rank_calls out = {0};
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        bool meets = stk_op_is_of_ranks(node->op) && node->op != STK_OP_rank_part && node->op != STK_OP_rank_await;
        if (!meets) continue;
        out.n_calls++;
        int n = node->op == STK_OP_rank_gather ? 1 : node->n_in; /* the second is there for its shape */
        for (int j = 0; j < n; j++)
            out.bytes += stk_desc_bytes(graph->value[node->in[j]].desc);
    }
    return out;
}

uint64_t stk_program_ranks_hash(const stk_program *program, uint64_t seed)
{
    const stk_graph *graph = program->graph;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; stk_op_is_of_ranks(node->op) && j < node->n_in; j++) {
            const stk_tensor_desc *desc = &graph->value[node->in[j]].desc;
            int64_t what[] = {node->op, node->n_in, desc->dtype, stk_shape_count(desc->shape)};
            seed = stk_hash64(what, sizeof(what), seed);
        }
    }
    return seed;
}
