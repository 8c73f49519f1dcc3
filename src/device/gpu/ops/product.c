/* See product.h. Where few tiles have much to sum, K is cut into parts, whose sums are joined in their order. */
#include "device/gpu/ops/product.h"

#include <stdio.h>

#include "base/error.h"

/* FULL_GROUPS: with fewer, some of a large chip's multiprocessors have none. */
enum { FULL_GROUPS = 132, MOST_PARTS = 64, EACH_MULTIPLE = 128 };

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

/* --- tiles and parts --- */

/* It depends on the shape alone. */
typedef struct cut {
    int tile; /* how long a tile's sides should be */
    int64_t n_parts, k_each;
} cut;

/* How many parts of K, of at least that much each, make enough groups of these tiles. */
static int64_t count_parts(const gpu_product_call *call, int64_t n_tiles, int64_t least_each)
{
    int64_t n_parts = n_tiles && n_tiles < FULL_GROUPS ? 2 * FULL_GROUPS / n_tiles : 1;
    if (n_parts > MOST_PARTS) n_parts = MOST_PARTS;
    if (n_parts > call->k / least_each) n_parts = call->k / least_each;
    return n_parts < 1 ? 1 : n_parts;
}

/* Large tiles read less, but there must be enough groups, and parts cost memory: they must be worth it. */
static cut choose_cut(const gpu_product_call *call)
{
    int64_t n_large = call->n_batch * ceil_div(call->m, 128) * ceil_div(call->n, 128);
    cut c = {.tile = 128, .n_parts = count_parts(call, n_large, 1024)};
    if (n_large * c.n_parts < FULL_GROUPS) {
        c.tile = 64;
        c.n_parts = count_parts(call, call->n_batch * ceil_div(call->m, 64) * ceil_div(call->n, 64), 256);
    }
    c.k_each = ceil_div(ceil_div(call->k, c.n_parts), EACH_MULTIPLE) * EACH_MULTIPLE;
    c.n_parts = call->k ? ceil_div(call->k, c.k_each) : 1;
    return c;
}

typedef struct tiling {
    int tile_m, tile_n, tile_k;
    int items_m, items_n, lanes; /* of tile_items.h; lanes 0: of tile_fragments.h */
    bool aligned;                /* reads of 16 bytes lie at multiples of 16 */
} tiling;

/* The one place that knows kinds of chips. A processor's work-item has a whole vector's width of columns; its sums go
 * to memory at each barrier, so that tiles which lie in a cache for long are worth most. */
static tiling choose_tiling(const gpu_chip *chip, const gpu_product_call *call, stk_dtype dtype, const cut *c)
{
    int m = call->m <= 64 ? 64 : c->tile, n = call->n <= 64 ? 64 : c->tile;
    if (chip->has_fragments && dtype != STK_F32) return (tiling){m, n, 32, m / 32, 8 / (m / 32), 0, true};
    if (chip->is_gpu) return (tiling){m, n, 16, m + n == 128 ? 8 : 16, 16, 4, true};
    bool has_room = chip->local_bytes >= 64 << 10;
    int rows = call->m <= 16 ? 16 : has_room ? 64 : 128;
    int columns = call->n <= 16 ? 16 : 64;
    int depth = has_room && rows == columns ? 128 : 32;
    return (tiling){rows, columns, depth, rows / 8, (columns + 31) / 32, 16, false};
}

/* Elements to read at once, of runs of neighbours that long. */
static int choose_chunk(const tiling *t, const gpu_product_call *call, int64_t run, size_t element_bytes)
{
    int most = t->aligned ? (int)(16 / element_bytes) : t->lanes;
    return (t->aligned ? run % most == 0 : run >= most || call->runs_are_rows) ? most : 1;
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

/* What is added at the end: a bias, and a matrix. Where there is none, any input, which is not read. */
static void add_added(gpu_maker *m, const gpu_product_places *places, bool has_bias)
{
    gpu_in(m, has_bias ? 2 : 0);
    if (places->onto)
        add_place(m, places->onto);
    else
        gpu_in(m, 0);
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
    char text[200];
    if (t->lanes)
        snprintf(text, sizeof(text),
                 "#define FRAGMENTS 0\n#define ITEMS_M %d\n#define ITEMS_N %d\n#define LANES %d\n#define ALIGNED %d\n"
                 "#define A_WHOLE %d\n#define B_WHOLE %d\n",
                 t->items_m, t->items_n, t->lanes, t->aligned, is_whole(a_chunk, call->a_run),
                 is_whole(b_chunk, call->b_run));
    else
        snprintf(text, sizeof(text), "#define FRAGMENTS 1\n#define WARPS_M %d\n#define WARPS_N %d\n", t->items_m,
                 t->items_n);
    gpu_add(m, call->file, "multiply_tiles",
            "%s%s#define T %s\n#define T_OUT %s\n#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n"
            "#define A_ALONG_K %d\n#define B_ALONG_K %d\n#define A_CHUNK %d\n#define B_CHUNK %d\n",
            call->settings, text, gpu_type(m, dtype), type_out, t->tile_m, t->tile_n, t->tile_k, call->a_along_k,
            call->b_along_k, a_chunk, b_chunk);
    gpu_group(m, (uint32_t)(t->items_m * t->items_n * (t->lanes ? 1 : 32)), 1, 1);
}

static bool is_too_large(const gpu_product_call *call)
{
    const int64_t most = INT32_MAX - 1024;
    return call->m > most || call->n > most || call->k > most || call->ldc > most || call->n_batch > most;
}

void gpu_multiply(gpu_maker *m, const gpu_product_call *call)
{
    cut c = choose_cut(call);
    gpu_product_places places = places_of(m, call);
    tiling t = choose_tiling(&m->device->chip, call, places.a.dtype, &c);
    int64_t n_parts = c.n_parts;
    int64_t count = call->places ? call->m * call->ldc : stk_shape_count(m->call->out[0].shape);
    bool has_bias = !call->places && m->call->n_in == 3;
    if (is_too_large(call)) {
        gpu_fail(m, stk_fail(STK_UNSUPPORTED, "'%s' multiplies matrices of more than 2^31 rows or columns",
                             stk_op_name(m->call->op)));
        return;
    }
    gpu_product p = {.c_batch = call->c_batch,
                     .part_stride = count,
                     .m = (int32_t)call->m,
                     .n = (int32_t)call->n,
                     .k = (int32_t)call->k,
                     .k_each = (int32_t)c.k_each,
                     .ldc = (int32_t)call->ldc,
                     .bias_batch = has_bias ? (int32_t)call->bias_batch : 0,
                     .tiles_m = (int32_t)ceil_div(call->m, t.tile_m),
                     .tiles_n = (int32_t)ceil_div(call->n, t.tile_n),
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
