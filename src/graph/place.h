/* Where a layer's nodes belong, as a caller says it and pass_place reads it. */
#ifndef STK_GRAPH_PLACE_H
#define STK_GRAPH_PLACE_H

#include "graph/op.h"

typedef struct stk_place_mark {
    const char *layer; /* "encoder" or "encoder.0": all that is within, by graph/layers.h */
    int device;        /* number in the program's list */
} stk_place_mark;

#endif
