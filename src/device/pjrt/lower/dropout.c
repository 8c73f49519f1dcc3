/* Dropout, with the bits of every other device (graph/dropout.h): Philox 4x32-10 on i64, each holding 32 bits. */
#include "graph/dropout.h"

#include "device/pjrt/lowering.h"

/* [rows, blocks] i64 of one word each, or scalars. */
typedef struct words {
    pjrt_value v[4];
} words;

static pjrt_value make_number(pjrt_module *m, stk_shape shape, int64_t x)
{
    return pjrt_integer(m, stk_desc_make(STK_I64, shape), x);
}

static pjrt_value take_low(pjrt_module *m, pjrt_value x)
{
    return pjrt_binary(m, "and", x, make_number(m, x.desc.shape, 0xffffffff));
}

static pjrt_value take_high(pjrt_module *m, pjrt_value x)
{
    return pjrt_binary(m, "shift_right_logical", x, make_number(m, x.desc.shape, 32));
}

static pjrt_value spread(pjrt_module *m, pjrt_value scalar, stk_shape shape)
{
    static const int64_t no_axes[1];
    return pjrt_broadcast(m, scalar, no_axes, shape);
}

/* base/rng.h: counter words 0 and 1 are the block's number, 2 and 3 the sample's. key: i64 []. */
static words make_philox(pjrt_module *m, pjrt_value key, pjrt_value sample, pjrt_value block)
{
    stk_shape shape = block.desc.shape;
    stk_tensor_desc scalar = {.dtype = STK_I64};
    words c = {{take_low(m, block), take_high(m, block), take_low(m, sample), take_high(m, sample)}};
    pjrt_value k0 = take_low(m, key), k1 = take_high(m, key);
    pjrt_value m0 = make_number(m, shape, 0xD2511F53), m1 = make_number(m, shape, 0xCD9E8D57);
    for (int i = 0; i < 10; i++) {
        pjrt_value p0 = pjrt_binary(m, "multiply", m0, c.v[0]), p1 = pjrt_binary(m, "multiply", m1, c.v[2]);
        pjrt_value n0 = pjrt_binary(m, "xor", pjrt_binary(m, "xor", take_high(m, p1), c.v[1]), spread(m, k0, shape));
        pjrt_value n2 = pjrt_binary(m, "xor", pjrt_binary(m, "xor", take_high(m, p0), c.v[3]), spread(m, k1, shape));
        c = (words){{n0, take_low(m, p1), n2, take_low(m, p0)}};
        k0 = take_low(m, pjrt_binary(m, "add", k0, pjrt_integer(m, scalar, 0x9E3779B9)));
        k1 = take_low(m, pjrt_binary(m, "add", k1, pjrt_integer(m, scalar, 0xBB67AE85)));
    }
    return c;
}

/* 16 bits for each element: [rows, blocks, 8]. */
static pjrt_value make_draws(pjrt_module *m, words c)
{
    stk_shape shape = c.v[0].desc.shape, part = {.rank = 3, .dim = {shape.dim[0], shape.dim[1], 1}}, all = part;
    char one[PJRT_TYPE_TEXT], whole[PJRT_TYPE_TEXT];
    pjrt_value half[STK_DROPOUT_BLOCK];
    for (int i = 0; i < STK_DROPOUT_BLOCK; i++) {
        pjrt_value x = c.v[i / 2];
        if (i % 2) x = pjrt_binary(m, "shift_right_logical", x, make_number(m, shape, 16));
        half[i] = pjrt_reshape(m, pjrt_binary(m, "and", x, make_number(m, shape, 0xffff)), part);
    }
    all.dim[2] = STK_DROPOUT_BLOCK;
    pjrt_value y = pjrt_new_value(m, stk_desc_make(STK_I64, all));
    stk_text_add(&m->body, "%%%d = stablehlo.concatenate ", y.id);
    for (int i = 0; i < STK_DROPOUT_BLOCK; i++)
        stk_text_add(&m->body, "%s%%%d", i ? ", " : "", half[i].id);
    stk_text_add(&m->body, ", dim = 2 : (");
    for (int i = 0; i < STK_DROPOUT_BLOCK; i++)
        stk_text_add(&m->body, "%s%s", i ? ", " : "", pjrt_type_text(half[i].desc, one));
    stk_text_add(&m->body, ") -> %s\n", pjrt_type_text(y.desc, whole));
    return y;
}

stk_status pjrt_lower_dropout(pjrt_module *m, const stk_op_call *call, int n_in, const pjrt_value *in, pjrt_value *out)
{
    static const int64_t zero[2], one[2] = {1, 1};
    stk_shape x = in[0].desc.shape;
    int64_t n_rows = x.rank ? x.dim[0] : 1, n_columns = x.rank ? stk_shape_product(x, 1, x.rank) : 1;
    int64_t n_blocks = (n_columns + STK_DROPOUT_BLOCK - 1) / STK_DROPOUT_BLOCK;
    stk_shape grid = {.rank = 2, .dim = {n_rows, n_blocks}}, flat = {.rank = 2, .dim = {n_rows, n_columns}};
    stk_shape padded = {.rank = 2, .dim = {n_rows, n_blocks * STK_DROPOUT_BLOCK}};
    double rate = call->attrs->dropout.rate;
    (void)n_in;
    if (stk_shape_count(x) == 0) {
        out[0] = in[0];
        return STK_OK;
    }
    uint64_t stream = stk_mix64((uint64_t)call->attrs->dropout.stream);
    pjrt_value key = pjrt_binary(m, "xor", in[1], pjrt_integer(m, in[1].desc, (int64_t)stream));
    pjrt_value row = pjrt_iota(m, stk_desc_make(STK_I64, grid), 0),
               block = pjrt_iota(m, stk_desc_make(STK_I64, grid), 1);
    pjrt_value sample = pjrt_binary(m, "add", row, spread(m, in[2], grid));
    pjrt_value draws = pjrt_reshape(m, make_draws(m, make_philox(m, key, sample, block)), padded);
    draws = pjrt_slice(m, draws, zero, flat.dim, one);
    pjrt_value keeps = pjrt_compare(m, "GE", draws, make_number(m, flat, stk_dropout_limit(rate)));
    keeps = pjrt_reshape(m, keeps, x);
    stk_tensor_desc wide = {in[0].desc.dtype == STK_F64 ? STK_F64 : STK_F32, x};
    pjrt_value scaled =
        pjrt_binary(m, "multiply", pjrt_convert(m, in[0], wide.dtype), pjrt_constant(m, wide, 1 / (1 - rate)));
    out[0] = pjrt_convert(m, pjrt_select(m, keeps, scaled, pjrt_constant(m, wide, 0)), in[0].desc.dtype);
    return STK_OK;
}
