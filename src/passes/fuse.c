/* Fuse: element-wise nodes become groups that run as one kernel each, with a reduction of what one of them makes.
 *
 * Members are unary, binary, compare, select, cast and dropout nodes of one shape (the iteration space). Broadcasts and
 * constants are not members: a group reads through them, with stride 0 or as an immediate, so that they are never
 * stored.
 *
 *   walk backwards; node p joins the group of its first user of the same shape
 *     unless one waits for the other over nodes outside (the joined group would wait for itself)
 *   walk again; groups of which one reads the other join in the same way
 *   each group takes one reduction of a member (fuse_reduce.h), first of all one whose value nobody else reads
 *   then each group of more than one member, with a reduction, or with something to read through, becomes one node
 *   `fused`
 *
 * A member used outside the group is one of its outputs. Paths are looked for on the graph of groups, since a group
 * runs as a whole. A reduction reads nothing but its member, so that no path can lead back to the group.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/fused.h"
#include "passes/fuse_reduce.h"
#include "passes/group_order.h"
#include "passes/passes.h"

enum { DEFAULT_INPUTS = 12, DEFAULT_INSTR = 48, MOST_OUT = 8 };

typedef struct fuser {
    stk_graph *graph;
    int32_t n_nodes, n_values; /* before fused nodes are added */
    int32_t *group;            /* by node: the smallest node number of its group; itself when alone */
    int32_t *n_members;        /* by group */
    int32_t *next;             /* by node: the next member of its group, which is named after the first; -1: the last */
    int32_t *reduction;        /* by group: the reduce node that it ends in; -1: none */
    int32_t *first_user, *user;
    bool *is_root;   /* by node: the graph gives one of its values */
    stk_groups view; /* the above */
    stk_group_order order;
    int32_t *value_mark; /* by value, for counting */
    int32_t n_count;
    int32_t *replace;
    int32_t *age; /* by node, fused ones too: a group runs in the place of its last member */
    int32_t most_in, most_instr;
} fuser;

static bool can_join(const stk_graph *graph, const stk_node *node)
{
    switch (node->op) {
    case STK_OP_unary:
    case STK_OP_binary:
    case STK_OP_compare:
    case STK_OP_select:
    case STK_OP_cast: return true;
    case STK_OP_dropout: return graph->value[node->in[0]].desc.shape.rank > 0;
    default: return false;
    }
}

/* The value that a group reads for `value`: through broadcasts to their source. */
static int32_t read_through(const stk_graph *graph, int32_t value)
{
    const stk_node *node = &graph->node[graph->value[value].node];
    while (node->op == STK_OP_broadcast) {
        value = node->in[0];
        node = &graph->node[graph->value[value].node];
    }
    return value;
}

static bool is_constant(const stk_graph *graph, int32_t value)
{
    return graph->node[graph->value[value].node].op == STK_OP_constant;
}

static stk_status list_users(fuser *f)
{
    stk_graph *graph = f->graph;
    int32_t n_edges = 0, *fill = f->age; /* not yet filled */
    for (int32_t i = 0; i < f->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++, n_edges++)
            f->first_user[graph->value[graph->node[i].in[j]].node + 1]++;
    for (int32_t i = 0; i < f->n_nodes; i++)
        f->first_user[i + 1] += f->first_user[i];
    f->user = malloc(((size_t)n_edges + 1) * sizeof(*f->user));
    if (!f->user) return stk_fail_memory((size_t)n_edges * sizeof(*f->user));
    memcpy(fill, f->first_user, (size_t)f->n_nodes * sizeof(*fill));
    for (int32_t i = 0; i < f->n_nodes; i++)
        for (int j = 0; j < graph->node[i].n_in; j++)
            f->user[fill[graph->value[graph->node[i].in[j]].node]++] = i;
    return STK_OK;
}

/* True when something else than members of groups a and b uses node i. */
static bool used_outside(const fuser *f, int32_t i, int32_t a, int32_t b)
{
    for (int32_t k = f->first_user[i]; k < f->first_user[i + 1]; k++)
        if (f->group[f->user[k]] != a && f->group[f->user[k]] != b) return true;
    return f->is_root[i];
}

/* Takes the member of groups a and b that comes first; both below 0: there is none left. */
static int32_t next_of_both(const fuser *f, int32_t *a, int32_t *b)
{
    int32_t *from = *b < 0 || (*a >= 0 && *a < *b) ? a : b, i = *from;
    if (i >= 0) *from = f->next[i];
    return i;
}

/* Distinct inputs and outputs that groups a and b would have together. */
static void count_ends(fuser *f, int32_t a, int32_t b, int32_t *n_in, int32_t *n_out)
{
    stk_graph *graph = f->graph;
    int32_t now = ++f->n_count;
    *n_in = *n_out = 0;
    int32_t rest_a = a, rest_b = b;
    for (int32_t i; (i = next_of_both(f, &rest_a, &rest_b)) >= 0;) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; j < node->n_in; j++) {
            int32_t value = read_through(graph, node->in[j]), maker = graph->value[value].node;
            if (f->group[maker] == a || f->group[maker] == b || is_constant(graph, value) ||
                f->value_mark[value] == now)
                continue;
            f->value_mark[value] = now;
            ++*n_in;
        }
        *n_out += used_outside(f, i, a, b);
    }
}

static void join(fuser *f, int32_t a, int32_t b)
{
    int32_t name = a < b ? a : b, n = f->n_members[a] + f->n_members[b], first, *end = &first;
    stk_group_order_join(&f->order, a, b);
    for (int32_t i; (i = next_of_both(f, &a, &b)) >= 0;) {
        f->group[i] = name;
        *end = i;
        end = &f->next[i];
    }
    *end = -1;
    f->n_members[name] = n;
}

/* Joins the group of node p with that of its first user with which it may. */
static void try_to_join(fuser *f, int32_t p)
{
    stk_graph *graph = f->graph;
    const stk_node *node = &graph->node[p];
    stk_shape shape = graph->value[node->first_out].desc.shape;
    int32_t its = f->group[p];
    if (!can_join(graph, node)) return;
    for (int32_t k = f->first_user[p]; k < f->first_user[p + 1]; k++) {
        int32_t user = f->user[k], g = f->group[user], n_in, n_out;
        if (g == its || !can_join(graph, &graph->node[user])) continue;
        if (!stk_shape_equal(shape, graph->value[graph->node[user].first_out].desc.shape)) continue;
        count_ends(f, g, its, &n_in, &n_out);
        if (f->n_members[g] + f->n_members[its] > f->most_instr || n_in > f->most_in || n_out > MOST_OUT) continue;
        if (stk_group_order_waits(&f->order, g, its) || stk_group_order_waits(&f->order, its, g)) continue;
        join(f, g, its);
        return;
    }
}

/* Gives reductions to groups that have none. alone: of values that nothing else reads, which are never stored then. */
static void take_reductions(fuser *f, bool alone)
{
    for (int32_t i = 0; i < f->n_nodes; i++) {
        const stk_node *node = &f->graph->node[i];
        if (node->op != STK_OP_reduce || f->group[i] != i) continue;
        int32_t maker = f->graph->value[node->in[0]].node, g = f->group[maker];
        if (!can_join(f->graph, &f->graph->node[maker]) || f->reduction[g] >= 0) continue;
        bool is_stored = used_outside(f, maker, g, i);
        if ((alone && is_stored) || !stk_fuse_may_reduce(f->graph, node, is_stored)) continue;
        f->reduction[g] = i;
        f->group[i] = g;
    }
}

/* --- writing a group down --- */

typedef struct group_writer {
    fuser *f;
    int32_t g, last;  /* its first and last member */
    bool is_backward; /* one of its members is */
    stk_fused program;
    stk_fused_input input[64];
    stk_value in[64];
    stk_fused_instr instr[256];
    int32_t out[MOST_OUT], out_value[MOST_OUT], reduced_value;
    /* by value: its register, counted from the inputs for inputs and from 1000 for instructions; -1 between groups */
    int32_t *reg;
} group_writer;

enum { INSTR_BASE = 1000 };

/* Element strides of a tensor `src` read over `space` by numpy's rule. */
static void broadcast_strides(stk_shape src, stk_shape space, int64_t *stride)
{
    int64_t step = 1;
    for (int i = space.rank - 1; i >= 0; i--) {
        int k = i - (space.rank - src.rank);
        stride[i] = k < 0 || (src.dim[k] == 1 && space.dim[i] != 1) ? 0 : step;
        if (k >= 0) step *= src.dim[k];
    }
}

static int32_t add_instr(group_writer *w, const stk_fused_instr *instr)
{
    w->instr[w->program.n_instr] = *instr;
    return INSTR_BASE + w->program.n_instr++;
}

/* The register that holds `value` for members of the group. whole: read as it is, not over the iteration space (the
 * scalars of dropout have rank 0, so that their strides are 0 in any case). */
static int32_t operand(group_writer *w, int32_t value)
{
    stk_graph *graph = w->f->graph;
    int32_t source = read_through(graph, value);
    if (w->reg[value] >= 0) return w->reg[value];
    stk_tensor_desc desc = graph->value[source].desc;
    if (is_constant(graph, source)) {
        stk_fused_instr instr = {.op = STK_OP_constant,
                                 .dtype = desc.dtype,
                                 .src_dtype = desc.dtype,
                                 .operand = {-1, -1, -1},
                                 .value = graph->node[graph->value[source].node].attrs.constant.value};
        return w->reg[value] = add_instr(w, &instr);
    }
    stk_fused_input *input = &w->input[w->program.n_in];
    memset(input, 0, sizeof(*input));
    input->dtype = desc.dtype;
    broadcast_strides(desc.shape, w->program.shape, input->stride);
    w->in[w->program.n_in] = stk_value_of(graph, source);
    return w->reg[value] = w->program.n_in++;
}

static void write_member(group_writer *w, const stk_node *node)
{
    stk_graph *graph = w->f->graph;
    stk_fused_instr instr = {.op = node->op, .operand = {-1, -1, -1}};
    instr.dtype = graph->value[node->first_out].desc.dtype;
    instr.src_dtype = graph->value[node->in[node->op == STK_OP_select ? 1 : 0]].desc.dtype;
    if (node->op == STK_OP_unary || node->op == STK_OP_binary || node->op == STK_OP_compare)
        instr.kind = node->attrs.element.kind;
    if (node->op == STK_OP_dropout) {
        instr.value = node->attrs.dropout.rate;
        instr.stream = node->attrs.dropout.stream;
    }
    for (int j = 0; j < node->n_in; j++)
        instr.operand[j] = operand(w, node->in[j]);
    w->reg[node->first_out] = add_instr(w, &instr);
}

static int32_t final_register(const group_writer *w, int32_t reg)
{
    return reg >= INSTR_BASE ? w->program.n_in + reg - INSTR_BASE : reg;
}

/* Adds the fused node and sends the users of its members to it. */
static stk_status finish_group(group_writer *w)
{
    stk_graph *graph = w->f->graph;
    stk_attrs attrs = stk_attrs_zero();
    for (int i = 0; i < w->program.n_instr; i++)
        for (int j = 0; j < 3; j++)
            if (w->instr[i].operand[j] >= 0) w->instr[i].operand[j] = final_register(w, w->instr[i].operand[j]);
    for (int i = 0; i < w->program.n_out; i++)
        w->out[i] = final_register(w, w->out[i]);
    if (w->program.reduce.axes) w->program.reduce.src = final_register(w, w->program.reduce.src);
    w->program.input = w->input;
    w->program.instr = w->instr;
    w->program.out = w->out;
    attrs.fused.program = stk_fused_copy(graph->arena, &w->program);
    if (!attrs.fused.program) return stk_fail_memory(sizeof(w->program));
    stk_value x = stk_graph_add(graph, STK_OP_fused, &attrs, w->in, w->program.n_in);
    for (int i = 0; i < w->program.n_out; i++)
        w->f->replace[w->out_value[i]] = x.id + i;
    if (w->program.reduce.axes) w->f->replace[w->reduced_value] = x.id + w->program.n_out;
    if (x.id >= 0) {
        w->f->age[graph->n_nodes - 1] = w->last;
        graph->node[graph->n_nodes - 1].backward = w->is_backward;
    }
    return stk_graph_status(graph);
}

static void write_reduction(group_writer *w, const stk_node *node)
{
    w->program.reduce = (stk_fused_reduce){.axes = node->attrs.reduce.axes,
                                           .src = w->reg[node->in[0]],
                                           .kind = node->attrs.reduce.kind,
                                           .wide = node->attrs.reduce.wide};
    w->reduced_value = node->first_out;
    w->is_backward |= node->backward;
}

static stk_status write_group(group_writer *w, fuser *f, int32_t g)
{
    stk_graph *graph = f->graph;
    memset(&w->program, 0, sizeof(w->program));
    w->f = f;
    w->g = g;
    w->is_backward = false;
    w->program.shape = graph->value[graph->node[g].first_out].desc.shape;
    for (int32_t i = g; i >= 0; i = f->next[i]) {
        stk_node node = graph->node[i];
        w->last = i;
        w->is_backward |= node.backward;
        write_member(w, &node);
        if (!used_outside(f, i, g, g)) continue;
        w->out[w->program.n_out] = w->reg[node.first_out];
        w->out_value[w->program.n_out++] = node.first_out;
    }
    if (f->reduction[g] >= 0) write_reduction(w, &graph->node[f->reduction[g]]);
    for (int32_t i = g; i >= 0; i = f->next[i]) {
        const stk_node *node = &graph->node[i];
        w->reg[node->first_out] = -1;
        for (int j = 0; j < node->n_in; j++)
            w->reg[node->in[j]] = -1;
    }
    return finish_group(w);
}

/* A single node is worth a program only with a reduction, or where it reads through a broadcast or a constant. */
static bool is_worth_it(const fuser *f, int32_t i)
{
    const stk_graph *graph = f->graph;
    const stk_node *node = &graph->node[i];
    if (f->group[i] != i || !can_join(graph, node)) return false;
    if (f->n_members[i] > 1 || f->reduction[i] >= 0) return true;
    for (int j = 0; j < node->n_in; j++)
        if (read_through(graph, node->in[j]) != node->in[j] || is_constant(graph, node->in[j])) return true;
    return false;
}

static stk_status write_groups(fuser *f)
{
    stk_status status = STK_OK;
    group_writer *w = malloc(sizeof(*w));
    int32_t *replace = NULL;
    if (!w) return stk_fail_memory(sizeof(*w));
    w->reg = malloc(((size_t)f->n_values + 1) * sizeof(*w->reg));
    if (!w->reg) STK_TRY(stk_fail_memory((size_t)f->n_values * sizeof(*w->reg)));
    for (int32_t i = 0; i < f->n_values; i++)
        w->reg[i] = -1;
    for (int32_t i = 0; i < f->n_nodes; i++)
        if (is_worth_it(f, i)) STK_TRY(write_group(w, f, i));
    replace = stk_pass_identity(f->graph, 0);
    if (!replace) STK_TRY(stk_fail_memory((size_t)f->graph->n_values * sizeof(*replace)));
    memcpy(replace, f->replace, (size_t)f->n_values * sizeof(*replace));
    STK_TRY(stk_graph_rewrite_aged(f->graph, replace, f->age));
done:
    free(replace);
    free(w->reg);
    free(w);
    return status;
}

stk_status pass_fuse(stk_graph *graph, const stk_pass_options *options)
{
    STK_RETURN_IF_ERROR(stk_graph_status(graph));
    if (!stk_device_caps_has(stk_pass_caps(options), STK_OP_fused)) return STK_OK;
    stk_status status = STK_OK;
    size_t n = (size_t)graph->n_nodes + 2;
    fuser f = {.graph = graph, .n_nodes = graph->n_nodes, .n_values = graph->n_values};
    f.most_in = options && options->fuse_most_inputs ? options->fuse_most_inputs : DEFAULT_INPUTS;
    f.most_instr = options && options->fuse_most_instr ? options->fuse_most_instr : DEFAULT_INSTR;
    f.group = malloc(n * sizeof(*f.group));
    f.n_members = malloc(n * sizeof(*f.n_members));
    f.next = malloc(n * sizeof(*f.next));
    f.reduction = malloc(n * sizeof(*f.reduction));
    f.first_user = calloc(n, sizeof(*f.first_user));
    f.is_root = calloc(n, sizeof(*f.is_root));
    f.value_mark = calloc((size_t)graph->n_values + 1, sizeof(*f.value_mark));
    f.replace = stk_pass_identity(graph, 0);
    f.age = malloc(2 * n * sizeof(*f.age));
    if (!f.group || !f.n_members || !f.next || !f.reduction || !f.first_user || !f.is_root || !f.value_mark ||
        !f.replace || !f.age)
        STK_TRY(stk_fail_memory(n * sizeof(*f.group)));
    STK_TRY(list_users(&f));
    for (int32_t i = 0; i < f.n_nodes; i++) {
        f.age[i] = i;
        f.group[i] = i;
        f.n_members[i] = 1;
        f.next[i] = f.reduction[i] = -1;
    }
    for (int i = 0; i < graph->n_roots; i++)
        f.is_root[graph->value[graph->root[i].value].node] = true;
    f.view = (stk_groups){graph, f.n_nodes, f.group, f.next, f.first_user, f.user};
    STK_TRY(stk_group_order_make(&f.view, &f.order));
    for (int32_t i = f.n_nodes - 1; i >= 0; i--)
        try_to_join(&f, i);
    for (int32_t i = f.n_nodes - 1; i >= 0; i--)
        if (f.n_members[f.group[i]] > 1) try_to_join(&f, i);
    take_reductions(&f, true);
    take_reductions(&f, false);
    STK_TRY(write_groups(&f));
done:
    free(f.group);
    free(f.n_members);
    free(f.next);
    free(f.reduction);
    free(f.first_user);
    free(f.user);
    free(f.is_root);
    stk_group_order_free(&f.order);
    free(f.value_mark);
    free(f.replace);
    free(f.age);
    return status;
}
