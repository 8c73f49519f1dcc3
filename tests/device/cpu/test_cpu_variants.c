/* Calls large enough to be shared between threads, at odd sizes: every instruction set and 1, 2 and 3 threads agree
 * with the reference device, and each gives the same bits again.
 */
#include "device/cpu/compare.h"

static void matmuls(void **state)
{
    static const int sizes[][3] = {{67, 45, 530}, {131, 130, 77}, {8, 700, 130}, {1, 333, 900}, {14, 5, 4000}};
    (void)state;
    for (int i = 0; i < 5 * 4; i++) {
        int m = sizes[i / 4][0], n = sizes[i / 4][1], k = sizes[i / 4][2], ta = i & 1, tb = i >> 1 & 1;
        call c = compare_make(STK_OP_matmul);
        c.attrs.matmul.transpose_a = ta;
        c.attrs.matmul.transpose_b = tb;
        call_add(&c, STK_F32, ta ? STK_SHAPE(k, m) : STK_SHAPE(m, k), -1, 1);
        call_add(&c, STK_F32, tb ? STK_SHAPE(n, k) : STK_SHAPE(k, n), -1, 1);
        call_add_out(&c, STK_F32, STK_SHAPE(m, n));
        compare_call(&c, 1e-5);
    }
}

/* Two threads multiply a half of k each: halves of the result would be too small. */
static void matmuls_in_slices(void **state)
{
    (void)state;
    call c = compare_make(STK_OP_matmul);
    c.attrs.matmul.transpose_a = 1;
    call_add(&c, STK_F32, STK_SHAPE(515, 530), -1, 1);
    call_add(&c, STK_F32, STK_SHAPE(515, 531), -1, 1);
    call_add_out(&c, STK_F32, STK_SHAPE(530, 531));
    compare_call(&c, 2e-5);
}

/* In grids of parts, with the last ones smaller; gradients of weights stay in f32. */
static void matmuls_in_16_bits(void **state)
{
    static const int sizes[][3] = {{700, 530, 77}, {40, 610, 300}, {33, 17, 2000}, {900, 400, 530}};
    (void)state;
    for (int i = 0; i < 4 * 8; i++) {
        int m = sizes[i / 8][0], n = sizes[i / 8][1], k = sizes[i / 8][2], ta = i & 1, tb = i >> 1 & 1,
            wide = i >> 2 & 1;
        call c = compare_make(STK_OP_matmul);
        c.attrs.matmul.transpose_a = ta;
        c.attrs.matmul.transpose_b = tb;
        c.attrs.matmul.wide = wide;
        call_add(&c, STK_BF16, ta ? STK_SHAPE(k, m) : STK_SHAPE(m, k), -1, 1);
        call_add(&c, STK_BF16, tb ? STK_SHAPE(n, k) : STK_SHAPE(k, n), -1, 1);
        call_add_out(&c, wide ? STK_F32 : STK_BF16, STK_SHAPE(m, n));
        compare_call(&c, wide ? 1e-5 : 0.004);
    }
}

/* So does the gradient of a loss whose rows are few and whose classes are many. */
static void losses_in_slices(void **state)
{
    enum { ROWS = 512, WIDTH = 560, CLASSES = 523 };
    (void)state;
    call c = compare_make(STK_OP_linear_cross_entropy_grad);
    c.attrs.linear_cross_entropy.ignore_index = -100;
    call_add(&c, STK_F32, STK_SHAPE(ROWS, WIDTH), -1, 1);
    call_add(&c, STK_F32, STK_SHAPE(CLASSES, WIDTH), -0.1, 0.1);
    call_add(&c, STK_I32, STK_SHAPE(ROWS), 0, CLASSES);
    call_add(&c, STK_F32, STK_SHAPE(ROWS), 0, 1);
    call_add_out(&c, STK_F32, STK_SHAPE(ROWS, WIDTH));
    call_add_out(&c, STK_F32, STK_SHAPE(CLASSES, WIDTH));
    call_add_out(&c, STK_F32, STK_SHAPE(ROWS));
    compare_call(&c, 5e-5);
}

/* Rows in two chunks, the second smaller; the gradients of logits are rounded, which is what dx of a
 * few classes' weight is off by (as much with f32 sums of it); the weight's gradient is f32. */
static void losses_in_16_bits(void **state)
{
    enum { ROWS = 600, WIDTH = 40, CLASSES = 523 };
    (void)state;
    call c = compare_make(STK_OP_linear_cross_entropy_grad);
    c.attrs.linear_cross_entropy.ignore_index = -100;
    call_add(&c, STK_BF16, STK_SHAPE(ROWS, WIDTH), -1, 1);
    call_add(&c, STK_BF16, STK_SHAPE(CLASSES, WIDTH), -1, 1);
    call_add(&c, STK_I32, STK_SHAPE(ROWS), 0, CLASSES);
    call_add(&c, STK_F32, STK_SHAPE(ROWS), 0, 1);
    call_add_out(&c, STK_BF16, STK_SHAPE(ROWS, WIDTH));
    call_add_out(&c, STK_F32, STK_SHAPE(CLASSES, WIDTH));
    call_add_out(&c, STK_F32, STK_SHAPE(ROWS));
    compare_call(&c, 0.04);
}

static void batches_of_matmuls(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        int n_batch = i & 1 ? 17 : 2;
        stk_dtype dtype = i < 2 ? STK_F32 : STK_BF16;
        call c = compare_make(STK_OP_matmul);
        c.attrs.matmul.transpose_b = 1;
        call_add(&c, dtype, STK_SHAPE(n_batch, 65, 70), -1, 1);
        call_add(&c, dtype, STK_SHAPE(n_batch, 60, 70), -1, 1);
        call_add_out(&c, dtype, STK_SHAPE(n_batch, 65, 60));
        compare_call(&c, dtype == STK_F32 ? 1e-5 : 0.004);
    }
}

typedef struct heads {
    int n, t, s, h, d;
    bool causal, has_mask, drops;
} heads;

static void add_rest(call *c, const heads *z)
{
    if (z->has_mask) call_add(c, STK_BOOL, STK_SHAPE(z->n, z->s), 0, 1);
    for (int i = 0; i < 2 && z->drops; i++)
        call_add(c, STK_I64, (stk_shape){.rank = 0}, 5, 6);
}

static call make_attention(stk_op op, const heads *z)
{
    call c = compare_make(op);
    c.attrs.attention.scale = 1.0 / z->d;
    c.attrs.attention.causal = z->causal;
    c.attrs.attention.rate = z->drops ? 0.3 : 0;
    return c;
}

/* Odd sizes, several blocks of keys and of queries, and what leaves weights out. Weights are rounded to 16 bits before
 * the second product. */
static void compare_attention(void)
{
    static const heads sizes[] = {
        {2, 100, 300, 3, 64, false, true, false}, {1, 333, 333, 2, 40, true, false, true},
        {3, 7, 259, 2, 33, false, true, true},    {2, 131, 131, 1, 96, true, false, true},
        {1, 150, 60, 2, 16, true, false, false},  {2, 128, 128, 2, 64, false, false, true},
    };
    for (int i = 0; i < 6; i++) {
        const heads *z = &sizes[i];
        stk_shape of_t = STK_SHAPE(z->n, z->t, z->h, z->d), of_s = STK_SHAPE(z->n, z->s, z->h, z->d);
        stk_shape of_rows = STK_SHAPE(z->n, z->h, z->t);
        call c = make_attention(STK_OP_attention, z);
        for (int k = 0; k < 3; k++)
            call_add(&c, STK_BF16, k ? of_s : of_t, 0, 0);
        add_rest(&c, z);
        call_add_out(&c, STK_BF16, of_t);
        call_add_out(&c, STK_F32, of_rows);
        compare_call(&c, 0.006);
        c = make_attention(STK_OP_attention_grad, z);
        for (int k = 0; k < 5; k++)
            call_add(&c, STK_BF16, k == 2 || k == 3 ? of_s : of_t, 0, 0);
        call_add(&c, STK_F32, of_rows, 5, 6);
        add_rest(&c, z);
        call_add_out(&c, STK_BF16, of_t);
        call_add_out(&c, STK_BF16, of_s);
        call_add_out(&c, STK_BF16, of_s);
        compare_call(&c, 0.02);
    }
}

static void attention_in_16_bits(void **state)
{
    (void)state;
    compare_attention();
}

/* On a processor with tiles the above has them; here all have their model, or nobody has them. */
static void attention_with_and_without_tiles(void **state)
{
    (void)state;
    setenv("STOKER_AMX", "model", 1);
    compare_attention();
    setenv("STOKER_AMX", "off", 1);
    compare_attention();
    unsetenv("STOKER_AMX");
}

static void reductions(void **state)
{
    (void)state;
    for (uint32_t axes = 1; axes < 8; axes++) {
        for (int kind = 0; kind < STK_N_REDUCE; kind++) {
            call c = compare_make(STK_OP_reduce);
            static const int64_t dims[] = {37, 53, 41};
            stk_shape y = {.rank = 0};
            for (int i = 0; i < 3; i++)
                if (!(axes >> i & 1)) y.dim[y.rank++] = dims[i];
            c.attrs.reduce.axes = axes;
            c.attrs.reduce.kind = kind;
            call_add(&c, STK_F32, STK_SHAPE(37, 53, 41), -1, 2);
            call_add_out(&c, STK_F32, y);
            compare_call(&c, 2e-6);
        }
    }
}

static void batch_norms(void **state)
{
    static const int channels[] = {3, 70, 129};
    (void)state;
    for (int i = 0; i < 6; i++) {
        int n = channels[i / 2], rows = 60000 / n + 1;
        call c = compare_make(STK_OP_batch_norm);
        c.attrs.batch_norm.eps = 1e-5;
        c.attrs.batch_norm.momentum = 0.1;
        c.attrs.batch_norm.unbiased = 1;
        c.attrs.batch_norm.relu = i % 2;
        /* A mean far from 0: naive sums of squares would lose all digits. */
        call_add(&c, STK_F32, STK_SHAPE(rows, n), 99, 101);
        for (int k = 0; k < 4; k++)
            call_add(&c, STK_F32, STK_SHAPE(n), 0.5, 1.5);
        call_add_out(&c, STK_F32, STK_SHAPE(rows, n));
        for (int k = 0; k < 4; k++)
            call_add_out(&c, STK_F32, STK_SHAPE(n));
        compare_call(&c, 1e-5);
        c = compare_make(STK_OP_batch_norm_grad);
        /* With ReLU elements at the kink would differ, so that the result is kept well above it. */
        c.attrs.batch_norm.relu = i % 2;
        call_add(&c, STK_F32, STK_SHAPE(rows, n), -1, 1);
        call_add(&c, STK_F32, STK_SHAPE(rows, n), -1, 1);
        for (int k = 0; k < 4; k++)
            call_add(&c, STK_F32, STK_SHAPE(n), k == 1 ? 5 : 0.5, k == 1 ? 6 : 1);
        call_add_out(&c, STK_F32, STK_SHAPE(rows, n));
        call_add_out(&c, STK_F32, STK_SHAPE(n));
        call_add_out(&c, STK_F32, STK_SHAPE(n));
        compare_call(&c, 1e-5);
    }
}

/* Results that are written past the caches, in tiles of channels of which the last is smaller; or not, where rows are
 * no whole lines. */
static void large_batch_norms(void **state)
{
    static const int channels[] = {592, 96, 601};
    (void)state;
    for (int i = 0; i < 3 * 2 * 2; i++) {
        int n = channels[i / 4], has_residual = i & 1;
        stk_dtype dtype = i >> 1 & 1 ? STK_BF16 : STK_F32;
        int rows = (int)((9 << 20) / ((size_t)n * stk_dtype_bytes(dtype)));
        call c = compare_make(STK_OP_batch_norm_apply);
        c.attrs.batch_norm.eps = 1e-5;
        c.attrs.batch_norm.relu = 1;
        call_add(&c, dtype, STK_SHAPE(rows, n), -1, 1);
        for (int k = 0; k < 4; k++)
            call_add(&c, STK_F32, STK_SHAPE(n), 0.5, 1.5);
        if (has_residual) call_add(&c, dtype, STK_SHAPE(rows, n), -1, 1);
        call_add_out(&c, dtype, STK_SHAPE(rows, n));
        compare_call(&c, dtype == STK_BF16 ? 0.01 : 1e-5);
    }
}

/* Whole lines and what is left of one, more channels than are summed up at once, and rows that are no whole group. */
static void batch_norms_of_bf16(void **state)
{
    static const int channels[] = {70, 599};
    (void)state;
    for (int i = 0; i < 4; i++) {
        int n = channels[i / 2], rows = 60000 / n + 2;
        call c = compare_make(STK_OP_batch_norm);
        c.attrs.batch_norm.eps = 1e-5;
        c.attrs.batch_norm.momentum = 0.1;
        c.attrs.batch_norm.unbiased = 1;
        c.attrs.batch_norm.relu = i % 2;
        call_add(&c, STK_BF16, STK_SHAPE(rows, n), 0, 0);
        for (int k = 0; k < 4; k++)
            call_add(&c, STK_F32, STK_SHAPE(n), 0.5, 1.5);
        call_add_out(&c, STK_BF16, STK_SHAPE(rows, n));
        for (int k = 0; k < 4; k++)
            call_add_out(&c, STK_F32, STK_SHAPE(n));
        compare_call(&c, 0.004);
        c = compare_make(STK_OP_batch_norm_grad);
        c.attrs.batch_norm.relu = i % 2;
        call_add(&c, STK_BF16, STK_SHAPE(rows, n), 0, 0);
        call_add(&c, STK_BF16, STK_SHAPE(rows, n), 0, 0);
        for (int k = 0; k < 4; k++)
            call_add(&c, STK_F32, STK_SHAPE(n), k == 1 ? -0.1 : 0.5, k == 1 ? 0.1 : 1);
        call_add_out(&c, STK_BF16, STK_SHAPE(rows, n));
        call_add_out(&c, STK_F32, STK_SHAPE(n));
        call_add_out(&c, STK_F32, STK_SHAPE(n));
        compare_call(&c, 0.004);
    }
}

/* Less than a vector, whole ones with a rest, and a row of more than is summed up at once; rows that are no whole
 * group.
 */
static void layer_norms_of_bf16(void **state)
{
    static const int widths[] = {5, 70, 1100};
    (void)state;
    for (int i = 0; i < 3; i++) {
        int n = widths[i], rows = 75;
        call c = compare_make(STK_OP_layer_norm);
        c.attrs.layer_norm.eps = 1e-5;
        call_add(&c, STK_BF16, STK_SHAPE(rows, n), 2, 4);
        for (int k = 0; k < 2; k++)
            call_add(&c, STK_F32, STK_SHAPE(n), 0.5, 1.5);
        call_add_out(&c, STK_BF16, STK_SHAPE(rows, n));
        call_add_out(&c, STK_F32, STK_SHAPE(rows));
        call_add_out(&c, STK_F32, STK_SHAPE(rows));
        compare_call(&c, 0.008);
        c = compare_make(STK_OP_layer_norm_grad);
        call_add(&c, STK_BF16, STK_SHAPE(rows, n), -1, 1);
        call_add(&c, STK_BF16, STK_SHAPE(rows, n), -1, 1);
        call_add(&c, STK_F32, STK_SHAPE(n), 0.5, 1.5);
        call_add(&c, STK_F32, STK_SHAPE(rows), -0.1, 0.1);
        call_add(&c, STK_F32, STK_SHAPE(rows), 0.5, 1.5);
        call_add_out(&c, STK_BF16, STK_SHAPE(rows, n));
        call_add_out(&c, STK_F32, STK_SHAPE(n));
        call_add_out(&c, STK_F32, STK_SHAPE(n));
        compare_call(&c, 0.008);
    }
}

static void convolutions_and_pools(void **state)
{
    (void)state;
    stk_window w = stk_window_make(3, 3);
    w.stride[0] = w.stride[1] = 2;
    w.pad_low[0] = w.pad_high[1] = 1;
    stk_shape x = STK_SHAPE(9, 21, 20, 24), y = STK_SHAPE(9, 10, 10, 40), weight = STK_SHAPE(40, 3, 3, 24),
              pooled = STK_SHAPE(9, 10, 10, 24);
    static const stk_op ops[] = {STK_OP_conv2d,     STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight,
                                 STK_OP_max_pool2d, STK_OP_avg_pool2d,       STK_OP_avg_pool2d_grad};
    for (int i = 0; i < 6; i++) {
        call c = compare_make(ops[i]);
        c.attrs.window = w;
        bool is_conv = i < 3;
        /* Inputs and the output, in the order of the op's signature. */
        if (ops[i] == STK_OP_conv2d_grad_data || ops[i] == STK_OP_avg_pool2d_grad)
            call_add(&c, STK_F32, is_conv ? y : pooled, -1, 1);
        else
            call_add(&c, STK_F32, x, -1, 1);
        if (is_conv) call_add(&c, STK_F32, ops[i] == STK_OP_conv2d_grad_weight ? y : weight, -1, 1);
        bool to_x = i == 1 || i == 5;
        call_add_out(&c, STK_F32, to_x ? x : i == 2 ? weight : i == 0 ? y : pooled);
        c.attrs.shape = to_x || i == 2 ? c.out_desc[0].shape : (stk_shape){.rank = 0};
        compare_call(&c, 1e-5);
    }
}

static void rows_and_updates(void **state)
{
    (void)state;
    call c = compare_make(STK_OP_softmax);
    call_add(&c, STK_F32, STK_SHAPE(301, 333), -20, 20);
    call_add_out(&c, STK_F32, STK_SHAPE(301, 333));
    compare_call(&c, 2e-6);
    c = compare_make(STK_OP_cross_entropy_grad);
    call_add(&c, STK_F32, STK_SHAPE(301, 333), -20, 20);
    call_add(&c, STK_I32, STK_SHAPE(301), 0, 333);
    call_add(&c, STK_F32, STK_SHAPE(301), -1, 1);
    call_add_out(&c, STK_F32, STK_SHAPE(301, 333));
    compare_call(&c, 1e-5);
    c = compare_make(STK_OP_adam_update);
    c.attrs.adam.beta1 = 0.9;
    c.attrs.adam.beta2 = 0.999;
    c.attrs.adam.eps = 1e-8;
    for (int i = 0; i < 4; i++)
        call_add(&c, STK_F32, STK_SHAPE(70001), i == 2 ? 0.001 : -1, 1);
    call_add(&c, STK_F32, (stk_shape){.rank = 0}, 0.01, 0.02);
    call_add(&c, STK_I64, (stk_shape){.rank = 0}, 3, 5);
    for (int i = 0; i < 3; i++)
        call_add_out(&c, STK_F32, STK_SHAPE(70001));
    compare_call(&c, 2e-6);
}

static void moves(void **state)
{
    (void)state;
    static const int32_t permutations[][4] = {{3, 2, 1, 0}, {0, 3, 1, 2}, {1, 0, 2, 3}, {2, 3, 0, 1}};
    static const int64_t dims[] = {11, 31, 23, 17};
    for (int i = 0; i < 4; i++) {
        call c = compare_make(STK_OP_transpose);
        stk_shape y = {.rank = 4};
        for (int k = 0; k < 4; k++) {
            c.attrs.permutation[k] = permutations[i][k];
            y.dim[k] = dims[permutations[i][k]];
        }
        call_add(&c, STK_F32, STK_SHAPE(11, 31, 23, 17), -1, 1);
        call_add_out(&c, STK_F32, y);
        compare_call(&c, 0);
    }
}

/* exp and its kin against libm in double: a few units in the last place over their whole range. */
static void functions(void **state)
{
    (void)state;
    for (int kind = 0; kind < STK_N_UNARY; kind++) {
        call c = compare_make(STK_OP_unary);
        bool positive = kind == STK_UNARY_log || kind == STK_UNARY_sqrt || kind == STK_UNARY_rsqrt;
        c.attrs.element.kind = kind;
        call_add(&c, STK_F32, STK_SHAPE(50001), positive ? 1e-3 : kind == STK_UNARY_log1p ? -0.999 : -80, 80);
        call_add_out(&c, STK_F32, STK_SHAPE(50001));
        stk_device *reference = NULL;
        void *want[CALL_MOST], *got[CALL_MOST];
        assert_int_equal(stk_device_open("reference", NULL, &reference), STK_OK);
        assert_int_equal(call_run(&c, reference, -1, want, NULL), STK_OK);
        for (int i = 0; i < 3; i++) {
            stk_device *device = call_open(compare_isas[i], 2);
            assert_int_equal(call_run(&c, device, -1, got, NULL), STK_OK);
            for (int64_t k = 0; k < 50001; k++) {
                float x = ((float *)got[0])[k], y = ((float *)want[0])[k];
                if (fabsf(x - y) <= 4e-7f * fabsf(y)) continue;
                fail_msg("%s(%.9g) on %s is %.9g instead of %.9g", stk_unary_name(kind), (double)((float *)c.in[0])[k],
                         compare_isas[i], (double)x, (double)y);
            }
            call_free_outputs(got);
            stk_device_close(device);
        }
        call_free_outputs(want);
        call_free(&c);
        stk_device_close(reference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmuls),
        cmocka_unit_test(matmuls_in_slices),
        cmocka_unit_test(matmuls_in_16_bits),
        cmocka_unit_test(losses_in_slices),
        cmocka_unit_test(losses_in_16_bits),
        cmocka_unit_test(batches_of_matmuls),
        cmocka_unit_test(attention_in_16_bits),
        cmocka_unit_test(attention_with_and_without_tiles),
        cmocka_unit_test(reductions),
        cmocka_unit_test(batch_norms),
        cmocka_unit_test(large_batch_norms),
        cmocka_unit_test(batch_norms_of_bf16),
        cmocka_unit_test(layer_norms_of_bf16),
        cmocka_unit_test(convolutions_and_pools),
        cmocka_unit_test(rows_and_updates),
        cmocka_unit_test(moves),
        cmocka_unit_test(functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
