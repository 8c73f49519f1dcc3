/* Tables of families (tuned.h): which is in use, what rows mean, that they name ways which exist, and that a call gets
 * the way of its row, with the same values. */
#include "device/cpu/tuned/tuned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "device/cpu/amx/amx.h"
#include "device/cpu/call.h"
#include "device/cpu/conv/conv2d_shape.h"
#include "device/cpu/matmul/matmul_impls.h"

static stk_isa isa_of(const stk_device *device)
{
    return ((const stk_cpu_device *)device)->isa;
}

/* [m,k] by [k,n] in bf16, as a call without data. */
typedef struct product {
    stk_attrs attrs;
    stk_tensor_desc in[2], out;
    stk_op_call call;
} product;

static void make_product(product *p, stk_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    *p = (product){.attrs = stk_attrs_zero()};
    p->in[0] = stk_desc_make(dtype, STK_SHAPE(m, k));
    p->in[1] = stk_desc_make(dtype, STK_SHAPE(k, n));
    p->out = stk_desc_make(dtype, STK_SHAPE(m, n));
    p->call = (stk_op_call){STK_OP_matmul, &p->attrs, 2, 1, p->in, &p->out};
}

static void sizes_are_those_of_the_call(void **state)
{
    (void)state;
    int64_t z[STK_TUNED_N_SIZES];
    product p;
    make_product(&p, STK_F32, 5, 48, 7);
    assert_true(stk_tuned_sizes(&p.call, z));
    assert_int_equal(z[STK_TUNED_m], 5);
    assert_int_equal(z[STK_TUNED_n], 48);
    assert_int_equal(z[STK_TUNED_k], 7);
    assert_int_equal(z[STK_TUNED_batches], 1);
    assert_int_equal(z[STK_TUNED_weights], 7 * 48);
    assert_int_equal(z[STK_TUNED_work], 5 * 7 * 48);
    assert_int_equal(z[STK_TUNED_channels], 0);
    make_product(&p, STK_F32, 0, 48, 7);
    assert_false(stk_tuned_sizes(&p.call, z));

    stk_attrs attrs = stk_attrs_zero();
    attrs.window = stk_window_make(3, 3);
    attrs.window.stride[0] = attrs.window.stride[1] = 2;
    /* The gradient of the data of x [2,9,7,24], y [2,4,3,16]. */
    stk_tensor_desc in[2] = {stk_desc_make(STK_F32, STK_SHAPE(2, 4, 3, 16)),
                             stk_desc_make(STK_F32, STK_SHAPE(16, 3, 3, 24))};
    stk_tensor_desc out = stk_desc_make(STK_F32, STK_SHAPE(2, 9, 7, 24));
    stk_op_call op_call = {STK_OP_conv2d_grad_data, &attrs, 2, 1, in, &out};
    assert_true(stk_tuned_sizes(&op_call, z));
    assert_int_equal(z[STK_TUNED_images], 2);
    assert_int_equal(z[STK_TUNED_pixels], 12);
    assert_int_equal(z[STK_TUNED_side], 3);
    assert_int_equal(z[STK_TUNED_rows], 24);
    assert_int_equal(z[STK_TUNED_channels], 24);
    assert_int_equal(z[STK_TUNED_filters], 16);
    assert_int_equal(z[STK_TUNED_channel_grain], 8);
    assert_int_equal(z[STK_TUNED_filter_grain], 16);
    assert_int_equal(z[STK_TUNED_taps], 9);
    assert_int_equal(z[STK_TUNED_stride], 2);
    assert_int_equal(z[STK_TUNED_weights], 16 * 9 * 24);
    op_call.op = STK_OP_unary;
    assert_false(stk_tuned_sizes(&op_call, z));
}

static void the_first_row_that_has_a_call_counts(void **state)
{
    (void)state;
    static const stk_tuned_row rows[] = {
        {STK_OP_matmul, STK_F32, "a", 2, {{STK_TUNED_m, 8, 16}, {STK_TUNED_k, 32, STK_TUNED_ANY}}},
        {STK_OP_matmul, STK_F32, "b", 1, {{STK_TUNED_m, 0, 12}}},
        {STK_OP_matmul, STK_BF16, "d", 2, {{STK_TUNED_turned_a, 0, 0}, {STK_TUNED_m, 9, 9}}},
        {STK_OP_matmul, STK_BF16, "c", 0, {{0}}},
    };
    static const stk_tuned_table table = {"test", "never", rows, 4};
    static const struct {
        stk_dtype dtype;
        int64_t m, k;
        const char *way;
    } cases[] = {{STK_F32, 8, 32, "a"},  {STK_F32, 16, 4096, "a"}, {STK_F32, 8, 31, "b"},
                 {STK_F32, 7, 32, "b"},  {STK_F32, 17, 32, NULL},  {STK_F32, 13, 31, NULL},
                 {STK_BF16, 17, 1, "c"}, {STK_BF16, 9, 1, "d"},    {STK_F64, 8, 32, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        product p;
        make_product(&p, cases[i].dtype, cases[i].m, 4, cases[i].k);
        const char *way = stk_tuned_way(&table, &p.call);
        if (cases[i].way)
            assert_string_equal(way, cases[i].way);
        else
            assert_null(way);
        assert_null(stk_tuned_way(NULL, &p.call));
    }
}

static bool has_way(const stk_cpu_way *ways, const char *name)
{
    for (; ways->name; ways++)
        if (!strcmp(ways->name, name)) return true;
    return false;
}

static void rows_name_ways_that_exist(void **state)
{
    (void)state;
    static const stk_tuned_table *const tables[] = {&stk_tuned_intel_amx, &stk_tuned_intel_avx512,
                                                    &stk_tuned_intel_skylake, NULL};
    for (int t = 0; tables[t]; t++)
        for (int i = 0; i < tables[t]->n_rows; i++) {
            const stk_tuned_row *row = &tables[t]->row[i];
            assert_true(has_way(row->op == STK_OP_matmul ? stk_matmul_ways : stk_conv_ways, row->way));
            assert_in_range(row->n_bounds, 0, STK_TUNED_MOST_BOUNDS);
            for (int k = 0; k < row->n_bounds; k++)
                assert_true(row->bound[k].least <= row->bound[k].most && row->bound[k].size < STK_TUNED_N_SIZES);
        }
}

static void a_way_is_made_where_it_can(void **state)
{
    (void)state;
    stk_device *device = call_open("baseline", 1);
    const stk_cpu_device *cpu = (const stk_cpu_device *)device;
    stk_kernel kernel = {0};
    product p;
    make_product(&p, STK_F32, 5, 48, 7);
    assert_int_equal(stk_cpu_make_way(cpu, &p.call, stk_matmul_ways, "own", &kernel), STK_OK);
    assert_string_equal(kernel.impl, "own baseline");
    stk_kernel_free(&kernel);
    assert_int_equal(stk_cpu_make_way(cpu, &p.call, stk_matmul_ways, "sgemm", &kernel), STK_OK);
    assert_string_equal(kernel.impl, "onednn sgemm");
    stk_kernel_free(&kernel);
    kernel = (stk_kernel){0};
    /* A vector is not oneDNN's. */
    make_product(&p, STK_F32, 1, 48, 7);
    assert_int_equal(stk_cpu_make_way(cpu, &p.call, stk_matmul_ways, "sgemm", &kernel), STK_UNSUPPORTED);
    make_product(&p, STK_F32, 5, 48, 7);
    assert_int_equal(stk_cpu_make_way(cpu, &p.call, stk_matmul_ways, "tiles", &kernel), STK_UNSUPPORTED);
    assert_int_equal(stk_cpu_make_way(cpu, &p.call, stk_matmul_ways, "no such", &kernel), STK_UNSUPPORTED);
    assert_null(kernel.state);
    stk_device_close(device);
}

/* [m,k] by [k,n] in f32 with a turned operand and a side of 1, by one way: every sum is right. */
static void multiply_turned(stk_device *device, const char *way, int64_t m, int64_t n, int64_t k, bool turns_a)
{
    float a[64], b[64], c[64] = {0};
    stk_attrs attrs = stk_attrs_zero();
    attrs.matmul.transpose_a = turns_a, attrs.matmul.transpose_b = !turns_a;
    stk_tensor_desc in[2] = {stk_desc_make(STK_F32, turns_a ? STK_SHAPE(k, m) : STK_SHAPE(m, k)),
                             stk_desc_make(STK_F32, turns_a ? STK_SHAPE(k, n) : STK_SHAPE(n, k))};
    stk_tensor_desc out = stk_desc_make(STK_F32, STK_SHAPE(m, n));
    stk_op_call op_call = {STK_OP_matmul, &attrs, 2, 1, in, &out};
    stk_kernel kernel = {0};
    for (int i = 0; i < 64; i++)
        a[i] = (float)(i % 7 - 3), b[i] = (float)(i % 5 - 2);
    stk_status made = stk_cpu_make_way((const stk_cpu_device *)device, &op_call, stk_matmul_ways, way, &kernel);
    if (made == STK_UNSUPPORTED && strcmp(way, "sgemm")) return; /* other processors */
    assert_int_equal(made, STK_OK);
    void *ins[2] = {a, b}, *outs[1] = {c}, *scratch = call_alloc(kernel.scratch_bytes + 1);
    stk_entry entry = {&kernel, {.in = ins, .out = outs, .scratch = scratch}};
    int i_failed;
    assert_int_equal(device->class->run(device, &entry, 1, &i_failed), STK_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (turns_a ? a[l * m + i] : a[i * k + l]) * (turns_a ? b[l * n + j] : b[j * k + l]);
            assert_true(c[i * n + j] == sum);
        }
    free(scratch);
    stk_kernel_free(&kernel);
}

static void a_side_of_1_may_be_turned(void **state)
{
    (void)state;
    stk_device *device = call_open(NULL, 1);
    static const char *const ways[] = {"sgemm", "onednn"};
    for (int i = 0; i < 2; i++) {
        multiply_turned(device, ways[i], 5, 8, 1, false);
        multiply_turned(device, ways[i], 5, 8, 1, true);
        multiply_turned(device, ways[i], 5, 8, 7, false);
    }
    stk_device_close(device);
}

/* y of a 3x3 convolution in bf16 by one way: [2,5,5,16] of [2,5,5,c]; false: this processor has no such way. All sums
 * are whole numbers that f32 has. */
static bool convolve(stk_device *device, const char *way, int64_t c, uint16_t y[800])
{
    stk_attrs attrs = stk_attrs_zero();
    attrs.window = stk_window_make(3, 3);
    for (int i = 0; i < 2; i++)
        attrs.window.pad_low[i] = attrs.window.pad_high[i] = 1;
    stk_tensor_desc in[2] = {stk_desc_make(STK_BF16, STK_SHAPE(2, 5, 5, c)),
                             stk_desc_make(STK_BF16, STK_SHAPE(16, 3, 3, c))};
    stk_tensor_desc out = stk_desc_make(STK_BF16, STK_SHAPE(2, 5, 5, 16));
    stk_op_call op_call = {STK_OP_conv2d, &attrs, 2, 1, in, &out};
    stk_kernel kernel = {0};
    stk_status made = stk_cpu_make_way((const stk_cpu_device *)device, &op_call, stk_conv_ways, way, &kernel);
    if (made == STK_UNSUPPORTED) return false;
    assert_int_equal(made, STK_OK);
    static const uint16_t numbers[] = {0, 0x3f80, 0xbf80, 0x4000}; /* 0, 1, -1, 2 */
    uint16_t *x = call_alloc((size_t)(50 * c) * 2), *weight = call_alloc((size_t)(144 * c) * 2);
    for (int64_t i = 0; i < 50 * c; i++)
        x[i] = numbers[i * 7 % 13 % 4];
    for (int64_t i = 0; i < 144 * c; i++)
        weight[i] = numbers[i * 5 % 11 % 4];
    void *ins[2] = {x, weight}, *outs[1] = {y}, *scratch = call_alloc(kernel.scratch_bytes + 1);
    stk_entry entry = {&kernel, {.in = ins, .out = outs, .scratch = scratch}};
    int i_failed;
    assert_int_equal(device->class->run(device, &entry, 1, &i_failed), STK_OK);
    free(scratch);
    free(weight);
    free(x);
    stk_kernel_free(&kernel);
    return true;
}

/* The last 31 of a depth are where oneDNN's products by AMX end in an illegal instruction; its convolutions do not. */
static void channels_short_of_a_tile_by_one(void **state)
{
    (void)state;
    static const int64_t channels[] = {31, 63, 287};
    stk_device *device = call_open(NULL, 1);
    for (int i = 0; i < 3; i++) {
        uint16_t one[800], other[800];
        if (!convolve(device, "onednn", channels[i], one))
            print_message("oneDNN multiplies no bf16 here\n");
        else if (convolve(device, "tiles", channels[i], other))
            assert_memory_equal(one, other, sizeof(one));
    }
    stk_device_close(device);
}

/* One pass of a 1x1 convolution in f32 with a bias, forward: x [2,side,side,c], weight [o,1,1,c], y [2,side,side,o]. */
typedef struct point {
    stk_attrs attrs;
    stk_tensor_desc in[3], out;
    stk_op_call call;
} point;

static void make_point(point *p, stk_op op, int64_t side, int64_t c, int64_t o)
{
    *p = (point){.attrs = stk_attrs_zero()};
    p->attrs.window = stk_window_make(1, 1);
    stk_tensor_desc x = stk_desc_make(STK_F32, STK_SHAPE(2, side, side, c));
    stk_tensor_desc weight = stk_desc_make(STK_F32, STK_SHAPE(o, 1, 1, c));
    stk_tensor_desc y = stk_desc_make(STK_F32, STK_SHAPE(2, side, side, o));
    int n_in = op == STK_OP_conv2d ? 3 : 2;
    p->in[0] = op == STK_OP_conv2d_grad_data ? y : x;
    p->in[1] = op == STK_OP_conv2d_grad_weight ? y : weight;
    p->in[2] = stk_desc_make(STK_F32, STK_SHAPE(o));
    p->out = op == STK_OP_conv2d ? y : op == STK_OP_conv2d_grad_data ? x : weight;
    p->call = (stk_op_call){op, &p->attrs, n_in, 1, p->in, &p->out};
}

/* By one way, of whole numbers whose sums f32 has; NULL: it cannot. Returned: free it. */
static float *run_point(stk_device *device, const char *way, point *p)
{
    stk_kernel kernel = {0};
    stk_status made = stk_cpu_make_way((const stk_cpu_device *)device, &p->call, stk_conv_ways, way, &kernel);
    if (made == STK_UNSUPPORTED) return NULL;
    assert_int_equal(made, STK_OK);
    void *ins[3] = {NULL};
    for (int i = 0; i < p->call.n_in; i++) {
        int64_t n = stk_shape_count(p->in[i].shape);
        float *x = ins[i] = call_alloc((size_t)n * sizeof(float));
        for (int64_t e = 0; e < n; e++)
            x[e] = (float)((e * 7 + i) % 13 % 5 - 2);
    }
    float *out = call_alloc((size_t)stk_shape_count(p->out.shape) * sizeof(float));
    void *outs[1] = {out}, *scratch = call_alloc(kernel.scratch_bytes + 1);
    stk_entry entry = {&kernel, {.in = ins, .out = outs, .scratch = scratch}};
    int i_failed;
    assert_int_equal(device->class->run(device, &entry, 1, &i_failed), STK_OK);
    for (int i = 0; i < p->call.n_in; i++)
        free(ins[i]);
    free(scratch);
    stk_kernel_free(&kernel);
    return out;
}

/* Few weights and many, few threads and more. */
static void ways_of_a_1x1_convolution_agree(void **state)
{
    (void)state;
    static const stk_op ops[] = {STK_OP_conv2d, STK_OP_conv2d_grad_data, STK_OP_conv2d_grad_weight};
    static const char *const ways[] = {"direct", "sgemm", "product", "onednn"};
    static const struct {
        int64_t side, c, o;
    } sizes[] = {{72, 96, 80}, {21, 200, 330}, {40, 128, 512}};
    int n_ways[4] = {0};
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        stk_device *device = call_open(NULL, n_threads);
        for (int i = 0; i < 9; i++) {
            point p;
            make_point(&p, ops[i % 3], sizes[i / 3].side, sizes[i / 3].c, sizes[i / 3].o);
            size_t bytes = (size_t)stk_shape_count(p.out.shape) * sizeof(float);
            float *first = run_point(device, ways[0], &p);
            assert_non_null(first);
            for (int w = 1; w < 4; w++) {
                float *other = run_point(device, ways[w], &p);
                n_ways[w] += other != NULL;
                if (other) assert_memory_equal(other, first, bytes);
                free(other);
            }
            free(first);
        }
        bool has_tiles = isa_of(device) == STK_ISA_AVX512;
        if (has_tiles)
            assert_int_equal(n_ways[2], 9 * n_threads);
        else
            print_message("no own tiles of f32 here: not among the ways\n");
        if (isa_of(device) != STK_ISA_BASELINE) assert_int_equal(n_ways[1], 9 * n_threads);
        stk_device_close(device);
    }
}

/* A kernel's name is the way's; where the table has no row for the call, or is not asked, it is the list's. */
static void a_call_gets_the_way_of_its_row(void **state)
{
    (void)state;
    stk_device *device = call_open(NULL, 2);
    const stk_tuned_table *table = stk_tuned_of(isa_of(device));
    assert_null(stk_tuned_of(STK_ISA_BASELINE));
    if (!table) {
        print_message("no table for this processor's family: its rows are not tried\n");
        stk_device_close(device);
        return;
    }
    int n_rows = 0;
    for (int64_t m = 16; m <= 1024; m *= 4)
        for (int64_t n = 16; n <= 1024; n *= 4)
            for (int is_half = 0; is_half < 2; is_half++) {
                product p;
                stk_kernel by_table, by_name;
                make_product(&p, is_half ? STK_BF16 : STK_F32, m, n, 256);
                const char *way = stk_tuned_way(table, &p.call);
                if (!way) continue;
                memset(&by_name, 0, sizeof(by_name));
                if (stk_cpu_make_way((const stk_cpu_device *)device, &p.call, stk_matmul_ways, way, &by_name) != STK_OK)
                    continue;
                assert_int_equal(device->class->kernel(device, &p.call, &by_table), STK_OK);
                assert_string_equal(by_table.impl, by_name.impl);
                assert_int_equal(by_table.scratch_bytes, by_name.scratch_bytes);
                stk_kernel_free(&by_table);
                stk_kernel_free(&by_name);
                n_rows++;
            }
    assert_true(n_rows > 0);
    setenv("STOKER_KERNELS", "default", 1);
    assert_null(stk_tuned_of(isa_of(device)));
    setenv("STOKER_KERNELS", "tuned", 1);
    assert_non_null(stk_tuned_of(isa_of(device)));
    unsetenv("STOKER_KERNELS");
    /* Without its tiles an Intel processor is one of another family. */
    setenv("STOKER_AMX", "off", 1);
    bool has_bf16 = stk_isa_has_bf16(isa_of(device));
    assert_ptr_equal(stk_tuned_of(isa_of(device)), has_bf16 ? &stk_tuned_intel_avx512 : &stk_tuned_intel_skylake);
    setenv("STOKER_AMX", "model", 1);
    assert_null(stk_tuned_of(isa_of(device)));
    unsetenv("STOKER_AMX");
    stk_device_close(device);
}

int main(void)
{
    unsetenv("STOKER_KERNELS");
    unsetenv("STOKER_AMX");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_of_the_call),     cmocka_unit_test(the_first_row_that_has_a_call_counts),
        cmocka_unit_test(rows_name_ways_that_exist),       cmocka_unit_test(a_way_is_made_where_it_can),
        cmocka_unit_test(a_side_of_1_may_be_turned),       cmocka_unit_test(channels_short_of_a_tile_by_one),
        cmocka_unit_test(ways_of_a_1x1_convolution_agree), cmocka_unit_test(a_call_gets_the_way_of_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
