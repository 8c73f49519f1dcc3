/* A graph as text, one node a line:
 *
 *   v7 = conv2d v0, v3 kernel=3x3 stride=1x1           # f32[128,32,32,32]
 *   output loss = v9
 *   update conv2d.weight (v3) = v40
 */
#include <stdlib.h>

#include "base/error.h"
#include "graph/fused.h"
#include "graph/graph.h"

static void print_reduce(const stk_fused_reduce *reduce, bool after_others, stk_text *out)
{
    const char *comma = "";
    stk_text_add(out, "%s %s r%d axes=", after_others ? " and" : "", stk_reduce_name(reduce->kind), (int)reduce->src);
    for (int i = 0; i < STK_MAX_RANK; i++) {
        if (!(reduce->axes >> i & 1)) continue;
        stk_text_add(out, "%s%d", comma, i);
        comma = ",";
    }
    if (reduce->wide) stk_text_add(out, " wide");
}

static void print_fused(const stk_fused *program, stk_text *out)
{
    for (int i = 0; i < program->n_instr; i++) {
        const stk_fused_instr *instr = &program->instr[i];
        const char *name = instr->op == STK_OP_unary     ? stk_unary_name(instr->kind)
                           : instr->op == STK_OP_binary  ? stk_binary_name(instr->kind)
                           : instr->op == STK_OP_compare ? stk_compare_name(instr->kind)
                                                         : stk_op_name(instr->op);
        stk_text_add(out, "      r%d = %s %s", program->n_in + i, stk_dtype_name(instr->dtype), name);
        for (int j = 0; j < 3; j++)
            if (instr->operand[j] >= 0) stk_text_add(out, " r%d", instr->operand[j]);
        if (instr->op == STK_OP_constant || instr->op == STK_OP_dropout) stk_text_add(out, " %g", instr->value);
        stk_text_add(out, "\n");
    }
    stk_text_add(out, "      gives");
    for (int i = 0; i < program->n_out; i++)
        stk_text_add(out, " r%d", program->out[i]);
    if (program->reduce.axes) print_reduce(&program->reduce, program->n_out > 0, out);
    stk_text_add(out, "\n");
}

static void print_node(const stk_graph *graph, const stk_node *node, stk_text *out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    const stk_op_rule *rule = stk_op_get_rule(node->op);
    for (int j = 0; j < node->n_out; j++)
        stk_text_add(out, "%sv%d", j ? ", " : "", (int)node->first_out + j);
    stk_text_add(out, " = %s", rule->name);
    for (int j = 0; j < node->n_in; j++)
        stk_text_add(out, "%s v%d", j ? "," : "", (int)node->in[j]);
    if (node->name) stk_text_add(out, " '%s'", node->name);
    if (rule->print) rule->print(&node->attrs, out);
    if (node->attrs.tf32) stk_text_add(out, " tf32");
    stk_text_add(out, "  #");
    for (int j = 0; j < node->n_out; j++)
        stk_text_add(out, " %s", stk_desc_text(graph->value[node->first_out + j].desc, text));
    for (int j = 0; j < node->n_out && (j == 0 || node->op == STK_OP_all_reduce); j++) {
        int32_t device = graph->value[node->first_out + j].device;
        if (device) stk_text_add(out, " on device %d", (int)device);
    }
    stk_text_add(out, "\n");
    if (node->op == STK_OP_fused) print_fused(node->attrs.fused.program, out);
}

char *stk_graph_print(const stk_graph *graph)
{
    if (!graph) return NULL;
    stk_text out = {0};
    for (int i = 0; i < graph->n_nodes; i++)
        print_node(graph, &graph->node[i], &out);
    for (int i = 0; i < graph->n_roots; i++) {
        const stk_graph_root *root = &graph->root[i];
        if (root->variable < 0)
            stk_text_add(&out, "output %s = v%d\n", root->name, (int)root->value);
        else
            stk_text_add(&out, "update %s (v%d) = v%d\n", graph->node[graph->value[root->variable].node].name,
                         (int)root->variable, (int)root->value);
    }
    if (graph->status != STK_OK) stk_text_add(&out, "error: %s\n", graph->error);
    if (stk_text_status(&out) != STK_OK) {
        stk_text_free(&out);
        return NULL;
    }
    return out.data ? out.data : calloc(1, 1);
}
