/* stoker tokenizer train */
#include <string.h>

#include "cli.h"
#include "stoker/data/tokenizer_train.h"

static const cli_option options[] = {
    {"--kind", "bpe|wordpiece|char",
     "bpe: byte-level, as GPT-2's, the default; wordpiece: as BERT's; char: a token for each character"},
    {"--bpe", NULL, "short for --kind bpe"},
    {"--wordpiece", NULL, "short for --kind wordpiece"},
    {"--characters", "LIST", "with --kind char: these, in this order, instead of those of texts"},
    {"--vocab", "N", "tokens at most; default: 8000"},
    {"--out", "FILE", "where to write, as tokenizer.json; needed"},
    {"--special", "TOKEN",
     "a special token; may be given often; default: <|endoftext|>, for WordPiece none besides BERT's five"},
    {"--min-count", "N",
     "a pair that occurs less often is not merged, default: 2; a character gets no token, default: 1"},
    {"--cased", NULL, "WordPiece: upper case and accents are kept"},
    {"--memory", "MIB", "that words and pairs may take; default: half of what is free"},
    {"--quiet", NULL, "prints errors only"},
    {"--json", NULL, "prints one line of JSON"},
    {NULL, NULL, NULL}};

typedef struct progress {
    bool shows, merging;
    double start_s;
} progress;

static bool show(void *user, int64_t n_done, int64_t n_all, bool merging)
{
    progress *p = user;
    if (merging && !p->merging) p->start_s = cli_now();
    p->merging = merging;
    if (p->shows) cli_bar(merging ? "tokens" : "bytes", n_done, n_all, 0, p->start_s);
    return !cli_stopped();
}

static void print_result(const cli_args *args, const char *out, const char *words, const stk_tokenizer_result *r,
                         double s)
{
    char tokens[CLI_TEXT], different[CLI_TEXT], bytes[CLI_TEXT], time_text[CLI_TEXT];
    if (cli_has(args, "--json")) {
        printf("{\"file\": ");
        cli_json_text(stdout, out);
        printf(", \"tokens\": %lld, \"merges\": %lld, \"words\": %lld, \"different_words\": %lld, \"bytes\": %lld, "
               "\"seconds\": %.3f}\n",
               (long long)r->n_tokens, (long long)r->n_merges, (long long)r->n_words, (long long)r->n_different,
               (long long)r->n_bytes, s);
    } else if (!cli_has(args, "--quiet")) {
        cli_printf("%s: %s tokens of %s different %s, %s of text in %s\n", out, cli_count(r->n_tokens, tokens),
                   cli_count(r->n_different, different), words, cli_bytes((double)r->n_bytes, bytes),
                   cli_duration(s, time_text));
    }
}

static int train(const cli_args *args, const stk_tokenizer_training *training, progress *p)
{
    static const char *paths[CLI_MOST_ARGS];
    static char places[CLI_MOST_ARGS][CLI_PATH];
    stk_tokenizer_result result;
    const char *out = cli_value(args, "--out");
    double start = cli_now();
    for (int i = 0; i < args->n_words; i++)
        paths[i] = cli_find_data(args->word[i], places[i]);
    cli_catch_stop();
    stk_status status = stk_tokenizer_train(paths, args->n_words, out, training, &result);
    if (p->shows) cli_clear_bar();
    if (status == STK_INTERRUPTED) return cli_stop_code();
    if (status != STK_OK) return cli_fail();
    const char *words = training->kind == STK_TOKENIZER_CHARACTERS ? "characters" : "words";
    print_result(args, out, words, &result, cli_now() - start);
    return CLI_OK;
}

/* False, having said why. */
static bool find_kind(const cli_verb *verb, const cli_args *args, stk_tokenizer_kind *kind)
{
    static const char *const names[] = {"bpe", "wordpiece", "char"};
    const char *name = cli_value(args, "--kind");
    if (!!name + cli_has(args, "--bpe") + cli_has(args, "--wordpiece") > 1) {
        cli_usage(verb, "--kind, --bpe and --wordpiece exclude each other");
        return false;
    }
    *kind = cli_has(args, "--wordpiece") ? STK_TOKENIZER_WORDPIECE : STK_TOKENIZER_BPE;
    for (int i = 0; name && i < 3; i++)
        if (!strcmp(name, names[i])) {
            *kind = (stk_tokenizer_kind)i;
            return true;
        }
    if (name) cli_usage(verb, "--kind is bpe, wordpiece or char");
    return !name;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    static const char *special[CLI_MOST_ARGS];
    stk_tokenizer_training training = stk_tokenizer_training_default();
    int64_t memory_mib;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (!find_kind(verb, &args, &training.kind)) return CLI_USAGE;
    training.characters = cli_value(&args, "--characters");
    if ((args.n_words < 1 && !training.characters) || !cli_value(&args, "--out"))
        return cli_usage(verb, "tokenizer train takes text files and --out FILE");
    if (!cli_number(&args, "--vocab", 1, 1 << 22, 8000, &training.vocabulary) ||
        !cli_number(&args, "--min-count", 1, INT32_MAX, 0, &training.min_count) ||
        !cli_number(&args, "--memory", 1, 1 << 30, 0, &memory_mib))
        return CLI_USAGE;
    progress p = {.shows = cli_is_terminal(stdout) && !cli_has(&args, "--quiet") && !cli_has(&args, "--json"),
                  .start_s = cli_now()};
    for (int i = 0; i < args.n_found; i++)
        if (!strcmp(args.found[i].option->name, "--special")) special[training.n_special++] = args.found[i].value;
    training.cased = cli_has(&args, "--cased");
    training.special = special;
    training.memory_bytes = (size_t)memory_mib << 20;
    training.on_progress = show;
    training.user = &p;
    return train(&args, &training, &p);
}

static int run_group(const cli_verb *verb, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return cli_usage(verb, "tokenizer has one verb: tokenizer train TEXT... --out FILE");
}

static const cli_option no_options[] = {{NULL, NULL, NULL}};

const cli_verb cli_tokenizer = {"tokenizer", "train TEXT... --out FILE [OPTION...]", "Makes tokenizers.", no_options,
                                .run = run_group};
const cli_verb cli_tokenizer_train = {
    "tokenizer train",
    "TEXT... --out FILE [OPTION...]",
    "Trains a tokenizer on one's own texts. What it writes is for `stoker tokenize`, recipes, and the Python package "
    "`tokenizers`. Texts are files, patterns and addresses; their lines are taken one by one.",
    options,
    run,
    .makes_files = true};
