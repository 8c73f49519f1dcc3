/* Tokenizer files, and texts for them: FILE 0 TEXT, where FILE is a tokenizer.json; or 'V' and a vocab.txt; or 'M', a
 * vocab.json, 0 and a merges.txt.
 *
 * covers: data/text/tokenizer_files.c data/text/json_model.c data/text/added.c data/text/bpe.c data/text/decode.c
 * data/text/characters.c data/text/encode.c data/text/normalize.c data/text/split.c data/text/tokenizer.c
 */
#include <stdlib.h>
#include <string.h>

#include "data/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_TEXT = 4096 };

/* What lies before the next 0; rest: what comes behind. */
static stk_span cut(stk_span *rest)
{
    const uint8_t *end = rest->n ? memchr(rest->data, 0, rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->data) : rest->n;
    stk_span part = {rest->data, n};
    *rest = (stk_span){rest->data + n + (end != NULL), rest->n - n - (end != NULL)};
    return part;
}

static stk_status open_one(stk_span *rest, stk_tokenizer **t)
{
    if (rest->n == 0) return STK_INVALID;
    uint8_t kind = rest->data[0];
    if (kind != 'V' && kind != 'M') return stk_tokenizer_parse_json(cut(rest), t);
    *rest = (stk_span){rest->data + 1, rest->n - 1};
    stk_span file = cut(rest);
    if (kind == 'V') return stk_tokenizer_parse_vocab(file, true, t);
    stk_span merges = cut(rest);
    return stk_tokenizer_parse_bpe(file, merges, t);
}

static bool keeps_bytes(const stk_tokenizer *t)
{
    if (t->kind != STK_MODEL_BPE || t->normalizer.n_steps || t->prefix_space || t->normal.n || t->raw.n) return false;
    for (int i = 0; i < 256; i++)
        if (t->bpe.byte_id[i] < 0) return false;
    return true;
}

static void check_text(const stk_tokenizer *t, stk_span text)
{
    const char *bytes = (const char *)text.data;
    size_t n = 0, n_again, n_back, room = 40 * (text.n + 1) + 64;
    int32_t *ids = malloc(room * sizeof(*ids)), *some = malloc(room * sizeof(*some));
    char *back = malloc(text.n + 1);
    stk_scratch scratch = {0};
    if (stk_tokenizer_encode(t, bytes, text.n, true, ids, room, &n) != STK_OK || n > room) abort();
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0) abort();
    (void)stk_tokenizer_decode(t, ids, n, true, back, text.n, &n_back);
    /* Stopping early gives the same beginning. */
    size_t half = n / 2;
    if (stk_tokenizer_run(t, text, false, false, &scratch, ids, room, &n) != STK_OK || n > room) abort();
    if (half > n) half = n;
    if (stk_tokenizer_run(t, text, false, true, &scratch, some, half, &n_again) != STK_OK || n_again != half) abort();
    if (memcmp(ids, some, half * sizeof(*ids))) abort();
    if (keeps_bytes(t)) {
        if (stk_tokenizer_decode(t, ids, n, false, back, text.n, &n_back) != STK_OK || n_back != text.n) abort();
        if (text.n && memcmp(back, bytes, text.n)) abort();
    }
    stk_scratch_free(&scratch);
    free(ids);
    free(some);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_span rest = {data, size};
    stk_tokenizer *t = NULL;
    if (open_one(&rest, &t) == STK_OK) {
        if (rest.n > MOST_TEXT) rest.n = MOST_TEXT;
        check_text(t, rest);
        for (int64_t id = 0; id < stk_tokenizer_vocabulary(t) && id < 64; id++) {
            size_t n;
            (void)stk_tokenizer_decode(t, &(int32_t){(int32_t)id}, 1, false, NULL, 0, &n);
        }
        (void)stk_tokenizer_find(t, "[CLS]");
    } else if (t) {
        abort(); /* an error leaves nothing behind */
    }
    stk_tokenizer_free(t);
    return 0;
}
