/* See text/words.h. */
#include "data/text/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

static stk_status check_room(const stk_words *w, size_t more)
{
    size_t taken = w->bytes_room + w->room * sizeof(*w->word) + w->n_slots * sizeof(*w->slot);
    if (taken + more <= w->limit_bytes) return STK_OK;
    return stk_fail(STK_NO_MEMORY,
                    "%zu different words take all of the %zu MiB that may be used; train on fewer texts, which changes "
                    "little, or allow more",
                    w->n, w->limit_bytes >> 20);
}

static stk_status grow_slots(stk_words *w)
{
    size_t n = w->n_slots ? 2 * w->n_slots : 1024;
    STK_RETURN_IF_ERROR(check_room(w, (n - w->n_slots) * sizeof(*w->slot)));
    int32_t *slot = realloc(w->slot, n * sizeof(*slot));
    if (!slot) return stk_fail_memory(n * sizeof(*slot));
    w->slot = slot;
    w->n_slots = n;
    memset(slot, 0xff, n * sizeof(*slot));
    for (size_t k = 0; k < w->n; k++) {
        size_t i = w->word[k].hash & (n - 1);
        while (slot[i] >= 0)
            i = (i + 1) & (n - 1);
        slot[i] = (int32_t)k;
    }
    return STK_OK;
}

static stk_status make_room(stk_words *w, size_t n_bytes)
{
    if (2 * (w->n + 1) > w->n_slots) STK_RETURN_IF_ERROR(grow_slots(w));
    if (w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 1024;
        STK_RETURN_IF_ERROR(check_room(w, (room - w->room) * sizeof(*w->word)));
        stk_word *word = realloc(w->word, room * sizeof(*word));
        if (!word) return stk_fail_memory(room * sizeof(*word));
        w->word = word;
        w->room = room;
    }
    if (w->n_bytes + n_bytes > w->bytes_room) {
        size_t room = 2 * w->bytes_room + n_bytes + 4096;
        STK_RETURN_IF_ERROR(check_room(w, room - w->bytes_room));
        uint8_t *bytes = realloc(w->bytes, room);
        if (!bytes) return stk_fail_memory(room);
        w->bytes = bytes;
        w->bytes_room = room;
    }
    return w->n < INT32_MAX ? STK_OK : stk_fail(STK_UNSUPPORTED, "more than 2^31 different words");
}

static int32_t find(const stk_words *w, stk_span word, uint64_t hash)
{
    for (size_t i = hash & (w->n_slots - 1); w->n_slots && w->slot[i] >= 0; i = (i + 1) & (w->n_slots - 1)) {
        const stk_word *known = &w->word[w->slot[i]];
        if (known->hash == hash && known->n == word.n && !memcmp(w->bytes + known->at, word.data, word.n))
            return w->slot[i];
    }
    return -1;
}

int32_t stk_words_find(const stk_words *w, stk_span word)
{
    return find(w, word, stk_hash64(word.data, word.n, 0));
}

stk_status stk_words_add(stk_words *w, stk_span word)
{
    uint64_t hash = stk_hash64(word.data, word.n, 0);
    int32_t known = find(w, word, hash);
    if (known >= 0) {
        w->word[known].count++;
        return STK_OK;
    }
    if (word.n > UINT32_MAX / 2) return stk_fail(STK_UNSUPPORTED, "a word of 2 GiB or more");
    STK_RETURN_IF_ERROR(make_room(w, word.n));
    size_t i = hash & (w->n_slots - 1);
    while (w->slot[i] >= 0)
        i = (i + 1) & (w->n_slots - 1);
    w->slot[i] = (int32_t)w->n;
    memcpy(w->bytes + w->n_bytes, word.data, word.n);
    w->word[w->n++] = (stk_word){w->n_bytes, (uint32_t)word.n, hash, 1};
    w->n_bytes += word.n;
    return STK_OK;
}

stk_span stk_words_text(const stk_words *w, size_t i)
{
    return (stk_span){w->bytes + w->word[i].at, w->word[i].n};
}

static bool is_before(const stk_words *w, const stk_word *a, const stk_word *b)
{
    uint32_t n = a->n < b->n ? a->n : b->n;
    int order = memcmp(w->bytes + a->at, w->bytes + b->at, n);
    return order ? order < 0 : a->n < b->n;
}

static void sink(stk_words *w, size_t i, size_t n)
{
    stk_word top = w->word[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_before(w, &w->word[child], &w->word[child + 1])) child++;
        if (!is_before(w, &top, &w->word[child])) break;
        w->word[i] = w->word[child];
    }
    w->word[i] = top;
}

/* A heap sort: qsort takes no argument for the bytes. */
void stk_words_sort(stk_words *w)
{
    for (size_t i = w->n / 2; i-- > 0;)
        sink(w, i, w->n);
    for (size_t n = w->n; n-- > 1;) {
        stk_word last = w->word[n];
        w->word[n] = w->word[0];
        w->word[0] = last;
        sink(w, 0, n);
    }
}

void stk_words_free(stk_words *w)
{
    free(w->bytes);
    free(w->word);
    free(w->slot);
    *w = (stk_words){0};
}
