/* See text/vocab.h. */
#include "data/text/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static uint64_t hash_bytes(const uint8_t *p, size_t n)
{
    uint64_t h = n * 0x9e3779b97f4a7c15u, x;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&x, p, 8);
        h = (h ^ x) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    x = 0;
    memcpy(&x, p, n);
    return stk_spread64(h ^ x);
}

static stk_status grow_ids(stk_vocab *v, int64_t n)
{
    int64_t room = v->ids_room;
    while (room < n)
        room = 2 * room + 1024;
    if (room == v->ids_room) return STK_OK;
    size_t *at = realloc(v->at, (size_t)room * sizeof(*at));
    if (at) v->at = at;
    uint32_t *length = realloc(v->length, (size_t)room * sizeof(*length));
    if (length) v->length = length;
    uint8_t *flags = realloc(v->flags, (size_t)room);
    if (flags) v->flags = flags;
    if (!at || !length || !flags) return stk_fail_memory((size_t)room * sizeof(*at));
    v->ids_room = room;
    return STK_OK;
}

static stk_status grow_bytes(stk_vocab *v, size_t n)
{
    size_t room = v->bytes_room;
    if (n > UINT32_MAX) return stk_fail(STK_INVALID, "a token of %zu bytes is too long", n);
    while (room - v->n_bytes < n)
        room = 2 * room + 65536;
    if (room == v->bytes_room) return STK_OK;
    uint8_t *bytes = realloc(v->bytes, room);
    if (!bytes) return stk_fail_memory(room);
    v->bytes = bytes;
    v->bytes_room = room;
    return STK_OK;
}

stk_status stk_vocab_set(stk_vocab *v, int64_t id, stk_span text, int flags)
{
    if (id < 0 || id >= STK_MOST_TOKENS)
        return stk_fail(STK_INVALID, "a token has number %lld; 0 to %d are possible", (long long)id,
                        STK_MOST_TOKENS - 1);
    STK_RETURN_IF_ERROR(grow_ids(v, id + 1));
    STK_RETURN_IF_ERROR(grow_bytes(v, text.n + 1)); /* never none, so that the pointer is one */
    for (; v->n_ids <= id; v->n_ids++)
        v->flags[v->n_ids] = 0;
    v->at[id] = v->n_bytes;
    v->length[id] = (uint32_t)text.n;
    v->flags[id] = (uint8_t)(flags | STK_TOKEN_USED);
    if (text.n) memcpy(v->bytes + v->n_bytes, text.data, text.n);
    v->n_bytes += text.n;
    return STK_OK;
}

stk_status stk_vocab_index(stk_vocab *v)
{
    size_t n = 64;
    while (n < 2 * (size_t)v->n_ids)
        n *= 2;
    int32_t *slot = malloc(n * sizeof(*slot));
    if (!slot) return stk_fail_memory(n * sizeof(*slot));
    free(v->slot);
    v->slot = slot;
    v->n_slots = n;
    memset(slot, 0xff, n * sizeof(*slot));
    for (int64_t id = 0; id < v->n_ids; id++) {
        stk_span text = stk_vocab_text(v, id);
        if (!(v->flags[id] & STK_TOKEN_WHOLE)) continue;
        size_t i = hash_bytes(text.data, text.n) & (n - 1);
        while (slot[i] >= 0)
            i = (i + 1) & (n - 1);
        slot[i] = (int32_t)id;
    }
    return STK_OK;
}

int32_t stk_vocab_find(const stk_vocab *v, const uint8_t *text, size_t n)
{
    if (v->n_slots == 0) return -1;
    for (size_t i = hash_bytes(text, n) & (v->n_slots - 1); v->slot[i] >= 0; i = (i + 1) & (v->n_slots - 1)) {
        int32_t id = v->slot[i];
        if (v->length[id] == n && !memcmp(v->bytes + v->at[id], text, n)) return id;
    }
    return -1;
}

stk_span stk_vocab_text(const stk_vocab *v, int64_t id)
{
    if (id < 0 || id >= v->n_ids || !(v->flags[id] & STK_TOKEN_USED)) return (stk_span){NULL, 0};
    return (stk_span){v->bytes + v->at[id], v->length[id]};
}

void stk_vocab_free(stk_vocab *v)
{
    free(v->bytes);
    free(v->at);
    free(v->length);
    free(v->flags);
    free(v->slot);
    *v = (stk_vocab){0};
}
