/* stoker generate */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "stoker/data/tokenizer.h"
#include "stoker/printable.h"
#include "stoker/train/generate.h"

static const cli_option options[] = {
    {"--tokens", "N", "how many new tokens at most; default: 200"},
    {"--temperature", "X", "below 1 likelier tokens are preferred more; 0: the likeliest always; default: 0.8"},
    {"--top-k", "K", "only among the K likeliest; default: 0, all"},
    {"--top-p", "P", "only among the fewest that together have this probability; default: 1, all"},
    {"--seed", "N", "of the draws; default: 0"},
    {"--end", "TOKEN", "the token to stop at, or none; default: <|endoftext|> or what the tokenizer has in its place"},
    {"--tokenizer", "PATH", "as for `stoker tokenize`; default: the one of the run's data"},
    {"--device", "DEVICE", "where to compute; default: as the run"},
    {"--threads", "N", "default: one for each core"},
    {"--no-cache", NULL, "computes all positions for each token, to compare with"},
    {"--quiet", NULL, "prints the text only"},
    {"--json", NULL, "prints one line of JSON at the end instead"},
    {NULL, NULL, NULL}};

enum { MOST_PENDING = 64, MOST_BYTES = 1 << 16 };

typedef struct generation {
    const cli_args *args;
    stk_generator *generator;
    stk_tokenizer *tokenizer;
    stk_sampling sampling;
    int64_t n_most;
    int32_t end; /* -1: none */
    bool terminal;
    /* Tokens whose text is not out yet, behind one or none that tells how they join it. */
    int32_t pending[MOST_PENDING];
    int n_pending, n_shown;
    char *text; /* of --json, with the prompt */
    size_t n_text, room;
    int64_t n_prompt, n_new;
    double prompt_s, new_s;
} generation;

/* --- output --- */

/* How long the UTF-8 character is that starts here; 0: none does; -1: the text ends inside of one. */
static int measure_character(const char *text, size_t n)
{
    unsigned char c = (unsigned char)text[0];
    int length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    for (int i = 1; i < length; i++) {
        if ((size_t)i >= n) return -1;
        unsigned char next = (unsigned char)text[i];
        unsigned char low = i > 1 ? 0x80 : c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        unsigned char high = i > 1 ? 0xbf : c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (next < low || next > high) return 0;
    }
    return length;
}

static bool put(generation *g, const char *bytes, size_t n)
{
    if (!cli_has(g->args, "--json")) {
        fwrite(bytes, 1, n, stdout);
        return true;
    }
    if (g->n_text + n + 1 > g->room) {
        size_t room = 2 * (g->n_text + n) + 1024;
        char *grown = realloc(g->text, room);
        if (!grown) return false;
        g->text = grown;
        g->room = room;
    }
    memcpy(g->text + g->n_text, bytes, n);
    g->n_text += n;
    g->text[g->n_text] = 0;
    return true;
}

/* Whole characters, and U+FFFD for each byte that is of none. Returns how many bytes are out: at the end of the text
 * (is_last) all, else a character that is not complete waits. */
static size_t put_valid(generation *g, const char *text, size_t n, bool is_last)
{
    size_t at = 0;
    while (at < n) {
        int length = measure_character(text + at, n - at);
        if (length < 0 && !is_last) break;
        char one[STK_PRINTABLE_BYTES] = "\xef\xbf\xbd";
        if (length > 0) snprintf(one, sizeof(one), "%.*s", length, text + at);
        /* A terminal would obey what a model makes up or a vocabulary holds. */
        bool is_plain = one[0] == '\n' || one[0] == '\t' || !g->terminal;
        if (length > 0 && one[0] && !is_plain) stk_printable_character(text + at, one);
        put(g, one, one[0] ? strlen(one) : 1);
        at += length > 0 ? (size_t)length : 1;
    }
    return at;
}

/* What the pending tokens add to the ones that were shown, if it ends in a whole character. */
static stk_status show_pending(generation *g, bool is_last)
{
    static char before[MOST_BYTES], all[MOST_BYTES];
    size_t n_before = 0, n_all = 0;
    stk_status status =
        stk_tokenizer_decode(g->tokenizer, g->pending, (size_t)g->n_shown, false, before, sizeof(before), &n_before);
    if (status == STK_OK)
        status = stk_tokenizer_decode(g->tokenizer, g->pending, (size_t)g->n_pending, false, all, sizeof(all), &n_all);
    if (status != STK_OK) return status;
    n_all = n_all < sizeof(all) ? n_all : sizeof(all);
    if (n_before > n_all) n_before = n_all;
    size_t whole = n_before;
    for (int length; whole < n_all; whole += length ? (size_t)length : 1)
        if ((length = measure_character(all + whole, n_all - whole)) < 0) break;
    if (whole < n_all && !is_last && g->n_pending < MOST_PENDING) return STK_OK;
    put_valid(g, all + n_before, n_all - n_before, true);
    fflush(stdout);
    g->pending[0] = g->pending[g->n_pending - 1];
    g->n_pending = g->n_shown = 1;
    return STK_OK;
}

static void print_json(const generation *g, const char *prompt)
{
    printf("{\"prompt\": ");
    cli_json_text(stdout, prompt);
    printf(", \"text\": ");
    cli_json_text(stdout, g->text ? g->text : "");
    printf(", \"prompt_tokens\": %lld, \"tokens\": %lld, \"prompt_seconds\": %.4f, \"seconds\": %.4f}\n",
           (long long)g->n_prompt, (long long)g->n_new, g->prompt_s, g->new_s);
}

static void print_summary(const generation *g)
{
    char time_text[CLI_TEXT], rate[CLI_TEXT];
    fflush(stdout);
    fprintf(stderr, "%lld tokens in %s, %s a second, after a prompt of %lld in %.0f ms\n", (long long)g->n_new,
            cli_duration(g->new_s, time_text), cli_rate(g->new_s > 0 ? (double)g->n_new / g->new_s : 0, rate),
            (long long)g->n_prompt, g->prompt_s * 1e3);
}

/* --- generating --- */

static stk_status feed_prompt(generation *g, const char *prompt)
{
    size_t n = 0;
    int32_t *ids = NULL;
    stk_status status = stk_tokenizer_encode(g->tokenizer, prompt, strlen(prompt), false, NULL, 0, &n);
    if (status == STK_OK && n == 0 && g->end >= 0) { /* as between documents */
        g->n_prompt = 1;
        return stk_generator_feed(g->generator, &g->end, 1);
    }
    if (status != STK_OK) return status;
    ids = malloc((n + 1) * sizeof(*ids));
    if (!ids) return STK_NO_MEMORY;
    status = stk_tokenizer_encode(g->tokenizer, prompt, strlen(prompt), false, ids, n, &n);
    if (status == STK_OK) status = stk_generator_feed(g->generator, ids, (int64_t)n);
    if (status == STK_OK) {
        g->n_prompt = (int64_t)n;
        g->pending[0] = ids[n - 1];
        g->n_pending = g->n_shown = 1;
    }
    free(ids);
    return status;
}

static stk_status generate(generation *g, const char *prompt)
{
    double start = cli_now();
    stk_status status = feed_prompt(g, prompt);
    if (status != STK_OK) return status;
    g->prompt_s = cli_now() - start;
    if (!cli_has(g->args, "--json")) put_valid(g, prompt, strlen(prompt), true);
    fflush(stdout);
    start = cli_now();
    while (g->n_new < g->n_most && !cli_stopped()) {
        int32_t token;
        status = stk_generator_sample(g->generator, &g->sampling, &token);
        if (status != STK_OK || token == g->end) break;
        g->pending[g->n_pending++] = token;
        g->n_new++;
        status = show_pending(g, false);
        if (status == STK_OK && g->n_new < g->n_most) status = stk_generator_feed(g->generator, &token, 1);
        if (status != STK_OK) break;
    }
    g->new_s = cli_now() - start;
    if (g->n_pending > g->n_shown && status == STK_OK) status = show_pending(g, true);
    return status;
}

static int run_generation(generation *g, const char *prompt)
{
    stk_status status = generate(g, prompt);
    if (!cli_has(g->args, "--json")) putchar('\n');
    if (status != STK_OK) return cli_fail();
    if (cli_has(g->args, "--json"))
        print_json(g, prompt);
    else if (!cli_has(g->args, "--quiet"))
        print_summary(g);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_error("cannot write the text: the output was closed or is full");
        return CLI_FAILED;
    }
    return cli_stopped() ? cli_stop_code() : CLI_OK;
}

/* --- arguments --- */

static bool read_real(const cli_args *args, const char *name, double default_value, double *out)
{
    const char *text = cli_value(args, name);
    char *end;
    *out = text ? strtod(text, &end) : default_value;
    if (!text || (end != text && !*end)) return true;
    cli_usage(args->verb, "'%s' of %s is not a number", text, name);
    return false;
}

static bool read_sampling(generation *g)
{
    int64_t seed;
    g->sampling = stk_sampling_default();
    bool fine = read_real(g->args, "--temperature", 0.8, &g->sampling.temperature) &&
                read_real(g->args, "--top-p", 1, &g->sampling.top_p) &&
                cli_number(g->args, "--top-k", 0, INT32_MAX, 0, &g->sampling.top_k) &&
                cli_number(g->args, "--seed", 0, INT64_MAX, 0, &seed) &&
                cli_number(g->args, "--tokens", 1, INT32_MAX, 200, &g->n_most);
    if (!fine) return false;
    g->sampling.seed = (uint64_t)seed;
    fine = stk_sampling_check(&g->sampling) == STK_OK;
    if (!fine) cli_usage(g->args->verb, "%s", stk_error_text());
    return fine;
}

static bool find_end(generation *g)
{
    static const char *const own[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "[SEP]"};
    const char *given = cli_value(g->args, "--end");
    g->end = -1;
    if (given && !strcmp(given, "none")) return true;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && g->end < 0; i++)
        g->end = stk_tokenizer_find(g->tokenizer, given ? given : own[i]);
    if (given && g->end < 0) cli_error("the tokenizer has no token '%s'", given);
    return !given || g->end >= 0;
}

static stk_status open_tokenizer(generation *g)
{
    static char place[CLI_PATH];
    const char *given = cli_value(g->args, "--tokenizer");
    char *found = NULL;
    stk_status status = given ? STK_OK : stk_run_tokenizer(g->args->word[0], &found);
    if (status == STK_OK) status = stk_tokenizer_open(given ? cli_find_data(given, place) : found, NULL, &g->tokenizer);
    /* A model may have more tokens, that mean nothing here. */
    if (status == STK_OK) g->sampling.n_tokens = stk_tokenizer_vocabulary(g->tokenizer);
    free(found);
    return status;
}

static int run(const cli_verb *verb, int argc, char **argv)
{
    static cli_args args;
    generation g = {.args = &args, .terminal = isatty(STDOUT_FILENO)};
    int64_t n_threads;
    if (!cli_parse(verb, argc, argv, &args)) return CLI_USAGE;
    if (args.n_words != 2) return cli_usage(verb, "generate needs a run folder and a prompt");
    if (!read_sampling(&g) || !cli_number(&args, "--threads", 1, 256, 0, &n_threads)) return CLI_USAGE;
    stk_generator_options how = {
        .device = cli_value(&args, "--device"), .n_threads = (int)n_threads, .no_cache = cli_has(&args, "--no-cache")};
    int code = CLI_FAILED;
    cli_catch_stop();
    if (stk_generator_open(args.word[0], &how, &g.generator) != STK_OK || open_tokenizer(&g) != STK_OK)
        code = cli_fail();
    else if (find_end(&g))
        code = run_generation(&g, args.word[1]);
    stk_generator_close(g.generator);
    stk_tokenizer_free(g.tokenizer);
    free(g.text);
    return code;
}

const cli_verb cli_generate = {
    "generate", "RUN PROMPT [OPTION...]",
    "Generates text as a trained language model would. Tokens are shown as they come; Ctrl-C ends it.", options,
    .run = run};
