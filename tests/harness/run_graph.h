/* Runs a graph node by node, every value in memory of its own: no planner, no fusion, nothing to trust but the kernels.
 * For tests of rules and passes. Threads: one at a time.
 */
#ifndef STK_TESTS_RUN_GRAPH_H
#define STK_TESTS_RUN_GRAPH_H

#include "device/device.h"
#include "graph/graph.h"

typedef struct graph_run {
    const stk_graph *graph; /* borrowed: must not change */
    stk_device *device;     /* borrowed */
    void **value;           /* by value id */
    stk_kernel *kernel;     /* by node; leaves have none */
    void **scratch;         /* by node */
} graph_run;

/* All shapes must be known. Constants are filled; inputs and variables are zero at first. */
stk_status graph_run_open(const stk_graph *graph, stk_device *device, graph_run *out);
void graph_run_close(graph_run *run);
/* Runs all nodes in order. Updates of variables are not carried out: read them by value id. */
stk_status graph_run_all(graph_run *run);

/* The memory of the input or variable, or of the output, of that name; NULL when there is none. */
void *graph_run_leaf(const graph_run *run, const char *name);
void *graph_run_output(const graph_run *run, const char *name);

#endif
