/* A stand-in for cuDNN's graph interface: what Stoker uses of it, by NVIDIA's documents, and misuse for all else. The
 * declarations are src's (device/gpu/cuda/cudnn.h), whose numbers test_cudnn_library.c compares with NVIDIA's.
 *
 *   cudnn.c             descriptors of all kinds: what attributes they take, when they are whole
 *   cudnn_graph.c       a graph of operations understood as one convolution
 *   cudnn_plans.c       engines that are proposed for it, plans, running one
 *
 * STOKER_PLAY_WAYS   how many engines are proposed that compute it as they should; 1. Others, which must not be taken,
 *                    come before them
 */
#ifndef TESTS_DEVICE_PLAY_CUDNN_H
#define TESTS_DEVICE_PLAY_CUDNN_H

#include <stdbool.h>

#include <stdatomic.h>

#include "device/gpu/cuda/cudnn.h"
#include "device/play/api.h"
#include "device/play/convolve.h"

#define X(result, name, parameters) PLAY_EXPORT result name parameters;
CUDNN_SYMBOL_LIST(X)
#undef X

enum { DNN_NOT_INITIALIZED = 1001, DNN_MOST_VALUES = 16 };

typedef struct dnn_value {
    int attribute, type;
    int64_t n;
    void *bytes;
} dnn_value;

typedef struct dnn_engine {
    int number, note; /* note: -1: none */
    play_convolution convolution;
} dnn_engine;

typedef struct dnn_descriptor {
    int mark, kind;
    bool is_final;
    int n_values;
    dnn_value value[DNN_MOST_VALUES];
    play_convolution convolution; /* of an operation graph, when it is final */
    dnn_engine engine;            /* of engines, their configurations, plans */
    bool is_loaded;               /* of a plan: its kernel is */
} dnn_descriptor;

struct cudnn_handle_state {
    handle stream;
    atomic_bool is_used; /* by a thread, now */
};

/* Misuse, and that code. */
int dnn_misuse(int code, const char *text);
/* A value that was set; NULL: it was not. */
const dnn_value *dnn_find(const dnn_descriptor *d, int attribute);
/* The first of it; 0 where it was not set. */
int64_t dnn_int(const dnn_descriptor *d, int attribute);
int dnn_enum(const dnn_descriptor *d, int attribute);
dnn_descriptor *dnn_other(const dnn_descriptor *d, int attribute, int64_t i);

/* What is found out when one is finalized. */
int dnn_finish_operation(dnn_descriptor *d);
int dnn_finish_graph(dnn_descriptor *d);
int dnn_finish_plan(dnn_descriptor *d);
/* What others than the caller have set; -1: it has no such value. */
int dnn_read(dnn_descriptor *d, int attribute, int64_t n_wanted, int64_t *n, void *out);

#endif
