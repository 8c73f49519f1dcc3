/* GridSample: an image read at places that another value tells, each number a sum over the neighbours of its place.
 * Formulas: ONNX's operator description, GridSample-22, as PyTorch's grid_sample.
 */
#include "onnx/build_list.h"

enum { MOST_DIMS = 3, MOST_TAPS = 4 };

typedef enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } grid_padding;

typedef struct grid_sample {
    grid_padding padding;
    bool aligns;
    int n_taps, n_dims; /* taps: neighbours of a place along one axis */
    int64_t size[MOST_DIMS];
} grid_sample;

/* Of one axis: which pixels count, i32, and how much. */
typedef struct grid_axis {
    stk_value index[MOST_TAPS], weight[MOST_TAPS];
} grid_axis;

static stk_value constrain(stk_value x, double low, double high)
{
    return stk_min(stk_max(x, stk_onnx_like(x, low)), stk_onnx_like(x, high));
}

/* Thrown back at both borders, as often as needed. */
static stk_value reflect(stk_value x, double low, double high)
{
    double period = 2 * (high - low);
    if (!(period > 0)) return stk_onnx_like(x, low);
    stk_value from = stk_shift_by(x, -low), turns = stk_floor(stk_scale_by(from, 1 / period));
    stk_value rest = stk_sub(from, stk_scale_by(turns, period));
    return stk_shift_by(stk_min(rest, stk_shift_by(stk_neg(rest), period)), low);
}

static stk_value weight_of(stk_value share, int n_taps, int k)
{
    const double a = -0.75;
    stk_value other = stk_shift_by(stk_neg(share), 1);
    if (n_taps == 1) return stk_onnx_like(share, 1);
    if (n_taps == 2) return k ? share : other;
    stk_value x = k == 0 || k == 1 ? share : other; /* the distance from the inner neighbour on that side */
    if (k == 1 || k == 2)
        return stk_shift_by(stk_mul(stk_mul(stk_shift_by(stk_scale_by(x, a + 2), -(a + 3)), x), x), 1);
    x = stk_shift_by(x, 1);
    stk_value inner = stk_shift_by(stk_mul(stk_shift_by(stk_scale_by(x, a), -5 * a), x), 8 * a);
    return stk_shift_by(stk_mul(inner, x), -4 * a);
}

/* at: places along axis d, from -1 to 1. */
static void read_axis(const grid_sample *g, int d, stk_value at, grid_axis *out)
{
    double n = (double)g->size[d], low = g->aligns ? 0 : -0.5, high = g->aligns ? n - 1 : n - 0.5;
    stk_value x = g->aligns ? stk_scale_by(stk_shift_by(at, 1), (n - 1) / 2)
                            : stk_scale_by(stk_shift_by(stk_scale_by(stk_shift_by(at, 1), n), -1), 0.5);
    if (g->n_taps == 1) x = stk_round(x);
    stk_value beyond = stk_not_equal(stk_less(x, stk_onnx_like(x, low)), stk_greater(x, stk_onnx_like(x, high)));
    if (g->padding == GRID_BORDER) x = stk_select(beyond, constrain(x, 0, n - 1), x);
    if (g->padding == GRID_REFLECTION) x = stk_select(beyond, reflect(x, low, high), x);
    stk_value first = stk_floor(x), share = stk_sub(x, first);
    for (int k = 0; k < g->n_taps; k++) {
        stk_value i = stk_shift_by(first, g->n_taps == 4 ? k - 1 : k), weight = weight_of(share, g->n_taps, k);
        stk_value inside = constrain(i, 0, n - 1);
        if (g->padding == GRID_ZEROS) weight = stk_select(stk_equal(i, inside), weight, stk_onnx_like(weight, 0));
        if (g->padding == GRID_REFLECTION)
            inside = constrain(stk_floor(stk_shift_by(reflect(i, low, high), 1e-3)), 0, n - 1);
        out->index[k] = stk_cast_to(inside, STK_I32);
        out->weight[k] = weight;
    }
}

/* The sum over the neighbours along axes d and behind: place and weight of what was chosen before. */
static stk_value sum_up(const grid_sample *g, const grid_axis *axis, int d, stk_value rows, stk_value place,
                        stk_value weight)
{
    stk_value sum = stk_value_none(rows.graph);
    if (d >= g->n_dims || d >= MOST_DIMS) {
        stk_shape one = stk_value_shape(weight);
        one.dim[one.rank++] = 1;
        stk_value w = stk_reshape(stk_cast_to(weight, stk_value_dtype(rows)), one);
        return stk_mul(stk_gather(rows, place, 0), w);
    }
    for (int k = 0; k < g->n_taps; k++) {
        stk_value at = stk_add(stk_scale_by(place, (double)g->size[d]), axis[d].index[k]);
        stk_value w = weight.id < 0 ? axis[d].weight[k] : stk_mul(weight, axis[d].weight[k]);
        stk_value part = sum_up(g, axis, d + 1, rows, at, w);
        sum = k ? stk_add(sum, part) : part;
    }
    return sum;
}

static grid_sample read_node(const stk_build *b)
{
    grid_sample g = {.padding = GRID_ZEROS, .n_taps = 2, .aligns = stk_onnx_attribute_int(b, "align_corners", 0) != 0};
    if (stk_onnx_attribute_is(b, "padding_mode", "border")) g.padding = GRID_BORDER;
    if (stk_onnx_attribute_is(b, "padding_mode", "reflection")) g.padding = GRID_REFLECTION;
    if (stk_onnx_attribute_is(b, "mode", "nearest")) g.n_taps = 1;
    if (stk_onnx_attribute_is(b, "mode", "bicubic") || stk_onnx_attribute_is(b, "mode", "cubic")) g.n_taps = 4;
    return g;
}

stk_status stk_onnx_build_GridSample(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0), grid = stk_onnx_input(b, 1);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    stk_shape shape = stk_value_shape(x), of = stk_value_shape(grid), places = of;
    grid_sample g = read_node(b);
    grid_axis axis[MOST_DIMS];
    int32_t last[STK_MAX_RANK] = {0}, first[STK_MAX_RANK] = {0};
    g.n_dims = shape.rank - 2;
    if (g.n_dims < 1 || g.n_dims > MOST_DIMS || of.rank != shape.rank || of.dim[of.rank - 1] != g.n_dims)
        return stk_fail(STK_UNSUPPORTED, "its image and its grid do not fit, or have more than %d axes", MOST_DIMS);
    if (!stk_shape_known(shape) || !stk_shape_known(of) || stk_shape_count(shape) > INT32_MAX ||
        of.dim[0] != shape.dim[0])
        return stk_fail(STK_UNSUPPORTED,
                        "the size of its image or its grid is not known, too large, or not the same batch");
    places.rank--;
    for (int d = 0; d < g.n_dims; d++) {
        int64_t start[STK_MAX_RANK] = {0}, stop[STK_MAX_RANK], step[STK_MAX_RANK];
        for (int i = 0; i < of.rank; i++) {
            stop[i] = of.dim[i];
            step[i] = 1;
        }
        /* The grid's numbers stand in the reverse order of axes. */
        start[of.rank - 1] = g.n_dims - 1 - d;
        stop[of.rank - 1] = g.n_dims - d;
        g.size[d] = shape.dim[2 + d];
        read_axis(&g, d, stk_reshape(stk_slice(grid, start, stop, step), places), &axis[d]);
    }
    for (int i = 0; i < shape.rank; i++) {
        last[i] = i == 0 ? 0 : i < shape.rank - 1 ? i + 1 : 1;
        first[i] = i == 0 ? 0 : i == 1 ? shape.rank - 1 : i - 1;
    }
    stk_value rows = stk_reshape(stk_transpose(x, last),
                                 STK_SHAPE(stk_shape_count(shape) / (shape.dim[1] ? shape.dim[1] : 1), shape.dim[1]));
    stk_value sample = stk_iota(x.graph, STK_I32, places, 0);
    return stk_onnx_output(b, 0, stk_transpose(sum_up(&g, axis, 0, rows, sample, stk_value_none(x.graph)), first));
}
