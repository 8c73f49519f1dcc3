/* Atan, Asin, Acos. The rational approximation and its three ranges are Cephes' (Moshier 1989, atan.c), right to the
 * last places of a double; asin and acos are the angle of the half tangent, so that nothing is lost near 1.
 */
#include <math.h>

#include "onnx/build_list.h"

static stk_value horner(stk_value z, const double *c, int n)
{
    stk_value y = stk_onnx_like(z, c[0]);
    for (int i = 1; i < n; i++)
        y = stk_add(stk_mul(y, z), stk_onnx_like(z, c[i]));
    return y;
}

/* Of x >= 0. */
static stk_value atan_of_size(stk_value x)
{
    static const double p[] = {-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                               -1.228866684490136173410e2, -6.485021904942025371773e1};
    static const double q[] = {1,
                               2.485846490142306297962e1,
                               1.650270098316988542046e2,
                               4.328810604912902668951e2,
                               4.853903996359136964868e2,
                               1.945506571482613964425e2};
    stk_value one = stk_onnx_like(x, 1), far = stk_greater(x, stk_onnx_like(x, 2.41421356237309504880));
    stk_value near = stk_less_equal(x, stk_onnx_like(x, 0.66));
    stk_value middle = stk_div(stk_sub(stk_min(x, stk_onnx_like(x, 3)), one), stk_add(x, one));
    stk_value r = stk_select(near, x, stk_select(far, stk_neg(stk_reciprocal(x)), middle)), z = stk_mul(r, r);
    stk_value start =
        stk_select(near, stk_onnx_like(x, 0),
                   stk_select(far, stk_onnx_like(x, 1.57079632679489661923), stk_onnx_like(x, 0.78539816339744830962)));
    stk_value series = stk_mul(stk_mul(r, z), stk_div(horner(z, p, 5), horner(z, q, 6)));
    return stk_add(start, stk_add(series, r));
}

static stk_value wide(stk_value x)
{
    return stk_value_dtype(x) == STK_F64 ? x : stk_cast_to(x, STK_F32);
}

static stk_value atan_of(stk_value x)
{
    stk_value negative = stk_less(x, stk_onnx_like(x, 0)), y = atan_of_size(stk_abs(x));
    return stk_select(negative, stk_neg(y), y);
}

static stk_status put(stk_build *b, stk_value y)
{
    return stk_onnx_output(b, 0, stk_cast_to(y, stk_value_dtype(stk_onnx_input(b, 0))));
}

stk_status stk_onnx_build_Atan(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    return put(b, atan_of(wide(x)));
}

stk_status stk_onnx_build_Asin(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    x = wide(x);
    stk_value one = stk_onnx_like(x, 1), rest = stk_sqrt(stk_mul(stk_sub(one, x), stk_add(one, x)));
    return put(b, stk_scale_by(atan_of(stk_div(x, stk_add(one, rest))), 2));
}

stk_status stk_onnx_build_Acos(stk_build *b)
{
    stk_value x = stk_onnx_input(b, 0);
    STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
    x = wide(x);
    stk_value one = stk_onnx_like(x, 1), half = stk_sqrt(stk_div(stk_sub(one, x), stk_add(one, x)));
    return put(b, stk_scale_by(atan_of_size(half), 2));
}
