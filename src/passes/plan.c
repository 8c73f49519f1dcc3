/* See plan.h. */
#include "passes/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "passes/plan_offsets.h"

enum { ALIGN = 64 };

typedef stk_plan_buffer buffer;

typedef struct planner {
    const stk_graph *graph;
    const stk_kernel *kernel;
    const bool *is_name; /* NULL: none */
    stk_parts parts;
    stk_plan *plan;
    int32_t *last_use;  /* by value: the last node that reads it, through other names too; n_nodes: a root */
    int32_t *update_of; /* by value: the variable that it becomes; -1: none */
    buffer *buffer;
    int32_t n_buffers;
    bool many; /* devices; plan->order is set */
} planner;

static bool is_leaf(const stk_node *node)
{
    return node->op == STK_OP_input || node->op == STK_OP_variable;
}

/* Only another name of its first input. */
static bool is_name(const planner *p, const stk_node *node)
{
    return (p->is_name && p->is_name[node - p->graph->node]) || node->op == STK_OP_reshape ||
           (node->op == STK_OP_accumulate && node->attrs.accumulate.in_place);
}

/* Last uses; a name's uses count for what it renames, so walk backwards. */
static void find_last_uses(planner *p)
{
    const stk_graph *graph = p->graph;
    int32_t body_first = p->parts.n_begin, body_end = p->parts.n_begin + p->parts.n_body;
    for (int32_t v = 0; v < graph->n_values; v++) {
        int32_t maker = graph->value[v].node;
        p->last_use[v] = maker;
        p->update_of[v] = -1;
        if (v > graph->node[maker].first_out && graph->node[maker].op == STK_OP_accumulate) /* waits for others */
            p->last_use[v] = body_end > maker ? body_end - 1 : maker;
    }
    for (int i = 0; i < graph->n_roots; i++) {
        p->last_use[graph->root[i].value] = graph->n_nodes;
        if (graph->root[i].variable >= 0 && p->update_of[graph->root[i].value] < 0)
            p->update_of[graph->root[i].value] = graph->root[i].variable;
    }
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        const stk_node *node = &graph->node[i];
        for (int j = 0; j < node->n_in; j++) {
            int32_t v = node->in[j], use = i;
            if (is_name(p, node) && j == 0 && p->last_use[node->first_out] > use) use = p->last_use[node->first_out];
            if (graph->value[v].node < body_first && use >= body_first && use < body_end) use = body_end - 1;
            if (p->last_use[v] < use) p->last_use[v] = use;
        }
    }
}

static int32_t add_buffer(planner *p, size_t bytes, int32_t first, int32_t last, int32_t value)
{
    p->buffer[p->n_buffers] = (buffer){stk_round_up(bytes, ALIGN), 0, first, last, value};
    return p->n_buffers++;
}

/* With several devices: whether all that touches the memory so far, node i aside, happens before node i. */
static bool is_alone(const planner *p, int32_t i, const stk_planned_value *memory)
{
    const stk_plan *plan = p->plan;
    for (int32_t k = 0; p->many && k < i; k++) {
        const stk_node *node = &p->graph->node[k];
        if (plan->skipped[k] || stk_plan_before(&plan->order, k, i)) continue;
        for (int j = 0; j < node->n_in + node->n_out; j++) {
            int32_t v = j < node->n_in ? node->in[j] : node->first_out + j - node->n_in;
            const stk_planned_value *other = &plan->value[v];
            if (other->place == memory->place && other->leaf == memory->leaf && other->buffer == memory->buffer)
                return false;
        }
    }
    return true;
}

/* Whether output o may use the memory of input j. */
static bool may_share(const stk_kernel *kernel, int o, int j)
{
    return (kernel->each_in_place && o == j) || (o < 8 && j < 32 && (kernel->in_place[o] >> j & 1));
}

/* True when output o of node i may be made in the memory of the variable that it updates: no reader comes later, and a
 * reader in this very node allows it. Names of the variable's memory count as readers through last_use. */
static bool update_in_place(const planner *p, int32_t i, int o, int32_t variable)
{
    const stk_node *node = &p->graph->node[i];
    bool read_here = false, allowed = true;
    if (p->last_use[variable] > i) return false;
    for (int j = 0; j < node->n_in; j++) {
        const stk_planned_value *in = &p->plan->value[node->in[j]];
        if (in->place != STK_PLACE_VARIABLE || in->leaf != variable) continue;
        read_here = true;
        allowed &= may_share(&p->kernel[i], o, j);
    }
    return (!read_here || allowed) && is_alone(p, i, &(stk_planned_value){STK_PLACE_VARIABLE, variable, -1, 0});
}

/* What is there from the start of the first micro-batch on. */
static bool is_sum(const stk_node *node)
{
    return node->op == STK_OP_accumulate || node->op == STK_OP_carry;
}

static bool holds_sum(const planner *p, int32_t value)
{
    const stk_planned_value *v = &p->plan->value[value];
    int32_t first = v->place == STK_PLACE_ARENA ? p->buffer[v->buffer].value : -1;
    return first >= 0 && p->graph->node[p->graph->value[first].node].op == STK_OP_carry;
}

/* The input whose dying buffer output o may take over, or -1. A carried sum must go on where it is. */
static int find_dying_input(const planner *p, int32_t i, int o, const bool *taken)
{
    const stk_graph *graph = p->graph;
    const stk_node *node = &graph->node[i];
    size_t bytes = stk_round_up(stk_desc_bytes(graph->value[node->first_out + o].desc), ALIGN);
    int best = -1;
    for (int j = 0; j < node->n_in && j < 32; j++) {
        const stk_planned_value *in = &p->plan->value[node->in[j]];
        if (!may_share(&p->kernel[i], o, j) || in->place != STK_PLACE_ARENA || taken[j]) continue;
        const buffer *b = &p->buffer[in->buffer];
        bool once = true; /* The kernel allows this input only; the same memory must not come in twice. */
        for (int k = 0; k < node->n_in; k++)
            once &= k == j || p->plan->value[node->in[k]].place != STK_PLACE_ARENA ||
                    p->plan->value[node->in[k]].buffer != in->buffer;
        if (!once || b->last != i || b->bytes != bytes) continue;
        if (graph->value[node->in[j]].device != graph->value[node->first_out + o].device || !is_alone(p, i, in))
            continue;
        if (best < 0 || holds_sum(p, node->in[j])) best = j;
    }
    return best;
}

static void place_outputs(planner *p, int32_t i)
{
    const stk_graph *graph = p->graph;
    const stk_node *node = &graph->node[i];
    bool taken[32] = {false};
    for (int o = 0; o < node->n_out; o++) {
        int32_t v = node->first_out + o, variable = p->update_of[v];
        stk_planned_value *value = &p->plan->value[v];
        if (variable >= 0 && update_in_place(p, i, o, variable)) {
            *value = (stk_planned_value){STK_PLACE_VARIABLE, variable, -1, 0};
            continue;
        }
        int j = find_dying_input(p, i, o, taken);
        if (j >= 0) {
            taken[j] = true;
            *value = p->plan->value[node->in[j]];
            p->buffer[value->buffer].last = p->last_use[v];
            continue;
        }
        size_t bytes = stk_desc_bytes(graph->value[v].desc);
        int32_t first = is_sum(node) && p->parts.n_body > 0 ? p->parts.n_begin : i;
        *value = (stk_planned_value){STK_PLACE_ARENA, -1, add_buffer(p, bytes, first, p->last_use[v], v), 0};
    }
}

static stk_status place_node(planner *p, int32_t i)
{
    const stk_node *node = &p->graph->node[i];
    if (node->op == STK_OP_accumulate && node->attrs.accumulate.in_place && !holds_sum(p, node->in[0]))
        return stk_fail(STK_UNSUPPORTED, "'%s' does not add in place on this device, as sums over micro-batches need",
                        stk_op_name(p->graph->node[p->graph->value[node->in[0]].node].op));
    if (is_leaf(node)) {
        stk_place place = node->op == STK_OP_input ? STK_PLACE_INPUT : STK_PLACE_VARIABLE;
        p->plan->value[node->first_out] = (stk_planned_value){place, node->first_out, -1, 0};
        p->plan->skipped[i] = true;
    } else if (is_name(p, node) && p->update_of[node->first_out] < 0) {
        p->plan->value[node->first_out] = p->plan->value[node->in[0]];
        p->plan->skipped[i] = true;
    } else {
        place_outputs(p, i);
        if (p->kernel[i].scratch_bytes) add_buffer(p, p->kernel[i].scratch_bytes, i, i, -1);
    }
    return STK_OK;
}

/* What reads a sum within the body does so with the last micro-batch; the ones before must not lose it behind there. */
static void keep_sums(planner *p)
{
    int32_t body_last = p->parts.n_begin + p->parts.n_body - 1;
    for (int32_t i = 0; i < p->n_buffers && p->parts.n_body > 0; i++) {
        buffer *b = &p->buffer[i];
        bool is_of_sum = b->value >= 0 && is_sum(&p->graph->node[p->graph->value[b->value].node]);
        if (is_of_sum && b->last < body_last) b->last = body_last;
    }
}

static stk_status list_copies(planner *p)
{
    const stk_graph *graph = p->graph;
    stk_plan *plan = p->plan;
    plan->copy = calloc((size_t)graph->n_roots + 1, sizeof(*plan->copy));
    if (!plan->copy) return stk_fail_memory((size_t)graph->n_roots * sizeof(*plan->copy));
    for (int i = 0; i < graph->n_roots; i++) {
        const stk_graph_root *root = &graph->root[i];
        if (root->variable < 0) continue;
        const stk_planned_value *value = &plan->value[root->value];
        if (value->place == STK_PLACE_VARIABLE && value->leaf == root->variable) continue;
        if (value->place == STK_PLACE_VARIABLE && root->value == value->leaf) {
            for (int j = 0; j < graph->n_roots; j++)
                if (graph->root[j].variable == value->leaf)
                    return stk_fail(STK_UNSUPPORTED, "variables that take each other's content are not supported");
        }
        int32_t place = graph->value[root->value].node - p->parts.n_begin;
        bool in_body = place >= 0 && place < p->parts.n_body;
        if (p->parts.late && p->parts.late[graph->value[root->value].node]) in_body = false;
        plan->copy[plan->n_copies++] = (stk_planned_copy){root->value, root->variable, in_body};
    }
    return STK_OK;
}

/* --- several devices --- */

static int32_t count_devices(const stk_graph *graph)
{
    int32_t most = 0;
    for (int32_t v = 0; v < graph->n_values; v++)
        if (graph->value[v].device > most) most = graph->value[v].device;
    return most + 1;
}

/* What place_node will skip. */
static stk_status order_nodes(planner *p)
{
    const stk_graph *graph = p->graph;
    bool *skipped = calloc((size_t)graph->n_nodes + 1, sizeof(*skipped));
    if (!skipped) return stk_fail_memory((size_t)graph->n_nodes);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const stk_node *node = &graph->node[i];
        skipped[i] = is_leaf(node) || (is_name(p, node) && p->update_of[node->first_out] < 0);
    }
    stk_status status = stk_plan_order_make(graph, skipped, &p->plan->order);
    free(skipped);
    return status;
}

static stk_status pack_one(planner *p)
{
    stk_plan *plan = p->plan;
    STK_RETURN_IF_ERROR(
        stk_plan_find_bound(p->buffer, p->n_buffers, p->graph->n_nodes, &plan->lower_bound_bytes, &plan->peak_node));
    STK_RETURN_IF_ERROR(stk_plan_pack(p->buffer, p->n_buffers, plan->lower_bound_bytes, &plan->arena_bytes));
    plan->device_bytes[0] = plan->arena_bytes;
    return STK_OK;
}

static void write_offsets(stk_plan *plan)
{
    for (int32_t v = 0; v < plan->n_values; v++)
        if (plan->value[v].place == STK_PLACE_ARENA) plan->value[v].offset = plan->buffer[plan->value[v].buffer].offset;
    for (int32_t i = 0; i < plan->n_buffers; i++)
        if (plan->buffer[i].value < 0) plan->scratch_offset[plan->buffer[i].first] = plan->buffer[i].offset;
}

/* Where the buffers end; writes: they are placed. Small ones lie side by side at the beginning. */
static size_t spread(stk_plan *plan, size_t gap, bool writes)
{
    enum { SMALL = 4096 };
    size_t at = 0;
    for (int is_large = 0; is_large < 2; is_large++)
        for (int32_t i = 0; i < plan->n_buffers; i++) {
            stk_plan_buffer *b = &plan->buffer[i];
            if ((b->bytes > SMALL) != is_large) continue;
            if (is_large && at) at += gap;
            if (writes) b->offset = at;
            at += b->bytes;
        }
    return at;
}

void stk_plan_spread(size_t gap, size_t room, stk_plan *plan)
{
    size_t values = 0;
    for (int32_t i = 0; i < plan->n_buffers; i++)
        if (plan->buffer[i].value >= 0) values += plan->buffer[i].bytes;
    if (!gap || plan->n_devices > 1 || values > STK_PLAN_SPREAD_BYTES || spread(plan, gap, false) > room) return;
    plan->spread_bytes = spread(plan, gap, true);
    write_offsets(plan);
}

stk_status stk_plan_make(const stk_graph *graph, const stk_kernel *kernel, const bool *is_name, const stk_parts *parts,
                         stk_plan *out)
{
    stk_status status = STK_OK;
    size_t n_values = (size_t)graph->n_values + 1, n_nodes = (size_t)graph->n_nodes + 1;
    planner p = {.graph = graph, .kernel = kernel, .is_name = is_name, .plan = out};
    if (parts) p.parts = *parts;
    *out = (stk_plan){.n_values = graph->n_values, .n_nodes = graph->n_nodes, .n_devices = count_devices(graph)};
    out->value = calloc(n_values, sizeof(*out->value));
    out->scratch_offset = calloc(n_nodes, sizeof(*out->scratch_offset));
    out->skipped = calloc(n_nodes, sizeof(*out->skipped));
    p.last_use = calloc(n_values, sizeof(*p.last_use));
    p.update_of = calloc(n_values, sizeof(*p.update_of));
    p.buffer = calloc(n_values + n_nodes, sizeof(*p.buffer));
    if (!out->value || !out->scratch_offset || !out->skipped || !p.last_use || !p.update_of || !p.buffer)
        STK_TRY(stk_fail_memory(n_values * sizeof(*p.buffer)));
    find_last_uses(&p);
    p.many = out->n_devices > 1;
    if (p.many) STK_TRY(order_nodes(&p));
    for (int32_t i = 0; i < graph->n_nodes; i++)
        STK_TRY(place_node(&p, i));
    keep_sums(&p);
    STK_TRY(list_copies(&p));
    STK_TRY(p.many ? stk_plan_pack_devices(graph, out, p.buffer, p.n_buffers) : pack_one(&p));
done:
    free(p.last_use);
    free(p.update_of);
    out->buffer = p.buffer;
    out->n_buffers = p.n_buffers;
    if (status == STK_OK) write_offsets(out);
    if (status != STK_OK) stk_plan_free(out);
    return status;
}

void stk_plan_free(stk_plan *plan)
{
    free(plan->value);
    free(plan->scratch_offset);
    free(plan->skipped);
    free(plan->copy);
    free(plan->buffer);
    stk_plan_order_free(&plan->order);
    *plan = (stk_plan){0};
}

void stk_plan_print_largest(const stk_plan *plan, const stk_graph *graph, int n, stk_text *out)
{
    size_t limit = SIZE_MAX;
    int32_t after = -1;
    for (int k = 0; k < n; k++) {
        int32_t best = -1;
        size_t best_bytes = 0;
        for (int32_t v = 0; v < plan->n_values; v++) {
            if (plan->value[v].place != STK_PLACE_ARENA) continue;
            size_t bytes = stk_desc_bytes(graph->value[v].desc);
            bool before = bytes < limit || (bytes == limit && v > after);
            if (before && bytes > best_bytes) {
                best = v;
                best_bytes = bytes;
            }
        }
        if (best < 0) return;
        char text[STK_SHAPE_TEXT_BYTES];
        stk_text_add(out, "%s  %8.1f MiB  %s %s", k ? "\n" : "", (double)best_bytes / 1048576,
                     stk_desc_text(graph->value[best].desc, text),
                     stk_op_name(graph->node[graph->value[best].node].op));
        limit = best_bytes;
        after = best;
    }
}
