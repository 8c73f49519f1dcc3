/* ScatterElements (Scatter before opset 11) and ScatterND: numbers put, added, multiplied or compared into places of
 * others. Both are rows into rows: ScatterElements of all axes laid flat, ScatterND of the axes that an index names.
 */
#include "onnx/build_list.h"

enum { MOST_COMPARED = 1 << 24 };

typedef enum scatter_kind { SCATTER_PUT, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN } scatter_kind;

static scatter_kind kind_of(const stk_build *b)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (int i = SCATTER_ADD; i <= SCATTER_MIN; i++)
        if (stk_onnx_attribute_is(b, "reduction", names[i])) return (scatter_kind)i;
    return SCATTER_PUT;
}

/* Sums are of floats: integers go through doubles, where they are exact up to 2^53. */
static stk_value add_rows(stk_value base, stk_value ids, stk_value rows)
{
    stk_dtype dtype = stk_value_dtype(base);
    if (stk_dtype_is_float(dtype)) return stk_scatter_add(base, ids, rows, 0);
    return stk_cast_to(stk_scatter_add(stk_cast_to(base, STK_F64), ids, stk_cast_to(rows, STK_F64), 0), dtype);
}

/* base where no row is put, and rows where they are; of rows for one place the last stands. */
static stk_value put_rows(stk_value base, stk_value ids, stk_value rows)
{
    stk_shape shape = stk_value_shape(base), marks = shape;
    stk_graph *graph = base.graph;
    for (int i = 1; i < shape.rank; i++)
        marks.dim[i] = 1;
    int64_t n = stk_shape_count(stk_value_shape(ids));
    /* Which row is the last for a place: 1 and its number, counted up by the largest. */
    stk_value number = stk_iota(graph, STK_I32, STK_SHAPE(n, 1), 0);
    stk_value place = stk_iota(graph, STK_I32, STK_SHAPE(1, shape.dim[0]), 1);
    stk_value here = stk_equal(stk_reshape(ids, STK_SHAPE(n, 1)), place);
    stk_value last = stk_reduce_max(stk_select(here, number, stk_onnx_like(number, -1)), 1);
    stk_value none = stk_less(last, stk_onnx_like(last, 0));
    stk_shape of_rows = shape;
    of_rows.dim[0] = n;
    stk_value chosen = stk_gather(stk_reshape(rows, of_rows), stk_max(last, stk_onnx_like(last, 0)), 0);
    return stk_select(stk_reshape(none, marks), base, chosen);
}

/* The same where no two rows are for one place, which ONNX wants: they are added to zeros. */
static stk_value put_distinct_rows(stk_value base, stk_value ids, stk_value rows)
{
    stk_shape line = {.rank = 1, .dim = {stk_value_shape(base).dim[0]}}, marks = stk_value_shape(base);
    for (int i = 1; i < marks.rank; i++)
        marks.dim[i] = 1;
    stk_value zeros = stk_graph_constant(base.graph, STK_F32, line, 0);
    stk_value ones = stk_graph_constant(base.graph, STK_F32, stk_value_shape(ids), 1);
    stk_value marked = stk_reshape(stk_greater(stk_scatter_add(zeros, ids, ones, 0), stk_onnx_like(zeros, 0)), marks);
    return add_rows(stk_select(marked, stk_onnx_like(base, 0), base), ids, rows);
}

/* The extreme or the product of base and the rows of each place, all compared with all places. */
static stk_value combine_rows(stk_value base, stk_value ids, stk_value rows, scatter_kind kind)
{
    stk_shape shape = stk_value_shape(base), to = {.rank = shape.rank + 1}, of_ids = {.rank = shape.rank + 1};
    int64_t n = stk_shape_count(stk_value_shape(ids));
    to.dim[0] = of_ids.dim[0] = n;
    to.dim[1] = 1;
    of_ids.dim[1] = 1;
    stk_shape places = of_ids;
    places.dim[0] = 1;
    places.dim[1] = shape.dim[0];
    for (int i = 1; i < shape.rank; i++) {
        to.dim[1 + i] = shape.dim[i];
        of_ids.dim[1 + i] = places.dim[1 + i] = 1;
    }
    stk_value here = stk_equal(stk_reshape(ids, of_ids), stk_iota(base.graph, STK_I32, places, 1));
    stk_value one = stk_onnx_like(base, 1), each = stk_reshape(rows, to);
    if (kind == SCATTER_MUL) return stk_mul(base, stk_reduce_prod(stk_select(here, each, one), 1));
    /* Elsewhere the place's own number is compared with itself. */
    stk_value candidates = stk_select(here, each, base);
    if (kind == SCATTER_MAX) return stk_max(base, stk_reduce_max(candidates, 1));
    return stk_min(base, stk_reduce_min(candidates, 1));
}

/* base [n,...], ids i32 [...], rows [...ids, ...]: back in base's shape. */
static stk_value scatter_rows(stk_build *b, stk_value base, stk_value ids, stk_value rows)
{
    scatter_kind kind = kind_of(b);
    int64_t n_ids = stk_shape_count(stk_value_shape(ids)), n = stk_shape_count(stk_value_shape(base));
    if (kind == SCATTER_ADD) return add_rows(base, ids, rows);
    if (n_ids == 0) return base;
    ids = stk_onnx_within(ids, stk_value_shape(base).dim[0]);
    int64_t compared = kind == SCATTER_PUT ? stk_value_shape(base).dim[0] : n;
    bool fits = n_ids <= MOST_COMPARED / (compared > 0 ? compared : 1);
    if (kind == SCATTER_PUT) return fits ? put_rows(base, ids, rows) : put_distinct_rows(base, ids, rows);
    if (!fits) {
        stk_graph_keep_error(base.graph, stk_fail(STK_UNSUPPORTED,
                                                  "its %lld indices and %lld places are more than can be compared here",
                                                  (long long)n_ids, (long long)compared));
        return stk_value_none(base.graph);
    }
    return combine_rows(base, ids, rows, kind);
}

static stk_status build_elements(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), ids = stk_onnx_input(b, 1), rows = stk_onnx_input(b, 2);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x), to = stk_value_shape(ids);
    int axis;
    STK_RETURN_IF_ERROR(stk_onnx_settle_axis(stk_onnx_attribute_int(b, "axis", 0), shape.rank, &axis));
    if (to.rank != shape.rank || !stk_shape_known(shape) || !stk_shape_known(to) || stk_shape_count(shape) > INT32_MAX)
        return stk_fail(STK_UNSUPPORTED, "its indices do not fit its input, or the size of one is not known");
    stk_value flat = stk_reshape(x, STK_SHAPE(stk_shape_count(shape))),
              place = stk_onnx_place_of_elements(ids, shape, axis);
    int64_t n = stk_shape_count(to);
    stk_value y = scatter_rows(b, flat, stk_reshape(place, STK_SHAPE(n)), stk_reshape(rows, STK_SHAPE(n)));
    return stk_onnx_output(b, 0, stk_reshape(y, shape));
}

stk_status stk_onnx_build_ScatterElements(stk_build *b)
{
    return build_elements(b);
}

stk_status stk_onnx_build_Scatter(stk_build *b)
{
    return build_elements(b);
}

stk_status stk_onnx_build_ScatterND(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), ids = stk_onnx_input(b, 1), rows = stk_onnx_input(b, 2), flat, place;
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x);
    STK_RETURN_IF_ERROR(stk_onnx_place_of_vectors(x, ids, &flat, &place));
    return stk_onnx_output(b, 0, stk_reshape(scatter_rows(b, flat, place, rows), shape));
}
