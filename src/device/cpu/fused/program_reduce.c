/* Groups that end in a reduction: what is cut where, and the run. See program_reduce.h. */
#include "device/cpu/fused/program_reduce.h"

#include "base/error.h"

/* ROW_BAND: elements, of rows short and long, which are to stay in the first-level cache. COLUMN_BAND: bytes, in the
 * second-level cache; BUFFERED_BAND: where each thread needs memory for it. */
enum { ROW_BAND = 1024, PIECE_BANDS = 16, COLUMN_BAND = 262144, BUFFERED_BAND = 65536 };
enum { MOST_UNITS = 16, MOST_OUT = 16 };

/* --- preparing --- */

stk_status stk_fused_program_reduce_extend(stk_arena *arena, const stk_fused *group, stk_fused *out, int32_t *i_value)
{
    *out = *group;
    for (*i_value = 0; *i_value < group->n_out; ++*i_value)
        if (group->out[*i_value] == group->reduce.src) return STK_OK;
    int32_t *with = stk_arena_alloc(arena, ((size_t)group->n_out + 1) * sizeof(*with));
    if (!with) return stk_fail_memory(((size_t)group->n_out + 1) * sizeof(*with));
    for (int32_t o = 0; o < group->n_out; o++)
        with[o] = group->out[o];
    with[group->n_out] = group->reduce.src;
    out->out = with;
    out->n_out++;
    return STK_OK;
}

static bool has_long_rows(const stk_fused_matrix *m)
{
    return !m->by_columns && m->n_columns > ROW_BAND;
}

bool stk_fused_program_reduce_repeats(const stk_fused *group, int64_t period)
{
    stk_fused_matrix m;
    stk_fused_find_matrix(group->shape, group->reduce.axes, &m);
    return m.n_columns % period == 0 && (!has_long_rows(&m) || ROW_BAND % period == 0);
}

static void cut(stk_fused_program_reduce *r, int64_t count, bool is_buffered)
{
    int64_t n_columns = r->matrix.n_columns, n_rows = r->matrix.n_rows;
    r->n_results = r->matrix.by_columns ? n_columns : n_rows;
    r->way = r->matrix.by_columns                      ? STK_REDUCE_COLUMNS
             : has_long_rows(&r->matrix) || count == 0 ? STK_REDUCE_LONG_ROWS
                                                       : STK_REDUCE_SHORT_ROWS;
    r->band = r->unit = ROW_BAND;
    if (count == 0) return;
    if (r->way == STK_REDUCE_LONG_ROWS) {
        r->unit *= PIECE_BANDS;
        r->n_pieces = (n_columns + r->unit - 1) / r->unit;
        r->n_units = n_rows * r->n_pieces;
        return;
    }
    int64_t most = (is_buffered ? BUFFERED_BAND : COLUMN_BAND) >> r->value_log2_bytes, n_bands;
    int64_t band_rows = (r->way == STK_REDUCE_SHORT_ROWS ? ROW_BAND : most) / n_columns;
    if (r->way == STK_REDUCE_COLUMNS && band_rows > STK_REDUCE_ROWS) band_rows = STK_REDUCE_ROWS;
    if (band_rows < 1) band_rows = 1;
    n_bands = (n_rows + band_rows - 1) / band_rows;
    r->band = r->unit = band_rows * n_columns;
    if (r->way == STK_REDUCE_COLUMNS) r->unit *= (n_bands + MOST_UNITS - 1) / MOST_UNITS;
    r->n_units = (count + r->unit - 1) / r->unit;
}

static const stk_reduce_fns *find_fns(const stk_reduce_table *table, int kind, stk_dtype dtype)
{
    return kind == STK_REDUCE_MAX   ? &table->max[dtype]
           : kind == STK_REDUCE_MIN ? &table->min[dtype]
                                    : &table->sum[dtype];
}

stk_status stk_fused_program_reduce_make(stk_fused_program_builder *b, int32_t i_value, const stk_reduce_table *table)
{
    stk_element_program *p = b->program;
    const stk_fused_reduce *reduce = &b->group->reduce;
    stk_dtype value = stk_fused_program_dtype(b, b->out[i_value]);
    stk_dtype result = reduce->wide && value != STK_F64 ? STK_F32 : value;
    stk_fused_program_reduce *r = stk_arena_alloc(b->arena, sizeof(*r));
    if (!r) return stk_fail_memory(sizeof(*r));
    if (!stk_fused_find_matrix(b->group->shape, reduce->axes, &r->matrix))
        return stk_fail(STK_UNSUPPORTED, "the cpu device reduces groups over their first or last axes alone");
    r->fns = *find_fns(table, reduce->kind, value);
    if (!r->fns.run || !stk_dtype_is_float(value))
        return stk_fail(STK_UNSUPPORTED, "the cpu device has no '%s' of %s in groups", stk_reduce_name(reduce->kind),
                        stk_dtype_name(value));
    r->fns.finish = table->sum[result].finish;
    r->i_value = i_value;
    r->value_log2_bytes = stk_dtype_log2(value);
    r->result_log2_bytes = stk_dtype_log2(result);
    r->divisor = 1;
    if (reduce->kind == STK_REDUCE_MEAN)
        r->divisor = (double)(r->matrix.by_columns ? r->matrix.n_rows : r->matrix.n_columns);
    cut(r, p->count, p->band_output >= 0);
    r->buffer_offset = p->thread_bytes;
    if (p->band_output >= 0) p->thread_bytes += (((size_t)r->band << r->value_log2_bytes) + 63) / 64 * 64;
    p->reduce = r;
    return STK_OK;
}

static int64_t count_accumulators(const stk_fused_program_reduce *r)
{
    if (r->way == STK_REDUCE_SHORT_ROWS) return 0;
    if (r->way == STK_REDUCE_LONG_ROWS) return r->n_units;
    return r->n_results * (r->n_units > 1 ? r->n_units : 1);
}

size_t stk_fused_program_reduce_scratch(const stk_element_program *p)
{
    return p->thread_bytes * (size_t)p->n_threads + (size_t)count_accumulators(p->reduce) * sizeof(stk_wide);
}

/* --- running --- */

typedef struct share {
    const stk_fused_program_reduce *r;
    stk_fused_program_walk walk;
    void *out[MOST_OUT + 1];
    char *buffer, *result;
    stk_wide *acc; /* of all units */
} share;

/* Makes elements begin .. end-1, at most a band; returns those of the value. */
static const char *make_band(share *s, int64_t begin, int64_t end)
{
    const stk_element_program *p = s->walk.program;
    int64_t block = p->block;
    for (int64_t i = begin, n; i < end; i += n) {
        n = end - i < block ? end - i : block;
        if (p->band_output >= 0) s->out[p->band_output] = s->buffer + ((size_t)(i - begin) << s->r->value_log2_bytes);
        stk_fused_program_run_block(&s->walk, i, n);
    }
    if (p->band_output >= 0) return s->buffer;
    return (char *)s->out[s->r->i_value] + ((size_t)begin << s->r->value_log2_bytes);
}

static void reduce_short_rows(share *s, int64_t begin, int64_t end)
{
    const stk_fused_program_reduce *r = s->r;
    int64_t n_columns = r->matrix.n_columns;
    const char *value = make_band(s, begin, end);
    for (int64_t i = begin / n_columns; i < end / n_columns; i++) {
        stk_wide acc = r->fns.first;
        r->fns.run(n_columns, value, &acc);
        r->fns.finish(1, &acc, r->divisor, s->result + ((size_t)i << r->result_log2_bytes));
        value += (size_t)n_columns << r->value_log2_bytes;
    }
}

static void reduce_piece(share *s, int64_t begin, int64_t end, stk_wide *acc)
{
    *acc = s->r->fns.first;
    for (int64_t i = begin, n; i < end; i += n) {
        n = end - i < s->r->band ? end - i : s->r->band;
        s->r->fns.run(n, make_band(s, i, i + n), acc);
    }
}

static void start_accumulators(const stk_fused_program_reduce *r, int64_t n, stk_wide *acc)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] = r->fns.first;
}

static void reduce_columns(share *s, int64_t begin, int64_t end, stk_wide *acc)
{
    const stk_fused_program_reduce *r = s->r;
    int64_t n_columns = r->matrix.n_columns;
    start_accumulators(r, n_columns, acc);
    for (int64_t i = begin, n; i < end; i += n) {
        n = end - i < r->band ? end - i : r->band;
        r->fns.columns(n / n_columns, n_columns, make_band(s, i, i + n), n_columns, acc);
    }
}

static void reduce_unit(share *s, int64_t unit)
{
    const stk_fused_program_reduce *r = s->r;
    int64_t begin = unit * r->unit, end = s->walk.program->count;
    if (r->way == STK_REDUCE_LONG_ROWS) {
        int64_t row = unit / r->n_pieces;
        begin = row * r->matrix.n_columns + unit % r->n_pieces * r->unit;
        end = (row + 1) * r->matrix.n_columns;
    }
    if (end - begin > r->unit) end = begin + r->unit;
    if (r->way == STK_REDUCE_SHORT_ROWS)
        reduce_short_rows(s, begin, end);
    else if (r->way == STK_REDUCE_LONG_ROWS)
        reduce_piece(s, begin, end, s->acc + unit);
    else
        reduce_columns(s, begin, end, s->acc + unit * r->n_results);
}

static void reduce_share(const void *state, int i_part, int n_parts)
{
    const stk_cpu_task *task = state;
    const stk_element_program *p = task->state;
    int32_t n_own = p->n_out - (p->band_output >= 0);
    char *scratch = task->args->scratch, *own = scratch + p->thread_bytes * (size_t)i_part;
    int64_t begin, end;
    stk_cpu_share(p->reduce->n_units, 1, i_part, n_parts, &begin, &end);
    if (begin >= end) return;
    share s = {.r = p->reduce,
               .buffer = own + p->reduce->buffer_offset,
               .result = task->args->out[n_own],
               .acc = (stk_wide *)(void *)(scratch + p->thread_bytes * (size_t)n_parts)};
    for (int32_t o = 0; o < n_own; o++)
        s.out[o] = task->args->out[o];
    s.walk = (stk_fused_program_walk){.program = p, .in = task->args->in, .out = s.out, .at = (void **)(void *)own};
    stk_fused_program_begin(&s.walk);
    for (int64_t unit = begin; unit < end; unit++)
        reduce_unit(&s, unit);
}

static void finish_rows(const stk_fused_program_reduce *r, const stk_wide *all, int64_t begin, int64_t end,
                        char *result)
{
    for (int64_t i = begin; i < end; i++) {
        stk_wide acc = r->fns.first;
        for (int64_t k = 0; k < r->n_pieces; k++)
            r->fns.merge(1, &all[i * r->n_pieces + k], &acc);
        r->fns.finish(1, &acc, r->divisor, result + ((size_t)i << r->result_log2_bytes));
    }
}

static void finish_columns(const stk_fused_program_reduce *r, stk_wide *all, int64_t begin, int64_t end, char *result)
{
    int64_t n = end - begin;
    if (r->n_units == 0) start_accumulators(r, n, all + begin);
    for (int64_t unit = 1; unit < r->n_units; unit++)
        r->fns.merge(n, all + unit * r->n_results + begin, all + begin);
    r->fns.finish(n, all + begin, r->divisor, result + ((size_t)begin << r->result_log2_bytes));
}

static void finish_share(const void *state, int i_part, int n_parts)
{
    const stk_cpu_task *task = state;
    const stk_element_program *p = task->state;
    char *scratch = (char *)task->args->scratch + p->thread_bytes * (size_t)p->n_threads;
    char *result = task->args->out[p->n_out - (p->band_output >= 0)];
    int64_t begin, end;
    stk_cpu_share(p->reduce->n_results, 8, i_part, n_parts, &begin, &end);
    if (p->reduce->way == STK_REDUCE_LONG_ROWS)
        finish_rows(p->reduce, (stk_wide *)(void *)scratch, begin, end, result);
    else
        finish_columns(p->reduce, (stk_wide *)(void *)scratch, begin, end, result);
}

stk_status stk_fused_program_reduce_run(const void *state, const stk_kernel_args *args)
{
    const stk_element_program *p = state;
    stk_cpu_task task = {state, args};
    stk_cpu_parallel(p->n_threads, reduce_share, &task);
    if (p->reduce->way == STK_REDUCE_SHORT_ROWS) return STK_OK;
    int n_threads = stk_cpu_threads_for((double)count_accumulators(p->reduce), p->n_threads);
    stk_cpu_parallel(n_threads, finish_share, &task);
    return STK_OK;
}
