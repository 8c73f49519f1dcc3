/* Generation: a trained language model generates text, one token after the other.
 *
 *   stk_generator_feed(generator, prompt, n_prompt);
 *   for (...) {
 *       stk_generator_sample(generator, &sampling, &token);
 *       stk_generator_feed(generator, &token, 1);
 *   }
 *
 * Keys and values of all positions are kept (Shazeer 2019, section 2.4), so that a token costs one pass over the
 * parameters; a prompt is one pass for all of its tokens. Programs are compiled once, and a token allocates nothing. A
 * model has that many positions: when they are full, the older half of the tokens is forgotten and the rest is fed
 * again. Threads: one at a time for each generator.
 */
#ifndef STOKER_TRAIN_GENERATE_H
#define STOKER_TRAIN_GENERATE_H

#include "stoker/nn/transformer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_generator stk_generator;

typedef struct stk_generator_options {
    const char *device; /* NULL: the run's, or "cpu" */
    int n_threads;      /* 0: as many as cores */
    bool no_cache;      /* all tokens pass again for each new one: slow, and the same numbers but for rounding */
} stk_generator_options;

/* The network of a run folder with its best checkpoint, or else the last; its data need not be there. The recipe's
 * model must be gpt2. options may be NULL. */
STK_API stk_status stk_generator_open(const char *run, const stk_generator_options *options, stk_generator **out);
/* A network of that size with random parameters from the seed: for tests and measurements. */
STK_API stk_status stk_generator_new(const stk_transformer_config *config, uint64_t seed,
                                     const stk_generator_options *options, stk_generator **out);
STK_API void stk_generator_close(stk_generator *generator); /* accepts NULL */

STK_API int64_t stk_generator_vocabulary(const stk_generator *generator);
/* How many tokens are remembered at most; and are at present. */
STK_API int64_t stk_generator_positions(const stk_generator *generator);
STK_API int64_t stk_generator_n_tokens(const stk_generator *generator);

/* Appends tokens [n], n >= 1, and computes what may come after them. Of more tokens than there are positions the last
 * ones count. A number that is no token is STK_INVALID and changes nothing. */
STK_API stk_status stk_generator_feed(stk_generator *generator, const int32_t *tokens, int64_t n);
/* The logits [vocabulary] of the next token; NULL before the first feed. Borrowed until the next feed. */
STK_API const float *stk_generator_logits(const stk_generator *generator);
/* Forgets all tokens. */
STK_API void stk_generator_clear(stk_generator *generator);

typedef struct stk_sampling {
    double temperature; /* logits are divided by it; 0: the likeliest token, always */
    int64_t top_k;      /* only among the k likeliest; 0: all */
    double top_p;       /* only among the fewest that together have this probability (Holtzman et al. 2020); 1: all */
    uint64_t seed;
    int64_t n_tokens; /* only among the first N: a tokenizer may have fewer than the model; 0: all */
} stk_sampling;
/* Temperature 1, no limits, seed 0. */
STK_API stk_sampling stk_sampling_default(void);
/* STK_INVALID where a number makes no sense: before anything is fed. */
STK_API stk_status stk_sampling_check(const stk_sampling *sampling);
/* Draws the next token; nothing is fed. The draw depends on the seed and on how many tokens were ever fed since the
 * last clear. Of equal logits the lower token comes first. Logits that are NaN are STK_CORRUPT. */
STK_API stk_status stk_generator_sample(stk_generator *generator, const stk_sampling *sampling, int32_t *token);

/* The path of the tokenizer that a run's text became tokens with: of its stage 'tokenize', or noted next to its files
 * of tokens by `stoker tokenize`. STK_NOT_FOUND: neither tells. Returned: free(). */
STK_API stk_status stk_run_tokenizer(const char *run, char **path);

#ifdef __cplusplus
}
#endif
#endif
