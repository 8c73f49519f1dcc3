/* Rows added up by number without atomics, so that the same call gives the same bits: scatter_add.dev. Few ids are
 * asked for by every place of the result; many are sorted first. */
#include "base/error.h"
#include "device/gpu/gpu.h"

enum { GROUP = 256, DIGIT_BITS = 8, N_DIGITS = 256, LEAST_BLOCK = 2048, MOST_BLOCKS = 512, LEAST_PIECE = 64 };
enum { FEW_IDS = 8, FEW_TESTS = 1 << 24 };

static const char wrong_id[] = "id %lld at position %lld is not one of the %lld rows";

typedef struct scatter {
    const char *type;
    int64_t n_outer, n_axis, n_inner, n_ids;
    int64_t n_each, n_blocks; /* ids that one group sorts; groups */
    int64_t n_piece;          /* sources of a piece */
    int sorted;               /* which half of ids and positions the last pass wrote */
    size_t ids[2], positions[2], counts, starts, piece;
} scatter;

/* Smaller ones until pieces are about as many as what is in one. */
static int64_t choose_piece(int64_t n_ids)
{
    int64_t n = LEAST_PIECE;
    while (n * n < n_ids)
        n *= 2;
    return n;
}

static void take_scratch(gpu_maker *m, scatter *s)
{
    size_t ids_bytes = (size_t)s->n_ids * sizeof(int32_t);
    s->n_each = (s->n_ids + MOST_BLOCKS - 1) / MOST_BLOCKS;
    s->n_each = s->n_each < LEAST_BLOCK ? LEAST_BLOCK : (s->n_each + GROUP - 1) / GROUP * GROUP;
    s->n_blocks = (s->n_ids + s->n_each - 1) / s->n_each;
    s->n_piece = choose_piece(s->n_ids);
    for (int k = 0; k < 2; k++) {
        s->ids[k] = gpu_take(m, ids_bytes);
        s->positions[k] = gpu_take(m, ids_bytes);
    }
    s->counts = gpu_take(m, (size_t)(N_DIGITS * s->n_blocks) * sizeof(int32_t));
    s->starts = gpu_take(m, (size_t)(s->n_axis + 1) * sizeof(int32_t));
    s->piece = gpu_take(m, (size_t)(s->n_ids / s->n_piece * s->n_outer * s->n_inner) * sizeof(float));
}

static void add_ids(gpu_maker *m, const scatter *s, int pass)
{
    if (pass == 0)
        gpu_in(m, 1);
    else
        gpu_scratch(m, s->ids[(pass - 1) % 2]);
}

static void add_sort_numbers(gpu_maker *m, const scatter *s, int pass)
{
    gpu_int(m, (int32_t)s->n_ids);
    gpu_int(m, (int32_t)s->n_each);
    gpu_int(m, (int32_t)s->n_axis);
    gpu_int(m, DIGIT_BITS * pass);
    gpu_int(m, pass == 0);
}

static void add_pass(gpu_maker *m, scatter *s, int pass)
{
    gpu_add(m, "scatter_add.dev", "count_digits", "%s", "");
    add_ids(m, s, pass);
    gpu_scratch(m, s->counts);
    add_sort_numbers(m, s, pass);
    gpu_fault(m, STK_NO_ROW, wrong_id, s->n_axis);
    gpu_group(m, GROUP, 1, 1);
    gpu_groups(m, s->n_blocks, 1, 1);

    gpu_add(m, "scatter_add.dev", "sum_counts", "%s", "");
    gpu_scratch(m, s->counts);
    gpu_int(m, (int32_t)s->n_blocks);
    gpu_group(m, GROUP, 1, 1);

    gpu_add(m, "scatter_add.dev", "place_digits", "%s", "");
    add_ids(m, s, pass);
    gpu_scratch(m, s->positions[(pass + 1) % 2]);
    gpu_scratch(m, s->counts);
    gpu_scratch(m, s->ids[pass % 2]);
    gpu_scratch(m, s->positions[pass % 2]);
    add_sort_numbers(m, s, pass);
    gpu_group(m, GROUP, 1, 1);
    gpu_groups(m, s->n_blocks, 1, 1);
    s->sorted = pass % 2;
}

static void add_starts(gpu_maker *m, const scatter *s)
{
    gpu_add(m, "scatter_add.dev", "find_starts", "%s", "");
    gpu_scratch(m, s->ids[s->sorted]);
    gpu_scratch(m, s->starts);
    gpu_int(m, (int32_t)s->n_ids);
    gpu_int(m, (int32_t)s->n_axis);
    gpu_items(m, s->n_axis + 1, GROUP);
}

static void add_pieces(gpu_maker *m, const scatter *s)
{
    int64_t n_columns = s->n_outer * s->n_inner, n = s->n_ids / s->n_piece * n_columns;
    if (n == 0) return;
    gpu_add(m, "scatter_sum.dev", "sum_pieces", "#define T %s\n", s->type);
    gpu_in(m, 0);
    gpu_scratch(m, s->ids[s->sorted]);
    gpu_scratch(m, s->positions[s->sorted]);
    gpu_scratch(m, s->piece);
    gpu_index(m, s->n_ids);
    gpu_int(m, (int32_t)s->n_piece);
    gpu_index(m, s->n_inner);
    gpu_index(m, n_columns);
    gpu_index(m, n);
    gpu_items(m, n, GROUP);
}

static void add_rows(gpu_maker *m, const scatter *s)
{
    int64_t n_columns = s->n_outer * s->n_inner;
    bool has_base = m->call->n_in == 3;
    gpu_add(m, "scatter_sum.dev", "sum_rows", "#define T %s\n", s->type);
    gpu_in(m, 0);
    gpu_in(m, has_base ? 2 : 0);
    gpu_scratch(m, s->positions[s->sorted]);
    gpu_scratch(m, s->starts);
    gpu_scratch(m, s->piece);
    gpu_out(m, 0);
    gpu_int(m, has_base);
    gpu_index(m, s->n_ids);
    gpu_index(m, s->n_axis);
    gpu_int(m, (int32_t)s->n_piece);
    gpu_index(m, s->n_inner);
    gpu_index(m, n_columns);
    gpu_index(m, s->n_axis * n_columns);
    gpu_items(m, s->n_axis * n_columns, GROUP);
}

static void add_matches(gpu_maker *m, const scatter *s)
{
    bool has_base = m->call->n_in == 3;
    gpu_add(m, "scatter_sum.dev", "sum_matches", "#define T %s\n", s->type);
    gpu_in(m, 0);
    gpu_in(m, 1);
    gpu_in(m, has_base ? 2 : 0);
    gpu_out(m, 0);
    gpu_int(m, has_base);
    gpu_int(m, (int32_t)s->n_ids);
    gpu_index(m, s->n_axis);
    gpu_index(m, s->n_inner);
    gpu_index(m, s->n_outer * s->n_axis * s->n_inner);
    gpu_fault(m, STK_NO_ROW, wrong_id, s->n_axis);
    gpu_items(m, s->n_outer * s->n_axis * s->n_inner, GROUP);
}

void gpu_make_scatter_add(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    stk_shape y = call->out[0].shape;
    int axis = call->attrs->axis;
    scatter s = {.type = gpu_type(m, call->out[0].dtype),
                 .n_outer = stk_shape_product(y, 0, axis),
                 .n_axis = y.dim[axis],
                 .n_inner = stk_shape_product(y, axis + 1, y.rank),
                 .n_ids = stk_shape_count(call->in[1].shape)};
    int64_t n = stk_shape_count(y);
    if (n == 0) return;
    if (call->n_in == 3) m->in_place[0] = 1u << 2;
    if (s.n_ids > INT32_MAX / 2 || s.n_axis > INT32_MAX / 2) {
        gpu_fail(m, stk_fail(STK_UNSUPPORTED, "scatter_add of more than 2^30 ids or rows"));
        return;
    }
    if (s.n_ids <= FEW_IDS || n <= FEW_TESTS / s.n_ids) {
        add_matches(m, &s);
        return;
    }
    take_scratch(m, &s);
    for (int pass = 0; pass == 0 || (s.n_axis - 1) >> DIGIT_BITS * pass > 0; pass++)
        add_pass(m, &s, pass);
    add_starts(m, &s);
    add_pieces(m, &s);
    add_rows(m, &s);
}
