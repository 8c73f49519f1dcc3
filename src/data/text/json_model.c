/* The vocabulary and the merges of tokenizer.json and vocab.json. See text/json.h. */
#include <string.h>

#include "base/error.h"
#include "data/text/json.h"

static stk_span span_of(const json_t *text)
{
    return (stk_span){(const uint8_t *)json_string_value(text), json_string_length(text)};
}

stk_status stk_json_vocab(stk_tokenizer *t, json_t *vocab)
{
    const char *text;
    size_t n;
    json_t *id;
    if (!json_is_object(vocab)) return stk_fail(STK_CORRUPT, "its vocabulary is no map of tokens to numbers");
    json_object_keylen_foreach(vocab, text, n, id)
    {
        if (!json_is_integer(id)) return stk_fail(STK_CORRUPT, "token '%.80s' has no whole number", text);
        STK_RETURN_IF_ERROR(stk_tokenizer_set(t, json_integer_value(id), text, n));
    }
    return stk_vocab_index(stk_tokenizer_vocab(t));
}

/* Both parts as the bytes that they stand for; a part with other letters is as good as not in the vocabulary. */
static stk_status add_merge(stk_bpe *bpe, stk_span left, stk_span right, size_t rank)
{
    uint8_t bytes[2][2048];
    size_t n[2];
    if (left.n > sizeof(bytes[0]) || right.n > sizeof(bytes[0]))
        return stk_fail(STK_UNSUPPORTED, "merge %zu: tokens of more than %zu bytes are not supported", rank,
                        sizeof(bytes[0]));
    if (!stk_bytes_of_letters(left, bytes[0], &n[0]) || !stk_bytes_of_letters(right, bytes[1], &n[1]))
        return stk_fail(STK_UNSUPPORTED,
                        "merge %zu joins '%.*s' and '%.*s', which are not letters for bytes: only byte-level BPE is "
                        "supported",
                        rank, (int)left.n, (const char *)left.data, (int)right.n, (const char *)right.data);
    return stk_bpe_add(bpe, (stk_span){bytes[0], n[0]}, (stk_span){bytes[1], n[1]}, (uint32_t)rank);
}

stk_status stk_add_merge_line(stk_bpe *bpe, stk_span line, size_t rank)
{
    const uint8_t *space = line.n ? memchr(line.data, ' ', line.n) : NULL;
    size_t n = space ? (size_t)(space - line.data) : 0;
    if (!space || memchr(space + 1, ' ', line.n - n - 1))
        return stk_fail(STK_CORRUPT, "merge %zu is '%.*s', not two tokens with a space between them", rank,
                        (int)(line.n < 80 ? line.n : 80), (const char *)line.data);
    return add_merge(bpe, (stk_span){line.data, n}, (stk_span){space + 1, line.n - n - 1}, rank);
}

stk_status stk_json_merges(stk_bpe *bpe, const json_t *merges)
{
    size_t i;
    json_t *merge;
    if (!json_is_array(merges)) return stk_fail(STK_CORRUPT, "its merges are no list");
    STK_RETURN_IF_ERROR(stk_bpe_reserve(bpe, json_array_size(merges)));
    json_array_foreach(merges, i, merge)
    {
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
        if (json_is_string(merge))
            STK_RETURN_IF_ERROR(stk_add_merge_line(bpe, span_of(merge), i));
        else if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right))
            STK_RETURN_IF_ERROR(add_merge(bpe, span_of(left), span_of(right), i));
        else
            return stk_fail(STK_CORRUPT, "merge %zu is no pair of tokens", i);
    }
    return STK_OK;
}
