/* See stoker/data/tokenizer_train.h: texts to words, words to merges, merges to a file. */
#include "stoker/data/tokenizer_train.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/new_file.h"
#include "data/source/paths.h"
#include "data/text/classes.h"
#include "data/text/merges.h"
#include "data/text/pieces.h"
#include "data/text/tokenizer_write.h"

enum { PIECE_BYTES = 1 << 20 };

/* What a kind needs, before one's own. */
static const char *const bert_special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
static const char *const character_special[] = {"[UNK]"};

typedef struct job {
    stk_tokenizer_training training;
    stk_normalizer normalizer;
    stk_split split;
    stk_scratch scratch;
    stk_words words, tokens;
    size_t n_special, limit_bytes;
    stk_tokenizer_result result;
} job;

stk_tokenizer_training stk_tokenizer_training_default(void)
{
    return (stk_tokenizer_training){.kind = STK_TOKENIZER_BPE, .vocabulary = 8000};
}

/* --- words --- */

/* A word for each; bytes that are none get no token. */
static stk_status count_characters(job *j, stk_span text)
{
    for (size_t at = 0, n; at < text.n; at += n) {
        if (stk_utf8_next(text.data + at, text.data + text.n, &n) == STK_NO_CHARACTER) continue;
        j->result.n_words++;
        STK_RETURN_IF_ERROR(stk_words_add(&j->words, (stk_span){text.data + at, n}));
    }
    return STK_OK;
}

static stk_status count_words(job *j, stk_span text)
{
    const uint8_t *at = text.data, *end = at + text.n;
    stk_span word;
    if (j->training.kind == STK_TOKENIZER_CHARACTERS) return count_characters(j, text);
    while (stk_split_next(j->split, &at, end, &word)) {
        j->result.n_words++;
        STK_RETURN_IF_ERROR(stk_words_add(&j->words, word));
    }
    return STK_OK;
}

static stk_status count_line(job *j, stk_span line)
{
    if (!j->normalizer.n_steps) return count_words(j, line);
    size_t room = stk_normalizer_room(&j->normalizer, line.n), n;
    uint8_t *memory = stk_scratch_get(&j->scratch, STK_NORMALIZE_WORK + room);
    if (!memory) return STK_NO_MEMORY; /* the text is set */
    STK_RETURN_IF_ERROR(
        stk_normalizer_run(&j->normalizer, line, memory + STK_NORMALIZE_WORK, (uint32_t *)(void *)memory, &n));
    return count_words(j, (stk_span){memory + STK_NORMALIZE_WORK, n});
}

/* Each line with its end is a text. */
static stk_status count_piece(job *j, stk_span text)
{
    for (size_t at = 0, n; at < text.n; at += n) {
        const uint8_t *end = memchr(text.data + at, '\n', text.n - at);
        n = end ? (size_t)(end - text.data) + 1 - at : text.n - at;
        STK_RETURN_IF_ERROR(count_line(j, (stk_span){text.data + at, n}));
    }
    return STK_OK;
}

static stk_status count_files(job *j, const stk_shards *files)
{
    stk_tokenizer *any = NULL; /* lines are cut alike for all */
    stk_pieces pieces;
    stk_piece piece = {0};
    stk_status status;
    int64_t n_all = 0;
    for (int i = 0; i < files->n_shards; i++)
        n_all += (int64_t)files->shard[i].file.n_bytes;
    STK_TRY(stk_tokenizer_make(STK_MODEL_BYTES, &any));
    stk_pieces_open(&pieces, files, any, true, PIECE_BYTES);
    for (bool more = true; more;) {
        STK_TRY(stk_pieces_next(&pieces, &piece, &more));
        if (!more) break;
        STK_TRY(count_piece(j, (stk_span){piece.text, piece.n}));
        j->result.n_bytes += (int64_t)piece.n;
        if (j->training.on_progress && !j->training.on_progress(j->training.user, j->result.n_bytes, n_all, false))
            STK_TRY(stk_fail(STK_INTERRUPTED, "stopped"));
    }
    stk_words_sort(&j->words);
    j->result.n_different = (int64_t)j->words.n;
    if (j->words.n == 0) STK_TRY(stk_fail(STK_INVALID, "there is no word in these texts"));
done:
    free(piece.text);
    stk_tokenizer_free(any);
    return status;
}

static stk_status read_files(job *j, const char *const *paths, int n_paths)
{
    stk_names names = {0};
    stk_shards files = {0};
    stk_status status;
    STK_TRY(stk_paths_expand(paths, n_paths, false, &names));
    STK_TRY(stk_shards_open_lines(&names, NULL, true, 0, false, &files));
    STK_TRY(count_files(j, &files));
done:
    stk_shards_close(&files);
    stk_names_free(&names);
    return status;
}

/* --- tokens --- */

static stk_status add_special(job *j)
{
    static const char *const end[] = {"<|endoftext|>"};
    stk_tokenizer_kind kind = j->training.kind;
    bool own = kind != STK_TOKENIZER_WORDPIECE && j->training.n_special == 0;
    const char *const *needed = kind == STK_TOKENIZER_WORDPIECE ? bert_special : character_special;
    const char *const *list = own ? end : j->training.special;
    int n_needed = kind == STK_TOKENIZER_WORDPIECE ? 5 : kind == STK_TOKENIZER_CHARACTERS ? 1 : 0;
    int n = own ? 1 : j->training.n_special;
    for (int i = 0; i < n_needed; i++)
        STK_RETURN_IF_ERROR(stk_words_add(&j->tokens, (stk_span){(const uint8_t *)needed[i], strlen(needed[i])}));
    for (int i = 0; i < n; i++) {
        stk_span text = {(const uint8_t *)list[i], strlen(list[i])};
        if (text.n == 0) return stk_fail(STK_INVALID, "a special token is empty");
        STK_RETURN_IF_ERROR(stk_words_add(&j->tokens, text));
    }
    j->n_special = j->tokens.n;
    return STK_OK;
}

/* All bytes, in the order of the letters that stand for them. */
static stk_status add_bytes(job *j)
{
    for (uint32_t letter = 0; letter < 256 + 68; letter++)
        for (int byte = 0; byte < 256; byte++)
            if (stk_letter_of_byte((uint8_t)byte) == letter)
                STK_RETURN_IF_ERROR(stk_words_add(&j->tokens, (stk_span){&(uint8_t){(uint8_t)byte}, 1}));
    return STK_OK;
}

/* All characters that occur, in their order. */
static stk_status add_characters(job *j)
{
    enum { N = 0x110000 };
    uint8_t *seen = calloc(N / 8, 1);
    stk_status status = STK_OK;
    if (!seen) return stk_fail_memory(N / 8);
    for (size_t at = 0, n; at < j->words.n_bytes; at += n) {
        uint32_t c = stk_utf8_next(j->words.bytes + at, j->words.bytes + j->words.n_bytes, &n);
        if (c < N) seen[c / 8] |= (uint8_t)(1 << c % 8);
    }
    for (uint32_t c = 0; c < N; c++) {
        uint8_t text[4];
        if (!(seen[c / 8] >> c % 8 & 1)) continue;
        STK_TRY(stk_words_add(&j->tokens, (stk_span){text, stk_utf8_put(c, text)}));
    }
done:
    free(seen);
    return status;
}

static int compare_counts(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The most frequent characters, as many as there is room for, in their order; of equally frequent ones the first. */
static stk_status add_most_frequent(job *j)
{
    size_t n = j->words.n, room = (size_t)j->training.vocabulary, n_equal = 0;
    int64_t *counts = NULL, least = j->training.min_count;
    if (j->n_special >= room)
        return stk_fail(STK_INVALID, "a vocabulary of %lld has no room for characters besides the %zu special tokens",
                        (long long)j->training.vocabulary, j->n_special);
    room -= j->n_special;
    if (n > room) {
        if (!(counts = malloc(n * sizeof(*counts)))) return stk_fail_memory(n * sizeof(*counts));
        for (size_t i = 0; i < n; i++)
            counts[i] = j->words.word[i].count;
        qsort(counts, n, sizeof(*counts), compare_counts);
        if (counts[room - 1] >= least) least = counts[room - 1];
        for (size_t i = 0; i < room; i++)
            n_equal += counts[i] == least; /* room for as many as occur as often as the last that has any */
        free(counts);
    } else {
        n_equal = n;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t count = j->words.word[i].count;
        if (count < least || (count == least && n_equal == 0)) continue;
        if (count == least) n_equal--;
        STK_RETURN_IF_ERROR(stk_words_add(&j->tokens, stk_words_text(&j->words, i)));
    }
    return STK_OK;
}

/* Those that are given, in the order in which they stand there. */
static stk_status add_listed(job *j)
{
    stk_span list = {(const uint8_t *)j->training.characters, strlen(j->training.characters)};
    if (list.n == 0) return stk_fail(STK_INVALID, "the list of characters is empty");
    for (size_t at = 0, n; at < list.n; at += n) {
        if (stk_utf8_next(list.data + at, list.data + list.n, &n) == STK_NO_CHARACTER)
            return stk_fail(STK_INVALID, "the list of characters is no UTF-8 at byte %zu", at);
        STK_RETURN_IF_ERROR(stk_words_add(&j->tokens, (stk_span){list.data + at, n}));
    }
    return STK_OK;
}

static stk_status make_characters(job *j, char **json)
{
    STK_RETURN_IF_ERROR(add_special(j));
    STK_RETURN_IF_ERROR(j->training.characters ? add_listed(j) : add_most_frequent(j));
    j->result.n_tokens = (int64_t)j->tokens.n;
    return stk_tokenizer_write_characters(&j->tokens, j->n_special, json);
}

static stk_status make_file(job *j, char **json)
{
    bool is_bpe = j->training.kind == STK_TOKENIZER_BPE;
    stk_merge_rules rules = {.by_bytes = is_bpe,
                             .prefix = is_bpe ? "" : "##",
                             .vocabulary = j->training.vocabulary,
                             .min_count = j->training.min_count,
                             .limit_bytes = j->limit_bytes,
                             .on_progress = j->training.on_progress,
                             .user = j->training.user};
    stk_merge *merges = NULL;
    size_t n = 0;
    stk_status status;
    STK_TRY(add_special(j));
    STK_TRY(is_bpe ? add_bytes(j) : add_characters(j));
    STK_TRY(stk_merges_learn(&j->words, &rules, &j->tokens, &merges, &n));
    j->result.n_tokens = (int64_t)j->tokens.n;
    j->result.n_merges = (int64_t)n;
    STK_TRY(is_bpe ? stk_tokenizer_write_bpe(&j->tokens, j->n_special, merges, n, json)
                   : stk_tokenizer_write_wordpiece(&j->tokens, j->n_special, j->training.cased, json));
done:
    free(merges);
    return status;
}

/* --- the whole --- */

static stk_status prepare(job *j, int n_paths)
{
    bool of_characters = j->training.kind == STK_TOKENIZER_CHARACTERS;
    if (j->training.kind != STK_TOKENIZER_BPE && j->training.kind != STK_TOKENIZER_WORDPIECE && !of_characters)
        return stk_fail(STK_INVALID, "there is no such kind of tokenizer: BPE, WordPiece and characters are trained");
    if (j->training.characters && !of_characters)
        return stk_fail(STK_INVALID, "a list of characters is for a tokenizer of characters");
    if (j->training.characters && n_paths > 0)
        return stk_fail(STK_INVALID, "characters come from texts or from a list, not from both");
    if (j->training.min_count < 1) j->training.min_count = of_characters ? 1 : 2;
    if (j->training.vocabulary < 1 || j->training.vocabulary > STK_MOST_TOKENS)
        return stk_fail(STK_INVALID, "a vocabulary of %lld must be between 1 and %d", (long long)j->training.vocabulary,
                        STK_MOST_TOKENS);
    size_t free_bytes = stk_machine_memory(true);
    j->limit_bytes = j->training.memory_bytes ? j->training.memory_bytes : free_bytes ? free_bytes / 2 : SIZE_MAX / 2;
    j->words.limit_bytes = j->limit_bytes;
    j->tokens.limit_bytes = j->limit_bytes;
    stk_classes_load();
    j->split = STK_SPLIT_GPT2;
    if (j->training.kind != STK_TOKENIZER_WORDPIECE) return STK_OK;
    j->split = STK_SPLIT_BERT;
    STK_RETURN_IF_ERROR(stk_normalizer_add(&j->normalizer, STK_STEP_CLEAN));
    STK_RETURN_IF_ERROR(stk_normalizer_add(&j->normalizer, STK_STEP_CJK));
    if (!j->training.cased) {
        STK_RETURN_IF_ERROR(stk_normalizer_add(&j->normalizer, STK_STEP_NFD));
        STK_RETURN_IF_ERROR(stk_normalizer_add(&j->normalizer, STK_STEP_ACCENTS));
        STK_RETURN_IF_ERROR(stk_normalizer_add(&j->normalizer, STK_STEP_LOWER));
    }
    stk_normalizer_finish(&j->normalizer);
    return STK_OK;
}

/* How every such file begins, this library's and the package tokenizers'. */
static const char BEGIN[] = "{\n  \"version\": \"1.0\",";

stk_status stk_tokenizer_train(const char *const *paths, int n_paths, const char *out,
                               const stk_tokenizer_training *training, stk_tokenizer_result *result)
{
    job j = {.training = training ? *training : stk_tokenizer_training_default()};
    char *json = NULL;
    size_t n_there;
    stk_status status;
    if (!out || !out[0]) return stk_fail(STK_INVALID, "the path to write is missing");
    STK_TRY(stk_new_file_check_kind(out, "a tokenizer's JSON file", 0, BEGIN, sizeof(BEGIN) - 1));
    STK_TRY(prepare(&j, n_paths));
    if (!j.training.characters) STK_TRY(read_files(&j, paths, n_paths));
    STK_TRY(j.training.kind == STK_TOKENIZER_CHARACTERS ? make_characters(&j, &json) : make_file(&j, &json));
    STK_TRY(stk_dir_make_for(out, &n_there));
    status = stk_file_write_durably(out, json, strlen(json));
    if (status != STK_OK) stk_dir_take_back_for(out, n_there);
    STK_TRY(status);
    if (result) *result = j.result;
done:
    free(json);
    stk_words_free(&j.words);
    stk_words_free(&j.tokens);
    stk_scratch_free(&j.scratch);
    return status;
}
