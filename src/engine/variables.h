/* The engine's variables: found by name, made on first sight, filled from the seed and their name. */
#ifndef STK_ENGINE_VARIABLES_H
#define STK_ENGINE_VARIABLES_H

#include "device/queue.h"
#include "graph/op.h"
#include "stoker/graph/graph.h"

typedef struct stk_variable {
    char *name;
    stk_tensor_desc desc;
    int device; /* of the engine's */
    void *data; /* in its memory */
    bool trainable;
    int n_parts; /* of as many ranks; 0: desc is all of it */
    stk_shape whole;
} stk_variable;

typedef struct stk_variables {
    stk_device *device[STK_MOST_DEVICES]; /* the engine's */
    stk_queue *queue[STK_MOST_DEVICES];   /* for their first content */
    uint64_t seed;
    stk_variable *variable;
    int n, capacity;
    size_t bytes;
    uint64_t version; /* grows with each change of content after the first; from 1 */
} stk_variables;

/* leaf: of the graph's node. STK_MISMATCH when one of that name has another type or lies on another device. */
stk_status stk_variables_get(stk_variables *variables, const char *name, stk_tensor_desc desc, int device,
                             const stk_attrs *leaf, int *out);
/* Bytes of those on a device. */
size_t stk_variables_bytes_on(const stk_variables *variables, int device);
/* Its number; -1: there is none. */
int stk_variables_find(const stk_variables *variables, const char *name);
void stk_variables_free(stk_variables *variables);

#endif
