/* Graphs, and the sessions that run them. graph.c builds, session.c runs. */
#ifndef STOKER_PY_GRAPH_H
#define STOKER_PY_GRAPH_H

#include <stdlib.h>

#include "core.h"

typedef struct core_graph {
    PyObject_HEAD stk_graph *handle; /* NULL: a session has it */
} core_graph;

/* The graph, which is the caller's from now on. NULL: an exception; it has an error, or another session has it. */
stk_graph *core_graph_take(PyObject *object);
int core_add_sessions(PyObject *module);

#endif
