/* c = op(a) op(b), where op may transpose the last two axes. b is one matrix for all, or batched like a. A
 * third input is a bias for each column of c, in f32 (f64 for f64), added before c is rounded.
 */
#include "ops/rule.h"

/* Rows and columns of a matrix as it enters the product. */
static void matrix_size(stk_shape shape, bool transpose, int64_t *rows, int64_t *cols)
{
    *rows = shape.dim[shape.rank - (transpose ? 1 : 2)];
    *cols = shape.dim[shape.rank - (transpose ? 2 : 1)];
}

static stk_status infer(stk_op_call *call)
{
    stk_tensor_desc a = call->in[0], b = call->in[1], c = a;
    char ta[STK_SHAPE_TEXT_BYTES], tb[STK_SHAPE_TEXT_BYTES];
    if (call->n_in != 2 && call->n_in != 3)
        return stk_fail(STK_INVALID, "%d inputs do not fit: it takes 2 and perhaps a bias", call->n_in);
    STK_RETURN_IF_ERROR(stk_rule_need_float("a", a));
    if (a.dtype != b.dtype || a.shape.rank < 2 || (b.shape.rank != 2 && b.shape.rank != a.shape.rank))
        return stk_fail(STK_INVALID, "a %s and b %s need equal dtypes, 2 dimensions or more, and b 2 or as many as a",
                        stk_desc_text(a, ta), stk_desc_text(b, tb));
    int64_t m, n, k_a, k_b;
    matrix_size(a.shape, call->attrs->matmul.transpose_a, &m, &k_a);
    matrix_size(b.shape, call->attrs->matmul.transpose_b, &k_b, &n);
    bool batch_fits = true;
    for (int i = 0; b.shape.rank > 2 && i < a.shape.rank - 2; i++)
        batch_fits = batch_fits && a.shape.dim[i] == b.shape.dim[i];
    if (k_a != k_b || !batch_fits)
        return stk_fail(STK_INVALID, "a %s%s and b %s%s do not fit: %s differ", stk_shape_text(a.shape, ta),
                        call->attrs->matmul.transpose_a ? " transposed" : "", stk_shape_text(b.shape, tb),
                        call->attrs->matmul.transpose_b ? " transposed" : "",
                        batch_fits ? "the inner sizes" : "the batches");
    c.shape.dim[a.shape.rank - 2] = m;
    c.shape.dim[a.shape.rank - 1] = n;
    if (call->attrs->matmul.wide) c.dtype = stk_rule_stat_dtype(a.dtype);
    if (call->n_in == 3)
        STK_RETURN_IF_ERROR(stk_rule_need("bias", call->in[2], stk_rule_stat_dtype(a.dtype), stk_rule_vector_shape(n)));
    call->out[0] = c;
    return STK_OK;
}

/* Swaps the last two axes. */
static stk_value transpose_last(stk_value x)
{
    int32_t p[STK_MAX_RANK];
    int rank = stk_value_shape(x).rank;
    for (int i = 0; i < rank; i++)
        p[i] = i;
    p[rank - 2] = rank - 1;
    p[rank - 1] = rank - 2;
    return stk_transpose(x, p);
}

static stk_value grad_a(stk_value a, stk_value b, stk_value dc, bool ta, bool tb)
{
    if (!ta) return stk_matmul(dc, b, false, !tb);
    /* A shared b cannot stand in front of a batch. */
    bool shared = stk_value_shape(b).rank < stk_value_shape(a).rank;
    return shared ? transpose_last(stk_matmul(dc, b, false, !tb)) : stk_matmul(b, dc, tb, true);
}

/* All rows of all matrices below each other: [..., M, K] -> [... * M, K]. */
static stk_value flatten_rows(stk_value x)
{
    stk_shape shape = stk_value_shape(x);
    int64_t rows = stk_shape_product(shape, 0, shape.rank - 1);
    return stk_reshape(x, STK_SHAPE(rows, shape.dim[shape.rank - 1]));
}

/* op(a) op(b), a long sum over rows, which stays f32 for 16-bit a. */
static stk_value multiply_wide(stk_value a, stk_value b, bool ta, bool tb)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = ta;
    attrs.matmul.transpose_b = tb;
    attrs.matmul.wide = stk_value_dtype(a) == STK_BF16 || stk_value_dtype(a) == STK_F16;
    return stk_rule_add(STK_OP_matmul, &attrs, (stk_value[]){a, b}, 2);
}

static stk_value grad_b(stk_value a, stk_value b, stk_value dc, bool ta, bool tb)
{
    int rank = stk_value_shape(a).rank;
    stk_dtype dtype = stk_value_dtype(b);
    bool shared = stk_value_shape(b).rank < rank;
    if (shared && !ta && stk_shape_known(stk_value_shape(a))) {
        /* One large product sums over the batch by itself. */
        a = flatten_rows(a);
        dc = flatten_rows(dc);
        shared = false;
    }
    bool is_weight = rank == 2 || stk_value_shape(b).rank < rank;
    if (!is_weight) return tb ? stk_matmul(dc, a, true, ta) : stk_matmul(a, dc, !ta, false);
    stk_value db = tb ? multiply_wide(dc, a, true, ta) : multiply_wide(a, dc, !ta, false);
    return stk_cast_to(shared ? stk_reduce_sum(db, (1u << (rank - 2)) - 1u) : db, dtype);
}

static stk_status grad(const stk_grad_call *call)
{
    stk_value a = call->in[0], b = call->in[1], dc = call->grad_out[0];
    bool ta = call->attrs->matmul.transpose_a, tb = call->attrs->matmul.transpose_b;
    if (dc.id < 0) return STK_OK;
    if (call->need[0]) {
        call->grad_in[0] = grad_a(a, b, dc, ta, tb);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[0]));
    }
    if (call->need[1]) {
        call->grad_in[1] = grad_b(a, b, dc, ta, tb);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[1]));
    }
    if (call->n_in == 3 && call->need[2]) {
        stk_value wide = stk_cast_to(dc, stk_value_dtype(call->in[2]));
        call->grad_in[2] = stk_reduce_sum(wide, (1u << (stk_value_shape(dc).rank - 1)) - 1u);
        STK_RETURN_IF_ERROR(stk_rule_built(call->grad_in[2]));
    }
    return STK_OK;
}

static void cost(const stk_op_call *call, stk_cost *out)
{
    int64_t m, k;
    matrix_size(call->in[0].shape, call->attrs->matmul.transpose_a, &m, &k);
    out->flops = 2 * stk_rule_count(call->out[0].shape) * (k == STK_ANY ? 1 : (double)k);
    if (call->n_in == 3) out->flops += stk_rule_count(call->out[0].shape);
}

static void print(const stk_attrs *attrs, stk_text *out)
{
    if (attrs->matmul.transpose_a) stk_text_add(out, " transpose_a");
    if (attrs->matmul.transpose_b) stk_text_add(out, " transpose_b");
    if (attrs->matmul.wide) stk_text_add(out, " wide");
}

const stk_op_rule stk_rule_matmul = {
    .name = "matmul",
    .kind = STK_KIND_OPAQUE,
    .n_in = -1,
    .n_out = 1,
    .autocast = STK_AUTOCAST_NARROW,
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .print = print,
};

stk_value stk_matmul(stk_value a, stk_value b, bool transpose_a, bool transpose_b)
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = transpose_a;
    attrs.matmul.transpose_b = transpose_b;
    return stk_rule_add(STK_OP_matmul, &attrs, (stk_value[]){a, b}, 2);
}
