/* See print.h. A group is one kernel over its elements; one that ends in a reduction goes along rows or columns of the
 * space seen as a matrix, cut into parts where there would be too few groups, whose results reduce.dev joins. */
#include "device/gpu/ops/print.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/ops/reduce.h"

enum { GROUP = 256, TILE_COLUMNS = 32, TILE_ROWS = 8 };

/* --- the space, with axes joined that every input goes along in the same way --- */

typedef struct space {
    int n_axes;
    int64_t size[STK_MAX_RANK];
    int64_t stride[STK_MAX_RANK][64]; /* by input */
} space;

static bool joins(const stk_fused *program, const space *s, int axis)
{
    int last = s->n_axes - 1;
    for (int j = 0; j < program->n_in; j++)
        if (s->stride[last][j] != program->input[j].stride[axis] * program->shape.dim[axis]) return false;
    return true;
}

static void find_space(const stk_fused *program, space *s)
{
    s->n_axes = 0;
    for (int a = 0; a < program->shape.rank; a++) {
        int64_t n = program->shape.dim[a];
        if (n == 1) continue;
        int at = s->n_axes;
        if (at > 0 && joins(program, s, a)) {
            s->size[--at] *= n;
            s->n_axes--;
        } else {
            s->size[at] = n;
        }
        for (int j = 0; j < program->n_in; j++)
            s->stride[at][j] = program->input[j].stride[a];
        s->n_axes++;
    }
}

/* Every input lies as the outputs do. */
static bool is_whole(const space *s, int j)
{
    int64_t want = 1;
    for (int a = s->n_axes - 1; a >= 0; want *= s->size[a--])
        if (s->stride[a][j] != want) return false;
    return true;
}

/* --- text --- */

static void print_loads(gpu_maker *m, const stk_fused *program, const space *s, stk_text *out)
{
    if (s->n_axes > 1) stk_text_add(out, "    index_t rest = i;\n");
    for (int a = s->n_axes - 1; a > 0 && s->n_axes > 1; a--)
        stk_text_add(out, "    const index_t at%d = rest %% %" PRId64 "; rest /= %" PRId64 ";\n", a, s->size[a],
                     s->size[a]);
    if (s->n_axes > 1) stk_text_add(out, "    const index_t at0 = rest; (void)at0;\n");
    for (int j = 0; j < program->n_in; j++) {
        const char *type = gpu_type(m, program->input[j].dtype);
        if (!type) return;
        stk_text_add(out, "    const value_%s r%d = LOAD(%s, in%d, ", type, j, type, j);
        if (is_whole(s, j)) {
            stk_text_add(out, "i);\n");
            continue;
        }
        const char *plus = "";
        for (int a = 0; a < s->n_axes; a++) {
            if (s->stride[a][j] == 0) continue;
            if (s->n_axes > 1)
                stk_text_add(out, "%sat%d * (index_t)%" PRId64, plus, a, s->stride[a][j]);
            else
                stk_text_add(out, "%si * (index_t)%" PRId64, plus, s->stride[a][j]);
            plus = " + ";
        }
        stk_text_add(out, "%s);\n", *plus ? "" : "0");
    }
}

/* The body for element i, inside of braces. */
static void print_element(gpu_maker *m, const stk_fused *program, const space *s, stk_text *out)
{
    print_loads(m, program, s, out);
    gpu_print_instructions(m, program, out);
    for (int j = 0; j < program->n_out && m->status == STK_OK; j++)
        stk_text_add(out, "    STORE(%s, out%d, i, r%d);\n", gpu_type(m, gpu_register_type(program, program->out[j])),
                     j, program->out[j]);
}

static void print_parameters(gpu_maker *m, const stk_fused *program, stk_text *out)
{
    for (int j = 0; j < program->n_in && m->status == STK_OK; j++)
        stk_text_add(out, "BUFFER(stored_%s, in%d), ", gpu_type(m, program->input[j].dtype), j);
    for (int j = 0; j < program->n_out && m->status == STK_OK; j++)
        stk_text_add(out, "BUFFER(stored_%s, out%d), ", gpu_type(m, gpu_register_type(program, program->out[j])), j);
}

static void print_pointers(gpu_maker *m, const stk_fused *program, stk_text *out)
{
    for (int j = 0; j < program->n_in && m->status == STK_OK; j++)
        stk_text_add(out, "    POINTER(const stored_%s, in%d);\n", gpu_type(m, program->input[j].dtype), j);
    for (int j = 0; j < program->n_out && m->status == STK_OK; j++)
        stk_text_add(out, "    POINTER(stored_%s, out%d);\n", gpu_type(m, gpu_register_type(program, program->out[j])),
                     j);
}

static void print_plain(gpu_maker *m, const stk_fused *program, const space *s, stk_text *out)
{
    stk_text_add(out, "KERNEL(group, %d, 1, 1)(", GROUP);
    print_parameters(m, program, out);
    stk_text_add(out, "index_t n)\n{\n");
    print_pointers(m, program, out);
    stk_text_add(out, "    const index_t i = GROUP_X * %d + ITEM_X;\n    if (i >= n) return;\n", GROUP);
    print_element(m, program, s, out);
    stk_text_add(out, "}\n");
}

/* --- reductions --- */

/* Group (x, y): row x, columns y * n_each and on. Items go along the row. */
static void print_rows(gpu_maker *m, const stk_fused *program, const space *s, stk_text *out)
{
    stk_text_add(out, "KERNEL(group, %d, 1, 1)(", GROUP);
    print_parameters(m, program, out);
    stk_text_add(out, "BUFFER(float, part), index_t n_rows, index_t n_columns, index_t n_each)\n{\n");
    stk_text_add(out, "    SHARED(float, shared, %d);\n", GROUP);
    print_pointers(m, program, out);
    stk_text_add(out,
                 "    POINTER(float, part);\n"
                 "    const index_t row = GROUP_X, begin = GROUP_Y * n_each;\n"
                 "    const index_t end = begin + n_each < n_columns ? begin + n_each : n_columns;\n"
                 "    float sum = REDUCE_FIRST;\n"
                 "    for (index_t c = begin + ITEM_X; c < end; c += %d) {\n"
                 "    const index_t i = row * n_columns + c;\n",
                 GROUP);
    print_element(m, program, s, out);
    stk_text_add(out,
                 "    sum = REDUCE(sum, r%d);\n    }\n"
                 "    shared[ITEM_X] = sum;\n"
                 "    for (int k = %d; k > 0; k /= 2) {\n"
                 "        BARRIER();\n"
                 "        if (ITEM_X < k) shared[ITEM_X] = REDUCE(shared[ITEM_X], shared[ITEM_X + k]);\n"
                 "    }\n"
                 "    if (ITEM_X == 0) part[GROUP_Y * n_rows + row] = shared[0];\n}\n",
                 program->reduce.src, GROUP / 2);
}

/* Group (x, y): columns x * 32 and on, rows y * n_each and on; items along y go along the rows. */
static void print_columns(gpu_maker *m, const stk_fused *program, const space *s, stk_text *out)
{
    stk_text_add(out, "KERNEL(group, %d, %d, 1)(", TILE_COLUMNS, TILE_ROWS);
    print_parameters(m, program, out);
    stk_text_add(out, "BUFFER(float, part), index_t n_rows, index_t n_columns, index_t n_each)\n{\n");
    stk_text_add(out, "    SHARED(float, shared, %d);\n", TILE_COLUMNS * TILE_ROWS);
    print_pointers(m, program, out);
    stk_text_add(out,
                 "    POINTER(float, part);\n"
                 "    const index_t column = GROUP_X * %d + ITEM_X, begin = GROUP_Y * n_each;\n"
                 "    const index_t end = begin + n_each < n_rows ? begin + n_each : n_rows;\n"
                 "    float sum = REDUCE_FIRST;\n"
                 "    if (column < n_columns)\n"
                 "    for (index_t row = begin + ITEM_Y; row < end; row += %d) {\n"
                 "    const index_t i = row * n_columns + column;\n",
                 TILE_COLUMNS, TILE_ROWS);
    print_element(m, program, s, out);
    stk_text_add(
        out,
        "    sum = REDUCE(sum, r%d);\n    }\n"
        "    shared[ITEM_Y * %d + ITEM_X] = sum;\n"
        "    for (int k = %d; k > 0; k /= 2) {\n"
        "        BARRIER();\n"
        "        if (ITEM_Y < k)\n"
        "            shared[ITEM_Y * %d + ITEM_X] = REDUCE(shared[ITEM_Y * %d + ITEM_X], shared[(ITEM_Y + k) * %d "
        "+ ITEM_X]);\n"
        "    }\n"
        "    if (ITEM_Y == 0 && column < n_columns) part[GROUP_Y * n_columns + column] = shared[ITEM_X];\n}\n",
        program->reduce.src, TILE_COLUMNS, TILE_ROWS / 2, TILE_COLUMNS, TILE_COLUMNS, TILE_COLUMNS);
}

/* --- launches --- */

static void add_memory(gpu_maker *m, const stk_fused *program)
{
    for (int j = 0; j < program->n_in; j++)
        gpu_in(m, j);
    for (int j = 0; j < program->n_out; j++)
        gpu_out(m, j);
}

static void add_printed(gpu_maker *m, const stk_fused *program, stk_text *text)
{
    char settings[256] = "";
    gpu_unit *unit = NULL;
    if (program->reduce.axes) gpu_reduce_settings(program->reduce.kind, settings, sizeof(settings));
    if (m->wide) strcat(settings, "#define index_t long\n");
    gpu_fail(m, stk_text_status(text));
    if (m->status == STK_OK) gpu_fail(m, gpu_unit_of_text(m->device, "fused", settings, stk_text_get(text), &unit));
    gpu_add_unit(m, unit, "group");
    add_memory(m, program);
}

static void make_reduction(gpu_maker *m, const stk_fused *program, const space *s, stk_text *text)
{
    stk_fused_matrix matrix;
    if (!stk_fused_find_matrix(program->shape, program->reduce.axes, &matrix)) {
        gpu_refuse(m);
        return;
    }
    int64_t n_each, n_parts;
    int64_t n_left = matrix.by_columns ? matrix.n_columns : matrix.n_rows;
    int64_t n_along = matrix.by_columns ? matrix.n_rows : matrix.n_columns;
    (matrix.by_columns ? print_columns : print_rows)(m, program, s, text);
    n_parts = gpu_reduce_parts(matrix.by_columns ? (n_left + TILE_COLUMNS - 1) / TILE_COLUMNS : n_left, n_along,
                               matrix.by_columns ? TILE_ROWS * 16 : GROUP * 4, &n_each);
    size_t part = gpu_take(m, (size_t)(n_parts * n_left) * sizeof(float));
    add_printed(m, program, text);
    gpu_scratch(m, part);
    gpu_index(m, matrix.n_rows);
    gpu_index(m, matrix.n_columns);
    gpu_index(m, n_each);
    if (matrix.by_columns) {
        gpu_group(m, TILE_COLUMNS, TILE_ROWS, 1);
        gpu_groups(m, (n_left + TILE_COLUMNS - 1) / TILE_COLUMNS, n_parts, 1);
    } else {
        gpu_group(m, GROUP, 1, 1);
        gpu_groups(m, n_left, n_parts, 1);
    }
    gpu_join_parts(m, program->reduce.kind, part, n_parts, n_left, n_along, program->n_out);
}

/* An element is read and written by the same work-item: an output may lie where an input does that is read as it. */
static void set_in_place(gpu_maker *m, const stk_fused *program, const space *s)
{
    for (int i = 0; i < program->n_out && i < 8; i++)
        for (int j = 0; j < program->n_in && j < 32; j++) {
            stk_dtype from = program->input[j].dtype, to = gpu_register_type(program, program->out[i]);
            if (is_whole(s, j) && stk_dtype_bytes(from) == stk_dtype_bytes(to)) m->in_place[i] |= 1u << j;
        }
}

void gpu_make_group(gpu_maker *m, const stk_fused *program)
{
    space s;
    stk_text text = {0};
    if (program->n_in > 64) {
        gpu_fail(m, stk_fail(STK_UNSUPPORTED, "a fused group of more than 64 inputs"));
        return;
    }
    find_space(program, &s);
    set_in_place(m, program, &s);
    if (program->reduce.axes) {
        make_reduction(m, program, &s, &text);
    } else {
        print_plain(m, program, &s, &text);
        add_printed(m, program, &text);
        gpu_index(m, stk_shape_count(program->shape));
        gpu_items(m, stk_shape_count(program->shape), GROUP);
    }
    stk_text_free(&text);
}
