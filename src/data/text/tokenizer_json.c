/* tokenizer.json, as the package `tokenizers` writes it: each part becomes settings of the tokenizer, or is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"
#include "data/text/json.h"

/* --- reading values --- */

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "";
}

static bool is_type(const json_t *part, const char *type)
{
    return !strcmp(type_of(part), type);
}

/* A missing key is `default_value`. */
static bool get_bool(const json_t *part, const char *key, bool default_value)
{
    const json_t *value = json_object_get(part, key);
    return json_is_boolean(value) ? json_is_true(value) : default_value;
}

static const char *get_text(const json_t *part, const char *key)
{
    const char *text = json_string_value(json_object_get(part, key));
    return text ? text : "";
}

static stk_status refuse(const char *what, const json_t *part)
{
    return stk_fail(STK_UNSUPPORTED, "its %s '%.80s' is not supported", what, type_of(part));
}

/* --- normalizer --- */

static stk_status add_bert(stk_normalizer *s, const json_t *part)
{
    bool lower = get_bool(part, "lowercase", true);
    if (get_bool(part, "clean_text", true)) STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_CLEAN));
    if (get_bool(part, "handle_chinese_chars", true)) STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_CJK));
    if (get_bool(part, "strip_accents", lower)) {
        STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_NFD));
        STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_ACCENTS));
    }
    return lower ? stk_normalizer_add(s, STK_STEP_LOWER) : STK_OK;
}

static stk_status read_normalizer(stk_normalizer *s, const json_t *part, int depth)
{
    static const struct {
        const char *type;
        stk_normalize_step step;
    } simple[] = {{"NFD", STK_STEP_NFD},   {"NFC", STK_STEP_NFC},         {"NFKD", STK_STEP_NFKD},
                  {"NFKC", STK_STEP_NFKC}, {"Lowercase", STK_STEP_LOWER}, {"StripAccents", STK_STEP_MARKS}};
    const json_t *list = json_object_get(part, "normalizers"), *one;
    size_t i;
    if (!part || json_is_null(part)) return STK_OK;
    if (is_type(part, "BertNormalizer")) return add_bert(s, part);
    for (i = 0; i < sizeof(simple) / sizeof(simple[0]); i++)
        if (is_type(part, simple[i].type)) return stk_normalizer_add(s, simple[i].step);
    if (!is_type(part, "Sequence") || !list || depth > 4) return refuse("normalizer", part);
    json_array_foreach(list, i, one) STK_RETURN_IF_ERROR(read_normalizer(s, one, depth + 1));
    return STK_OK;
}

/* --- words --- */

static stk_status read_byte_level(stk_tokenizer *t, const json_t *part, bool alone)
{
    t->prefix_space = get_bool(part, "add_prefix_space", true);
    if (alone) t->split = get_bool(part, "use_regex", true) ? STK_SPLIT_GPT2 : STK_SPLIT_NONE;
    if (!alone && (t->prefix_space || get_bool(part, "use_regex", true)))
        return stk_fail(STK_UNSUPPORTED, "its pre_tokenizer 'ByteLevel' behind another is supported with "
                                         "\"add_prefix_space\" and \"use_regex\" false only");
    return STK_OK;
}

static stk_status read_pattern(stk_tokenizer *t, const json_t *part)
{
    const char *pattern = get_text(json_object_get(part, "pattern"), "Regex"), *behavior = get_text(part, "behavior");
    bool invert = get_bool(part, "invert", false);
    t->split = stk_split_of_pattern(pattern);
    /* These patterns match every character, so that what is between matches is nothing. */
    bool keeps = invert ? !strcmp(behavior, "Removed") : !strcmp(behavior, "Isolated");
    if (t->split != STK_SPLIT_NONE && keeps) return STK_OK;
    if (t->split != STK_SPLIT_NONE)
        return stk_fail(STK_UNSUPPORTED, "its pre_tokenizer 'Split' with behavior '%.40s' is not supported", behavior);
    return stk_fail(STK_UNSUPPORTED,
                    "its pre_tokenizer 'Split' has the pattern '%.120s'; those of GPT-2, Llama 3 and Qwen 2 are "
                    "supported",
                    pattern);
}

static stk_status read_splits(stk_tokenizer *t, const json_t *part)
{
    const json_t *list = json_object_get(part, "pretokenizers"), *first = json_array_get(list, 0),
                 *second = json_array_get(list, 1);
    bool is_bpe = t->kind == STK_MODEL_BPE;
    t->split = STK_SPLIT_NONE;
    if (is_bpe && is_type(part, "ByteLevel")) return read_byte_level(t, part, true);
    if (is_bpe && is_type(part, "Sequence") && json_array_size(list) == 2 && is_type(first, "Split") &&
        is_type(second, "ByteLevel")) {
        STK_RETURN_IF_ERROR(read_pattern(t, first));
        return read_byte_level(t, second, false);
    }
    if (is_bpe)
        return stk_fail(STK_UNSUPPORTED,
                        "its pre_tokenizer '%.80s' is not supported: BPE needs 'ByteLevel', alone or behind a 'Split'",
                        type_of(part));
    if (!part || json_is_null(part)) return STK_OK;
    if (is_type(part, "BertPreTokenizer"))
        t->split = STK_SPLIT_BERT;
    else if (is_type(part, "WhitespaceSplit"))
        t->split = STK_SPLIT_SPACES;
    else if (is_type(part, "Whitespace"))
        t->split = STK_SPLIT_WORDS;
    else
        return refuse("pre_tokenizer", part);
    return STK_OK;
}

/* --- model --- */

/* BPE without merges of characters, not of bytes: what is left of it is a token for each character. */
static bool is_of_characters(const json_t *root, const json_t *model)
{
    const json_t *merges = json_object_get(model, "merges"), *words = json_object_get(root, "pre_tokenizer");
    return json_is_array(merges) && json_array_size(merges) == 0 && (!words || json_is_null(words));
}

/* What is not supported of BPE, with merges or without. */
static stk_status check_bpe(const json_t *model)
{
    static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *dropout = json_object_get(model, "dropout");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (get_text(model, texts[i])[0])
            return stk_fail(STK_UNSUPPORTED, "its model has a \"%s\", which is not supported", texts[i]);
    if (json_is_number(dropout) && json_number_value(dropout) != 0)
        return stk_fail(STK_UNSUPPORTED, "its model has a \"dropout\", which is not supported");
    if (get_bool(model, "byte_fallback", false) || get_bool(model, "fuse_unk", false))
        return stk_fail(STK_UNSUPPORTED, "its model has \"%s\", which is not supported",
                        get_bool(model, "fuse_unk", false) ? "fuse_unk" : "byte_fallback");
    return STK_OK;
}

static stk_status read_unknown(const json_t *model, const stk_vocab *vocab, int32_t *unknown)
{
    const json_t *name = json_object_get(model, "unk_token");
    if (!json_is_string(name)) return STK_OK;
    const char *text = json_string_value(name);
    *unknown = stk_vocab_find(vocab, (const uint8_t *)text, strlen(text));
    return *unknown >= 0 ? STK_OK : stk_fail(STK_UNSUPPORTED, "its \"unk_token\" '%.80s' is no token", text);
}

static stk_status read_bpe(stk_tokenizer *t, const json_t *model)
{
    STK_RETURN_IF_ERROR(check_bpe(model));
    t->bpe.whole_first = get_bool(model, "ignore_merges", false);
    STK_RETURN_IF_ERROR(stk_json_vocab(t, json_object_get(model, "vocab")));
    STK_RETURN_IF_ERROR(read_unknown(model, &t->bpe.vocab, &t->bpe.unknown));
    return stk_json_merges(&t->bpe, json_object_get(model, "merges"));
}

static stk_status read_characters(stk_tokenizer *t, const json_t *model)
{
    STK_RETURN_IF_ERROR(check_bpe(model));
    if (get_bool(model, "ignore_merges", false))
        return stk_fail(STK_UNSUPPORTED, "its model of characters has \"ignore_merges\", which is not supported");
    STK_RETURN_IF_ERROR(stk_json_vocab(t, json_object_get(model, "vocab")));
    return read_unknown(model, &t->characters.vocab, &t->characters.unknown);
}

static stk_status read_wordpiece(stk_tokenizer *t, const json_t *model)
{
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    const char *unknown = get_text(model, "unk_token"), *prefix = get_text(model, "continuing_subword_prefix");
    if (strlen(prefix) >= sizeof(t->prefix)) return stk_fail(STK_UNSUPPORTED, "its prefix '%.40s' is too long", prefix);
    memcpy(t->prefix, prefix, strlen(prefix));
    if (most && (!json_is_integer(most) || json_integer_value(most) < 0))
        return stk_fail(STK_CORRUPT, "\"max_input_chars_per_word\" is no whole number");
    if (most) t->wordpiece.most_characters = json_integer_value(most);
    STK_RETURN_IF_ERROR(stk_json_vocab(t, json_object_get(model, "vocab")));
    t->wordpiece.unknown = stk_vocab_find(&t->wordpiece.vocab, (const uint8_t *)unknown, strlen(unknown));
    if (t->wordpiece.unknown < 0) return stk_fail(STK_CORRUPT, "its \"unk_token\" '%.80s' is no token", unknown);
    return STK_OK;
}

/* --- added tokens, what is put around a text, decoder --- */

static stk_status read_added(stk_tokenizer *t, const json_t *list)
{
    size_t i;
    json_t *token;
    json_array_foreach(list, i, token)
    {
        const json_t *id = json_object_get(token, "id"), *text = json_object_get(token, "content");
        bool special = get_bool(token, "special", false);
        if (!json_is_integer(id) || !json_is_string(text))
            return stk_fail(STK_CORRUPT, "added token %zu has no \"id\" or no \"content\"", i);
        int flags = (get_bool(token, "single_word", false) ? STK_ADDED_WORD : 0) |
                    (get_bool(token, "lstrip", false) ? STK_ADDED_LEFT : 0) |
                    (get_bool(token, "rstrip", false) ? STK_ADDED_RIGHT : 0);
        stk_span span = {(const uint8_t *)json_string_value(text), json_string_length(text)};
        STK_RETURN_IF_ERROR(stk_tokenizer_add(t, json_integer_value(id), span, special,
                                              get_bool(token, "normalized", !special), flags));
    }
    return STK_OK;
}

static stk_status add_around(stk_tokenizer *t, bool behind, const json_t *id)
{
    int *n = behind ? &t->n_after : &t->n_before;
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= STK_MOST_TOKENS)
        return stk_fail(STK_CORRUPT, "its post_processor puts a token without a number around a text");
    if (*n == STK_MOST_AROUND)
        return stk_fail(STK_UNSUPPORTED, "its post_processor puts more than %d tokens around a text", STK_MOST_AROUND);
    (behind ? t->after : t->before)[(*n)++] = (int32_t)json_integer_value(id);
    return STK_OK;
}

static stk_status read_template(stk_tokenizer *t, const json_t *part)
{
    const json_t *pieces = json_object_get(part, "single"), *known = json_object_get(part, "special_tokens"), *piece;
    size_t i, k;
    bool behind = false;
    json_array_foreach(pieces, i, piece)
    {
        const json_t *special = json_object_get(piece, "SpecialToken"), *id;
        if (!special && (behind || !json_object_get(piece, "Sequence")))
            return stk_fail(STK_UNSUPPORTED, "its post_processor has a template that is not supported");
        behind = behind || !special;
        const json_t *ids = json_object_get(json_object_get(known, get_text(special, "id")), "ids");
        if (special && !ids) return stk_fail(STK_CORRUPT, "its post_processor has a special token without numbers");
        json_array_foreach(ids, k, id) STK_RETURN_IF_ERROR(add_around(t, behind, id));
    }
    return behind ? STK_OK : stk_fail(STK_UNSUPPORTED, "its post_processor has a template without the text");
}

static stk_status read_around(stk_tokenizer *t, const json_t *part)
{
    const json_t *list = json_object_get(part, "processors"), *one;
    size_t i, n_used = 0;
    if (!part || json_is_null(part) || is_type(part, "ByteLevel")) return STK_OK;
    if (is_type(part, "TemplateProcessing")) return read_template(t, part);
    if (is_type(part, "BertProcessing") || is_type(part, "RobertaProcessing")) {
        STK_RETURN_IF_ERROR(add_around(t, false, json_array_get(json_object_get(part, "cls"), 1)));
        return add_around(t, true, json_array_get(json_object_get(part, "sep"), 1));
    }
    if (!is_type(part, "Sequence") || !list) return refuse("post_processor", part);
    json_array_foreach(list, i, one)
    {
        n_used += !is_type(one, "ByteLevel");
        if (n_used > 1 || is_type(one, "Sequence")) return refuse("post_processor", part);
        STK_RETURN_IF_ERROR(read_around(t, one));
    }
    return STK_OK;
}

/* No decoder stands for that of the model. */
static stk_status read_decoder(stk_tokenizer *t, const json_t *part)
{
    t->clean_up = get_bool(part, "cleanup", false);
    if (!part || json_is_null(part)) return STK_OK;
    if (t->kind == STK_MODEL_BPE && is_type(part, "ByteLevel")) return STK_OK;
    if (t->kind == STK_MODEL_CHARACTERS && is_type(part, "Fuse")) return STK_OK;
    if (t->kind == STK_MODEL_WORDPIECE && is_type(part, "WordPiece") && !strcmp(get_text(part, "prefix"), t->prefix))
        return STK_OK;
    return refuse("decoder", part);
}

/* --- the whole --- */

static stk_status check_around(stk_tokenizer *t)
{
    for (int i = 0; i < t->n_before + t->n_after; i++) {
        int32_t id = i < t->n_before ? t->before[i] : t->after[i - t->n_before];
        if (!stk_vocab_text(stk_tokenizer_vocab(t), id).data)
            return stk_fail(STK_CORRUPT, "its post_processor puts %d around a text, which is no token", id);
    }
    return STK_OK;
}

static stk_status read_root(const json_t *root, stk_tokenizer **out)
{
    const json_t *model = json_object_get(root, "model");
    /* Old files do not name the type of the model. */
    const char *type = json_object_get(model, "type") ? type_of(model) : json_object_get(model, "merges") ? "BPE" : "";
    bool is_bpe = !strcmp(type, "BPE"), is_characters = is_bpe && is_of_characters(root, model);
    if (!is_bpe && strcmp(type, "WordPiece"))
        return stk_fail(STK_UNSUPPORTED, "its model '%.80s' is not supported; BPE over bytes and WordPiece are", type);
    stk_model_kind kind = is_characters ? STK_MODEL_CHARACTERS : is_bpe ? STK_MODEL_BPE : STK_MODEL_WORDPIECE;
    STK_RETURN_IF_ERROR(stk_tokenizer_make(kind, out));
    stk_tokenizer *t = *out;
    STK_RETURN_IF_ERROR(read_splits(t, json_object_get(root, "pre_tokenizer")));
    STK_RETURN_IF_ERROR(read_normalizer(&t->normalizer, json_object_get(root, "normalizer"), 0));
    stk_normalizer_finish(&t->normalizer);
    STK_RETURN_IF_ERROR(is_characters ? read_characters(t, model)
                        : is_bpe      ? read_bpe(t, model)
                                      : read_wordpiece(t, model));
    STK_RETURN_IF_ERROR(read_around(t, json_object_get(root, "post_processor")));
    STK_RETURN_IF_ERROR(read_decoder(t, json_object_get(root, "decoder")));
    STK_RETURN_IF_ERROR(stk_tokenizer_finish(t));
    STK_RETURN_IF_ERROR(read_added(t, json_object_get(root, "added_tokens")));
    stk_added_finish(&t->raw);
    stk_added_finish(&t->normal);
    return check_around(t);
}

stk_status stk_tokenizer_parse_json(stk_span bytes, stk_tokenizer **out)
{
    json_error_t error;
    *out = NULL;
    STK_RETURN_IF_ERROR(stk_json_check(bytes, STK_TOKENIZER_TREE_BYTES));
    json_t *root;
    STK_RETURN_IF_ERROR(stk_json_parse(bytes.data, bytes.n, 0, &root, &error));
    stk_status status = read_root(root, out);
    json_decref(root);
    if (status == STK_OK) return STK_OK;
    stk_tokenizer_free(*out);
    *out = NULL;
    return status;
}
