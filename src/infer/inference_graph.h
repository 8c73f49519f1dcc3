/* A model's graph for prediction alone: inputs to logits; no loss, no labels, nothing random. */
#ifndef STK_INFER_INFERENCE_GRAPH_H
#define STK_INFER_INFERENCE_GRAPH_H

#include "graph/graph.h"
#include "stoker/nn/nn.h"

/* A copy of the model's graph with `batch` rows (STK_ANY: left open) whose only output is "logits": the model's output,
 * or of a language model, whose loss never holds them, the product that they are, [N,T,V]. STK_INVALID where a model
 * has neither. Batch norm and dropout are still there: pass_inference takes them. Returned in *out: stk_graph_free. */
stk_status stk_inference_graph(const stk_model *model, int64_t batch, stk_graph **out);

#endif
