/* Reductions over any axes: one launch for each run of neighbouring axes that are reduced, the last run first, and one
 * more for each that is cut into parts. In between lie f32, or i64 for integers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/gpu/ops/reduce.h"

enum { GROUP = 256, MOST_COLUMNS = 32, LEAST_ROWS = 128 };

/* Axes that are reduced, or are not, joined with their neighbours of the same kind. */
typedef struct run_list {
    int64_t size[STK_MAX_RANK];
    bool is_reduced[STK_MAX_RANK];
    int n;
} run_list;

static void find_runs(stk_shape x, uint32_t axes, run_list *out)
{
    out->n = 0;
    for (int a = 0; a < x.rank; a++) {
        bool is_reduced = axes >> a & 1;
        if (x.dim[a] == 1) continue;
        if (out->n > 0 && out->is_reduced[out->n - 1] == is_reduced) {
            out->size[out->n - 1] *= x.dim[a];
            continue;
        }
        out->size[out->n] = x.dim[a];
        out->is_reduced[out->n++] = is_reduced;
    }
}

/* --- settings --- */

static int64_t lowest_integer(stk_dtype dtype)
{
    return dtype == STK_I64 ? INT64_MIN : dtype == STK_I32 ? INT32_MIN : dtype == STK_I8 ? INT8_MIN : 0;
}

static int64_t highest_integer(stk_dtype dtype)
{
    return dtype == STK_I64 ? INT64_MAX : dtype == STK_I32 ? INT32_MAX : dtype == STK_I8 ? INT8_MAX : UINT8_MAX;
}

/* Sums and products of integers wrap. A hexadecimal number may be the lowest one. */
static void print_integer_settings(int kind, stk_dtype dtype, char *out, size_t n)
{
    bool is_max = kind == STK_REDUCE_MAX, is_most = is_max || kind == STK_REDUCE_MIN;
    int64_t first = is_max ? lowest_integer(dtype) : is_most ? highest_integer(dtype) : kind == STK_REDUCE_PROD ? 1 : 0;
    const char *how = is_max                    ? "((a) > (b) ? (a) : (b))"
                      : is_most                 ? "((a) < (b) ? (a) : (b))"
                      : kind == STK_REDUCE_PROD ? "((i64)((u64)(a) * (u64)(b)))"
                                                : "((i64)((u64)(a) + (u64)(b)))";
    snprintf(out, n, "#define ACC i64\n#define REDUCE_FIRST ((i64)0x%" PRIx64 "ul)\n#define REDUCE(a, b) %s\n%s",
             (uint64_t)first, how, "#define FINISH(x) (x)\n");
}

static void print_settings(int kind, stk_dtype dtype, char *out, size_t n)
{
    char reduce[256];
    if (!stk_dtype_is_float(dtype)) {
        print_integer_settings(kind, dtype, out, n);
        return;
    }
    gpu_reduce_settings(kind, reduce, sizeof(reduce));
    snprintf(out, n, "#define ACC float\n#define FINISH(x) ((x) / divisor)\n%s", reduce);
}

/* --- launches --- */

typedef struct pass_list {
    gpu_maker *m;
    char settings[512];
    stk_dtype between; /* the dtype of what lies in scratch memory */
    double divisor;    /* of the last pass */
    size_t from;       /* what the next pass reads of scratch memory */
    bool has_from;     /* else it reads input 0 */
    int i_out;
} pass_list;

/* Memory of the pass: to [n_parts,n_outer,n_inner] in scratch memory, or the output. */
static void add_pass(pass_list *p, const char *kernel, bool is_last, size_t to)
{
    gpu_maker *m = p->m;
    gpu_add(m, "reduce_axis.dev", kernel, "%s#define T %s\n#define D %s\n", p->settings,
            stk_dtype_name(p->has_from ? p->between : m->call->in[0].dtype),
            stk_dtype_name(is_last ? m->call->out[p->i_out].dtype : p->between));
    if (p->has_from)
        gpu_scratch(m, p->from);
    else
        gpu_in(m, 0);
    if (is_last)
        gpu_out(m, p->i_out);
    else
        gpu_scratch(m, to);
}

/* The smallest power of 2 that is not less than n, and at most `most`. */
static int power_for(int64_t n, int most)
{
    int power = 1;
    while (power < most && power < n)
        power *= 2;
    return power;
}

/* is_last: what comes out is the result, unless it is in parts, which is_whole forbids. */
static void reduce_axis(pass_list *p, int64_t n_outer, int64_t n_along, int64_t n_inner, bool is_last, bool is_whole)
{
    gpu_maker *m = p->m;
    bool by_rows = n_inner == 1;
    int n_side = by_rows ? GROUP / power_for(n_along / 4, GROUP) : power_for(n_inner, MOST_COLUMNS);
    int64_t n_groups = by_rows ? (n_outer + n_side - 1) / n_side : n_outer * ((n_inner + n_side - 1) / n_side), n_each;
    int64_t least = is_whole ? n_along + 1 : by_rows ? GROUP * 4 : LEAST_ROWS;
    int64_t n_parts = gpu_reduce_parts(n_groups, n_along, least, &n_each);
    bool ends = is_last && n_parts == 1;
    size_t to = ends ? 0 : gpu_take(m, (size_t)(n_parts * n_outer * n_inner) * stk_dtype_bytes(p->between));
    add_pass(p, by_rows ? "reduce_rows" : "reduce_columns", ends, to);
    gpu_index(m, n_outer);
    gpu_index(m, n_along);
    if (!by_rows) gpu_index(m, n_inner);
    gpu_index(m, n_each);
    gpu_int(m, by_rows ? GROUP / n_side : n_side);
    gpu_float(m, ends ? p->divisor : 1);
    gpu_group(m, GROUP, 1, 1);
    gpu_groups(m, n_groups, n_parts, 1);
    p->from = to;
    p->has_from = true;
    if (n_parts > 1) reduce_axis(p, 1, n_parts, n_outer * n_inner, is_last, true);
}

void gpu_sum_parts(gpu_maker *m, size_t part, int64_t n_parts, int64_t n, int i_out)
{
    pass_list p = {.m = m, .divisor = 1, .between = STK_F32, .from = part, .has_from = true, .i_out = i_out};
    print_settings(STK_REDUCE_SUM, STK_F32, p.settings, sizeof(p.settings));
    reduce_axis(&p, 1, n_parts, n, true, false);
}

static int64_t product_of(const run_list *runs, int begin, int end)
{
    int64_t product = 1;
    for (int i = begin; i < end; i++)
        product *= runs->size[i];
    return product;
}

void gpu_make_reduce(gpu_maker *m)
{
    const stk_op_call *call = m->call;
    int kind = call->attrs->reduce.kind, n_left = 0;
    run_list runs;
    find_runs(call->in[0].shape, call->attrs->reduce.axes, &runs);
    pass_list p = {.m = m, .divisor = 1, .between = stk_dtype_is_float(call->in[0].dtype) ? STK_F32 : STK_I64};
    print_settings(kind, call->in[0].dtype, p.settings, sizeof(p.settings));
    for (int i = 0; i < runs.n; i++) {
        n_left += runs.is_reduced[i];
        if (kind == STK_REDUCE_MEAN && runs.is_reduced[i]) p.divisor *= (double)runs.size[i];
    }
    /* Of nothing, or nothing at all; else a copy. */
    bool is_empty = stk_shape_count(call->in[0].shape) == 0;
    if (n_left == 0 || is_empty) {
        reduce_axis(&p, stk_shape_count(call->out[0].shape), is_empty ? 0 : 1, 1, true, true);
        return;
    }
    for (int i = runs.n - 1; i >= 0; i--) {
        if (!runs.is_reduced[i]) continue;
        reduce_axis(&p, product_of(&runs, 0, i), runs.size[i], product_of(&runs, i + 1, runs.n), --n_left == 0, false);
        runs.size[i] = 1;
    }
}
