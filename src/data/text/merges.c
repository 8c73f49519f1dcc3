/* See text/merges.h.
 *
 *   words      each a run of symbols, which gets shorter
 *   pairs      a table: how often two symbols are neighbours, over all words
 *   heap       pairs with the words that have them, the most frequent first; a count that has fallen since it was put
 *              there is seen when it comes to the top
 *
 * A merge visits the words of its pair, and puts the pairs with the new symbol on the heap. This is the order of
 * `tokenizers`' trainer, down to what happens when two merges make the same token: both are kept.
 */
#include "data/text/merges.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/text/utf8.h"
#include "data/text/vocab.h"

/* Numbers of words. */
typedef struct word_list {
    uint32_t *word;
    uint32_t n, room;
} word_list;

typedef struct pair {
    uint64_t key; /* left << 32 | right; UINT64_MAX: free */
    int64_t count;
    int32_t fresh; /* which of this round's lists it has; -1: none */
} pair;

typedef struct entry {
    int64_t count;
    uint64_t key;
    word_list words;
} entry;

typedef struct learner {
    const stk_words *words;
    const stk_merge_rules *rules;
    stk_words *tokens;
    int32_t *symbol; /* of all words */
    size_t *first;   /* [words]: where a word's symbols begin */
    uint32_t *n;     /* [words]: how many it has */
    pair *table;
    size_t n_pairs, n_slots;
    entry *heap;
    size_t n_heap, heap_room;
    struct {
        uint64_t key;
        word_list words;
    } * fresh;
    size_t n_fresh, fresh_room;
    stk_merge *merge;
    size_t n_merges, merge_room;
    size_t taken_bytes;
} learner;

/* --- memory --- */

/* Room for one more than n elements, in the array that the pointer at `array` points to. */
static stk_status grow(learner *l, void *array, size_t *room, size_t n, size_t element_bytes)
{
    void *p;
    if (n < *room) return STK_OK;
    size_t more = *room ? *room : 64, bytes = (*room + more) * element_bytes;
    l->taken_bytes += more * element_bytes;
    if (l->taken_bytes > l->rules->limit_bytes)
        return stk_fail(STK_NO_MEMORY,
                        "the pairs of %zu different words take all of the %zu MiB that may be used; train on fewer "
                        "texts, which changes little, or allow more",
                        l->words->n, l->rules->limit_bytes >> 20);
    memcpy(&p, array, sizeof(p));
    p = realloc(p, bytes);
    if (!p) return stk_fail_memory(bytes);
    memcpy(array, &p, sizeof(p));
    *room += more;
    return STK_OK;
}

static stk_status list_word(learner *l, word_list *list, uint32_t i_word)
{
    size_t room = list->room;
    if (list->n && list->word[list->n - 1] == i_word) return STK_OK;
    STK_RETURN_IF_ERROR(grow(l, &list->word, &room, list->n, sizeof(*list->word)));
    list->room = (uint32_t)room;
    list->word[list->n++] = i_word;
    return STK_OK;
}

static void free_list(learner *l, word_list *list)
{
    free(list->word);
    l->taken_bytes -= list->room * sizeof(*list->word);
    *list = (word_list){0};
}

/* --- pairs --- */

static uint64_t key_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static pair *find_pair(const learner *l, uint64_t key)
{
    size_t i = stk_spread64(key) & (l->n_slots - 1);
    while (l->table[i].key != UINT64_MAX && l->table[i].key != key)
        i = (i + 1) & (l->n_slots - 1);
    return &l->table[i];
}

static stk_status grow_table(learner *l)
{
    size_t n = l->n_slots ? 2 * l->n_slots : 1024, n_before = l->n_slots;
    pair *before = l->table;
    pair *table = malloc(n * sizeof(*table));
    if (!table) return stk_fail_memory(n * sizeof(*table));
    for (size_t i = 0; i < n; i++)
        table[i] = (pair){UINT64_MAX, 0, -1};
    l->table = table;
    l->n_slots = n;
    for (size_t i = 0; i < n_before; i++)
        if (before[i].key != UINT64_MAX) *find_pair(l, before[i].key) = before[i];
    free(before);
    l->taken_bytes += (n - n_before) * sizeof(*table);
    return STK_OK;
}

/* A pair occurs `times` more, or less, in each of that many words like this one. */
static stk_status change(learner *l, int32_t left, int32_t right, int times, uint32_t i_word)
{
    uint64_t key = key_of(left, right);
    if (2 * (l->n_pairs + 1) > l->n_slots) STK_RETURN_IF_ERROR(grow_table(l));
    pair *p = find_pair(l, key);
    if (p->key == UINT64_MAX) {
        p->key = key;
        l->n_pairs++;
    }
    p->count += times * l->words->word[i_word].count;
    if (times < 0) return STK_OK;
    if (p->fresh < 0) {
        STK_RETURN_IF_ERROR(grow(l, &l->fresh, &l->fresh_room, l->n_fresh, sizeof(*l->fresh)));
        p->fresh = (int32_t)l->n_fresh++;
        l->fresh[p->fresh].key = key;
        l->fresh[p->fresh].words = (word_list){0};
    }
    return list_word(l, &l->fresh[p->fresh].words, i_word);
}

/* --- the heap --- */

static bool is_before(const entry *a, const entry *b)
{
    return a->count > b->count || (a->count == b->count && a->key < b->key);
}

static void sink(learner *l)
{
    size_t i = 0;
    entry top = l->heap[0];
    for (size_t child; (child = 2 * i + 1) < l->n_heap; i = child) {
        if (child + 1 < l->n_heap && is_before(&l->heap[child + 1], &l->heap[child])) child++;
        if (!is_before(&l->heap[child], &top)) break;
        l->heap[i] = l->heap[child];
    }
    l->heap[i] = top;
}

/* What has become more frequent goes on the heap. */
static stk_status push_fresh(learner *l)
{
    for (; l->n_fresh > 0; l->n_fresh--) {
        uint64_t key = l->fresh[l->n_fresh - 1].key;
        pair *p = find_pair(l, key);
        p->fresh = -1;
        if (p->count <= 0) {
            free_list(l, &l->fresh[l->n_fresh - 1].words);
            continue;
        }
        STK_RETURN_IF_ERROR(grow(l, &l->heap, &l->heap_room, l->n_heap, sizeof(*l->heap)));
        entry e = {p->count, key, l->fresh[l->n_fresh - 1].words};
        size_t i = l->n_heap++;
        for (; i > 0 && is_before(&e, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
            l->heap[i] = l->heap[(i - 1) / 2];
        l->heap[i] = e;
    }
    return STK_OK;
}

/* --- words --- */

static stk_status add_token(learner *l, stk_span left, stk_span right, int32_t *id)
{
    uint8_t text[4096];
    if (left.n + right.n > sizeof(text)) return stk_fail(STK_UNSUPPORTED, "a token of more than 4096 bytes");
    memcpy(text, left.data, left.n);
    memcpy(text + left.n, right.data, right.n);
    stk_span both = {text, left.n + right.n};
    *id = stk_words_find(l->tokens, both);
    if (*id >= 0) return STK_OK;
    *id = (int32_t)l->tokens->n;
    return stk_words_add(l->tokens, both);
}

static stk_status spell(learner *l, uint32_t i_word, size_t *n_symbols)
{
    stk_span word = stk_words_text(l->words, i_word);
    stk_span prefix = {(const uint8_t *)l->rules->prefix, strlen(l->rules->prefix)};
    l->first[i_word] = *n_symbols;
    for (size_t at = 0, n = 1; at < word.n; at += n) {
        if (!l->rules->by_bytes) (void)stk_utf8_next(word.data + at, word.data + word.n, &n);
        stk_span none = {word.data, 0}, symbol = {word.data + at, n};
        STK_RETURN_IF_ERROR(add_token(l, at ? prefix : none, symbol, &l->symbol[(*n_symbols)++]));
    }
    l->n[i_word] = (uint32_t)(*n_symbols - l->first[i_word]);
    return STK_OK;
}

static stk_status spell_all(learner *l)
{
    size_t n_symbols = 0, n_words = l->words->n + 1;
    l->symbol = malloc((l->words->n_bytes + 1) * sizeof(*l->symbol));
    l->first = malloc(n_words * sizeof(*l->first));
    l->n = malloc(n_words * sizeof(*l->n));
    if (!l->symbol || !l->first || !l->n) return stk_fail_memory(l->words->n_bytes * sizeof(*l->symbol));
    l->taken_bytes = l->words->n_bytes * sizeof(*l->symbol) + n_words * (sizeof(*l->first) + sizeof(*l->n));
    for (uint32_t i = 0; i < l->words->n; i++) {
        STK_RETURN_IF_ERROR(spell(l, i, &n_symbols));
        const int32_t *s = l->symbol + l->first[i];
        for (uint32_t k = 0; k + 1 < l->n[i]; k++)
            STK_RETURN_IF_ERROR(change(l, s[k], s[k + 1], 1, i));
    }
    return push_fresh(l);
}

/* Joins the pair wherever it is in the word, from the left. */
static stk_status merge_in(learner *l, uint32_t i_word, int32_t left, int32_t right, int32_t joined)
{
    int32_t *s = l->symbol + l->first[i_word];
    uint32_t n = l->n[i_word], n_out = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i] != left || i + 1 >= n || s[i + 1] != right) {
            s[n_out++] = s[i];
            continue;
        }
        if (n_out > 0) {
            STK_RETURN_IF_ERROR(change(l, s[n_out - 1], left, -1, i_word));
            STK_RETURN_IF_ERROR(change(l, s[n_out - 1], joined, 1, i_word));
        }
        if (i + 2 < n) {
            STK_RETURN_IF_ERROR(change(l, right, s[i + 2], -1, i_word));
            STK_RETURN_IF_ERROR(change(l, joined, s[i + 2], 1, i_word));
        }
        s[n_out++] = joined;
        i++;
    }
    l->n[i_word] = n_out;
    return STK_OK;
}

static stk_status merge_top(learner *l)
{
    entry top = l->heap[0];
    int32_t left = (int32_t)(top.key >> 32), right = (int32_t)(uint32_t)top.key, joined = -1;
    size_t n_prefix = strlen(l->rules->prefix);
    stk_status status;
    l->heap[0] = l->heap[--l->n_heap];
    sink(l);
    stk_span a = stk_words_text(l->tokens, (size_t)left), b = stk_words_text(l->tokens, (size_t)right);
    if (n_prefix && b.n >= n_prefix && !memcmp(b.data, l->rules->prefix, n_prefix))
        b = (stk_span){b.data + n_prefix, b.n - n_prefix};
    STK_TRY(add_token(l, a, b, &joined));
    STK_TRY(grow(l, &l->merge, &l->merge_room, l->n_merges, sizeof(*l->merge)));
    l->merge[l->n_merges++] = (stk_merge){left, right};
    for (uint32_t i = 0; i < top.words.n; i++)
        STK_TRY(merge_in(l, top.words.word[i], left, right, joined));
    STK_TRY(push_fresh(l));
done:
    free_list(l, &top.words);
    return status;
}

static stk_status learn(learner *l)
{
    const stk_merge_rules *r = l->rules;
    STK_RETURN_IF_ERROR(spell_all(l));
    if ((int64_t)l->tokens->n > r->vocabulary)
        return stk_fail(STK_INVALID,
                        "a vocabulary of %lld has no room for the alphabet of these texts and the special tokens, %zu "
                        "together; ask for more",
                        (long long)r->vocabulary, l->tokens->n);
    while ((int64_t)l->tokens->n < r->vocabulary && l->n_heap > 0) {
        int64_t count = find_pair(l, l->heap[0].key)->count;
        if (count != l->heap[0].count) {
            l->heap[0].count = count;
            sink(l);
            continue;
        }
        if (count < 1 || count < r->min_count) break;
        STK_RETURN_IF_ERROR(merge_top(l));
        if (r->on_progress && l->n_merges % 256 == 0 &&
            !r->on_progress(r->user, (int64_t)l->tokens->n, r->vocabulary, true))
            return stk_fail(STK_INTERRUPTED, "stopped");
    }
    return STK_OK;
}

stk_status stk_merges_learn(const stk_words *words, const stk_merge_rules *rules, stk_words *tokens, stk_merge **merges,
                            size_t *n)
{
    learner l = {.words = words, .rules = rules, .tokens = tokens};
    stk_status status = learn(&l);
    for (size_t i = 0; i < l.n_heap; i++)
        free(l.heap[i].words.word);
    for (size_t i = 0; i < l.n_fresh; i++)
        free(l.fresh[i].words.word);
    free(l.heap);
    free(l.fresh);
    free(l.table);
    free(l.symbol);
    free(l.first);
    free(l.n);
    *merges = l.merge;
    *n = l.n_merges;
    if (status == STK_OK) return STK_OK;
    free(l.merge);
    *merges = NULL;
    *n = 0;
    return status;
}
