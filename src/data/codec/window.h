/* A part of a file in memory that moves on, for headers that lie at growing places: near ones cost one read together.
 */
#ifndef STK_DATA_CODEC_WINDOW_H
#define STK_DATA_CODEC_WINDOW_H

#include "base/input.h"

enum { STK_WINDOW_BYTES = 256 << 10 };

typedef struct stk_window {
    const stk_input *input;
    uint8_t *block;
    uint64_t at, n; /* what of the file block holds */
} stk_window;

/* Free with stk_window_close. */
stk_status stk_window_open(const stk_input *input, stk_window *out);
void stk_window_close(stk_window *window);
/* n bytes, at most STK_WINDOW_BYTES, from byte `at` on; borrowed until the next call. far: the next place is far away,
 * so that no more than these need be read. */
stk_status stk_window_get(stk_window *window, uint64_t at, size_t n, bool far, const uint8_t **out);

#endif
