/* Graphs, devices, and compiled steps run by hand. All of stoker/graph/. */
#ifndef STOKER_GRAPH_H
#define STOKER_GRAPH_H

#include "stoker/graph/device.h"
#include "stoker/graph/graph.h"
#include "stoker/graph/session.h"

#endif
