/* See codec/window.h. */
#include "data/codec/window.h"

#include <stdlib.h>

#include "base/error.h"

stk_status stk_window_open(const stk_input *input, stk_window *out)
{
    *out = (stk_window){.input = input, .block = malloc(STK_WINDOW_BYTES)};
    return out->block ? STK_OK : stk_fail_memory(STK_WINDOW_BYTES);
}

void stk_window_close(stk_window *window)
{
    free(window->block);
    *window = (stk_window){0};
}

stk_status stk_window_get(stk_window *window, uint64_t at, size_t n, bool far, const uint8_t **out)
{
    if (at < window->at || at + n > window->at + window->n) {
        uint64_t n_bytes = window->input->n_bytes, n_read = far ? n : STK_WINDOW_BYTES;
        if (at <= n_bytes && n <= n_bytes - at && n_read > n_bytes - at) n_read = n_bytes - at;
        window->n = 0;
        STK_RETURN_IF_ERROR(stk_input_read(window->input, at, window->block, n_read));
        window->at = at;
        window->n = n_read;
    }
    *out = window->block + (at - window->at);
    return STK_OK;
}
