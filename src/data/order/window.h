/* Shuffling with a window, as tf.data's shuffle(buffer_size) does it: of `size` slots that hold the next samples, one
 * drawn at random gives its sample and takes the next one of the input; when the input has ended, what the slots hold
 * comes in random order. So sample n comes from the first n + size of the input.
 *
 * All draws are made by key, so the sample at position n is a pure function: before the end the slot drawn for n was
 * last filled by the last position before n that drew it, which is found by going back, `size` steps on average. A
 * cursor keeps the slots instead, and then the next position takes one step.
 * Threads: any; a cursor is one thread's own.
 */
#ifndef STK_DATA_ORDER_WINDOW_H
#define STK_DATA_ORDER_WINDOW_H

#include "base/memory.h"
#include "data/order/permutation.h"

#define STK_MOST_WINDOW INT32_MAX

typedef struct stk_shuffle_window {
    int64_t n;    /* samples */
    int64_t size; /* of the window: 1 to n - 1 */
    stk_permutation last;
} stk_shuffle_window;

/* Starts zeroed. Its memory is 8 bytes for each slot of the window; without memory answers take longer. */
typedef struct stk_window_cursor {
    uint64_t key;
    int64_t at;       /* the slots are as they were before this position drew */
    int64_t *slot;    /* NULL: none are kept */
    stk_block memory; /* of the slots */
    /* The last question that the slots did not answer, and how many in a row walked on to it. */
    uint64_t last_key;
    int64_t last;
    int n_walked;
} stk_window_cursor;

stk_shuffle_window stk_window_of(int64_t n, int64_t size);
/* The number before the shuffle of the sample at `position`, in [0, n); cursor may be NULL. */
int64_t stk_window_map(const stk_shuffle_window *window, stk_window_cursor *cursor, uint64_t key, int64_t position);
void stk_window_cursor_free(stk_window_cursor *cursor);

#endif
