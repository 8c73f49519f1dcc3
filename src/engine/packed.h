/* Weights in the order that kernels want. A step in 16 bits reads each weight as a cast of its f32 variable. Where
 * every reader of the cast would rather have another order (stk_kernel's pack), the program keeps the weight packed in
 * those orders, rebuilt right behind each update, while the weight is in the cache, and nothing is cast or packed in
 * the step:
 *
 *   before:  h = cast(w)   y = conv2d(x, h)   dx = conv2d_grad_data(dy, h)   w = sgd_update(w, ...)
 *   after:   y = conv2d(x, packed 0)   dx = conv2d_grad_data(dy, packed 1)   w = sgd_update(w, ...)   packed 0, 1 = w
 *
 * Whatever else writes variables (another program, a checkpoint, a mean put in their place) makes packed weights stale;
 * they are then made before the next run. What is packed is the engine's, and belongs to a variable and a layout: equal
 * calls share it, and so do programs. The first program that keeps anything decides what; later ones, for evaluation or
 * another shape, find there what they want, or cast.
 */
#ifndef STK_ENGINE_PACKED_H
#define STK_ENGINE_PACKED_H

#include "device/device.h"

struct stk_program;

/* A variable in one layout. */
typedef struct stk_packed_copy {
    int variable; /* number in the engine */
    uint64_t layout;
    size_t offset;
    uint64_t version; /* the variables' when it was made; 0: never */
} stk_packed_copy;

typedef struct stk_packed_copies {
    stk_packed_copy *copy;
    int n;
    size_t bytes;
    void *data;     /* on the device */
    int n_programs; /* that read them; with the last one they go */
} stk_packed_copies;

/* What a program reads of them. */
typedef struct stk_packed_weight {
    int32_t node;     /* the first whose kernel wants it */
    int32_t variable; /* value id of the leaf */
    int32_t writer;   /* the node that writes the variable in place; n_nodes: a copy at the end; -1: it never changes */
    int copy;         /* -1 until stk_packed_alloc */
} stk_packed_weight;

typedef struct stk_packed {
    int n;
    stk_packed_weight *weight;
    int32_t *of_node;   /* by node: its packed weight, -1: none; NULL while n is 0 */
    bool *is_name;      /* by node: a cast that is not made; for stk_plan_make */
    stk_kernel *kernel; /* [n]: pack as run; their state is borrowed */
    stk_entry *entry;   /* [n], to make each before a run */
    void **pointers;    /* of the entries */
    size_t bytes;
    bool shares; /* it counts among the engine's n_programs */
} stk_packed;

/* Finds what the program's kernels would have packed. */
stk_status stk_packed_find(struct stk_program *program);
/* Nothing is packed, then. */
void stk_packed_drop(struct stk_program *program);
/* After the plan: who writes the variables. */
void stk_packed_find_writers(struct stk_program *program);
/* Takes the memory. After the variables are made. */
stk_status stk_packed_alloc(struct stk_program *program);
/* Where weight i of the program lies. */
void *stk_packed_locate(const struct stk_program *program, int i);
/* Makes those that are stale, before a run. */
stk_status stk_packed_refresh(struct stk_program *program);
/* Those of the program are as new as the variables: it has run. */
void stk_packed_note_run(struct stk_program *program);

#endif
