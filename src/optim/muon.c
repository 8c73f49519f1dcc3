/* Muon: momentum, made orthogonal by five steps of a Newton-Schulz iteration (Jordan et al. 2024,
 * kellerjordan.github.io/posts/muon), as torch.optim.Muon, but in the parameter's own precision.
 */
#include <math.h>

#include "base/error.h"
#include "optim/optimizer.h"

enum { ITERATIONS = 5 };

static const stk_key keys[] = {STK_OPTIM_RATE("0.001"),
                               STK_OPTIM_SHARE("momentum", "0.95", "Of the gradient."),
                               {.name = "nesterov",
                                .type = STK_KEY_BOOL,
                                .default_value = "false",
                                .doc = "Nesterov's momentum, which is on in torch unless said otherwise."},
                               STK_OPTIM_SHARE("weight_decay", NULL, "Taken from the weights. Default: 0.1."),
                               {.name = "rest_lr",
                                .type = STK_KEY_REAL,
                                .default_value = "0.0003",
                                .least = 0,
                                .above = true,
                                .doc = "AdamW's rate for vectors, embeddings and the last layer."},
                               STK_OPTIM_END};

static stk_status check(const stk_optimizer *o)
{
    if (o->lr > 0) return STK_OK; /* The others' rate is a share of it. */
    return stk_fail(STK_INVALID, "optimizer: lr is %g, and must be more than 0", o->lr);
}

static stk_value times(stk_value a, stk_value b, bool transpose_b)
{
    return stk_matmul(a, b, false, transpose_b);
}

/* About U V^T of x = U S V^T: singular values near 1. Works on the side that has fewer rows. */
static stk_value make_orthogonal(stk_value x, double eps)
{
    static const double a = 3.4445, b = -4.7750, c = 2.0315;
    stk_shape shape = stk_value_shape(x);
    bool is_tall = shape.dim[0] > shape.dim[1];
    const int32_t flip[2] = {1, 0};
    if (is_tall) x = stk_transpose(x, flip);
    stk_value norm = stk_sqrt(stk_reduce_sum(stk_square(x), 0));
    stk_value least = stk_shift_by(stk_scale_by(norm, 0), eps);
    x = stk_div(x, stk_max(norm, least));
    for (int i = 0; i < ITERATIONS; i++) {
        stk_value gram = times(x, x, true);
        stk_value polynomial = stk_add(stk_scale_by(gram, b), stk_scale_by(times(gram, gram, false), c));
        x = stk_add(stk_scale_by(x, a), times(polynomial, x, false));
    }
    return is_tall ? stk_transpose(x, flip) : x;
}

/* [O, everything else]. */
static stk_shape as_matrix(stk_shape shape)
{
    int64_t n = 1;
    for (int i = 1; i < shape.rank; i++)
        n *= shape.dim[i];
    return STK_SHAPE(shape.dim[0], n);
}

static void add_matrix(const stk_optim_step *s)
{
    const stk_optimizer *o = s->settings;
    stk_shape shape = stk_value_shape(s->param), matrix = as_matrix(shape);
    stk_value momentum = stk_optim_state(s->param, "momentum");
    stk_value fresh = stk_add(stk_scale_by(momentum, o->momentum), stk_scale_by(s->grad, 1 - o->momentum));
    stk_value update = fresh;
    stk_graph_update(s->param.graph, momentum, fresh);
    if (o->nesterov) update = stk_add(stk_scale_by(s->grad, 1 - o->momentum), stk_scale_by(fresh, o->momentum));
    update = stk_reshape(make_orthogonal(stk_reshape(update, matrix), o->eps), shape);
    double tall = (double)matrix.dim[0] / (double)matrix.dim[1];
    stk_value step = stk_mul(update, stk_scale_by(s->lr, tall > 1 ? sqrt(tall) : 1));
    stk_value kept = s->param;
    if (s->weight_decay != 0) kept = stk_sub(kept, stk_mul(kept, stk_scale_by(s->lr, s->weight_decay)));
    stk_graph_update(s->param.graph, s->param, stk_sub(kept, step));
}

static bool reads(const stk_node *node, int32_t value)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] == value) return true;
    return false;
}

/* Embeddings and the last layer are not matrices that turn one layer into the next; so are vectors. */
bool stk_optim_muon_takes(const stk_graph *graph, stk_value loss, stk_value param)
{
    stk_shape shape = stk_value_shape(param);
    if (shape.rank < 2 || shape.dim[0] < 2 || stk_shape_product(shape, 1, shape.rank) < 2) return false;
    int32_t last = -1;
    for (int32_t i = 0; i < graph->n_nodes && i <= graph->value[loss.id].node; i++) {
        const stk_node *node = &graph->node[i];
        if (node->op == STK_OP_gather && node->in[0] == param.id) return false;
        bool is_layer =
            node->op == STK_OP_matmul || node->op == STK_OP_conv2d || node->op == STK_OP_linear_cross_entropy;
        if (is_layer) last = i;
    }
    return last < 0 || !reads(&graph->node[last], param.id);
}

/* The other parameters: AdamW with its usual eps, at a rate that keeps its share of Muon's. */
static void add_rest(const stk_optim_step *s)
{
    stk_optim_step rest = *s;
    stk_optimizer adamw = *s->settings;
    adamw.eps = 1e-8;
    rest.settings = &adamw;
    rest.lr = stk_scale_by(s->lr, adamw.rest_lr / adamw.lr);
    stk_optim_adam(&rest, true);
}

static void add(const stk_optim_step *s)
{
    if (stk_optim_muon_takes(s->param.graph, s->loss, s->param))
        add_matrix(s);
    else
        add_rest(s);
}

const stk_optimizer_class stk_optimizer_class_muon = {
    .key = STK_OPTIM_KIND("muon", keys, "Jordan et al. 2024: hidden matrices."),
    .defaults = {.lr = 0.001,
                 .momentum = 0.95,
                 .weight_decay = 0.1,
                 .beta1 = 0.9,
                 .beta2 = 0.999,
                 .eps = 1e-7,
                 .rest_lr = 3e-4},
    .counts = true,
    .check = check,
    .add = add,
};
