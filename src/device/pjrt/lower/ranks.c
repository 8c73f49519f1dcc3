/* What ranks do together: sums, their parts, and parts put together again. Values go through as one row of elements. */
#include <inttypes.h>

#include "base/error.h"
#include "device/pjrt/lowering.h"

static pjrt_value flatten(pjrt_module *m, pjrt_value x)
{
    return pjrt_reshape(m, x, STK_SHAPE(stk_shape_count(x.desc.shape)));
}

/* One row of all values. */
static pjrt_value join(pjrt_module *m, const pjrt_value *x, int n)
{
    char type[PJRT_TYPE_TEXT];
    pjrt_value part[STK_MOST_RANK_SUMS];
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        part[i] = flatten(m, x[i]);
        count += part[i].desc.shape.dim[0];
    }
    if (n == 1) return part[0];
    pjrt_value y = pjrt_new_value(m, stk_desc_make(x[0].desc.dtype, STK_SHAPE(count)));
    stk_text_add(&m->body, "%%%d = stablehlo.concatenate ", y.id);
    for (int i = 0; i < n; i++)
        stk_text_add(&m->body, "%s%%%d", i ? ", " : "", part[i].id);
    stk_text_add(&m->body, ", dim = 0 : (");
    for (int i = 0; i < n; i++)
        stk_text_add(&m->body, "%s%s", i ? ", " : "", pjrt_type_text(part[i].desc, type));
    stk_text_add(&m->body, ") -> %s\n", pjrt_type_text(y.desc, type));
    return y;
}

/* Zeros behind the last element, or fewer elements. */
static pjrt_value set_length(pjrt_module *m, pjrt_value x, int64_t n)
{
    char from[PJRT_TYPE_TEXT], scalar[PJRT_TYPE_TEXT], to[PJRT_TYPE_TEXT];
    int64_t have = x.desc.shape.dim[0];
    static const int64_t start[1], step[1] = {1};
    if (n <= have) return n == have ? x : pjrt_slice(m, x, start, &n, step);
    pjrt_value zero = pjrt_integer(m, (stk_tensor_desc){.dtype = x.desc.dtype}, 0);
    pjrt_value y = pjrt_new_value(m, stk_desc_make(x.desc.dtype, STK_SHAPE(n)));
    stk_text_add(&m->body,
                 "%%%d = stablehlo.pad %%%d, %%%d, low = [0], high = [%" PRId64 "], interior = [0] : (%s, %s) -> %s\n",
                 y.id, x.id, zero.id, n - have, pjrt_type_text(x.desc, from), pjrt_type_text(zero.desc, scalar),
                 pjrt_type_text(y.desc, to));
    return y;
}

static void add_groups(pjrt_module *m, int n_ranks)
{
    stk_text_add(&m->body, "replica_groups = dense<[[");
    for (int r = 0; r < n_ranks; r++)
        stk_text_add(&m->body, "%s%d", r ? ", " : "", r);
    stk_text_add(&m->body, "]]> : tensor<1x%dxi64>", n_ranks);
}

/* name: "all_reduce", or with more before the groups "reduce_scatter". */
static pjrt_value add_up(pjrt_module *m, const char *name, const char *more, int n_ranks, pjrt_value x, int64_t n)
{
    char scalar[PJRT_TYPE_TEXT], from[PJRT_TYPE_TEXT], to[PJRT_TYPE_TEXT];
    stk_tensor_desc element = {.dtype = x.desc.dtype};
    pjrt_value y = pjrt_new_value(m, stk_desc_make(x.desc.dtype, STK_SHAPE(n)));
    pjrt_value a = pjrt_new_value(m, element), b = pjrt_new_value(m, element), sum = pjrt_new_value(m, element);
    pjrt_type_text(element, scalar);
    stk_text_add(&m->body, "%%%d = \"stablehlo.%s\"(%%%d) <{%s", y.id, name, x.id, more);
    add_groups(m, n_ranks);
    stk_text_add(&m->body,
                 "}> ({\n^bb0(%%%d: %s, %%%d: %s):\n%%%d = stablehlo.add %%%d, %%%d : %s\nstablehlo.return %%%d : "
                 "%s\n}) : (%s) -> %s\n",
                 a.id, scalar, b.id, scalar, sum.id, a.id, b.id, scalar, sum.id, scalar, pjrt_type_text(x.desc, from),
                 pjrt_type_text(y.desc, to));
    return y;
}

static void lower_sum(pjrt_module *m, const stk_op_call *call, int n_ranks, const pjrt_value *in, pjrt_value *out)
{
    pjrt_value all = join(m, in, call->n_in);
    pjrt_value sum = add_up(m, "all_reduce", "", n_ranks, all, all.desc.shape.dim[0]);
    int64_t start = 0, stop, step = 1;
    for (int i = 0; i < call->n_out; i++, start = stop) {
        stop = start + stk_shape_count(call->out[i].shape);
        pjrt_value part = call->n_out == 1 ? sum : pjrt_slice(m, sum, &start, &stop, &step);
        out[i] = pjrt_reshape(m, part, call->out[i].shape);
    }
}

/* Elements n * rank and on. */
static pjrt_value take_own(pjrt_module *m, pjrt_value x, int64_t n)
{
    pjrt_value number = pjrt_new_value(m, (stk_tensor_desc){.dtype = STK_I32});
    pjrt_value rank = pjrt_new_value(m, (stk_tensor_desc){.dtype = STK_I64});
    stk_text_add(&m->body, "%%%d = stablehlo.replica_id : tensor<ui32>\n", number.id);
    stk_text_add(&m->body, "%%%d = stablehlo.convert %%%d : (tensor<ui32>) -> tensor<i64>\n", rank.id, number.id);
    pjrt_value start = pjrt_binary(m, "multiply", rank, pjrt_integer(m, rank.desc, n));
    return pjrt_take_rows(m, x, start, n);
}

static void lower_gather(pjrt_module *m, const stk_op_call *call, int n_ranks, const pjrt_value *in, pjrt_value *out)
{
    char from[PJRT_TYPE_TEXT], to[PJRT_TYPE_TEXT];
    pjrt_value part = flatten(m, in[0]);
    pjrt_value all = pjrt_new_value(m, stk_desc_make(part.desc.dtype, STK_SHAPE(part.desc.shape.dim[0] * n_ranks)));
    stk_text_add(&m->body, "%%%d = \"stablehlo.all_gather\"(%%%d) <{all_gather_dim = 0 : i64, ", all.id, part.id);
    add_groups(m, n_ranks);
    stk_text_add(&m->body, "}> : (%s) -> %s\n", pjrt_type_text(part.desc, from), pjrt_type_text(all.desc, to));
    all = set_length(m, all, stk_shape_count(call->out[0].shape));
    out[0] = pjrt_reshape(m, all, call->out[0].shape);
}

stk_status pjrt_lower_ranks(pjrt_module *m, const stk_op_call *call, int n_ranks, const pjrt_value *in, pjrt_value *out)
{
    int64_t n = stk_shape_count(call->out[0].shape);
    switch (call->op) {
    case STK_OP_rank_sum: lower_sum(m, call, n_ranks, in, out); return STK_OK;
    case STK_OP_rank_gather: lower_gather(m, call, n_ranks, in, out); return STK_OK;
    case STK_OP_rank_part:
    case STK_OP_rank_scatter: {
        pjrt_value whole = set_length(m, flatten(m, in[0]), n * n_ranks);
        out[0] = call->op == STK_OP_rank_part
                     ? take_own(m, whole, n)
                     : add_up(m, "reduce_scatter", "scatter_dimension = 0 : i64, ", n_ranks, whole, n);
        out[0] = pjrt_reshape(m, out[0], call->out[0].shape);
        return STK_OK;
    }
    default: return stk_fail(STK_UNSUPPORTED, "StableHLO has no '%s'", stk_op_name(call->op));
    }
}
