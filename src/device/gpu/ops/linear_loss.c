/* linear_cross_entropy and its gradient: rows in blocks, whose logits lie in scratch memory.
 *
 *   logits = x weight'                       f32
 *   logits -> loss, dlogits                  linear_loss.dev; dlogits of x's type
 *   dx = dlogits weight
 *   dweight = dlogits' x + what it was       the blocks before, or the base
 *
 * Libraries multiply matrices of 16-bit numbers at a fifth of the speed where rows are not of a multiple of 16 bytes,
 * as of a vocabulary of 50,257: products then see zeros behind the last class.
 */
#include "base/align.h"
#include "device/gpu/ops/product.h"

/* The weights' gradient is read and written once a block, and products of few rows leave most of a large chip idle: a
 * GPU's blocks are as large as a 64th of its memory. Rows are in whole tiles where there are many. */
enum {
    LEAST_BYTES = 128 << 20,
    MEMORY_PARTS = 64,
    MOST_ROWS = 4096,
    ROW_GRAIN = 16,
    TILE_GRAIN = 256,
    STEP_GRAIN = 16
};

enum { WHOLE = 8 }; /* 16-bit numbers */

typedef struct linear_loss {
    int64_t m, v, d;        /* rows, classes, features */
    int64_t step, block;    /* from one row of logits to the next; rows at a time */
    size_t logits, dlogits; /* where they lie */
    int64_t n_columns;      /* of the products: classes, or `step` */
    gpu_product_place weight;
    stk_dtype dtype;
    bool is_grad;
} linear_loss;

static int64_t rows_of_block(const gpu_chip *chip, int64_t step)
{
    int64_t bytes = LEAST_BYTES, most = MOST_ROWS / 8;
    if (chip->is_gpu && (int64_t)(chip->total_bytes / MEMORY_PARTS) > bytes) {
        bytes = (int64_t)(chip->total_bytes / MEMORY_PARTS);
        most = MOST_ROWS;
    }
    int64_t n = bytes / (int64_t)sizeof(float) / (step ? step : 1);
    n = n / (n < 2 * TILE_GRAIN ? ROW_GRAIN : TILE_GRAIN) * (n < 2 * TILE_GRAIN ? ROW_GRAIN : TILE_GRAIN);
    return n > most ? most : n < ROW_GRAIN ? ROW_GRAIN : n;
}

static void add_unit(gpu_maker *m, const linear_loss *s, const char *kernel)
{
    gpu_add(m, "linear_loss.dev", kernel, "#define T %s\n#define GRAD %d\n", gpu_type(m, s->dtype), s->is_grad);
}

/* The weights with rows of zeros behind them. */
static void pad_weight(gpu_maker *m, linear_loss *s)
{
    const int64_t n = s->step * s->d;
    s->n_columns = s->step;
    s->weight = (gpu_product_place){GPU_SCRATCH, 0, gpu_take(m, (size_t)n * stk_dtype_bytes(s->dtype)), s->dtype};
    add_unit(m, s, "pad_rows");
    gpu_in(m, 1);
    gpu_scratch(m, s->weight.offset);
    gpu_index(m, s->v * s->d);
    gpu_index(m, n);
    gpu_items(m, n / WHOLE, 256);
}

static linear_loss open_call(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    linear_loss s = {.m = call->in[0].shape.dim[0], .v = call->in[1].shape.dim[0], .d = call->in[0].shape.dim[1]};
    s.dtype = call->in[0].dtype;
    s.is_grad = call->op == STK_OP_linear_cross_entropy_grad;
    s.step = stk_round_up_i64(s.v, STEP_GRAIN);
    s.block = rows_of_block(&m->device->chip, s.step);
    if (s.block > s.m) s.block = s.m;
    s.logits = s.dlogits = gpu_take(m, (size_t)(s.block * s.step) * sizeof(float));
    s.n_columns = s.v;
    s.weight = (gpu_product_place){GPU_IN, 1, 0, s.dtype};
    if (s.dtype != STK_F32 && s.v % WHOLE != 0 && m->device->driver->plan_product) pad_weight(m, &s);
    if (s.is_grad && s.dtype != STK_F32) s.dlogits = gpu_take(m, (size_t)(s.block * s.step) * stk_dtype_bytes(s.dtype));
    return s;
}

static gpu_product_place scratch_of(size_t offset, stk_dtype dtype)
{
    return (gpu_product_place){GPU_SCRATCH, 0, offset, dtype};
}

/* Rows of x, or of dx, from `row` on. */
static gpu_product_place rows_of(const linear_loss *s, gpu_argument_kind kind, int64_t row)
{
    return (gpu_product_place){kind, 0, (size_t)(row * s->d) * stk_dtype_bytes(s->dtype), s->dtype};
}

static void add_logits(gpu_maker *m, const linear_loss *s, int64_t row, int64_t n)
{
    gpu_matrices sizes = {
        .m = (int32_t)n, .n = (int32_t)s->n_columns, .k = (int32_t)s->d, .lda = (int32_t)s->d, .ldb = (int32_t)s->d};
    gpu_product_places places = {.a = rows_of(s, GPU_IN, row), .b = s->weight, .c = scratch_of(s->logits, STK_F32)};
    gpu_multiply_matrices(m, &sizes, s->step, false, true, &places);
}

static void add_losses(gpu_maker *m, const linear_loss *s, int64_t row, int64_t n)
{
    double smoothing = m->call->attrs->linear_cross_entropy.smoothing;
    add_unit(m, s, "linear_loss");
    gpu_scratch(m, s->logits);
    gpu_in(m, 2);
    gpu_in(m, s->is_grad ? 3 : 0);
    gpu_out(m, s->is_grad ? 2 : 0);
    gpu_scratch(m, s->dlogits);
    gpu_int(m, (int32_t)s->v);
    gpu_int(m, (int32_t)s->step);
    gpu_long(m, m->call->attrs->linear_cross_entropy.ignore_index);
    gpu_float(m, 1 - smoothing);
    gpu_float(m, s->v ? smoothing / (double)s->v : 0);
    gpu_index(m, row);
    gpu_fault(m, STK_CORRUPT, "label %lld of row %lld is not one of the %lld classes", s->v);
    gpu_group(m, 256, 1, 1);
    gpu_groups(m, n, 1, 1);
}

static void add_dx(gpu_maker *m, const linear_loss *s, int64_t row, int64_t n)
{
    gpu_matrices sizes = {
        .m = (int32_t)n, .n = (int32_t)s->d, .k = (int32_t)s->n_columns, .lda = (int32_t)s->step, .ldb = (int32_t)s->d};
    gpu_product_places places = {.a = scratch_of(s->dlogits, s->dtype), .b = s->weight, .c = rows_of(s, GPU_OUT, row)};
    gpu_multiply_matrices(m, &sizes, s->d, false, false, &places);
}

/* Of classes first .. first + n_classes - 1. */
static void add_dweight_of(gpu_maker *m, const linear_loss *s, int64_t row, int64_t n, int64_t first, int64_t n_classes)
{
    const stk_dtype dtype = m->call->out[1].dtype;
    gpu_matrices sizes = {
        .m = (int32_t)n_classes, .n = (int32_t)s->d, .k = (int32_t)n, .lda = (int32_t)s->step, .ldb = (int32_t)s->d};
    const size_t at = (size_t)(first * s->d) * stk_dtype_bytes(dtype);
    const gpu_product_place sum = {GPU_OUT, 1, at, dtype}, base = {GPU_IN, 4, at, dtype};
    gpu_product_places places = {.a = scratch_of(s->dlogits + (size_t)first * stk_dtype_bytes(s->dtype), s->dtype),
                                 .b = rows_of(s, GPU_IN, row),
                                 .c = sum};
    if (row > 0)
        places.onto = &sum;
    else if (m->call->n_in == 5)
        places.onto = &base;
    gpu_multiply_matrices(m, &sizes, s->d, true, false, &places);
}

/* Zeros behind the last class have no row here: the last few classes are multiplied alone. */
static void add_dweight(gpu_maker *m, const linear_loss *s, int64_t row, int64_t n)
{
    const int64_t n_last = s->n_columns == s->v ? 0 : s->v % WHOLE;
    add_dweight_of(m, s, row, n, 0, s->v - n_last);
    if (n_last) add_dweight_of(m, s, row, n, s->v - n_last, n_last);
}

/* What launches took that are done gives its memory to the next. */
static void reuse_scratch(gpu_maker *m, size_t kept, size_t *most)
{
    if (m->scratch_bytes > *most) *most = m->scratch_bytes;
    m->scratch_bytes = kept;
}

static void make(gpu_maker *m)
{
    linear_loss s = open_call(m);
    size_t kept = m->scratch_bytes, most = kept;
    for (int64_t row = 0; row < s.m && m->status == STK_OK; row += s.block) {
        int64_t n = s.m - row < s.block ? s.m - row : s.block;
        add_logits(m, &s, row, n);
        reuse_scratch(m, kept, &most);
        add_losses(m, &s, row, n);
        if (!s.is_grad) continue;
        add_dx(m, &s, row, n);
        reuse_scratch(m, kept, &most);
        add_dweight(m, &s, row, n);
        reuse_scratch(m, kept, &most);
    }
    /* Without rows the sum is 0 or the base. */
    if (s.is_grad && s.m == 0) add_dweight(m, &s, 0, 0);
    reuse_scratch(m, kept, &most);
    m->scratch_bytes = most;
}

void gpu_make_linear_cross_entropy(gpu_maker *m)
{
    make(m);
}

void gpu_make_linear_cross_entropy_grad(gpu_maker *m)
{
    make(m);
    if (m->call->n_in == 5) m->in_place[1] = 1u << 4;
}
