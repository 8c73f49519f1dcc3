/* See product.h. Where few tiles have much to sum, K is cut into parts, whose sums are joined in their order. */
#include "device/gpu/ops/product.h"

#include <stdio.h>

#include "base/error.h"

/* With fewer groups some of a large chip's multiprocessors have none, or of a processor's cores. */
enum { FULL_GROUPS = 132, ENOUGH_GROUPS = 8, MOST_PARTS = 64, EACH_MULTIPLE = 128 };

gpu_divisor gpu_divide_by(int64_t d)
{
    gpu_divisor out = {.d = (int32_t)d};
    uint64_t by = d < 1 ? 1 : (uint64_t)d;
    while ((UINT64_C(1) << out.shift) < by)
        out.shift++;
    out.factor = (uint32_t)(((((UINT64_C(1) << out.shift) - by) << 32) / by) + 1);
    return out;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* --- tiles and parts: by the kind of chip, and then by the shape alone --- */

/* How a group makes its tile: which of the kernels tile_*.h, and by how many work-items. */
typedef struct tiling {
    enum { IN_FRAGMENTS, BY_ITEMS, IN_PANELS } kind;
    int tile_m, tile_n, tile_k;
    int by_m, by_n;     /* warps, work-items; of panels: rows and vectors of columns that are in registers */
    int used_m, used_n; /* of the tile */
    int64_t n_parts, k_each;
} tiling;

static int64_t count_tiles(const tiling *t, const gpu_product_call *call)
{
    return call->n_batch * ceil_div(call->m, t->used_m) * ceil_div(call->n, t->used_n);
}

/* K in how many parts, of at least that much each, that there be enough groups. */
static void cut_k(tiling *t, const gpu_product_call *call, int64_t full_groups, int64_t least_each)
{
    int64_t n_tiles = count_tiles(t, call);
    int64_t n = n_tiles && n_tiles < full_groups ? 2 * full_groups / n_tiles : 1;
    if (n > MOST_PARTS) n = MOST_PARTS;
    if (n > call->k / least_each) n = call->k / least_each;
    t->n_parts = n < 1 ? 1 : n;
    t->k_each = ceil_div(ceil_div(call->k, t->n_parts), EACH_MULTIPLE) * EACH_MULTIPLE;
    t->n_parts = call->k ? ceil_div(call->k, t->k_each) : 1;
}

/* How much of a tile's side is used where n rows are cut into tiles of at most `most`: such that all are about as
 * large, since processors are given groups in equal numbers. COPY: what bringing in a row costs, in rows of
 * multiplying. */
static int choose_side(int64_t n, int most, int multiple)
{
    const double COPY = 12;
    double best = 1e300;
    int side = most;
    for (int64_t n_tiles = ceil_div(n, most); n_tiles && n_tiles <= 2 * ceil_div(n, most); n_tiles++) {
        int each = (int)(ceil_div(ceil_div(n, n_tiles), multiple) * multiple);
        double cost = (double)(n_tiles * each) * (1 + COPY / each);
        if (cost >= best) continue;
        best = cost;
        side = each;
    }
    return side;
}

/* What a processor multiplies beyond the matrices is little; its second cache holds three tiles. */
static tiling choose_panels(const gpu_chip *chip, const gpu_product_call *call)
{
    int rows = 8, wides = call->n <= 16 ? 1 : 2;
    tiling t = {IN_PANELS, 48, 32, 64, rows, wides, 0, 0, 0, 0};
    if (chip->local_bytes >= 768 << 10)
        t.tile_m = 384, t.tile_n = 256, t.tile_k = 128;
    else if (chip->local_bytes >= 160 << 10)
        t.tile_m = t.tile_n = 96, t.tile_k = 128;
    if (call->m <= rows) t.tile_m = rows;
    if (call->n <= 16) t.tile_n = 16;
    t.used_m = choose_side(call->m, t.tile_m, rows);
    t.used_n = choose_side(call->n, t.tile_n, 16 * wides);
    return t;
}

static tiling choose_for_gpu(const gpu_chip *chip, const gpu_product_call *call, stk_dtype dtype, int side)
{
    int m = call->m <= 64 ? 64 : side, n = call->n <= 64 ? 64 : side;
    if (chip->has_fragments && dtype != STK_F32)
        return (tiling){IN_FRAGMENTS, m, n, 32, m / 32, 8 / (m / 32), m, n, 0, 0};
    return (tiling){BY_ITEMS, m, n, 16, m + n == 128 ? 8 : 16, 16, m, n, 0, 0};
}

/* Large tiles read less, but there must be enough groups, and parts of K cost memory: they must be worth it. */
static tiling choose_tiling(const gpu_chip *chip, const gpu_product_call *call, stk_dtype dtype)
{
    tiling t;
    if (!chip->is_gpu && !(chip->has_fragments && dtype != STK_F32)) {
        t = choose_panels(chip, call);
        cut_k(&t, call, ENOUGH_GROUPS, 512);
        return t;
    }
    t = choose_for_gpu(chip, call, dtype, 128);
    cut_k(&t, call, FULL_GROUPS, 1024);
    if (count_tiles(&t, call) * t.n_parts >= FULL_GROUPS) return t;
    t = choose_for_gpu(chip, call, dtype, 64);
    cut_k(&t, call, FULL_GROUPS, 256);
    return t;
}

/* Elements to read at once, of runs of neighbours that long. */
static int choose_chunk(const tiling *t, const gpu_product_call *call, int64_t run, size_t element_bytes)
{
    if (t->kind == IN_PANELS) return run >= 16 || call->runs_are_rows ? 16 : 1;
    int most = (int)(16 / element_bytes);
    return run % most == 0 ? most : 1;
}

/* Chunks begin at multiples of their length: those that a run is made up of do not end beyond it. */
static int is_whole(int chunk, int64_t run)
{
    return run % chunk == 0;
}

/* --- launches --- */

static void add_place(gpu_maker *m, const gpu_product_place *place)
{
    gpu_memory_at(m, place->kind, place->i, place->offset);
}

static gpu_product_places places_of(const gpu_maker *m, const gpu_product_call *call)
{
    if (call->places) return *call->places;
    return (gpu_product_places){.a = {GPU_IN, call->i_a, 0, m->call->in[call->i_a].dtype},
                                .b = {GPU_IN, call->i_b, 0, m->call->in[call->i_b].dtype},
                                .c = {GPU_OUT, 0, 0, m->call->out[0].dtype}};
}

/* A matrix that is added at the end. Where there is none, any input, which is not read. */
static void add_onto(gpu_maker *m, const gpu_product_places *places)
{
    if (places->onto)
        add_place(m, places->onto);
    else
        gpu_in(m, 0);
}

/* A bias, and that; the same. */
static void add_added(gpu_maker *m, const gpu_product_places *places, bool has_bias)
{
    gpu_in(m, has_bias ? 2 : 0);
    add_onto(m, places);
}

static void join(gpu_maker *m, const gpu_product_call *call, const gpu_product_places *places, bool has_bias,
                 size_t part, int64_t n_parts, int64_t count)
{
    gpu_add(m, "product.dev", "join_product", "#define T %s\n", gpu_type(m, places->c.dtype));
    gpu_scratch(m, part);
    add_place(m, &places->c);
    add_added(m, places, has_bias);
    gpu_index(m, n_parts);
    gpu_index(m, count);
    gpu_index(m, call->ldc);
    gpu_int(m, has_bias);
    gpu_int(m, call->relu);
    gpu_int(m, places->onto != NULL);
    gpu_items(m, count, 256);
}

static void add_tiles(gpu_maker *m, const gpu_product_call *call, const tiling *t, stk_dtype dtype,
                      const char *type_out)
{
    size_t bytes = stk_dtype_bytes(dtype);
    int a_chunk = choose_chunk(t, call, call->a_run, bytes), b_chunk = choose_chunk(t, call, call->b_run, bytes);
    char kind[100];
    if (t->kind == IN_FRAGMENTS)
        snprintf(kind, sizeof(kind), "#define FRAGMENTS 1\n#define WARPS_M %d\n#define WARPS_N %d\n", t->by_m, t->by_n);
    else if (t->kind == IN_PANELS)
        snprintf(kind, sizeof(kind),
                 "#define PANELS 1\n#define ROWS %d\n#define WIDES %d\n#define A_WHOLE %d\n#define B_WHOLE %d\n",
                 t->by_m, t->by_n, is_whole(a_chunk, call->a_run), is_whole(b_chunk, call->b_run));
    else
        snprintf(kind, sizeof(kind), "#define ITEMS_M %d\n#define ITEMS_N %d\n", t->by_m, t->by_n);
    gpu_add(m, call->file, "multiply_tiles",
            "%s%s#define T %s\n#define T_OUT %s\n#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n"
            "#define A_ALONG_K %d\n#define B_ALONG_K %d\n#define A_CHUNK %d\n#define B_CHUNK %d\n",
            call->settings, kind, gpu_type(m, dtype), type_out, t->tile_m, t->tile_n, t->tile_k, call->a_along_k,
            call->b_along_k, a_chunk, b_chunk);
    gpu_group(m, t->kind == IN_PANELS ? 1 : (uint32_t)(t->by_m * t->by_n * (t->kind == IN_FRAGMENTS ? 32 : 1)), 1, 1);
}

static bool is_too_large(const gpu_product_call *call)
{
    const int64_t most = INT32_MAX - 1024;
    return call->m > most || call->n > most || call->k > most || call->ldc > most || call->n_batch > most;
}

/* --- by the driver's library --- */

static int32_t alignment_of(const gpu_product_place *place)
{
    size_t least = place->offset | 64; /* of all memory that ops get */
    return (int32_t)(least & -least);
}

/* False: by kernels of our own. */
static bool plan_library(gpu_maker *m, const gpu_product_call *call, const gpu_product_places *places, bool has_bias,
                         gpu_library_product *out)
{
    const gpu_matrices *s = call->matrices;
    const gpu_driver *driver = m->device->driver;
    if (!driver->plan_product || !s || call->relu || (call->bias_batch && call->n_batch > 1)) return false;
    if (call->n_batch == 0 || call->m == 0 || call->n == 0 || call->k == 0) return false;
    *out = (gpu_library_product){.n_batch = call->n_batch,
                                 .m = call->m,
                                 .n = call->n,
                                 .k = call->k,
                                 .lda = s->lda,
                                 .ldb = s->ldb,
                                 .ldc = call->ldc,
                                 .a_batch = s->a_batch,
                                 .b_batch = s->b_batch,
                                 .c_batch = call->c_batch,
                                 .transpose_a = !call->a_along_k,
                                 .transpose_b = call->b_along_k,
                                 .dtype = (int32_t)places->a.dtype,
                                 .dtype_c = (int32_t)places->c.dtype,
                                 .has_bias = has_bias,
                                 .has_onto = places->onto != NULL,
                                 .tf32 = m->call->attrs->tf32 && places->a.dtype == STK_F32,
                                 .align_a = alignment_of(&places->a),
                                 .align_b = alignment_of(&places->b),
                                 .align_c = alignment_of(&places->c)};
    if (places->onto && alignment_of(places->onto) < out->align_c) out->align_c = alignment_of(places->onto);
    stk_status status = driver->plan_product(m->device->context, out);
    if (status != STK_UNSUPPORTED) gpu_fail(m, status);
    return status == STK_OK;
}

/* A bias as the library wants it, in scratch memory: in 16 bits it is rounded, as mixed precision rounds weights. */
static size_t round_bias(gpu_maker *m, const gpu_product_places *places, int64_t n)
{
    size_t at = gpu_take(m, (size_t)n * stk_dtype_bytes(places->c.dtype));
    gpu_add(m, "product.dev", "round_bias", "#define T %s\n", gpu_type(m, places->c.dtype));
    gpu_in(m, 2);
    gpu_scratch(m, at);
    gpu_index(m, n);
    gpu_items(m, n, 256);
    return at;
}

static void add_library(gpu_maker *m, const gpu_product_places *places, const gpu_library_product *product)
{
    size_t scratch = product->scratch_bytes ? gpu_take(m, product->scratch_bytes) : 0;
    const bool rounds = product->has_bias && places->c.dtype != STK_F32;
    const gpu_product_place bias = {GPU_SCRATCH, 0, rounds ? round_bias(m, places, product->n) : 0, places->c.dtype};
    gpu_add_product(m, product);
    add_place(m, &places->a);
    add_place(m, &places->b);
    add_place(m, &places->c);
    if (rounds)
        add_place(m, &bias);
    else
        gpu_in(m, product->has_bias ? 2 : 0);
    add_onto(m, places);
    if (product->scratch_bytes)
        gpu_scratch(m, scratch);
    else
        gpu_in(m, 0);
    m->impl = m->device->driver->library;
}

bool gpu_multiply_by_library(gpu_maker *m, const gpu_product_call *call)
{
    gpu_library_product library;
    gpu_product_places places = places_of(m, call);
    if (!plan_library(m, call, &places, !call->places && m->call->n_in == 3, &library)) return false;
    add_library(m, &places, &library);
    return true;
}

void gpu_multiply(gpu_maker *m, const gpu_product_call *call)
{
    gpu_product_places places = places_of(m, call);
    tiling t = choose_tiling(&m->device->chip, call, places.a.dtype);
    int64_t n_parts = t.n_parts;
    int64_t count = call->places ? call->m * call->ldc : stk_shape_count(m->call->out[0].shape);
    bool has_bias = !call->places && m->call->n_in == 3;
    if (is_too_large(call)) {
        gpu_fail(m, stk_fail(STK_UNSUPPORTED, "'%s' multiplies matrices of more than 2^31 rows or columns",
                             stk_op_name(m->call->op)));
        return;
    }
    if (gpu_multiply_by_library(m, call)) return;
    gpu_product p = {.c_batch = call->c_batch,
                     .part_stride = count,
                     .m = (int32_t)call->m,
                     .n = (int32_t)call->n,
                     .k = (int32_t)call->k,
                     .k_each = (int32_t)t.k_each,
                     .ldc = (int32_t)call->ldc,
                     .bias_batch = has_bias ? (int32_t)call->bias_batch : 0,
                     .tiles_m = (int32_t)ceil_div(call->m, t.used_m),
                     .tiles_n = (int32_t)ceil_div(call->n, t.used_n),
                     .tile_m = t.used_m,
                     .tile_n = t.used_n,
                     .has_bias = has_bias && n_parts == 1,
                     .relu = call->relu && n_parts == 1,
                     .in_pairs = call->ldc % 2 == 0 && call->c_batch % 2 == 0 && call->n % 2 == 0 && count % 2 == 0,
                     .has_onto = places.onto && n_parts == 1};
    add_tiles(m, call, &t, places.a.dtype, n_parts > 1 ? "f32" : gpu_type(m, places.c.dtype));
    size_t part = n_parts > 1 ? gpu_take(m, (size_t)(n_parts * count) * sizeof(float)) : 0;
    add_place(m, &places.a);
    add_place(m, &places.b);
    if (n_parts > 1)
        gpu_scratch(m, part);
    else
        add_place(m, &places.c);
    add_added(m, &places, has_bias);
    gpu_bytes(m, &p, sizeof(p));
    gpu_bytes(m, call->operands, call->operands_bytes);
    gpu_groups(m, call->n_batch * p.tiles_m * p.tiles_n, n_parts, 1);
    if (n_parts > 1) join(m, call, &places, has_bias, part, n_parts, count);
}
