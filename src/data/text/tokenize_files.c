/* See stoker/data/tokenize.h. Pieces of text are read in their order, as many as there are threads, encoded at once,
 * and written in their order. */
#include "stoker/data/tokenize.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/source/paths.h"
#include "data/text/pieces.h"
#include "data/text/utf8.h"

enum { PIECE_BYTES = 1 << 20, MOST_THREADS = 256 };

/* What one thread works on. */
typedef struct unit {
    const struct job *job;
    stk_piece piece;
    stk_thread thread;
    int32_t *ids;
    size_t n, room;
    int64_t n_documents;
    size_t n_bad, i_bad; /* bytes that are in no text; the first of them in the piece */
    stk_status status;
    char error[512];
} unit;

typedef struct job {
    const stk_tokenizer *tokenizer;
    stk_tokenize_options options;
    int32_t separator; /* -1: none */
    bool wide;         /* u32 */
    stk_shards files;
    stk_pieces pieces;
    stk_new_file file; /* what is written */
    stk_tokenize_progress progress;
} job;

/* --- encoding --- */

static stk_status reserve(unit *u, size_t n)
{
    if (u->room - u->n >= n) return STK_OK;
    size_t room = u->n + n + u->room / 2;
    int32_t *p = realloc(u->ids, room * sizeof(*p));
    if (!p) return stk_fail_memory(room * sizeof(*p));
    u->ids = p;
    u->room = room;
    return STK_OK;
}

static stk_status add_text(unit *u, const uint8_t *text, size_t n_bytes)
{
    const stk_tokenizer *t = u->job->tokenizer;
    size_t n;
    STK_RETURN_IF_ERROR(reserve(u, n_bytes + 1));
    STK_RETURN_IF_ERROR(stk_tokenizer_encode(t, (const char *)text, n_bytes, false, u->ids + u->n, u->room - u->n, &n));
    if (n > u->room - u->n) { /* rare: a normal form may be longer than its text */
        STK_RETURN_IF_ERROR(reserve(u, n));
        STK_RETURN_IF_ERROR(
            stk_tokenizer_encode(t, (const char *)text, n_bytes, false, u->ids + u->n, u->room - u->n, &n));
    }
    u->n += n;
    return STK_OK;
}

static stk_status end_document(unit *u)
{
    u->n_documents++;
    if (u->job->separator < 0) return STK_OK;
    STK_RETURN_IF_ERROR(reserve(u, 1));
    u->ids[u->n++] = u->job->separator;
    return STK_OK;
}

static stk_status add_lines(unit *u)
{
    for (size_t at = 0, n; at < u->piece.n; at += n) {
        const uint8_t *text = u->piece.text + at, *end = memchr(text, '\n', u->piece.n - at);
        n = end ? (size_t)(end - text) + 1 : u->piece.n - at;
        stk_span line = stk_line_trim((stk_span){text, n});
        if (line.n == 0) continue;
        STK_RETURN_IF_ERROR(add_text(u, line.data, line.n));
        STK_RETURN_IF_ERROR(end_document(u));
    }
    return STK_OK;
}

static stk_status encode_piece(unit *u)
{
    if (u->job->options.lines) return add_lines(u);
    STK_RETURN_IF_ERROR(add_text(u, u->piece.text, u->piece.n));
    return u->piece.ends ? end_document(u) : STK_OK;
}

/* As the file has them. */
static void narrow(unit *u)
{
    uint16_t *dst = (uint16_t *)(void *)u->ids;
    for (size_t i = 0; i < u->n; i++)
        dst[i] = (uint16_t)u->ids[i];
}

static void run_unit(void *arg)
{
    unit *u = arg;
    u->n = 0;
    u->n_documents = 0;
    u->n_bad = 0;
    if (u->job->tokenizer->kind != STK_MODEL_BYTES) u->n_bad = stk_utf8_count_bad(u->piece.text, u->piece.n, &u->i_bad);
    u->status = encode_piece(u);
    if (u->status != STK_OK) snprintf(u->error, sizeof(u->error), "%s", stk_error_text());
    if (u->status == STK_OK && !u->job->wide) narrow(u);
}

/* --- rounds --- */

/* Encodes n units at once; this thread takes the first. */
static stk_status run_units(unit *units, int n)
{
    for (int i = 1; i < n; i++)
        if (stk_thread_start(&units[i].thread, "stk-tokenize", false, run_unit, &units[i]) != STK_OK)
            run_unit(&units[i]); /* without a thread it takes longer */
    run_unit(&units[0]);
    for (int i = 1; i < n; i++) {
        stk_thread_join(&units[i].thread);
        units[i].thread = (stk_thread){0};
    }
    for (int i = 0; i < n; i++)
        if (units[i].status != STK_OK) return stk_fail(units[i].status, "%s", units[i].error);
    return STK_OK;
}

static void note_bad(stk_tokenize_progress *p, const unit *u)
{
    if (u->n_bad > 0 && p->n_bad == 0) {
        p->bad_at = (int64_t)(u->piece.at + u->i_bad);
        snprintf(p->bad_file, sizeof(p->bad_file), "%s", u->piece.path);
    }
    p->n_bad += (int64_t)u->n_bad;
}

static stk_status write_units(job *j, const unit *units, int n)
{
    for (int i = 0; i < n; i++) {
        note_bad(&j->progress, &units[i]);
        STK_RETURN_IF_ERROR(stk_write_all(j->file.fd, j->file.path, units[i].ids, units[i].n * (j->wide ? 4 : 2)));
        j->progress.n_tokens += (int64_t)units[i].n;
        j->progress.n_documents += units[i].n_documents;
        j->progress.n_bytes_done += (int64_t)units[i].piece.n;
    }
    if (j->options.on_progress && !j->options.on_progress(j->options.user, &j->progress))
        return stk_fail(STK_INTERRUPTED, "stopped");
    return STK_OK;
}

static stk_status encode_all(job *j, unit *units, int n_units)
{
    for (bool any = true; any;) {
        int n = 0;
        for (; n < n_units && any; n += any)
            STK_RETURN_IF_ERROR(stk_pieces_next(&j->pieces, &units[n].piece, &any));
        if (n > 0) STK_RETURN_IF_ERROR(run_units(units, n));
        if (n > 0) STK_RETURN_IF_ERROR(write_units(j, units, n));
    }
    return STK_OK;
}

/* --- the file --- */

static stk_status find_separator(job *j)
{
    static const char *const own[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "[SEP]"};
    const char *given = j->options.separator;
    j->separator = -1;
    if (given && !given[0]) return STK_OK;
    if (given) {
        j->separator = stk_tokenizer_find(j->tokenizer, given);
        return j->separator >= 0 ? STK_OK : stk_fail(STK_NOT_FOUND, "the tokenizer has no token '%s'", given);
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && j->separator < 0; i++)
        j->separator = stk_tokenizer_find(j->tokenizer, own[i]);
    return j->separator >= 0
               ? STK_OK
               : stk_fail(STK_NOT_FOUND, "the tokenizer has no token of its own to put between documents: "
                                         "name one, or none");
}

/* A file of tokens has no mark of its own but the facts next to it. */
static stk_status check_out(const char *out)
{
    char facts[PATH_MAX];
    struct stat info;
    if (snprintf(facts, sizeof(facts), "%s.json", out) >= (int)sizeof(facts))
        return stk_fail(STK_INVALID, "the path '%.80s...' is too long", out);
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(facts, "the facts of a file of tokens", 0, "{\"dtype\"", 8));
    if (stat(out, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size == 0 || stk_path_exists(facts)) return STK_OK;
    return stk_fail(STK_BUSY,
                    "'%s' is there and is not a file of tokens: it is not replaced; name another file, or remove it",
                    out);
}

static stk_status write_facts(const job *j, const char *out)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s.json", out) >= (int)sizeof(path))
        return stk_fail(STK_INVALID, "the path '%.80s...' is too long", out);
    unsigned mark = stk_json_mark();
    json_t *facts =
        json_pack("{s:s, s:I, s:I, s:I, s:s*}", "dtype", j->wide ? "u32" : "u16", "vocabulary",
                  (json_int_t)stk_tokenizer_vocabulary(j->tokenizer), "tokens", (json_int_t)j->progress.n_tokens,
                  "documents", (json_int_t)j->progress.n_documents, "tokenizer", j->options.tokenizer);
    char *text;
    stk_status status = stk_json_print(facts, mark, JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII, &text);
    if (status != STK_OK) return stk_fail_prefix(status, "cannot write '%s', which has the tokenizer's path: ", path);
    status = stk_file_write_durably(path, text, strlen(text));
    free(text);
    return status;
}

/* Writes the tokens under another name, then what is known of them, then gives them their own. */
static stk_status write_file(job *j, const char *out, unit *units, int n_units)
{
    stk_status status;
    size_t n_there;
    STK_RETURN_IF_ERROR(stk_dir_make_for(out, &n_there));
    STK_TRY(stk_new_file_begin(&j->file, out));
    STK_TRY(encode_all(j, units, n_units));
    STK_TRY(write_facts(j, out));
    STK_TRY(stk_new_file_finish(&j->file, true));
done:
    stk_new_file_end(&j->file);
    if (status != STK_OK) stk_dir_take_back_for(out, n_there);
    return status;
}

stk_status stk_tokenize_files(const char *const *paths, int n_paths, const stk_tokenizer *tokenizer, const char *out,
                              const stk_tokenize_options *options, stk_tokenize_progress *result)
{
    job *j = calloc(1, sizeof(*j));
    unit *units = calloc(MOST_THREADS, sizeof(*units));
    stk_names names = {0};
    stk_status status;
    if (!j || !units) STK_TRY(stk_fail_memory(MOST_THREADS * sizeof(*units)));
    if (!tokenizer || !out) STK_TRY(stk_fail(STK_INVALID, "the tokenizer or the path to write is missing"));
    STK_TRY(check_out(out));
    j->tokenizer = tokenizer;
    if (options) j->options = *options;
    j->wide = stk_tokenizer_vocabulary(tokenizer) > 65536;
    STK_TRY(find_separator(j));
    STK_TRY(stk_paths_expand(paths, n_paths, false, &names));
    STK_TRY(stk_shards_open_lines(&names, NULL, true, 0, false, &j->files));
    for (int i = 0; i < j->files.n_shards; i++)
        j->progress.n_bytes += (int64_t)j->files.shard[i].file.n_bytes;
    int n_units = j->options.n_threads > 0 ? j->options.n_threads : stk_n_cores();
    if (n_units > MOST_THREADS) n_units = MOST_THREADS;
    for (int i = 0; i < n_units; i++)
        units[i].job = j;
    stk_pieces_open(&j->pieces, &j->files, tokenizer, j->options.lines,
                    j->options.piece_bytes > 0 ? (uint64_t)j->options.piece_bytes : PIECE_BYTES);
    STK_TRY(write_file(j, out, units, n_units));
    if (result) *result = j->progress;
done:
    for (int i = 0; i < MOST_THREADS && units; i++) {
        free(units[i].piece.text);
        free(units[i].ids);
    }
    free(units);
    stk_names_free(&names);
    if (j) stk_shards_close(&j->files);
    free(j);
    return status;
}
