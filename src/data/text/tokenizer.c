/* Making tokenizers, and what they tell. See text/tokenizer.h; encode.c and decode.c do the work. */
#include "data/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/text/classes.h"

stk_tokenizer_config stk_tokenizer_config_default(void)
{
    return (stk_tokenizer_config){.lowercase = true};
}

stk_status stk_tokenizer_make(stk_model_kind kind, stk_tokenizer **out)
{
    stk_tokenizer *t = calloc(1, sizeof(*t));
    if (!t) return stk_fail_memory(sizeof(*t));
    atomic_init(&t->n_refs, 1);
    t->kind = kind;
    t->characters.unknown = -1;
    t->bpe.unknown = -1;
    t->wordpiece.unknown = -1;
    t->wordpiece.most_characters = 100;
    stk_classes_load();
    *out = t;
    return STK_OK;
}

stk_tokenizer *stk_tokenizer_share(stk_tokenizer *t)
{
    if (!t) return NULL;
    atomic_fetch_add(&t->n_refs, 1);
    return t;
}

void stk_tokenizer_free(stk_tokenizer *t)
{
    if (!t || atomic_fetch_sub(&t->n_refs, 1) > 1) return;
    stk_characters_free(&t->characters);
    stk_bpe_free(&t->bpe);
    stk_wordpiece_free(&t->wordpiece);
    stk_added_free(&t->raw);
    stk_added_free(&t->normal);
    free(t);
}

const stk_vocab *stk_tokenizer_words(const stk_tokenizer *t)
{
    return t->kind == STK_MODEL_WORDPIECE    ? &t->wordpiece.vocab
           : t->kind == STK_MODEL_CHARACTERS ? &t->characters.vocab
                                             : &t->bpe.vocab;
}

stk_vocab *stk_tokenizer_vocab(stk_tokenizer *t)
{
    return (stk_vocab *)stk_tokenizer_words(t);
}

/* GPT-2 writes printable bytes of Latin-1 as they are, and the others as U+0100, U+0101, ... in their order. */
static int byte_of_letter(uint32_t c)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255)) return (int)c;
    if (c < 256 || c >= 256 + 68) return -1;
    int n = (int)c - 256;
    return n < 33 ? n : n < 33 + 34 ? 127 + n - 33 : 173;
}

uint32_t stk_letter_of_byte(uint8_t byte)
{
    if (byte_of_letter(byte) == byte) return byte;
    return byte == 173 ? 256 + 67u : byte < 33 ? 256u + byte : 256u + 33 + byte - 127;
}

bool stk_bytes_of_letters(stk_span letters, uint8_t *out, size_t *n_out)
{
    *n_out = 0;
    for (size_t i = 0, n; i < letters.n; i += n) {
        int byte = byte_of_letter(stk_utf8_next(letters.data + i, letters.data + letters.n, &n));
        if (byte < 0) return false;
        out[(*n_out)++] = (uint8_t)byte;
    }
    return true;
}

/* What a token's string stands for. *own: it can come out of the model. */
static stk_status text_of_token(const stk_tokenizer *t, stk_span *text, uint8_t **buffer, bool *own)
{
    size_t n;
    *buffer = NULL;
    *own = true;
    if (t->kind != STK_MODEL_BPE) return STK_OK;
    if (!(*buffer = malloc(text->n + 1))) return stk_fail_memory(text->n);
    *own = stk_bytes_of_letters(*text, *buffer, &n);
    if (*own) *text = (stk_span){*buffer, n};
    return STK_OK;
}

stk_status stk_tokenizer_set(stk_tokenizer *t, int64_t id, const char *letters, size_t n)
{
    stk_span text = {(const uint8_t *)letters, n};
    uint8_t *buffer;
    bool own;
    STK_RETURN_IF_ERROR(text_of_token(t, &text, &buffer, &own));
    stk_vocab *vocab = stk_tokenizer_vocab(t);
    stk_status status;
    if (stk_vocab_text(vocab, id).data)
        status = stk_fail(STK_INVALID, "two tokens have number %lld", (long long)id);
    else
        status = stk_vocab_set(vocab, id, text, own && text.n ? STK_TOKEN_WHOLE : 0);
    free(buffer);
    return status;
}

/* Added tokens in the normal form are looked for in texts of that form. */
static stk_status add_normal(stk_tokenizer *t, int64_t id, stk_span text, int flags)
{
    size_t room = stk_normalizer_room(&t->normalizer, text.n), n;
    uint8_t *normal = malloc(room), *work = malloc(STK_NORMALIZE_WORK);
    stk_status status;
    if (!normal || !work) STK_TRY(stk_fail_memory(room));
    STK_TRY(stk_normalizer_run(&t->normalizer, text, normal, (uint32_t *)(void *)work, &n));
    if (n > 0) STK_TRY(stk_added_add(&t->normal, (stk_span){normal, n}, (int32_t)id, flags));
done:
    free(normal);
    free(work);
    return status;
}

stk_status stk_tokenizer_add(stk_tokenizer *t, int64_t id, stk_span text, bool special, bool normalized, int flags)
{
    stk_vocab *vocab = stk_tokenizer_vocab(t);
    uint8_t *buffer;
    bool own;
    if (text.n == 0) return stk_fail(STK_INVALID, "added token %lld is empty", (long long)id);
    if (!stk_vocab_text(vocab, id).data) {
        stk_span decoded = text;
        STK_RETURN_IF_ERROR(text_of_token(t, &decoded, &buffer, &own));
        stk_status status = stk_vocab_set(vocab, id, decoded, 0);
        free(buffer);
        STK_RETURN_IF_ERROR(status);
    }
    if (special) vocab->flags[id] |= STK_TOKEN_SPECIAL;
    if (normalized && t->normalizer.n_steps) return add_normal(t, id, text, flags);
    /* Without a normalizer those in the normal form come second all the same. */
    return stk_added_add(normalized ? &t->normal : &t->raw, text, (int32_t)id, flags);
}

stk_status stk_tokenizer_finish(stk_tokenizer *t)
{
    stk_added_finish(&t->raw);
    stk_added_finish(&t->normal);
    if (t->kind == STK_MODEL_BPE) return stk_bpe_finish(&t->bpe);
    if (t->kind == STK_MODEL_WORDPIECE) return stk_wordpiece_finish(&t->wordpiece, t->prefix);
    if (t->kind == STK_MODEL_CHARACTERS) stk_characters_finish(&t->characters);
    return STK_OK;
}

int64_t stk_tokenizer_vocabulary(const stk_tokenizer *t)
{
    if (!t) return 0;
    return t->kind == STK_MODEL_BYTES ? STK_BYTES_SEPARATOR + 1 : stk_tokenizer_words(t)->n_ids;
}

bool stk_tokenizer_is_special(const stk_tokenizer *t, int64_t id)
{
    if (t->kind == STK_MODEL_BYTES) return id == STK_BYTES_SEPARATOR;
    const stk_vocab *vocab = stk_tokenizer_words(t);
    return id >= 0 && id < vocab->n_ids && vocab->flags[id] & STK_TOKEN_SPECIAL;
}

int32_t stk_tokenizer_find(const stk_tokenizer *t, const char *token)
{
    if (!t) return 0;
    stk_span text = {(const uint8_t *)token, strlen(token)};
    if (t->kind == STK_MODEL_BYTES)
        return text.n == 1 ? text.data[0] : !strcmp(token, "<|endoftext|>") ? STK_BYTES_SEPARATOR : -1;
    int32_t id = stk_added_find(&t->raw, text);
    if (id < 0) id = stk_added_find(&t->normal, text);
    return id >= 0 ? id : stk_vocab_find(stk_tokenizer_words(t), text.data, text.n);
}
