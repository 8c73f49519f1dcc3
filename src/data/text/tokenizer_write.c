/* See text/tokenizer_write.h. Keys and their order are those of `tokenizers`. */
#include "data/text/tokenizer_write.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/text/tokenizer.h"
#include "data/text/utf8.h"

/* The token in letters for bytes, or as it is. */
static json_t *text_of(const stk_words *tokens, size_t i, bool in_letters)
{
    stk_span token = stk_words_text(tokens, i);
    if (!in_letters) return json_stringn((const char *)token.data, token.n);
    stk_text text = {0};
    for (size_t k = 0; k < token.n; k++) {
        uint8_t letter[4];
        stk_text_add_bytes(&text, letter, stk_utf8_put(stk_letter_of_byte(token.data[k]), letter));
    }
    json_t *out = text.failed ? NULL : json_stringn(stk_text_get(&text), text.n);
    stk_text_free(&text);
    return out;
}

/* {"token": number}; NULL where memory is short. */
static json_t *list_vocab(const stk_words *tokens, size_t n_special, bool in_letters)
{
    json_t *vocab = json_object();
    for (size_t i = 0; vocab && i < tokens->n; i++) {
        json_t *text = text_of(tokens, i, in_letters && i >= n_special);
        if (!text || json_object_set_new(vocab, json_string_value(text), json_integer((json_int_t)i)) < 0) {
            json_decref(vocab);
            vocab = NULL;
        }
        json_decref(text);
    }
    return vocab;
}

static json_t *list_merges(const stk_words *tokens, const stk_merge *merges, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        json_t *pair = json_pack("[o, o]", text_of(tokens, (size_t)merges[i].left, true),
                                 text_of(tokens, (size_t)merges[i].right, true));
        if (!pair || json_array_append_new(list, pair) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *list_special(const stk_words *tokens, size_t n_special)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n_special; i++) {
        json_t *one =
            json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i, "content", text_of(tokens, i, false),
                      "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
        if (!one || json_array_append_new(list, one) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static stk_status dump(json_t *root, unsigned mark, char **json)
{
    return stk_json_print(root, mark, JSON_INDENT(2) | JSON_PRESERVE_ORDER, json);
}

stk_status stk_tokenizer_write_bpe(const stk_words *tokens, size_t n_special, const stk_merge *merges, size_t n_merges,
                                   char **json)
{
    unsigned mark = stk_json_mark();
    json_t *model =
        json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges",
                  0, "vocab", list_vocab(tokens, n_special, true), "merges", list_merges(tokens, merges, n_merges));
    json_t *bytes = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                              "use_regex", 1);
    return dump(json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:O, s:o}", "version", "1.0", "truncation", "padding",
                          "added_tokens", list_special(tokens, n_special), "normalizer", "pre_tokenizer", bytes,
                          "post_processor", "decoder", bytes, "model", model),
                mark, json);
}

stk_status stk_tokenizer_write_characters(const stk_words *tokens, size_t n_special, char **json)
{
    unsigned mark = stk_json_mark();
    json_t *model =
        json_pack("{s:s, s:n, s:s, s:n, s:n, s:b, s:b, s:b, s:o, s:[]}", "type", "BPE", "dropout", "unk_token", "[UNK]",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges",
                  0, "vocab", list_vocab(tokens, n_special, false), "merges");
    return dump(json_pack("{s:s, s:n, s:n, s:o, s:n, s:n, s:n, s:{s:s}, s:o}", "version", "1.0", "truncation",
                          "padding", "added_tokens", list_special(tokens, n_special), "normalizer", "pre_tokenizer",
                          "post_processor", "decoder", "type", "Fuse", "model", model),
                mark, json);
}

/* [CLS] before and [SEP] behind a text. */
static json_t *frame(const stk_words *tokens)
{
    json_int_t cls = stk_words_find(tokens, (stk_span){(const uint8_t *)"[CLS]", 5});
    json_int_t sep = stk_words_find(tokens, (stk_span){(const uint8_t *)"[SEP]", 5});
    return json_pack(
        "{s:s, s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}, {s:{s:s, s:i}}], s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}, "
        "{s:{s:s, s:i}}, {s:{s:s, s:i}}, {s:{s:s, s:i}}], s:{s:{s:s, s:[I], s:[s]}, s:{s:s, s:[I], s:[s]}}}",
        "type", "TemplateProcessing", "single", "SpecialToken", "id", "[CLS]", "type_id", 0, "Sequence", "id", "A",
        "type_id", 0, "SpecialToken", "id", "[SEP]", "type_id", 0, "pair", "SpecialToken", "id", "[CLS]", "type_id", 0,
        "Sequence", "id", "A", "type_id", 0, "SpecialToken", "id", "[SEP]", "type_id", 0, "Sequence", "id", "B",
        "type_id", 1, "SpecialToken", "id", "[SEP]", "type_id", 1, "special_tokens", "[CLS]", "id", "[CLS]", "ids", cls,
        "tokens", "[CLS]", "[SEP]", "id", "[SEP]", "ids", sep, "tokens", "[SEP]");
}

stk_status stk_tokenizer_write_wordpiece(const stk_words *tokens, size_t n_special, bool cased, char **json)
{
    unsigned mark = stk_json_mark();
    json_t *normalizer = json_pack("{s:s, s:b, s:b, s:n, s:b}", "type", "BertNormalizer", "clean_text", 1,
                                   "handle_chinese_chars", 1, "strip_accents", "lowercase", !cased);
    json_t *model =
        json_pack("{s:s, s:s, s:s, s:i, s:o}", "type", "WordPiece", "unk_token", "[UNK]", "continuing_subword_prefix",
                  "##", "max_input_chars_per_word", 100, "vocab", list_vocab(tokens, n_special, false));
    return dump(json_pack("{s:s, s:n, s:n, s:o, s:o, s:{s:s}, s:o, s:{s:s, s:s, s:b}, s:o}", "version", "1.0",
                          "truncation", "padding", "added_tokens", list_special(tokens, n_special), "normalizer",
                          normalizer, "pre_tokenizer", "type", "BertPreTokenizer", "post_processor", frame(tokens),
                          "decoder", "type", "WordPiece", "prefix", "##", "cleanup", 1, "model", model),
                mark, json);
}
