/* Opening tokenizers: which file a path means, and the older formats, vocab.txt and vocab.json with merges.txt. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"
#include "data/remote/remote.h"
#include "data/text/json.h"

enum { MOST_FILE_BYTES = 256 << 20 }; /* the largest in use have a tenth */

/* The next line without its end; false at the end of the text. */
static bool next_line(stk_span *rest, stk_span *line)
{
    if (rest->n == 0) return false;
    const uint8_t *end = memchr(rest->data, '\n', rest->n);
    size_t n = end ? (size_t)(end - rest->data) : rest->n, n_used = end ? n + 1 : n;
    *line = (stk_span){rest->data, n && rest->data[n - 1] == '\r' ? n - 1 : n};
    *rest = (stk_span){rest->data + n_used, rest->n - n_used};
    return true;
}

static size_t count_lines(stk_span text)
{
    size_t n = 0;
    for (stk_span line; next_line(&text, &line);)
        n++;
    return n;
}

/* --- vocab.txt --- */

static stk_status add_bert_steps(stk_normalizer *s, bool lowercase)
{
    STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_CLEAN));
    STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_CJK));
    if (lowercase) {
        STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_NFD));
        STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_ACCENTS));
        STK_RETURN_IF_ERROR(stk_normalizer_add(s, STK_STEP_LOWER));
    }
    stk_normalizer_finish(s);
    return STK_OK;
}

static stk_status read_vocab(stk_tokenizer *t, stk_span lines, bool lowercase)
{
    static const char *const special[] = {"[UNK]", "[SEP]", "[CLS]", "[PAD]", "[MASK]"};
    int64_t id = 0;
    for (stk_span line; next_line(&lines, &line);)
        STK_RETURN_IF_ERROR(stk_tokenizer_set(t, id++, (const char *)line.data, line.n));
    STK_RETURN_IF_ERROR(stk_vocab_index(&t->wordpiece.vocab));
    STK_RETURN_IF_ERROR(add_bert_steps(&t->normalizer, lowercase));
    memcpy(t->prefix, "##", 3);
    t->split = STK_SPLIT_BERT;
    t->clean_up = true;
    STK_RETURN_IF_ERROR(stk_tokenizer_finish(t));
    for (int i = 0; i < 5; i++) {
        stk_span text = {(const uint8_t *)special[i], strlen(special[i])};
        int32_t found = stk_vocab_find(&t->wordpiece.vocab, text.data, text.n);
        if (found < 0 && i < 3) return stk_fail(STK_CORRUPT, "it has no token '%s', which BERT needs", special[i]);
        if (found < 0) continue;
        STK_RETURN_IF_ERROR(stk_tokenizer_add(t, found, text, true, false, 0));
        if (i == 0) t->wordpiece.unknown = found;
        if (i == 1) t->after[t->n_after++] = found;
        if (i == 2) t->before[t->n_before++] = found;
    }
    stk_added_finish(&t->raw);
    return STK_OK;
}

stk_status stk_tokenizer_parse_vocab(stk_span lines, bool lowercase, stk_tokenizer **out)
{
    *out = NULL;
    STK_RETURN_IF_ERROR(stk_tokenizer_make(STK_MODEL_WORDPIECE, out));
    stk_status status = read_vocab(*out, lines, lowercase);
    if (status == STK_OK) return STK_OK;
    stk_tokenizer_free(*out);
    *out = NULL;
    return status;
}

/* --- vocab.json and merges.txt --- */

static stk_status read_merges(stk_bpe *bpe, stk_span lines)
{
    size_t rank = 0;
    STK_RETURN_IF_ERROR(stk_bpe_reserve(bpe, count_lines(lines)));
    for (stk_span line; next_line(&lines, &line);)
        if (line.n && !(line.n >= 8 && !memcmp(line.data, "#version", 8)))
            STK_RETURN_IF_ERROR(stk_add_merge_line(bpe, line, rank++));
    return STK_OK;
}

static stk_status read_bpe(stk_tokenizer *t, stk_span vocab_json, stk_span merges)
{
    static const char separator[] = "<|endoftext|>";
    json_error_t error;
    stk_span text = {(const uint8_t *)separator, sizeof(separator) - 1};
    STK_RETURN_IF_ERROR(stk_json_check(vocab_json, STK_TOKENIZER_TREE_BYTES));
    json_t *vocab;
    STK_RETURN_IF_ERROR(stk_json_parse(vocab_json.data, vocab_json.n, 0, &vocab, &error));
    stk_status status = stk_json_vocab(t, vocab);
    json_decref(vocab);
    STK_RETURN_IF_ERROR(status);
    STK_RETURN_IF_ERROR(read_merges(&t->bpe, merges));
    t->split = STK_SPLIT_GPT2;
    STK_RETURN_IF_ERROR(stk_tokenizer_finish(t));
    int32_t found = stk_vocab_find(&t->bpe.vocab, text.data, text.n);
    if (found >= 0) STK_RETURN_IF_ERROR(stk_tokenizer_add(t, found, text, true, false, 0));
    stk_added_finish(&t->raw);
    return STK_OK;
}

stk_status stk_tokenizer_parse_bpe(stk_span vocab_json, stk_span merges, stk_tokenizer **out)
{
    *out = NULL;
    STK_RETURN_IF_ERROR(stk_tokenizer_make(STK_MODEL_BPE, out));
    stk_status status = read_bpe(*out, vocab_json, merges);
    if (status == STK_OK) return STK_OK;
    stk_tokenizer_free(*out);
    *out = NULL;
    return status;
}

/* --- opening --- */

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), n_end = strlen(end);
    return n >= n_end && !strcmp(path + n - n_end, end);
}

/* The file that a path means: itself, or one in the folder. */
static stk_status find_file(const char *path, char *out, size_t room)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "vocab.txt"};
    if (!stk_path_is_dir(path)) return stk_path_join(out, room, "", path);
    for (int i = 0; i < 3; i++) {
        STK_RETURN_IF_ERROR(stk_path_join(out, room, path, names[i]));
        if (stk_path_exists(out)) return STK_OK;
    }
    return stk_fail(STK_NOT_FOUND, "folder '%s' has no tokenizer.json, vocab.json or vocab.txt", path);
}

static stk_status open_file(const char *path, const stk_tokenizer_config *config, stk_tokenizer **out)
{
    uint8_t *bytes = NULL, *merges = NULL;
    size_t capacity = 0, n, merges_capacity = 0, n_merges;
    char merges_path[PATH_MAX];
    stk_status status;
    STK_TRY(stk_read_input_small(path, MOST_FILE_BYTES, &bytes, &capacity, &n));
    stk_span span = {bytes, n};
    if (ends_in(path, "vocab.json")) {
        snprintf(merges_path, sizeof(merges_path), "%.*smerges.txt", (int)(strlen(path) - strlen("vocab.json")), path);
        STK_TRY(stk_read_input_small(merges_path, MOST_FILE_BYTES, &merges, &merges_capacity, &n_merges));
        status = stk_tokenizer_parse_bpe(span, (stk_span){merges, n_merges}, out);
    } else if (ends_in(path, ".json")) {
        status = stk_tokenizer_parse_json(span, out);
    } else if (ends_in(path, ".txt")) {
        status = stk_tokenizer_parse_vocab(span, config->lowercase, out);
    } else {
        status = stk_fail(STK_INVALID, "a tokenizer is 'bytes', or a file tokenizer.json, vocab.json or vocab.txt");
    }
    if (status != STK_OK) stk_fail_prefix(status, "'%s': ", path);
done:
    free(bytes);
    free(merges);
    return status;
}

stk_status stk_tokenizer_open(const char *path, const stk_tokenizer_config *config, stk_tokenizer **out)
{
    STK_NEED(out);
    stk_tokenizer_config default_value = stk_tokenizer_config_default();
    char file[PATH_MAX];
    *out = NULL;
    if (!path || !path[0]) return stk_fail(STK_INVALID, "the path of the tokenizer is missing");
    if (!strcmp(path, "bytes")) return stk_tokenizer_make(STK_MODEL_BYTES, out);
    STK_RETURN_IF_ERROR(find_file(path, file, sizeof(file)));
    return open_file(file, config ? config : &default_value, out);
}
