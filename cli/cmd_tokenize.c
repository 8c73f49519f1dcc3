/* stoker tokenize */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "stoker/data/tokenize.h"

static const cli_option options[] = {
    {"--tokenizer", "PATH",
     "bytes, or a tokenizer.json, vocab.json (with merges.txt next to it), vocab.txt, or their "
     "folder; needed"},
    {"--out", "FILE", "where to write, as tokens/train.bin; needed"},
    {"--lines", NULL, "each line is a document; otherwise each file is one"},
    {"--separator", "TOKEN",
     "what stands behind each document, or none; default: <|endoftext|> or what the tokenizer "
     "has in its place"},
    {"--cased", NULL, "for vocab.txt: upper case and accents are kept"},
    {"--threads", "N", "default: one for each core"},
    {"--quiet", NULL, "prints errors only"},
    {"--json", NULL, "prints one line of JSON"},
    {NULL, NULL, NULL}};

typedef struct tokenize_job {
    bool shows;
    double start_s;
} tokenize_job;

static bool show(void *user, const stk_tokenize_progress *p)
{
    const tokenize_job *job = user;
    if (job->shows) cli_bar("bytes", p->n_bytes_done, p->n_bytes, 0, job->start_s);
    return !cli_stopped();
}

static void print_result(const cli_args *args, const char *out, const stk_tokenizer *tokenizer,
                         const stk_tokenize_progress *p, double s)
{
    char tokens[CLI_TEXT], documents[CLI_TEXT], bytes[CLI_TEXT], time_text[CLI_TEXT];
    if (cli_has(args, "--json")) {
        printf("{\"file\": ");
        cli_json_text(stdout, out);
        printf(", \"tokens\": %lld, \"documents\": %lld, \"bytes\": %lld, \"seconds\": %.3f}\n", (long long)p->n_tokens,
               (long long)p->n_documents, (long long)p->n_bytes, s);
    } else if (!cli_has(args, "--quiet")) {
        cli_printf("%s: %s tokens of %s document%s, %s of text in %s; the model's vocabulary: %lld\n", out,
                   cli_count(p->n_tokens, tokens), cli_count(p->n_documents, documents), p->n_documents == 1 ? "" : "s",
                   cli_bytes((double)p->n_bytes, bytes), cli_duration(s, time_text),
                   (long long)stk_tokenizer_vocabulary(tokenizer));
    }
}

/* Binary files and other encodings make tokens, too, but not of a text. */
static void warn_bad(const stk_tokenize_progress *p)
{
    char count[CLI_TEXT];
    if (p->n_bad == 0) return;
    cli_warn("'%s' is no text in UTF-8: the byte at offset %lld is a NUL or of no character, as %s in "
             "all; iconv makes UTF-8 of other encodings, and --tokenizer bytes takes any file",
             cli_shown(p->bad_file), (long long)p->bad_at, cli_count(p->n_bad, count));
}

/* As it can be opened from any folder; path where that is not known. */
static const char *find_whole_path(const char *path, char out[PATH_MAX])
{
    return strcmp(path, "bytes") && realpath(path, out) ? out : path;
}

static int write_tokens(const cli_args *args, const stk_tokenizer *tokenizer, const char *path, const char *out,
                        int64_t n_threads)
{
    const char *separator = cli_value(args, "--separator"), *paths[CLI_MOST_ARGS];
    static char places[CLI_MOST_ARGS][CLI_PATH], whole[PATH_MAX];
    tokenize_job job = {.shows = cli_is_terminal(stdout) && !cli_has(args, "--quiet") && !cli_has(args, "--json"),
                        .start_s = cli_now()};
    stk_tokenize_options how = {.lines = cli_has(args, "--lines"),
                                .separator = separator && !strcmp(separator, "none") ? "" : separator,
                                .n_threads = (int)n_threads,
                                .tokenizer = find_whole_path(path, whole),
                                .on_progress = show,
                                .user = &job};
    stk_tokenize_progress progress;
    for (int i = 0; i < args->n_words; i++)
        paths[i] = cli_find_data(args->word[i], places[i]);
    stk_status status = stk_tokenize_files(paths, args->n_words, tokenizer, out, &how, &progress);
    if (job.shows) cli_clear_bar();
    if (status == STK_INTERRUPTED) return cli_stop_code();
    if (status != STK_OK) return cli_fail();
    warn_bad(&progress);
    print_result(args, out, tokenizer, &progress, cli_now() - job.start_s);
    return CLI_OK;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static char place[CLI_PATH];
    int64_t n_threads;
    stk_tokenizer *tokenizer;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    const char *out = cli_value(&args, "--out"), *path = cli_value(&args, "--tokenizer");
    if (args.n_words < 1) return cli_usage(verb, "tokenize needs text files");
    if (!out) return cli_usage(verb, "tokenize needs --out FILE, as --out tokens/train.bin");
    if (!path)
        return cli_usage(verb,
                         "tokenize needs --tokenizer PATH: a file, which 'stoker tokenizer train' makes of texts of "
                         "your own, or 'bytes'");
    if (!cli_number(&args, "--threads", 1, 256, 0, &n_threads)) return CLI_USAGE;
    stk_tokenizer_config config = {.lowercase = !cli_has(&args, "--cased")};
    cli_catch_stop();
    path = cli_find_data(path, place);
    if (stk_tokenizer_open(path, &config, &tokenizer) != STK_OK) return cli_fail();
    int code = write_tokens(&args, tokenizer, path, out, n_threads);
    stk_tokenizer_free(tokenizer);
    return code;
}

const cli_verb cli_tokenize = {
    "tokenize",
    "TEXT... --tokenizer PATH --out FILE [OPTION...]",
    "Makes one file of token numbers of text files. Windows of it are what language models are trained on: the source "
    "'tokens' of a recipe. Texts are files, patterns and addresses. The file is whole or absent.",
    options,
    run,
    .makes_files = true};
