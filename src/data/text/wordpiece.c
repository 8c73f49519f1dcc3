/* See text/wordpiece.h. */
#include "data/text/wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static size_t find_slot(const stk_wordpiece *w, uint64_t key)
{
    size_t i = stk_spread64(key) & (w->n_slots - 1);
    while (w->edge[i] && w->edge[i] != key)
        i = (i + 1) & (w->n_slots - 1);
    return i;
}

/* The node behind a byte; 0: there is none. */
static uint32_t step(const stk_wordpiece *w, uint32_t node, uint8_t byte)
{
    size_t i = find_slot(w, ((uint64_t)node << 8 | byte) + 1);
    return w->edge[i] ? w->child[i] : 0;
}

static uint32_t step_or_add(stk_wordpiece *w, uint32_t node, uint8_t byte)
{
    uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    size_t i = find_slot(w, key);
    if (w->edge[i]) return w->child[i];
    w->edge[i] = key;
    w->node_id[w->n_nodes] = -1;
    return w->child[i] = w->n_nodes++;
}

static stk_status reserve(stk_wordpiece *w, size_t n_most)
{
    size_t n = 64;
    if (n_most > UINT32_MAX / 2) return stk_fail(STK_INVALID, "the vocabulary is too large");
    while (n < 2 * n_most)
        n *= 2;
    w->n_slots = n;
    w->edge = calloc(n, sizeof(*w->edge));
    w->child = malloc(n * sizeof(*w->child));
    w->node_id = malloc((n_most + 1) * sizeof(*w->node_id));
    if (!w->edge || !w->child || !w->node_id) return stk_fail_memory(n * sizeof(*w->edge));
    w->n_nodes = 1;
    w->node_id[0] = -1;
    return STK_OK;
}

stk_status stk_wordpiece_finish(stk_wordpiece *w, const char *prefix)
{
    enum { MOST_BYTES = 8 << 20 }; /* each may take fifty bytes below */
    if (w->vocab.n_bytes > MOST_BYTES)
        return stk_fail(STK_UNSUPPORTED, "the tokens of its WordPiece model have %zu bytes together, and may have %d",
                        w->vocab.n_bytes, MOST_BYTES);
    STK_RETURN_IF_ERROR(reserve(w, w->vocab.n_bytes + strlen(prefix)));
    for (int64_t id = 0; id < w->vocab.n_ids; id++) {
        stk_span text = stk_vocab_text(&w->vocab, id);
        uint32_t node = 0;
        if (!(w->vocab.flags[id] & STK_TOKEN_WHOLE) || text.n == 0) continue;
        for (size_t i = 0; i < text.n; i++)
            node = step_or_add(w, node, text.data[i]);
        w->node_id[node] = (int32_t)id;
    }
    uint32_t node = 0;
    for (const char *p = prefix; *p; p++)
        node = step_or_add(w, node, (uint8_t)*p);
    w->inside = node; /* 0 for no prefix: continuing tokens are like the others */
    return STK_OK;
}

void stk_wordpiece_free(stk_wordpiece *w)
{
    stk_vocab_free(&w->vocab);
    free(w->edge);
    free(w->child);
    free(w->node_id);
    *w = (stk_wordpiece){0};
}

/* The longest token from `from` on, below `node`: its end; -1 in *id where there is none. */
static size_t longest(const stk_wordpiece *w, stk_span word, size_t from, uint32_t node, int32_t *id)
{
    size_t end = from;
    *id = -1;
    for (size_t i = from; i < word.n && (node = step(w, node, word.data[i])); i++)
        if (w->node_id[node] >= 0) {
            *id = w->node_id[node];
            end = i + 1;
        }
    return end;
}

static bool is_too_long(const stk_wordpiece *w, stk_span word)
{
    int64_t n = 0;
    if ((int64_t)word.n <= w->most_characters) return false;
    for (size_t i = 0; i < word.n; i++)
        n += (word.data[i] & 0xc0) != 0x80;
    return n > w->most_characters;
}

size_t stk_wordpiece_encode(const stk_wordpiece *w, stk_span word, int32_t *ids)
{
    size_t n = 0;
    bool fits = !is_too_long(w, word);
    for (size_t at = 0; fits && at < word.n;) {
        int32_t id;
        at = longest(w, word, at, at ? w->inside : 0, &id);
        fits = id >= 0;
        ids[n++] = id;
    }
    if (fits) return n;
    ids[0] = w->unknown;
    return 1;
}
