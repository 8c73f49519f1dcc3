/* See text/bpe.h. Short words are merged by looking for the best pair again and again, long ones with a heap over a
 * list, in n log n. */
#include "data/text/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define NO_RANK UINT32_MAX

/* --- the table of pairs --- */

static uint64_t key_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The place of a pair, or the free one where it would be. */
static stk_bpe_pair *find_pair(const stk_bpe *b, uint64_t key)
{
    size_t i = stk_spread64(key) & (b->n_slots - 1);
    while (b->pair[i].rank != NO_RANK && b->pair[i].key != key)
        i = (i + 1) & (b->n_slots - 1);
    return &b->pair[i];
}

static uint32_t rank_of(const stk_bpe *b, int32_t left, int32_t right)
{
    return find_pair(b, key_of(left, right))->rank;
}

stk_status stk_bpe_reserve(stk_bpe *b, size_t n_merges)
{
    size_t n = 64;
    if (n_merges > STK_MOST_TOKENS) return stk_fail(STK_INVALID, "%zu merges are too many", n_merges);
    while (n < 2 * n_merges + 2)
        n *= 2;
    b->pair = malloc(n * sizeof(*b->pair));
    if (!b->pair) return stk_fail_memory(n * sizeof(*b->pair));
    b->n_slots = n;
    for (size_t i = 0; i < n; i++)
        b->pair[i].rank = NO_RANK;
    return STK_OK;
}

static stk_status find_joined(const stk_bpe *b, stk_span left, stk_span right, int32_t *out)
{
    uint8_t text[4096];
    if (left.n > sizeof(text) || right.n > sizeof(text) - left.n)
        return stk_fail(STK_UNSUPPORTED, "tokens of more than %zu bytes are not supported", sizeof(text));
    memcpy(text, left.data, left.n);
    memcpy(text + left.n, right.data, right.n);
    *out = stk_vocab_find(&b->vocab, text, left.n + right.n);
    return STK_OK;
}

stk_status stk_bpe_add(stk_bpe *b, stk_span left, stk_span right, uint32_t rank)
{
    int32_t l = stk_vocab_find(&b->vocab, left.data, left.n), r = stk_vocab_find(&b->vocab, right.data, right.n);
    int32_t joined = -1;
    STK_RETURN_IF_ERROR(find_joined(b, left, right, &joined));
    if (l < 0 || r < 0 || joined < 0)
        return stk_fail(STK_INVALID, "merge %u joins '%.*s' and '%.*s', but the vocabulary has not %s", rank,
                        (int)left.n, (const char *)left.data, (int)right.n, (const char *)right.data,
                        l < 0   ? "the first"
                        : r < 0 ? "the second"
                                : "both together");
    stk_bpe_pair *pair = find_pair(b, key_of(l, r));
    if (pair->rank == NO_RANK && ++b->n_pairs >= b->n_slots) return stk_fail(STK_INTERNAL, "the merges are too many");
    *pair = (stk_bpe_pair){key_of(l, r), rank, (uint32_t)joined};
    return STK_OK;
}

stk_status stk_bpe_finish(stk_bpe *b)
{
    size_t n = (size_t)b->vocab.n_ids;
    b->is_whole = calloc(n ? n : 1, sizeof(*b->is_whole));
    if (!b->is_whole) return stk_fail_memory(n);
    for (int i = 0; i < 256; i++)
        b->byte_id[i] = stk_vocab_find(&b->vocab, &(uint8_t){(uint8_t)i}, 1);
    return STK_OK;
}

void stk_bpe_free(stk_bpe *b)
{
    stk_vocab_free(&b->vocab);
    free(b->pair);
    free(b->is_whole);
    *b = (stk_bpe){0};
}

/* --- one word --- */

static size_t spell(const stk_bpe *b, stk_span word, int32_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < word.n; i++) {
        int32_t id = b->byte_id[word.data[i]];
        if (id < 0) id = b->unknown;
        if (id >= 0) ids[n++] = id;
    }
    return n;
}

static size_t merge_short(const stk_bpe *b, int32_t *ids, size_t n)
{
    uint32_t rank[STK_BPE_SHORT];
    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = rank_of(b, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (rank[best] == NO_RANK) break;
        ids[best] = (int32_t)find_pair(b, key_of(ids[best], ids[best + 1]))->joined;
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof(*ids));
        memmove(rank + best, rank + best + 1, (n - best - 1) * sizeof(*rank));
        if (best > 0) rank[best - 1] = rank_of(b, ids[best - 1], ids[best]);
        if (best + 1 < n) rank[best] = rank_of(b, ids[best], ids[best + 1]);
    }
    return n;
}

/* A heap of rank << 32 | place, smallest first. */
static void heap_push(uint64_t *heap, size_t *n, uint64_t x)
{
    size_t i = (*n)++;
    while (i > 0 && heap[(i - 1) / 2] > x) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = x;
}

static uint64_t heap_pop(uint64_t *heap, size_t *n)
{
    uint64_t top = heap[0], x = heap[--*n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= x) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
    return top;
}

typedef struct long_word {
    const stk_bpe *bpe;
    int32_t *ids;          /* -1: joined to one before */
    uint32_t *prev, *next; /* next of the last: n; prev of the first: n */
    uint64_t *heap;
    size_t n, n_heap;
} long_word;

static void push_pair(long_word *w, uint32_t at)
{
    if (at >= w->n || w->next[at] >= w->n) return;
    uint32_t rank = rank_of(w->bpe, w->ids[at], w->ids[w->next[at]]);
    if (rank != NO_RANK) heap_push(w->heap, &w->n_heap, (uint64_t)rank << 32 | at);
}

/* Joins the pair at `at` if it still has this rank: pushed pairs may have changed since. */
static void join(long_word *w, uint32_t at, uint32_t rank)
{
    uint32_t right = w->next[at];
    if (w->ids[at] < 0 || right >= w->n) return;
    const stk_bpe_pair *pair = find_pair(w->bpe, key_of(w->ids[at], w->ids[right]));
    if (pair->rank != rank) return;
    w->ids[at] = (int32_t)pair->joined;
    w->ids[right] = -1;
    w->next[at] = w->next[right];
    if (w->next[at] < w->n) w->prev[w->next[at]] = at;
    push_pair(w, w->prev[at]);
    push_pair(w, at);
}

/* work: 8 * 3n for the heap (n pairs at first, two more for each of fewer than n merges), then 4n and 4n. */
static size_t merge_long(const stk_bpe *b, int32_t *ids, size_t n, void *work)
{
    long_word w = {b, ids, NULL, NULL, work, n, 0};
    w.prev = (uint32_t *)(w.heap + 3 * n);
    w.next = w.prev + n;
    for (uint32_t i = 0; i < n; i++) {
        w.prev[i] = i ? i - 1 : (uint32_t)n;
        w.next[i] = i + 1;
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        push_pair(&w, i);
    while (w.n_heap) {
        uint64_t top = heap_pop(w.heap, &w.n_heap);
        join(&w, (uint32_t)top, (uint32_t)(top >> 32));
    }
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= 0) ids[n_left++] = ids[i];
    return n_left;
}

static size_t merge(const stk_bpe *b, stk_span word, int32_t *ids, void *work)
{
    size_t n = spell(b, word, ids);
    if (n <= STK_BPE_SHORT) return merge_short(b, ids, n);
    return merge_long(b, ids, n, work);
}

size_t stk_bpe_encode(const stk_bpe *b, stk_span word, int32_t *ids, void *work)
{
    int32_t id = stk_vocab_find(&b->vocab, word.data, word.n);
    if (id >= 0) {
        /* Most words are tokens, and of most of these the merges find just them, which is looked at once. */
        int known = b->whole_first ? 1 : atomic_load_explicit(&b->is_whole[id], memory_order_relaxed);
        if (known == 1) {
            ids[0] = id;
            return 1;
        }
        size_t n = merge(b, word, ids, work);
        if (known == 0) atomic_store_explicit(&b->is_whole[id], n == 1 && ids[0] == id ? 1 : 2, memory_order_relaxed);
        return n;
    }
    return merge(b, word, ids, work);
}
