/* See print.h. A group is one kernel over its elements, where a GPU's work-item has some neighbours; one that ends in a
 * reduction goes along rows or columns of the
 * space seen as a matrix, cut into parts where there would be too few groups, whose results reduce.dev joins. */
#include "device/gpu/ops/print.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "device/gpu/ops/reduce.h"

enum { GROUP = 256, TILE_COLUMNS = 32, TILE_ROWS = 8, PACK_BYTES = 16, MOST_PACKED = 8 };

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

/* Element `i` of the outputs by its place on each axis. */
static void print_places(const space *s, const char *i, stk_text *out)
{
    if (s->n_axes < 2) return;
    stk_text_add(out, "    index_t rest = %s;\n", i);
    for (int a = s->n_axes - 1; a > 0; a--)
        stk_text_add(out, "    const index_t at%d = rest %% %" PRId64 "; rest /= %" PRId64 ";\n", a, s->size[a],
                     s->size[a]);
    stk_text_add(out, "    const index_t at0 = rest; (void)at0;\n");
}

/* Where input j has it. */
static void print_at(const space *s, int j, const char *i, stk_text *out)
{
    const char *plus = "";
    if (is_whole(s, j)) {
        stk_text_add(out, "%s", i);
        return;
    }
    for (int a = 0; a < s->n_axes; a++) {
        if (s->stride[a][j] == 0) continue;
        if (s->n_axes > 1)
            stk_text_add(out, "%sat%d * (index_t)%" PRId64, plus, a, s->stride[a][j]);
        else
            stk_text_add(out, "%s%s * (index_t)%" PRId64, plus, i, s->stride[a][j]);
        plus = " + ";
    }
    if (!*plus) stk_text_add(out, "0");
}

static void print_load(gpu_maker *m, const stk_fused *program, const space *s, int j, const char *i, stk_text *out)
{
    const char *type = gpu_type(m, program->input[j].dtype);
    if (!type) return;
    stk_text_add(out, "    const value_%s r%d = LOAD(%s, in%d, ", type, j, type, j);
    print_at(s, j, i, out);
    stk_text_add(out, ");\n");
}

static void print_loads(gpu_maker *m, const stk_fused *program, const space *s, stk_text *out)
{
    print_places(s, "i", out);
    for (int j = 0; j < program->n_in && m->status == STK_OK; j++)
        print_load(m, program, s, j, "i", out);
}

/* The body for element i, inside of braces. */
static void print_element(gpu_maker *m, const stk_fused *program, const space *s, stk_text *out)
{
    print_loads(m, program, s, out);
    gpu_print_instructions(m, program, false, out);
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

/* --- packs: neighbours along the last axis, in 16 bytes at a time, of one work-item --- */

static bool is_packed(const space *s, int j)
{
    return s->stride[s->n_axes - 1][j] == 1;
}

/* An input goes along the last axis, from multiples of n, or is the same all along it. */
static bool can_pack(const space *s, int j, int64_t n)
{
    const int last = s->n_axes - 1;
    if (s->stride[last][j] != 0 && s->stride[last][j] != 1) return false;
    for (int a = 0; a < last && is_packed(s, j); a++)
        if (s->stride[a][j] % n != 0) return false;
    return true;
}

/* How many elements a work-item takes: as many as the narrowest floats of 16 bytes are; else 1. */
static int choose_pack(const gpu_maker *m, const stk_fused *program, const space *s)
{
    const gpu_chip *chip = &m->device->chip;
    int n = 4, n_packed = program->n_out;
    if ((!chip->is_gpu && !chip->has_fragments) || s->n_axes == 0) return 1;
    for (int j = 0; j < program->n_in; j++) {
        if (!is_packed(s, j)) continue;
        n_packed++;
        if (stk_dtype_bytes(program->input[j].dtype) == 2) n = PACK_BYTES / 2;
    }
    for (int j = 0; j < program->n_out; j++)
        if (stk_dtype_bytes(gpu_register_type(program, program->out[j])) == 2) n = PACK_BYTES / 2;
    if (n_packed > MOST_PACKED || s->size[s->n_axes - 1] % n != 0) return 1;
    for (int j = 0; j < program->n_in; j++)
        if (!can_pack(s, j, n)) return 1;
    return n;
}

static bool has_packs(stk_dtype dtype)
{
    return dtype == STK_F32 || dtype == STK_BF16 || dtype == STK_F16;
}

/* Before the loop over a pack's elements: all of packed floats; what is the same for all. */
static void print_pack_loads(gpu_maker *m, const stk_fused *program, const space *s, int n, stk_text *out)
{
    for (int j = 0; j < program->n_in && m->status == STK_OK; j++) {
        const stk_dtype dtype = program->input[j].dtype;
        const char *type = gpu_type(m, dtype);
        if (!is_packed(s, j)) {
            print_load(m, program, s, j, "first", out);
            continue;
        }
        stk_text_add(out, "    const index_t from%d = ", j);
        print_at(s, j, "first", out);
        stk_text_add(out, ";\n");
        if (!has_packs(dtype)) continue;
        stk_text_add(out, "    float x%d[%d];\n", j, n);
        for (int k = 0; k < n; k += PACK_BYTES / (int)stk_dtype_bytes(dtype))
            stk_text_add(out, "    LOAD_PACK(%s, in%d + from%d + %d, x%d + %d);\n", type, j, j, k, j, k);
    }
}

static void print_pack_element(gpu_maker *m, const stk_fused *program, const space *s, int n, stk_text *out)
{
    stk_text_add(out, "    UNROLL\n    for (int k = 0; k < %d; k++) {\n    const index_t i = first + k; (void)i;\n", n);
    for (int j = 0; j < program->n_in && m->status == STK_OK; j++) {
        const char *type = gpu_type(m, program->input[j].dtype);
        if (!is_packed(s, j)) continue;
        if (has_packs(program->input[j].dtype))
            stk_text_add(out, "    const value_%s r%d = x%d[k];\n", type, j, j);
        else
            stk_text_add(out, "    const value_%s r%d = LOAD(%s, in%d, from%d + k);\n", type, j, type, j, j);
    }
    gpu_print_instructions(m, program, n == GPU_DROPOUT_BITS, out);
    for (int j = 0; j < program->n_out && m->status == STK_OK; j++) {
        const stk_dtype dtype = gpu_register_type(program, program->out[j]);
        if (has_packs(dtype))
            stk_text_add(out, "    y%d[k] = r%d;\n", j, program->out[j]);
        else
            stk_text_add(out, "    STORE(%s, out%d, i, r%d);\n", gpu_type(m, dtype), j, program->out[j]);
    }
    stk_text_add(out, "    }\n");
}

static void print_packs(gpu_maker *m, const stk_fused *program, const space *s, int n, stk_text *out)
{
    stk_text_add(out, "KERNEL(group, %d, 1, 1)(", GROUP);
    print_parameters(m, program, out);
    stk_text_add(out, "index_t n)\n{\n");
    print_pointers(m, program, out);
    stk_text_add(out, "    const index_t first = (GROUP_X * %d + ITEM_X) * %d;\n    if (first >= n) return;\n", GROUP,
                 n);
    print_places(s, "first", out);
    print_pack_loads(m, program, s, n, out);
    if (n == GPU_DROPOUT_BITS) gpu_print_dropout_blocks(program, out);
    for (int j = 0; j < program->n_out; j++)
        if (has_packs(gpu_register_type(program, program->out[j]))) stk_text_add(out, "    float y%d[%d];\n", j, n);
    print_pack_element(m, program, s, n, out);
    for (int j = 0; j < program->n_out && m->status == STK_OK; j++) {
        const stk_dtype dtype = gpu_register_type(program, program->out[j]);
        for (int k = 0; has_packs(dtype) && k < n; k += PACK_BYTES / (int)stk_dtype_bytes(dtype))
            stk_text_add(out, "    STORE_PACK(%s, out%d + first + %d, y%d + %d);\n", gpu_type(m, dtype), j, k, j, k);
    }
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
        const int64_t n = stk_shape_count(program->shape);
        const int pack = choose_pack(m, program, &s);
        if (pack > 1)
            print_packs(m, program, &s, pack, &text);
        else
            print_plain(m, program, &s, &text);
        add_printed(m, program, &text);
        gpu_index(m, n);
        gpu_items(m, n / pack, GROUP);
    }
    stk_text_free(&text);
}
