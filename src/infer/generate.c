/* See stoker/train/generate.h. Programs of one engine, which share parameters and caches:
 *
 *   decode       one token at a position that is an input
 *   prompt[i]    32 << i tokens from the first position on; behind the real ones it computes what nobody reads, since a
 *                position is written before it is seen. Compiled when first needed.
 */
#include "stoker/train/generate.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "infer/generator.h"
#include "infer/sample.h"

enum { SHORTEST = 32, MOST_PROMPTS = 32 };

typedef struct generate_program {
    stk_program *program; /* NULL: not compiled yet */
    int tokens, row, position;
} generate_program;

struct stk_generator {
    stk_transformer_config config;
    bool no_cache;
    stk_engine *engine;
    generate_program decode, prompt[MOST_PROMPTS];
    int32_t *token; /* [positions + a prompt's rest]: what is remembered, then zeros */
    int64_t n_tokens;
    uint64_t n_fed; /* since the last clear */
    stk_candidate *candidate;
    const float *logits; /* borrowed from the program that ran last */
};

/* --- programs --- */

/* length 1 with a position: decode. */
static stk_status compile(stk_generator *g, int64_t length, bool is_decode, generate_program *out)
{
    stk_graph *graph = stk_graph_new();
    stk_value tokens = stk_graph_input(graph, "tokens", STK_I32, STK_SHAPE(1, length));
    stk_value row = stk_graph_input(graph, "row", STK_I32, STK_SHAPE(1));
    stk_attend_cache cache = {g->config.positions, stk_value_none(graph)};
    if (is_decode) cache.position = stk_graph_input(graph, "position", STK_I64, (stk_shape){0});
    stk_graph_output(graph, "logits", stk_gpt2_logits(tokens, row, &g->config, g->no_cache ? NULL : &cache));
    STK_RETURN_IF_ERROR(stk_engine_compile(g->engine, graph, NULL, &out->program)); /* takes graph */
    out->tokens = stk_program_input(out->program, "tokens");
    out->row = stk_program_input(out->program, "row");
    out->position = stk_program_input(out->program, "position");
    return STK_OK;
}

static stk_status run(stk_generator *g, const generate_program *p, const int32_t *tokens, int32_t row, int64_t position)
{
    stk_program_bind(p->program, p->tokens, tokens);
    STK_RETURN_IF_ERROR(stk_program_set(p->program, p->row, &row));
    STK_RETURN_IF_ERROR(stk_program_set(p->program, p->position, &position));
    STK_RETURN_IF_ERROR(stk_program_run(p->program));
    STK_RETURN_IF_ERROR(stk_program_wait(p->program, 0));
    g->logits = stk_program_output(p->program, "logits", NULL);
    return STK_OK;
}

/* All that is remembered, in one pass. */
static stk_status run_prompt(stk_generator *g)
{
    int i = 0;
    int64_t length = SHORTEST < g->config.positions ? SHORTEST : g->config.positions;
    for (; length < g->n_tokens; i++)
        length = 2 * length < g->config.positions ? 2 * length : g->config.positions;
    if (!g->prompt[i].program) STK_RETURN_IF_ERROR(compile(g, length, false, &g->prompt[i]));
    return run(g, &g->prompt[i], g->token, (int32_t)(g->n_tokens - 1), 0);
}

/* --- tokens --- */

static void remember(stk_generator *g, const int32_t *tokens, int64_t n)
{
    int64_t most = g->config.positions, keep = g->n_tokens;
    if (n > most) {
        tokens += n - most;
        n = most;
    }
    if (keep + n > most) {
        keep = most / 2 < most - n ? most / 2 : most - n; /* the newer half of all that may be, or what fits */
        if (keep > g->n_tokens) keep = g->n_tokens;
        memmove(g->token, g->token + g->n_tokens - keep, (size_t)keep * sizeof(*g->token));
        memset(g->token + keep, 0, (size_t)(most - keep) * sizeof(*g->token));
    }
    memcpy(g->token + keep, tokens, (size_t)n * sizeof(*tokens));
    g->n_tokens = keep + n;
}

stk_status stk_generator_feed(stk_generator *g, const int32_t *tokens, int64_t n)
{
    if (n < 1) return stk_fail(STK_INVALID, "there must be one token at least, as of an empty text there is none");
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= g->config.vocabulary)
            return stk_fail(STK_INVALID,
                            "token %lld is %lld, and the model's vocabulary has %lld: is it the tokenizer of the "
                            "training data?",
                            (long long)i, (long long)tokens[i], (long long)g->config.vocabulary);
    int64_t before = g->n_tokens;
    remember(g, tokens, n);
    g->n_fed += (uint64_t)n;
    bool goes_on = n == 1 && before > 0 && g->n_tokens == before + 1;
    if (g->no_cache || !goes_on) return run_prompt(g);
    return run(g, &g->decode, g->token + before, 0, before);
}

void stk_generator_clear(stk_generator *g)
{
    if (!g) return;
    memset(g->token, 0, (size_t)g->config.positions * sizeof(*g->token));
    g->n_tokens = 0;
    g->n_fed = 0;
    g->logits = NULL;
}

const float *stk_generator_logits(const stk_generator *generator)
{
    if (!generator) return NULL;
    return generator->logits;
}

stk_status stk_generator_sample(stk_generator *g, const stk_sampling *sampling, int32_t *token)
{
    if (!g) return stk_fail(STK_INVALID, "there is no generator");
    if (!g->logits) return stk_fail(STK_INVALID, "nothing was fed yet, of which a token could be the next");
    return stk_sample(g->logits, g->config.vocabulary, sampling, g->n_fed, g->candidate, token);
}

int64_t stk_generator_vocabulary(const stk_generator *generator)
{
    if (!generator) return 0;
    return generator->config.vocabulary;
}

int64_t stk_generator_positions(const stk_generator *generator)
{
    if (!generator) return 0;
    return generator->config.positions;
}

int64_t stk_generator_n_tokens(const stk_generator *generator)
{
    if (!generator) return 0;
    return generator->n_tokens;
}

/* --- opening --- */

stk_engine *stk_generator_engine(stk_generator *generator)
{
    return generator->engine;
}

stk_status stk_generator_new(const stk_transformer_config *config, uint64_t seed, const stk_generator_options *options,
                             stk_generator **out)
{
    STK_NEED(config);
    STK_NEED(out);
    stk_generator_options o = options ? *options : (stk_generator_options){0};
    stk_device_config device = {.n_threads = o.n_threads};
    stk_status status;
    *out = NULL;
    if (config->positions < 1 || config->vocabulary < 1 || config->positions > INT32_MAX ||
        config->vocabulary > INT32_MAX)
        return stk_fail(STK_INVALID, "a model of %lld positions and %lld tokens cannot generate",
                        (long long)config->positions, (long long)config->vocabulary);
    stk_generator *g = calloc(1, sizeof(*g));
    if (!g) return stk_fail_memory(sizeof(*g));
    g->config = *config;
    g->no_cache = o.no_cache;
    g->token = calloc((size_t)config->positions, sizeof(*g->token));
    g->candidate = malloc((size_t)config->vocabulary * sizeof(*g->candidate));
    if (!g->token || !g->candidate) STK_TRY(stk_fail_memory((size_t)config->vocabulary * sizeof(*g->candidate)));
    STK_TRY(stk_engine_open(o.device ? o.device : "cpu", &device, seed, &g->engine));
    STK_TRY(compile(g, 1, !g->no_cache, &g->decode)); /* makes the variables, too */
    *out = g;
    return STK_OK;
done:
    stk_generator_close(g);
    return status;
}

void stk_generator_close(stk_generator *generator)
{
    if (!generator) return;
    stk_engine_close(generator->engine);
    free(generator->token);
    free(generator->candidate);
    free(generator);
}
