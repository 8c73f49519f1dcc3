/* The kernels of rank_sum: one call of the communication for each. Several values go through scratch memory as one. */
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

static stk_status run(const void *p, const stk_kernel_args *args)
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

stk_status stk_ranks_kernel(const stk_device *device, stk_comm *comm, const stk_op_call *call, stk_kernel *out)
{
    *out = (stk_kernel){.run = run, .each_in_place = true};
    if (!comm) return stk_fail(STK_INVALID, "a sum over ranks, and there are none: the program was compiled for one");
    if (!device->class->on_host)
        return stk_fail(STK_UNSUPPORTED, "replicas on '%s' are not supported yet: sums over them are made on the host",
                        device->class->name);
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

uint64_t stk_program_ranks_hash(const stk_program *program, uint64_t seed)
{
    const stk_graph *graph = program->graph;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; node->op == STK_OP_rank_sum && j < node->n_in; j++) {
            const stk_tensor_desc *desc = &graph->value[node->in[j]].desc;
            int64_t what[] = {node->n_in, desc->dtype, stk_shape_count(desc->shape)};
            seed = stk_hash64(what, sizeof(what), seed);
        }
    }
    return seed;
}
