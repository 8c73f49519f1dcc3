/* See data/order/window.h. */
#include "data/order/window.h"

#include <stdbool.h>

#include "base/rng.h"

/* Slots are worth moving on where that is not much more work than going back for one answer. */
enum { MOST_MOVES_PER_SLOT = 4 };

/* Filling the slots costs as much as some ten answers without them, so it must be likely that the walk goes on: asked
 * at random, that many in a row ascend once in 40,000 times. */
enum { WALK = 8 };

stk_shuffle_window stk_window_of(int64_t n, int64_t size)
{
    return (stk_shuffle_window){.n = n, .size = size, .last = stk_permutation_of(size)};
}

/* The slot that a position draws while there is input left. */
static inline int64_t draw(const stk_shuffle_window *window, uint64_t key, int64_t position)
{
    uint64_t h = stk_mix64(key + (uint64_t)(position + 1) * 0x9E3779B97F4A7C15u);
    return (int64_t)((h >> 32) * (uint64_t)window->size >> 32);
}

/* What a slot holds before `position` draws. */
static int64_t look_back(const stk_shuffle_window *window, uint64_t key, int64_t position, int64_t slot)
{
    for (int64_t i = position - 1; i >= 0; i--)
        if (draw(window, key, i) == slot) return i + window->size;
    return slot;
}

/* Sets all slots to what they hold before `position` draws. False without memory. */
static bool fill_slots(const stk_shuffle_window *window, stk_window_cursor *cursor, uint64_t key, int64_t position)
{
    int64_t n_left = window->size;
    if (!cursor->slot) cursor->slot = stk_block_get(&cursor->memory, (size_t)window->size * sizeof(*cursor->slot));
    if (!cursor->slot) return false;
    for (int64_t i = 0; i < window->size; i++)
        cursor->slot[i] = -1;
    for (int64_t i = position - 1; i >= 0 && n_left > 0; i--) {
        int64_t slot = draw(window, key, i);
        if (cursor->slot[slot] >= 0) continue;
        cursor->slot[slot] = i + window->size;
        n_left--;
    }
    for (int64_t i = 0; i < window->size && n_left > 0; i++)
        if (cursor->slot[i] < 0) cursor->slot[i] = i;
    cursor->key = key;
    cursor->at = position;
    return true;
}

/* Brings the slots to `position` where that pays: a short way on from where they are, or where questions have walked
 * on for a while, so that single questions elsewhere do not move them. */
static bool move_slots(const stk_shuffle_window *window, stk_window_cursor *cursor, uint64_t key, int64_t position)
{
    int64_t most = MOST_MOVES_PER_SLOT * window->size;
    if (cursor->slot && cursor->key == key && position >= cursor->at && position - cursor->at <= most) {
        for (; cursor->at < position; cursor->at++)
            cursor->slot[draw(window, key, cursor->at)] = cursor->at + window->size;
        return true;
    }
    bool is_next = cursor->last_key == key && position >= cursor->last && position - cursor->last <= most;
    cursor->n_walked = is_next ? cursor->n_walked + 1 : 0;
    cursor->last_key = key;
    cursor->last = position;
    if (cursor->n_walked < WALK || !fill_slots(window, cursor, key, position)) return false;
    cursor->n_walked = 0;
    return true;
}

int64_t stk_window_map(const stk_shuffle_window *window, stk_window_cursor *cursor, uint64_t key, int64_t position)
{
    int64_t n_draws = window->n - window->size; /* as long as a slot that was emptied is filled again */
    int64_t step = position < n_draws ? position : n_draws;
    int64_t slot = position < n_draws
                       ? draw(window, key, position)
                       : (int64_t)stk_permute(&window->last, stk_mix64(key), (uint64_t)(position - n_draws));
    if (cursor && move_slots(window, cursor, key, step)) return cursor->slot[slot];
    return look_back(window, key, step, slot);
}

void stk_window_cursor_free(stk_window_cursor *cursor)
{
    stk_block_free(&cursor->memory);
    *cursor = (stk_window_cursor){0};
}
