/* Encoding. All memory comes in one piece from the caller's scratch:
 *
 *     [ characters being normalized | the normal text | a text with a space before it | for long words ]
 *
 * The last part is there only where a long word is met: then the text is begun again with room for it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "data/text/tokenizer.h"

typedef struct encoder {
    const stk_tokenizer *t;
    int32_t *ids;
    size_t room, n;
    bool stop; /* at `room` tokens */
    stk_status status;
    uint32_t *work;
    uint8_t *normal, *spaced, *words;
    size_t words_room, words_needed;
} encoder;

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void emit(encoder *e, const int32_t *ids, size_t n)
{
    if (e->n < e->room) memcpy(e->ids + e->n, ids, smaller(n, e->room - e->n) * sizeof(*ids));
    e->n += n;
}

static bool is_done(const encoder *e)
{
    return e->status != STK_OK || e->words_needed || (e->stop && e->n >= e->room);
}

/* --- words --- */

static void encode_word(encoder *e, stk_span word)
{
    int32_t few[STK_BPE_SHORT], *ids = few;
    void *work = NULL;
    if (word.n > STK_BPE_SHORT) {
        size_t needed = word.n * STK_BPE_WORK_PER_BYTE;
        if (needed > e->words_room) {
            e->words_needed = needed;
            return;
        }
        work = e->words;
        ids = (int32_t *)(void *)(e->words + 32 * word.n); /* behind what the merges take */
    }
    size_t n = e->t->kind == STK_MODEL_BPE ? stk_bpe_encode(&e->t->bpe, word, ids, work)
                                           : stk_wordpiece_encode(&e->t->wordpiece, word, ids);
    emit(e, ids, n);
}

static void encode_bytes(encoder *e, stk_span text)
{
    for (size_t i = 0; i < text.n && !is_done(e); i++)
        emit(e, &(int32_t){text.data[i]}, 1);
}

static void encode_characters(encoder *e, stk_span text)
{
    for (const uint8_t *at = text.data, *end = at + text.n; at < end && !is_done(e);) {
        int32_t id = stk_characters_next(&e->t->characters, &at, end);
        if (id >= 0) emit(e, &id, 1);
    }
}

static void encode_words(encoder *e, stk_span text)
{
    stk_span word;
    if (text.n == 0) return;
    if (e->t->kind == STK_MODEL_BYTES) {
        encode_bytes(e, text);
        return;
    }
    if (e->t->kind == STK_MODEL_CHARACTERS) {
        encode_characters(e, text);
        return;
    }
    if (e->t->prefix_space && text.data[0] != ' ') {
        e->spaced[0] = ' ';
        memcpy(e->spaced + 1, text.data, text.n);
        text = (stk_span){e->spaced, text.n + 1};
    }
    const uint8_t *at = text.data, *end = at + text.n;
    while (!is_done(e) && stk_split_next(e->t->split, &at, end, &word))
        encode_word(e, word);
}

/* --- added tokens --- */

/* What lies between added tokens goes to `between`. */
static void encode_around(encoder *e, const stk_added *added, stk_span text, void (*between)(encoder *, stk_span))
{
    const uint8_t *at = text.data;
    stk_added_match m = {.next = at};
    while (!is_done(e) && stk_added_next(added, text, m.next, at, &m)) {
        if (m.start > at) between(e, (stk_span){at, (size_t)(m.start - at)});
        if (!is_done(e)) emit(e, &m.id, 1);
        at = m.end;
    }
    if (!is_done(e)) between(e, (stk_span){at, (size_t)(text.data + text.n - at)});
}

static void encode_part(encoder *e, stk_span part)
{
    const stk_normalizer *normalizer = &e->t->normalizer;
    if (part.n == 0) return;
    if (normalizer->n_steps) {
        size_t n = 0;
        e->status = stk_normalizer_run(normalizer, part, e->normal, e->work, &n);
        if (e->status != STK_OK) return;
        part = (stk_span){e->normal, n};
    }
    encode_around(e, &e->t->normal, part, encode_words);
}

/* --- the whole --- */

static stk_status prepare(encoder *e, stk_scratch *scratch, size_t n)
{
    const stk_tokenizer *t = e->t;
    size_t n_work = t->normalizer.n_steps ? STK_NORMALIZE_WORK : 0;
    size_t n_normal = t->normalizer.n_steps ? stk_round_up(stk_normalizer_room(&t->normalizer, n), 64) : 0;
    size_t n_spaced = t->prefix_space ? stk_round_up((n_normal ? n_normal : n) + 1, 64) : 0;
    size_t n_all = n_work + n_normal + n_spaced + e->words_needed;
    uint8_t *memory = n_all ? stk_scratch_get(scratch, n_all) : NULL;
    if (n_all && !memory) return STK_NO_MEMORY; /* the text is set */
    if (memory) {
        e->work = (uint32_t *)(void *)memory;
        e->normal = memory + n_work;
        e->spaced = e->normal + n_normal;
        e->words = e->spaced + n_spaced;
    }
    e->words_room = e->words_needed;
    e->words_needed = 0;
    e->n = 0;
    return STK_OK;
}

stk_status stk_tokenizer_run(const stk_tokenizer *t, stk_span text, bool special, bool stop, stk_scratch *scratch,
                             int32_t *ids, size_t room, size_t *n_ids)
{
    encoder e = {.t = t, .ids = ids, .room = room, .stop = stop};
    if (text.n > UINT32_MAX / 2) return stk_fail(STK_UNSUPPORTED, "a text of 2 GiB or more: cut it into parts");
    if (special) { /* what comes behind has its place even where the text is cut */
        size_t n_around = (size_t)(t->n_before + t->n_after);
        if (stop && room < n_around)
            return stk_fail(STK_INVALID, "%zu tokens leave no room for the %zu special ones", room, n_around);
    }
    do {
        STK_RETURN_IF_ERROR(prepare(&e, scratch, text.n));
        if (special) emit(&e, t->before, (size_t)t->n_before);
        if (stop && special) e.room = room - (size_t)t->n_after;
        encode_around(&e, &t->raw, text, encode_part);
        STK_RETURN_IF_ERROR(e.status);
    } while (e.words_needed);
    if (stop && e.n > e.room) e.n = e.room;
    e.room = room;
    if (special) emit(&e, t->after, (size_t)t->n_after);
    *n_ids = e.n;
    return STK_OK;
}

stk_status stk_tokenizer_encode(const stk_tokenizer *t, const char *text, size_t n_bytes, bool special, int32_t *ids,
                                size_t room, size_t *n_ids)
{
    if (!t) return stk_fail(STK_INVALID, "there is no tokenizer");
    STK_NEED(n_ids);
    if (room > 0) STK_NEED(ids);
    stk_scratch scratch = {0};
    stk_span span = {(const uint8_t *)(text ? text : ""), text ? n_bytes : 0};
    stk_status status = stk_tokenizer_run(t, span, special, false, &scratch, ids, room, n_ids);
    stk_scratch_free(&scratch);
    return status;
}
