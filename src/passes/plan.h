/* Plan: a place for every value, known before the first step.
 *
 * Values live in the device's arena, in a variable, or in what is bound to an input. Lifetimes are intervals of node
 * numbers (one queue: happens-before is the order). A value may take over the memory of an input that dies there, where
 * the kernel says it can; an update may write straight into its variable once no reader of the old content is left;
 * a reshape is a second name for the same memory, and so is the sum of what was added to a carry in place. What remains
 * is packed into the arena (plan_offsets.h).
 * With several devices each has an arena and a queue, and memory is used again only by what happens before what
 * (plan_order.h); node numbers are then but one order of many.
 */
#ifndef STK_PASSES_PLAN_H
#define STK_PASSES_PLAN_H

#include "device/device.h"
#include "graph/graph.h"
#include "passes/parts.h"
#include "passes/plan_order.h"

typedef enum stk_place { STK_PLACE_ARENA, STK_PLACE_VARIABLE, STK_PLACE_INPUT } stk_place;

typedef struct stk_planned_value {
    stk_place place;
    int32_t leaf;   /* VARIABLE, INPUT: the value id of the leaf whose memory it is */
    int32_t buffer; /* ARENA: values with the same number share memory */
    size_t offset;  /* ARENA: in bytes, in that of the value's device */
} stk_planned_value;

/* variable = value at the end of a run, where the value could not be made in place. */
typedef struct stk_planned_copy {
    int32_t value, variable;
    bool in_body; /* at the end of each micro-batch */
} stk_planned_copy;

typedef struct stk_plan {
    int32_t n_values, n_nodes, n_copies;
    stk_planned_value *value; /* by value id */
    size_t *scratch_offset;   /* by node */
    bool *skipped;            /* by node: leaves, and reshapes that are only another name */
    stk_planned_copy *copy;
    struct stk_plan_buffer *buffer; /* plan_offsets.h; [n_buffers] */
    int32_t n_buffers;
    size_t arena_bytes; /* the peak; of all devices */
    int32_t n_devices;
    size_t device_bytes[STK_MOST_DEVICES]; /* of each device's arena; they add up to arena_bytes */
    stk_plan_order order;                  /* of several devices; else empty */
    size_t spread_bytes;                   /* that buffers lie in instead, once they are spread; else 0 */
    size_t lower_bound_bytes;              /* most bytes alive at once: no packing can do with less */
    int32_t peak_node;                     /* where they are */
} stk_plan;

/* kernel[n_nodes]: the answers of the device, read for in_place and scratch_bytes; leaves are not looked at. is_name:
 * by node, those that nothing makes, as if their output were another name of their input; NULL: none. parts: as
 * arranged, NULL or zeros for a step without micro-batches. What the body reads from the beginning lives as long as the
 * body, since it is read again; sums live from the body's start. */
stk_status stk_plan_make(const stk_graph *graph, const stk_kernel *kernel, const bool *is_name, const stk_parts *parts,
                         stk_plan *out);
/* Where all values together take no more than STK_PLAN_SPREAD_BYTES, and room bytes are enough, every buffer gets a
 * place of its own, with gaps between larger ones: what one core wrote last, and what lies near, is slow for another
 * core to write, which costs such a small program more than memory that is used again gains. Nobody needs it:
 * arena_bytes stays. gap 0: nothing changes. */
enum { STK_PLAN_SPREAD_BYTES = 1 << 20 };
void stk_plan_spread(size_t gap, size_t room, stk_plan *plan);
/* That hold all buffers where they are. */
static inline size_t stk_plan_placed_bytes(const stk_plan *plan)
{
    return plan->spread_bytes ? plan->spread_bytes : plan->arena_bytes;
}
void stk_plan_free(stk_plan *plan);
/* How near the arena is to the bound, and each value's place and life, a line each. */
void stk_plan_print(const stk_plan *plan, const stk_graph *graph, stk_text *out);
/* The n largest buffers, largest first, one a line: "   16.0 MiB  f32[128,32,32,32] batch_norm". */
void stk_plan_print_largest(const stk_plan *plan, const stk_graph *graph, int n, stk_text *out);

#endif
