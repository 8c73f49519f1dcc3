/* What each op of a graph is in ONNX. See onnx/writer.h. */
#include <math.h>
#include <string.h>

#include "onnx/writer.h"

static const char *const unary_ops[STK_N_UNARY] = {
    [STK_UNARY_neg] = "Neg",    [STK_UNARY_abs] = "Abs",         [STK_UNARY_exp] = "Exp",
    [STK_UNARY_log] = "Log",    [STK_UNARY_sqrt] = "Sqrt",       [STK_UNARY_reciprocal] = "Reciprocal",
    [STK_UNARY_tanh] = "Tanh",  [STK_UNARY_sigmoid] = "Sigmoid", [STK_UNARY_relu] = "Relu",
    [STK_UNARY_sign] = "Sign",  [STK_UNARY_erf] = "Erf",         [STK_UNARY_sin] = "Sin",
    [STK_UNARY_cos] = "Cos",    [STK_UNARY_floor] = "Floor",     [STK_UNARY_ceil] = "Ceil",
    [STK_UNARY_round] = "Round"};
static const char *const binary_ops[STK_N_BINARY] = {
    [STK_BINARY_add] = "Add", [STK_BINARY_sub] = "Sub", [STK_BINARY_mul] = "Mul", [STK_BINARY_div] = "Div",
    [STK_BINARY_max] = "Max", [STK_BINARY_min] = "Min", [STK_BINARY_pow] = "Pow"};
static const char *const compare_ops[STK_N_COMPARE] = {
    [STK_COMPARE_equal] = "Equal",     [STK_COMPARE_not_equal] = "Equal",
    [STK_COMPARE_less] = "Less",       [STK_COMPARE_less_equal] = "LessOrEqual",
    [STK_COMPARE_greater] = "Greater", [STK_COMPARE_greater_equal] = "GreaterOrEqual"};
static const char *const reduce_ops[STK_N_REDUCE] = {[STK_REDUCE_SUM] = "ReduceSum",
                                                     [STK_REDUCE_MEAN] = "ReduceMean",
                                                     [STK_REDUCE_MAX] = "ReduceMax",
                                                     [STK_REDUCE_MIN] = "ReduceMin",
                                                     [STK_REDUCE_PROD] = "ReduceProd"};

/* --- element by element --- */

/* Channels first where some input is so, none is plain, and all can be. */
static bool wants_first(const stk_writer *w, const stk_node *node)
{
    int rank = stk_writer_shape_of(w, node->first_out).rank;
    bool some = false;
    for (int i = 0; i < node->n_in; i++) {
        const stk_form *form = &w->form[node->in[i]];
        int source_rank = stk_writer_shape_of(w, stk_writer_source_of(w, node->in[i])).rank;
        if (form->first && !form->plain) some = true;
        if (source_rank > 1 && source_rank != rank) return false;
    }
    return some && rank >= 3;
}

/* Inputs as operands, at least one of them of the whole shape. */
static void operands(stk_writer *w, const stk_node *node, bool first, const char **out)
{
    bool whole = false;
    for (int i = 0; i < node->n_in; i++) {
        const stk_node *maker = stk_writer_maker_of(w, node->in[i]);
        out[i] = stk_writer_operand(w, node->in[i], first);
        whole |= maker->op != STK_OP_broadcast && maker->op != STK_OP_constant;
    }
    if (!whole) out[0] = first ? stk_writer_first(w, node->in[0]) : stk_writer_plain(w, node->in[0]);
}

static void set(stk_writer *w, const stk_node *node, bool first, const char *name)
{
    if (first)
        stk_writer_set_first(w, node->first_out, name);
    else
        stk_writer_set_plain(w, node->first_out, name);
}

/* log(1 + x) where that sum loses nothing that matters, else 2 atanh(x / (x + 2)). */
static const char *write_log1p(stk_writer *w, const char *x, stk_dtype dtype)
{
    const char *half = stk_writer_put_number(w, dtype, 0.5), *two = stk_writer_put_number(w, dtype, 2);
    const char *far = STK_WRITER_PUT(w, "Greater", STK_WRITER_PUT(w, "Abs", x), half);
    const char *sum = STK_WRITER_PUT(w, "Log", STK_WRITER_PUT(w, "Add", x, stk_writer_put_number(w, dtype, 1)));
    const char *share = STK_WRITER_PUT(w, "Div", x, STK_WRITER_PUT(w, "Add", x, two));
    const char *near = STK_WRITER_PUT(w, "Mul", STK_WRITER_PUT(w, "Atanh", share), two);
    return STK_WRITER_PUT(w, "Where", far, sum, near);
}

/* tanh(x / 2) (exp(x) + 1) */
static const char *write_expm1(stk_writer *w, const char *x, stk_dtype dtype)
{
    const char *half = STK_WRITER_PUT(w, "Mul", x, stk_writer_put_number(w, dtype, 0.5));
    const char *sum = STK_WRITER_PUT(w, "Add", STK_WRITER_PUT(w, "Exp", x), stk_writer_put_number(w, dtype, 1));
    return STK_WRITER_PUT(w, "Mul", STK_WRITER_PUT(w, "Tanh", half), sum);
}

static void write_unary(stk_writer *w, const stk_node *node)
{
    int kind = node->attrs.element.kind;
    bool first = wants_first(w, node);
    const char *x = first ? stk_writer_first(w, node->in[0]) : stk_writer_plain(w, node->in[0]), *y = NULL;
    if (kind == STK_UNARY_square)
        y = STK_WRITER_PUT(w, "Mul", x, x);
    else if (kind == STK_UNARY_rsqrt)
        y = STK_WRITER_PUT(w, "Reciprocal", STK_WRITER_PUT(w, "Sqrt", x));
    else if (kind == STK_UNARY_log1p)
        y = write_log1p(w, x, stk_writer_dtype_of(w, node->first_out));
    else if (kind == STK_UNARY_expm1)
        y = write_expm1(w, x, stk_writer_dtype_of(w, node->first_out));
    else if (unary_ops[kind])
        y = stk_writer_put(w, unary_ops[kind], 1, &x);
    else
        stk_writer_refuse(w, node, stk_unary_name(kind));
    set(w, node, first, y);
}

/* A bias that is added to a convolution's only use becomes its third input. */
static bool join_bias(stk_writer *w, const stk_node *node)
{
    for (int i = 0; i < 2 && node->attrs.element.kind == STK_BINARY_add; i++) {
        stk_form *conv = &w->form[node->in[i]];
        int32_t bias = stk_writer_source_of(w, node->in[1 - i]);
        bool is_bias = stk_writer_maker_of(w, bias)->op == STK_OP_variable && stk_writer_shape_of(w, bias).rank == 1;
        if (!conv->maker || conv->n_uses != 1 || conv->plain || !is_bias) continue;
        if (stk_writer_shape_of(w, bias).dim[0] == 1) continue;
        conv->maker->input[2] = (char *)stk_writer_plain(w, bias);
        conv->maker->n_input = 3;
        stk_writer_set_first(w, node->first_out, conv->first);
        return true;
    }
    return false;
}

static void write_binary(stk_writer *w, const stk_node *node)
{
    const char *in[2];
    bool first = wants_first(w, node);
    if (join_bias(w, node)) return;
    operands(w, node, first, in);
    set(w, node, first, stk_writer_put(w, binary_ops[node->attrs.element.kind], 2, in));
}

static void write_compare(stk_writer *w, const stk_node *node)
{
    const char *in[2];
    bool first = wants_first(w, node);
    operands(w, node, first, in);
    const char *y = stk_writer_put(w, compare_ops[node->attrs.element.kind], 2, in);
    if (node->attrs.element.kind == STK_COMPARE_not_equal) y = STK_WRITER_PUT(w, "Not", y);
    set(w, node, first, y);
}

static void write_select(stk_writer *w, const stk_node *node)
{
    const char *in[3];
    bool first = wants_first(w, node);
    operands(w, node, first, in);
    set(w, node, first, stk_writer_put(w, "Where", 3, in));
}

static void write_cast(stk_writer *w, const stk_node *node)
{
    bool first = wants_first(w, node);
    const char *y =
        STK_WRITER_PUT(w, "Cast", first ? stk_writer_first(w, node->in[0]) : stk_writer_plain(w, node->in[0]));
    stk_writer_put_int(w, "to", stk_onnx_type(stk_writer_dtype_of(w, node->first_out)));
    set(w, node, first, y);
}

/* --- shapes --- */

static void write_reshape(stk_writer *w, const stk_node *node)
{
    stk_shape shape = stk_writer_shape_of(w, node->first_out);
    int n_open = 0;
    for (int i = 0; i < shape.rank; i++)
        n_open += shape.dim[i] < 0;
    if (n_open > 1) stk_writer_refuse(w, node, "with two open dimensions"); /* -1, as ONNX has it, may be one */
    stk_writer_set_plain(
        w, node->first_out,
        STK_WRITER_PUT(w, "Reshape", stk_writer_plain(w, node->in[0]), stk_writer_put_list(w, shape.dim, shape.rank)));
}

static void write_transpose(stk_writer *w, const stk_node *node)
{
    stk_writer_set_plain(w, node->first_out, stk_writer_turned(w, node->in[0], node->attrs.permutation));
}

static void write_slice(stk_writer *w, const stk_node *node)
{
    stk_shape shape = stk_writer_shape_of(w, node->in[0]);
    int64_t list[4][STK_MAX_RANK];
    int n = 0;
    for (int i = 0; i < shape.rank; i++) {
        int64_t start = node->attrs.slice.start[i], stop = node->attrs.slice.stop[i], step = node->attrs.slice.step[i];
        if (start == 0 && step == 1 && (stop < 0 || stop >= (shape.dim[i] >= 0 ? shape.dim[i] : INT32_MAX))) continue;
        list[0][n] = start;
        list[1][n] = stop < 0 ? INT64_MAX : stop;
        list[2][n] = i;
        list[3][n++] = step;
    }
    const char *x = stk_writer_plain(w, node->in[0]);
    if (n == 0)
        stk_writer_set_plain(w, node->first_out, x);
    else
        stk_writer_set_plain(w, node->first_out,
                             STK_WRITER_PUT(w, "Slice", x, stk_writer_put_list(w, list[0], n),
                                            stk_writer_put_list(w, list[1], n), stk_writer_put_list(w, list[2], n),
                                            stk_writer_put_list(w, list[3], n)));
}

static void write_pad(stk_writer *w, const stk_node *node)
{
    int rank = stk_writer_shape_of(w, node->in[0]).rank;
    int64_t pads[2 * STK_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        pads[i] = node->attrs.pad.low[i];
        pads[rank + i] = node->attrs.pad.high[i];
    }
    stk_writer_set_plain(
        w, node->first_out,
        STK_WRITER_PUT(w, "Pad", stk_writer_plain(w, node->in[0]), stk_writer_put_list(w, pads, 2 * rank),
                       stk_writer_put_number(w, stk_writer_dtype_of(w, node->in[0]), node->attrs.pad.value)));
}

static void write_concat(stk_writer *w, const stk_node *node)
{
    bool first = wants_first(w, node);
    int axis = node->attrs.concat.axis, rank = stk_writer_shape_of(w, node->first_out).rank;
    const char **in = stk_writer_alloc(w, (size_t)node->n_in * sizeof(*in));
    for (int i = 0; in && i < node->n_in; i++)
        in[i] = first ? stk_writer_first(w, node->in[i]) : stk_writer_plain(w, node->in[i]);
    if (!in) return;
    const char *y = stk_writer_put(w, "Concat", node->n_in, in);
    stk_writer_put_int(w, "axis", !first || axis == 0 ? axis : axis == rank - 1 ? 1 : axis + 1);
    set(w, node, first, y);
}

static void write_reduce(stk_writer *w, const stk_node *node)
{
    const stk_form *form = &w->form[node->in[0]];
    int rank = stk_writer_shape_of(w, node->in[0]).rank, n = 0, kind = node->attrs.reduce.kind;
    uint32_t axes = node->attrs.reduce.axes, spatial = ((1u << (rank - 1)) - 1u) & ~1u;
    int64_t list[STK_MAX_RANK];
    /* Channels first, and all between batch and channels goes, or all but the batch: what is left has one order. */
    bool first = rank >= 3 && form->first && !form->plain && (axes & spatial) == spatial;
    for (int i = 0; i < rank; i++)
        if (axes >> i & 1) list[n++] = !first || i == 0 ? i : i == rank - 1 ? 1 : i + 1;
    const char *x = first ? stk_writer_first(w, node->in[0]) : stk_writer_plain(w, node->in[0]), *y;
    if (kind == STK_REDUCE_SUM) {
        y = STK_WRITER_PUT(w, "ReduceSum", x, stk_writer_put_list(w, list, n));
    } else {
        y = stk_writer_put(w, reduce_ops[kind], 1, &x);
        stk_writer_put_ints(w, "axes", list, n);
    }
    stk_writer_put_int(w, "keepdims", 0);
    stk_writer_set_plain(w, node->first_out, y);
}

/* --- products, convolutions and pooling --- */

static const char *swap_last(stk_writer *w, int32_t value)
{
    int32_t order[STK_MAX_RANK];
    int rank = stk_writer_shape_of(w, value).rank;
    for (int i = 0; i < rank; i++)
        order[i] = i;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    return stk_writer_turned(w, value, order);
}

/* Linear layers keep their weight [units,C], as PyTorch writes them. */
static void write_matmul(stk_writer *w, const stk_node *node)
{
    int32_t a = node->in[0], b = node->in[1];
    bool flat = stk_writer_shape_of(w, a).rank == 2 && stk_writer_shape_of(w, b).rank == 2;
    bool turn_a = node->attrs.matmul.transpose_a, turn_b = node->attrs.matmul.transpose_b;
    if (flat && (turn_a || turn_b)) {
        stk_writer_set_plain(w, node->first_out,
                             STK_WRITER_PUT(w, "Gemm", stk_writer_plain(w, a), stk_writer_plain(w, b)));
        stk_writer_put_int(w, "transA", turn_a);
        stk_writer_put_int(w, "transB", turn_b);
        return;
    }
    const char *x = turn_a ? swap_last(w, a) : stk_writer_plain(w, a);
    stk_writer_set_plain(w, node->first_out,
                         STK_WRITER_PUT(w, "MatMul", x, turn_b ? swap_last(w, b) : stk_writer_plain(w, b)));
}

static void put_window(stk_writer *w, const stk_window *window, int n_dims, bool is_pool)
{
    int64_t kernel[3], stride[3], dilation[3], pads[6];
    for (int i = 0; i < n_dims; i++) {
        kernel[i] = window->kernel[i];
        stride[i] = window->stride[i];
        dilation[i] = window->dilation[i];
        pads[i] = window->pad_low[i];
        pads[n_dims + i] = window->pad_high[i];
    }
    stk_writer_put_ints(w, "kernel_shape", kernel, n_dims);
    stk_writer_put_ints(w, "strides", stride, n_dims);
    stk_writer_put_ints(w, "pads", pads, 2 * n_dims);
    if (is_pool) return;
    stk_writer_put_ints(w, "dilations", dilation, n_dims);
    stk_writer_put_int(w, "group", window->groups);
}

/* [O,KH,KW,C] -> [O,C,KH,KW] */
static const char *kernel_of(stk_writer *w, int32_t weight)
{
    static const int32_t image[] = {0, 3, 1, 2}, volume[] = {0, 4, 1, 2, 3};
    return stk_writer_turned(w, weight, stk_writer_shape_of(w, weight).rank == 4 ? image : volume);
}

static void write_conv(stk_writer *w, const stk_node *node)
{
    int n_dims = stk_writer_shape_of(w, node->in[0]).rank - 2;
    const char *y = STK_WRITER_PUT(w, "Conv", stk_writer_first(w, node->in[0]), kernel_of(w, node->in[1]));
    put_window(w, &node->attrs.window, n_dims, false);
    stk_writer_set_first(w, node->first_out, y);
    if (stk_writer_ok(w)) w->form[node->first_out].maker = w->node[w->n_nodes - 1];
}

/* As its gradient, the convolution's weight is [O,C,KH,KW] here, too. */
static void write_conv_transpose(stk_writer *w, const stk_node *node)
{
    const stk_window *window = &node->attrs.window;
    stk_shape x = stk_writer_shape_of(w, node->in[0]), y_shape = stk_writer_shape_of(w, node->first_out);
    int n_dims = x.rank - 2;
    int64_t more[3];
    for (int i = 0; i < n_dims; i++)
        more[i] = y_shape.dim[1 + i] - ((x.dim[1 + i] - 1) * window->stride[i] - window->pad_low[i] -
                                        window->pad_high[i] + window->dilation[i] * (window->kernel[i] - 1) + 1);
    const char *y = STK_WRITER_PUT(w, "ConvTranspose", stk_writer_first(w, node->in[0]), kernel_of(w, node->in[1]));
    put_window(w, window, n_dims, false);
    stk_writer_put_ints(w, "output_padding", more, n_dims);
    stk_writer_set_first(w, node->first_out, y);
}

static void write_pool(stk_writer *w, const stk_node *node)
{
    bool is_max = node->op == STK_OP_max_pool2d || node->op == STK_OP_max_pool3d;
    const char *x = stk_writer_first(w, node->in[0]), *y = stk_writer_put(w, is_max ? "MaxPool" : "AveragePool", 1, &x);
    put_window(w, &node->attrs.window, stk_writer_shape_of(w, node->in[0]).rank - 2, true);
    stk_writer_set_first(w, node->first_out, y);
}

/* --- normalisation --- */

static void write_batch_norm(stk_writer *w, const stk_node *node)
{
    int rank = stk_writer_shape_of(w, node->in[0]).rank;
    bool first = rank >= 3;
    const char *x = first ? stk_writer_first(w, node->in[0]) : stk_writer_plain(w, node->in[0]);
    const char *y =
        STK_WRITER_PUT(w, "BatchNormalization", x, stk_writer_plain(w, node->in[1]), stk_writer_plain(w, node->in[2]),
                       stk_writer_plain(w, node->in[3]), stk_writer_plain(w, node->in[4]));
    stk_writer_put_float(w, "epsilon", node->attrs.batch_norm.eps);
    if (node->attrs.batch_norm.relu) y = STK_WRITER_PUT(w, "Relu", y);
    set(w, node, first, y);
}

static void write_layer_norm(stk_writer *w, const stk_node *node)
{
    const char *y = STK_WRITER_PUT(w, "LayerNormalization", stk_writer_plain(w, node->in[0]),
                                   stk_writer_plain(w, node->in[1]), stk_writer_plain(w, node->in[2]));
    stk_writer_put_int(w, "axis", -1);
    stk_writer_put_float(w, "epsilon", node->attrs.layer_norm.eps);
    stk_writer_set_plain(w, node->first_out, y);
}

static const char *put_alike(stk_writer *w, int64_t n, float value)
{
    float *data = stk_writer_alloc(w, (size_t)n * sizeof(*data));
    for (int64_t i = 0; data && i < n; i++)
        data[i] = value;
    return data ? stk_writer_put_tensor(w, stk_writer_text(w, "alike%d", w->n_made++), STK_F32, (stk_shape){1, {n}},
                                        data)
                : NULL;
}

/* Opset 17 has no group norm: instance norm of [N,G,all others], then each channel's own scale and bias. */
static void write_group_norm(stk_writer *w, const stk_node *node)
{
    stk_shape shape = stk_writer_shape_of(w, node->in[0]);
    int rank = shape.rank, n_open = 0;
    bool first = rank >= 3;
    int64_t groups = node->attrs.group_norm.groups, n_channels = shape.dim[rank - 1];
    int64_t others = n_channels / groups, whole[STK_MAX_RANK] = {0, n_channels},
            column[STK_MAX_RANK] = {n_channels}; /* 0: as it is */
    for (int i = 1; i < rank - 1; i++) {
        whole[i + 1] = shape.dim[i];
        column[i] = 1;
        n_open += shape.dim[i] < 0;
        others *= shape.dim[i];
    }
    if (n_open > 1) stk_writer_refuse(w, node, "of two open sides");
    if (n_open) others = -1;
    const char *x = first ? stk_writer_first(w, node->in[0]) : stk_writer_plain(w, node->in[0]);
    x = STK_WRITER_PUT(w, "Reshape", x, stk_writer_put_list(w, (const int64_t[]){0, groups, others}, 3));
    x = STK_WRITER_PUT(w, "InstanceNormalization", x, put_alike(w, groups, 1), put_alike(w, groups, 0));
    stk_writer_put_float(w, "epsilon", node->attrs.group_norm.eps);
    x = STK_WRITER_PUT(w, "Reshape", x, stk_writer_put_list(w, whole, rank));
    const char *scale = stk_writer_plain(w, node->in[1]), *bias = stk_writer_plain(w, node->in[2]);
    if (first) scale = STK_WRITER_PUT(w, "Reshape", scale, stk_writer_put_list(w, column, rank - 1));
    if (first) bias = STK_WRITER_PUT(w, "Reshape", bias, stk_writer_put_list(w, column, rank - 1));
    set(w, node, first, STK_WRITER_PUT(w, "Add", STK_WRITER_PUT(w, "Mul", x, scale), bias));
}

static void write_softmax(stk_writer *w, const stk_node *node)
{
    const char *y = STK_WRITER_PUT(w, "Softmax", stk_writer_plain(w, node->in[0]));
    stk_writer_put_int(w, "axis", -1);
    stk_writer_set_plain(w, node->first_out, y);
}

/* --- attention: softmax(q k' scale) v, in its parts --- */

static const char *order_heads(stk_writer *w, int32_t value, const int32_t order[4])
{
    return stk_writer_turned(w, value, order);
}

/* [1,1,T,S], true where query t may see key s. */
static const char *put_causal(stk_writer *w, int64_t n_queries, int64_t n_keys)
{
    const char *name = stk_writer_text(w, "causal.%lldx%lld", (long long)n_queries, (long long)n_keys);
    if (!name) return NULL;
    for (int i = 0; i < w->n_initializers; i++)
        if (!strcmp(w->initializer[i]->name, name)) return name;
    uint8_t *data = stk_writer_alloc(w, (size_t)(n_queries * n_keys));
    if (!data) return NULL;
    for (int64_t t = 0; t < n_queries; t++)
        for (int64_t s = 0; s < n_keys; s++)
            data[t * n_keys + s] = s <= t;
    return stk_writer_put_tensor(w, name, STK_BOOL, (stk_shape){4, {1, 1, n_queries, n_keys}}, data);
}

static void write_attention(stk_writer *w, const stk_node *node)
{
    static const int32_t heads[] = {0, 2, 1, 3}, heads_turned[] = {0, 2, 3, 1};
    stk_shape q = stk_writer_shape_of(w, node->in[0]), k = stk_writer_shape_of(w, node->in[1]);
    double scale = node->attrs.attention.scale != 0 ? node->attrs.attention.scale : 1 / sqrt((double)q.dim[3]);
    if (q.dim[1] < 0 || k.dim[1] < 0) stk_writer_refuse(w, node, "of unknown length");
    bool has_mask = node->n_in == 4 || node->n_in == 6;
    const char *s =
        STK_WRITER_PUT(w, "MatMul", order_heads(w, node->in[0], heads), order_heads(w, node->in[1], heads_turned));
    s = STK_WRITER_PUT(w, "Mul", s, stk_writer_put_number(w, STK_F32, scale));
    bool is_causal = node->attrs.attention.causal;
    const char *never = is_causal || has_mask ? stk_writer_put_number(w, STK_F32, -INFINITY) : NULL;
    if (is_causal) s = STK_WRITER_PUT(w, "Where", put_causal(w, q.dim[1], k.dim[1]), s, never);
    if (has_mask) {
        int64_t row[] = {stk_writer_shape_of(w, node->in[3]).dim[0], 1, 1, k.dim[1]};
        const char *mask =
            STK_WRITER_PUT(w, "Reshape", stk_writer_plain(w, node->in[3]), stk_writer_put_list(w, row, 4));
        s = STK_WRITER_PUT(w, "Where", mask, s, never);
    }
    s = STK_WRITER_PUT(w, "Softmax", s);
    stk_writer_put_int(w, "axis", -1);
    const char *y = STK_WRITER_PUT(w, "MatMul", s, order_heads(w, node->in[2], heads));
    y = STK_WRITER_PUT(w, "Transpose", y);
    stk_writer_put_ints(w, "perm", (const int64_t[]){0, 2, 1, 3}, 4);
    stk_writer_set_plain(w, node->first_out, y);
}

/* --- the rest --- */

static void write_gather(stk_writer *w, const stk_node *node)
{
    const char *y = STK_WRITER_PUT(w, "Gather", stk_writer_plain(w, node->in[0]), stk_writer_plain(w, node->in[1]));
    stk_writer_put_int(w, "axis", node->attrs.axis);
    stk_writer_set_plain(w, node->first_out, y);
}

static void write_argmax(stk_writer *w, const stk_node *node)
{
    const char *y = STK_WRITER_PUT(w, "ArgMax", stk_writer_plain(w, node->in[0]));
    stk_writer_put_int(w, "axis", node->attrs.argmax.axis);
    stk_writer_put_int(w, "keepdims", 0);
    stk_writer_put_int(w, "select_last_index", node->attrs.argmax.last);
    y = STK_WRITER_PUT(w, "Cast", y);
    stk_writer_put_int(w, "to", stk_onnx_type(STK_I32));
    stk_writer_set_plain(w, node->first_out, y);
}

static void write_cumsum(stk_writer *w, const stk_node *node)
{
    const char *y = STK_WRITER_PUT(w, "CumSum", stk_writer_plain(w, node->in[0]),
                                   stk_writer_put_number(w, STK_I32, node->attrs.cumsum.axis));
    stk_writer_put_int(w, "exclusive", node->attrs.cumsum.exclusive);
    stk_writer_put_int(w, "reverse", node->attrs.cumsum.reverse);
    stk_writer_set_plain(w, node->first_out, y);
}

static void write_iota(stk_writer *w, const stk_node *node)
{
    stk_shape shape = stk_writer_shape_of(w, node->first_out);
    if (stk_shape_known(shape))
        stk_writer_set_plain(w, node->first_out, stk_writer_put_indices(w, node->attrs.dtype, shape, node->attrs.axis));
    else
        stk_writer_refuse(w, node, "over a batch that is open");
}

/* As it is: dropout in inference. */
static void write_nothing(stk_writer *w, const stk_node *node)
{
    w->form[node->first_out].plain = w->form[node->in[0]].plain;
    w->form[node->first_out].first = w->form[node->in[0]].first;
    if (!w->form[node->first_out].plain && !w->form[node->first_out].first)
        stk_writer_set_plain(w, node->first_out, stk_writer_plain(w, node->in[0]));
}

static const struct {
    stk_op op;
    void (*write)(stk_writer *w, const stk_node *node);
} export_list[] = {{STK_OP_unary, write_unary},
                   {STK_OP_binary, write_binary},
                   {STK_OP_compare, write_compare},
                   {STK_OP_select, write_select},
                   {STK_OP_cast, write_cast},
                   {STK_OP_reshape, write_reshape},
                   {STK_OP_transpose, write_transpose},
                   {STK_OP_slice, write_slice},
                   {STK_OP_pad, write_pad},
                   {STK_OP_concat, write_concat},
                   {STK_OP_reduce, write_reduce},
                   {STK_OP_matmul, write_matmul},
                   {STK_OP_conv2d, write_conv},
                   {STK_OP_conv3d, write_conv},
                   {STK_OP_conv2d_grad_data, write_conv_transpose},
                   {STK_OP_conv3d_grad_data, write_conv_transpose},
                   {STK_OP_max_pool2d, write_pool},
                   {STK_OP_max_pool3d, write_pool},
                   {STK_OP_avg_pool2d, write_pool},
                   {STK_OP_avg_pool3d, write_pool},
                   {STK_OP_batch_norm, write_batch_norm},
                   {STK_OP_layer_norm, write_layer_norm},
                   {STK_OP_group_norm, write_group_norm},
                   {STK_OP_softmax, write_softmax},
                   {STK_OP_attention, write_attention},
                   {STK_OP_gather, write_gather},
                   {STK_OP_argmax, write_argmax},
                   {STK_OP_iota, write_iota},
                   {STK_OP_cumsum, write_cumsum},
                   {STK_OP_dropout, write_nothing}};

void stk_writer_put_node(stk_writer *w, const stk_node *node)
{
    /* Leaves and broadcasts are written where they are used. */
    if (node->op == STK_OP_input || node->op == STK_OP_variable || node->op == STK_OP_constant ||
        node->op == STK_OP_broadcast)
        return;
    for (size_t i = 0; i < sizeof(export_list) / sizeof(export_list[0]); i++)
        if (export_list[i].op == node->op) {
            export_list[i].write(w, node);
            return;
        }
    stk_writer_refuse(w, node, "");
}
