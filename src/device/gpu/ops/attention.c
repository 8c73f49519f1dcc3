/* Attention, its gradient, and attention to a cache: attention.dev, attention_grad.dev, both as fragments have them
 * (attention_fragments.h), and cached_attention.dev. */
#include "graph/attention.h"

#include <stdio.h>

#include "base/rng.h"
#include "device/gpu/gpu.h"

enum { WIDEST_CHUNK = 64, ITEMS_A_ROW = 2, WIDEST_IN_FRAGMENTS = 64 };

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
    int parts;         /* 16s of rows that a warp has */
    bool in_fragments; /* by the kernels for chips that have them */
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
    cut.parts = 1;
    return cut;
}

/* Narrow heads whose rows begin at multiples of 16 bytes. */
static bool fits_fragments(const gpu_maker *m, stk_dtype dtype, int64_t d, float scale)
{
    return m->device->chip.has_fragments && dtype != STK_F32 && d % 8 == 0 && d <= WIDEST_IN_FRAGMENTS && scale > 0;
}

/* A warp has 32 rows instead of 16 where its registers have room: the other operand is then read half as often. */
static attention_cut cut_in_fragments(stk_dtype dtype, int64_t d, int parts)
{
    attention_cut cut = cut_for(dtype, d);
    cut.parts = parts;
    cut.rows = 64 * parts;
    cut.columns = 64;
    cut.in_fragments = true;
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
            "#define TILE_ROWS %d\n#define TILE_COLUMNS %d\n#define PARTS %d\n%s",
            cut->type, cut->is_half, cut->chunk, cut->n_chunks == 1, cut->n_out, cut->rows, cut->columns, cut->parts,
            more);
}

static void add_in_fragments(gpu_maker *m, const char *file, const char *kernel, const attention_cut *cut,
                             const attention_call *c, bool of_keys)
{
    char more[96];
    snprintf(more, sizeof(more), "#define MASKED %d\n#define DROPS %d\n#define OF_KEYS %d\n", c->has_mask,
             c->limit != 0, of_keys);
    add(m, file, kernel, cut, more);
}

/* Groups for n_heads heads of n_rows rows. */
static void add_groups(gpu_maker *m, const attention_cut *cut, int64_t n_heads, int64_t n_rows)
{
    gpu_group(m, (uint32_t)(cut->rows * ITEMS_A_ROW / cut->parts), 1, 1);
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
    if (cut->in_fragments)
        add_in_fragments(m, "attention_fragments.dev", "attention_fragments", cut, &c, false);
    else
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
static attention_cut forward_cut_for(const gpu_maker *m, const attention_call *c)
{
    stk_dtype dtype = m->call->in[0].dtype;
    attention_cut cut = cut_for(dtype, c->d);
    if (fits_fragments(m, dtype, c->d, c->scale)) return cut_in_fragments(dtype, c->d, c->limit || c->has_mask ? 1 : 2);
    if (cut.is_half) cut.columns = 64;
    return cut;
}

void gpu_make_attention(gpu_maker *m)
{
    attention_call c = call_of(m, 0, STK_ATTENTION_FIXED);
    attention_cut cut = forward_cut_for(m, &c);
    add_attention(m, c, &cut);
}

/* sums: of each query, for the kernels in fragments the log of its exponentials' too. */
static void add_grad(gpu_maker *m, attention_call c, const attention_cut *cut, size_t sums, bool of_keys)
{
    stk_attention_sizes z = stk_attention_get_sizes(m->call->in[1].shape, m->call->in[2].shape);
    if (cut->in_fragments)
        add_in_fragments(m, "attention_grad_fragments.dev", "attention_grad_fragments", cut, &c, of_keys);
    else
        add(m, "attention_grad.dev", "attention_grad", cut, of_keys ? "#define OF_KEYS 1\n" : "#define OF_KEYS 0\n");
    for (int i = 0; i < 4; i++)
        gpu_in(m, i);
    if (!cut->in_fragments) gpu_in(m, 5);
    gpu_scratch(m, sums);
    add_optional(m, &c, STK_ATTENTION_GRAD_FIXED);
    gpu_out(m, of_keys ? 1 : 0);
    gpu_out(m, of_keys ? 2 : 0);
    c.n_chunks = cut->n_chunks;
    gpu_bytes(m, &c, sizeof(c));
    add_groups(m, cut, z.n * z.h, of_keys ? z.s : z.t);
}

static void make_grad_in_fragments(gpu_maker *m, attention_call c, int64_t n_rows)
{
    enum { ITEMS = 256, ITEMS_OF_A_ROW = 8 };
    attention_cut cut = cut_in_fragments(m->call->in[1].dtype, c.d, 1);
    size_t stats = gpu_take(m, (size_t)n_rows * 2 * sizeof(float));
    add_in_fragments(m, "attention_grad_fragments.dev", "attention_stats", &cut, &c, true);
    gpu_in(m, 0);
    gpu_in(m, 4);
    gpu_in(m, 5);
    gpu_scratch(m, stats);
    gpu_index(m, n_rows);
    gpu_bytes(m, &c, sizeof(c));
    gpu_items(m, n_rows * ITEMS_OF_A_ROW, ITEMS);
    add_grad(m, c, &cut, stats, true);
    add_grad(m, c, &cut, stats, false);
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
    if (fits_fragments(m, m->call->in[1].dtype, z.d, c.scale)) {
        make_grad_in_fragments(m, c, n_rows);
        return;
    }
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
        attention_cut cut = forward_cut_for(m, &c);
        add_attention(m, c, &cut);
        return;
    }
    add_parts(m, (cached_sizes){c.t, c.s, c.h, c.d, (int32_t)((z.s + PART - 1) / PART), c.scale}, z.n * z.t * z.h);
}
