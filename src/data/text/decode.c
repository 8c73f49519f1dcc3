/* Decoding: characters and the bytes of BPE are put together as they are, WordPiece's words with spaces. */
#include <string.h>

#include "base/error.h"
#include "data/text/tokenizer.h"

typedef struct writer {
    char *text;
    size_t room, n;
} writer;

static void put(writer *w, const void *bytes, size_t n)
{
    if (w->n < w->room && n) memcpy(w->text + w->n, bytes, n < w->room - w->n ? n : w->room - w->n);
    w->n += n;
}

/* True where a word comes without a space before it, as `tokenizers` cleans up: before . ? ! , and behind contractions.
 */
static bool is_tight(stk_span token)
{
    static const char *const starts[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t n = strlen(starts[i]);
        if (token.n >= n && !memcmp(token.data, starts[i], n)) return true;
    }
    return false;
}

static void put_piece(const stk_tokenizer *t, writer *w, stk_span token, bool first)
{
    size_t n = strlen(t->prefix);
    bool continues = n && token.n >= n && !memcmp(token.data, t->prefix, n);
    if (continues && !first)
        token = (stk_span){token.data + n, token.n - n};
    else if (!first && !(t->clean_up && is_tight(token)))
        put(w, " ", 1);
    put(w, token.data, token.n);
}

stk_status stk_tokenizer_decode(const stk_tokenizer *t, const int32_t *ids, size_t n_ids, bool skip_special, char *text,
                                size_t room, size_t *n_bytes)
{
    if (!t) return stk_fail(STK_INVALID, "there is no tokenizer");
    STK_NEED(n_bytes);
    if (room > 0) STK_NEED(text);
    if (n_ids > 0) STK_NEED(ids);
    const stk_vocab *vocab = stk_tokenizer_words(t);
    static const char separator[] = "<|endoftext|>";
    writer w = {text, room, 0};
    bool first = true;
    for (size_t i = 0; i < n_ids; i++) {
        stk_span token = stk_vocab_text(vocab, ids[i]);
        if (t->kind == STK_MODEL_BYTES && ids[i] >= 0 && ids[i] <= STK_BYTES_SEPARATOR) {
            if (ids[i] < STK_BYTES_SEPARATOR)
                put(&w, &(uint8_t){(uint8_t)ids[i]}, 1);
            else if (!skip_special)
                put(&w, separator, sizeof(separator) - 1);
            continue;
        }
        if (!token.data) return stk_fail(STK_INVALID, "there is no token %d", ids[i]);
        if (skip_special && vocab->flags[ids[i]] & STK_TOKEN_SPECIAL) continue;
        if (t->kind == STK_MODEL_WORDPIECE)
            put_piece(t, &w, token, first);
        else
            put(&w, token.data, token.n);
        first = false;
    }
    *n_bytes = w.n;
    return STK_OK;
}
