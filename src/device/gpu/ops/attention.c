/* Attention, its gradient, and attention to a cache: attention.dev, attention_grad.dev, cached_attention.dev. */
#include "graph/attention.h"

#include "base/rng.h"
#include "device/gpu/gpu.h"

enum { WIDEST_CHUNK = 64, ITEMS_A_ROW = 2 };

/* As attention.h of kernels/ has it. */
typedef struct attention_call {
    int64_t stream;
    int32_t t, s, h, d;
    int32_t causal, has_mask, limit;
    float scale, kept;
    int32_t has_position, n_chunks;
} attention_call;

/* How heads and scores are cut. 16-bit tiles are twice as high, so that a group's memory is full in each case. */
typedef struct attention_cut {
    const char *type;
    int is_half, chunk, n_chunks, n_out, rows, columns;
} attention_cut;

static void cut_wide(attention_cut *cut, int64_t d, int widest)
{
    cut->n_chunks = (int)((d + widest - 1) / widest);
    cut->chunk = (int)((d + cut->n_chunks - 1) / cut->n_chunks + 15) / 16 * 16;
    cut->n_out = 2;
}

static attention_cut cut_for(stk_dtype dtype, int64_t d)
{
    attention_cut cut = {.type = stk_dtype_name(dtype), .is_half = dtype != STK_F32, .n_chunks = 1, .n_out = 1};
    cut.chunk = d <= WIDEST_CHUNK / 2 ? WIDEST_CHUNK / 2 : WIDEST_CHUNK;
    if (d > WIDEST_CHUNK) cut_wide(&cut, d, WIDEST_CHUNK);
    cut.rows = cut.is_half ? 64 : 32;
    cut.columns = 32;
    return cut;
}

static attention_call call_of(const gpu_maker *m, int i_q, int i_rest)
{
    const stk_attrs *attrs = m->call->attrs;
    stk_attention_sizes z = stk_attention_get_sizes(m->call->in[i_q].shape, m->call->in[i_q + 1].shape);
    attention_call c = {.t = (int32_t)z.t, .s = (int32_t)z.s, .h = (int32_t)z.h, .d = (int32_t)z.d};
    c.stream = (int64_t)stk_mix64((uint64_t)attrs->attention.stream);
    c.causal = attrs->attention.causal;
    c.scale = (float)attrs->attention.scale;
    c.has_mask = stk_attention_has_mask(m->call->n_in, i_rest);
    if (stk_attention_has_dropout(m->call->n_in, i_rest)) {
        double rate = attrs->attention.rate;
        c.limit = stk_dropout_limit(rate);
        c.kept = rate < 1 ? (float)(1 / (1 - rate)) : 0;
    }
    return c;
}

static void add(gpu_maker *m, const char *file, const char *kernel, const attention_cut *cut, const char *more)
{
    gpu_add(m, file, kernel,
            "#define T %s\n#define HALF %d\n#define DC %d\n#define STAYS %d\n#define N_OUT %d\n"
            "#define TILE_ROWS %d\n#define TILE_COLUMNS %d\n%s",
            cut->type, cut->is_half, cut->chunk, cut->n_chunks == 1, cut->n_out, cut->rows, cut->columns, more);
}

/* Groups for n_heads heads of n_rows rows. */
static void add_groups(gpu_maker *m, const attention_cut *cut, int64_t n_heads, int64_t n_rows)
{
    gpu_group(m, (uint32_t)(cut->rows * ITEMS_A_ROW), 1, 1);
    gpu_groups(m, n_heads * ((n_rows + cut->rows - 1) / cut->rows), (cut->n_chunks + cut->n_out - 1) / cut->n_out, 1);
}

/* Instead of what a call lacks stands any input, which is not read. */
static void add_optional(gpu_maker *m, const attention_call *c, int i_rest)
{
    gpu_in(m, c->has_mask ? i_rest : 0);
    gpu_in(m, c->limit ? m->call->n_in - 2 : 0);
    gpu_in(m, c->limit ? m->call->n_in - 1 : 0);
}

static void add_position_fault(gpu_maker *m, int64_t n_keys)
{
    gpu_fault(m, STK_INVALID, "position %lld: %lld rows from there on do not lie within the cache's %lld", n_keys);
}

static void add_attention(gpu_maker *m, attention_call c, const attention_cut *cut)
{
    stk_attention_sizes z = stk_attention_get_sizes(m->call->in[0].shape, m->call->in[1].shape);
    add(m, "attention.dev", "attention", cut, "");
    for (int i = 0; i < 3; i++)
        gpu_in(m, i);
    add_optional(m, &c, STK_ATTENTION_FIXED);
    gpu_in(m, c.has_position ? 3 : 0);
    gpu_out(m, 0);
    gpu_out(m, c.has_position ? 0 : 1);
    add_position_fault(m, z.s);
    c.n_chunks = cut->n_chunks;
    gpu_bytes(m, &c, sizeof(c));
    add_groups(m, cut, z.n * z.h, z.t);
}

/* Only two operands stay in a group's memory: there is room for more keys. */
static attention_cut forward_cut_for(const gpu_maker *m)
{
    attention_cut cut = cut_for(m->call->in[0].dtype, m->call->in[0].shape.dim[3]);
    if (cut.is_half) cut.columns = 64;
    return cut;
}

void gpu_make_attention(gpu_maker *m)
{
    attention_cut cut = forward_cut_for(m);
    add_attention(m, call_of(m, 0, STK_ATTENTION_FIXED), &cut);
}

static void add_grad(gpu_maker *m, attention_call c, const attention_cut *cut, size_t dots, bool of_keys)
{
    stk_attention_sizes z = stk_attention_get_sizes(m->call->in[1].shape, m->call->in[2].shape);
    add(m, "attention_grad.dev", "attention_grad", cut, of_keys ? "#define OF_KEYS 1\n" : "#define OF_KEYS 0\n");
    for (int i = 0; i < 4; i++)
        gpu_in(m, i);
    gpu_in(m, 5);
    gpu_scratch(m, dots);
    add_optional(m, &c, STK_ATTENTION_GRAD_FIXED);
    gpu_out(m, of_keys ? 1 : 0);
    gpu_out(m, of_keys ? 2 : 0);
    c.n_chunks = cut->n_chunks;
    gpu_bytes(m, &c, sizeof(c));
    add_groups(m, cut, z.n * z.h, of_keys ? z.s : z.t);
}

void gpu_make_attention_grad(gpu_maker *m)
{
    enum { ROWS = 16 };
    stk_attention_sizes z = stk_attention_get_sizes(m->call->in[1].shape, m->call->in[2].shape);
    attention_cut cut = cut_for(m->call->in[1].dtype, z.d);
    /* Gradients of wide heads fill the registers. */
    if (cut.n_out > 1) cut.columns = 16;
    if (cut.n_out > 1 && !cut.is_half) cut_wide(&cut, z.d, WIDEST_CHUNK * 3 / 4);
    attention_call c = call_of(m, 1, STK_ATTENTION_GRAD_FIXED);
    int64_t n_rows = z.n * z.t * z.h;
    size_t dots = gpu_take(m, (size_t)n_rows * sizeof(float));
    add(m, "attention_grad.dev", "attention_dots", &cut, "#define OF_KEYS 1\n");
    gpu_in(m, 0);
    gpu_in(m, 4);
    gpu_scratch(m, dots);
    gpu_index(m, n_rows);
    gpu_bytes(m, &c, sizeof(c));
    gpu_group(m, ROWS, ROWS, 1);
    gpu_groups(m, (n_rows + ROWS - 1) / ROWS, 1, 1);
    add_grad(m, c, &cut, dots, true);
    add_grad(m, c, &cut, dots, false);
}

/* As cached_attention.dev has it. */
typedef struct cached_sizes {
    int32_t t, s, h, d, n_parts;
    float scale;
} cached_sizes;

static void add_parts(gpu_maker *m, cached_sizes sizes, int64_t n_rows)
{
    enum { ITEMS = 128 };
    stk_dtype dtype = m->call->in[0].dtype;
    const char *type = stk_dtype_name(dtype);
    int each = 16 / (int)stk_dtype_bytes(dtype), n_parts = sizes.n_parts;
    if (sizes.d % each != 0) each = 1;
    size_t sums = gpu_take(m, (size_t)(n_rows * n_parts * sizes.d) * sizeof(float));
    size_t stats = gpu_take(m, (size_t)(n_rows * n_parts * 2) * sizeof(float));
    gpu_add(m, "cached_attention.dev", "attend_part", "#define T %s\n#define EACH %d\n", type, each);
    for (int i = 0; i < 4; i++)
        gpu_in(m, i);
    gpu_scratch(m, sums);
    gpu_scratch(m, stats);
    gpu_bytes(m, &sizes, sizeof(sizes));
    add_position_fault(m, sizes.s);
    gpu_group(m, ITEMS, 1, 1);
    gpu_groups(m, n_rows, n_parts, 1);
    gpu_add(m, "cached_attention.dev", "join_attended", "#define T %s\n#define EACH %d\n", type, each);
    gpu_scratch(m, sums);
    gpu_scratch(m, stats);
    gpu_in(m, 3);
    gpu_out(m, 0);
    gpu_bytes(m, &sizes, sizeof(sizes));
    gpu_index(m, n_rows * sizes.d);
    gpu_items(m, n_rows * sizes.d, 256);
}

/* Many queries, as of a prompt, read each key once for a whole tile of them; few leave most of a tile empty. */
void gpu_make_cached_attention(gpu_maker *m)
{
    enum { PART = 256, FEW = 16 };
    stk_attention_sizes z = stk_attention_get_sizes(m->call->in[0].shape, m->call->in[1].shape);
    attention_call c = {.t = (int32_t)z.t, .s = (int32_t)z.s, .h = (int32_t)z.h, .d = (int32_t)z.d};
    c.scale = (float)m->call->attrs->attention.scale;
    c.causal = c.has_position = 1;
    if (z.t >= FEW) {
        attention_cut cut = forward_cut_for(m);
        add_attention(m, c, &cut);
        return;
    }
    add_parts(m, (cached_sizes){c.t, c.s, c.h, c.d, (int32_t)((z.s + PART - 1) / PART), c.scale}, z.n * z.t * z.h);
}
