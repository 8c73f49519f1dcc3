/* Tokens a second of generation, one at a time behind a prompt, with random parameters.
 *
 * usage: bench_generate [124m|mini|char [N_TOKENS [N_PROMPT [N_THREADS]]]]    bench/generate_torch.py: PyTorch's
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stoker/train/generate.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(void)
{
    fprintf(stderr, "bench_generate: %s\n", stk_error_text());
    return 1;
}

/* The likeliest token each time, as PyTorch's loop takes it. */
static int measure(stk_generator *g, int64_t n_prompt, int64_t n_tokens, double *prompt_s, double *tokens_s)
{
    stk_sampling likeliest = {.temperature = 0, .top_p = 1};
    int32_t *prompt = malloc((size_t)n_prompt * sizeof(*prompt)), token;
    if (!prompt) return 1;
    for (int64_t i = 0; i < n_prompt; i++)
        prompt[i] = (int32_t)(i * 31 % stk_generator_vocabulary(g));
    stk_generator_clear(g);
    double start = now();
    stk_status status = stk_generator_feed(g, prompt, n_prompt);
    *prompt_s = now() - start;
    start = now();
    for (int64_t i = 0; i < n_tokens && status == STK_OK; i++) {
        status = stk_generator_sample(g, &likeliest, &token);
        if (status == STK_OK) status = stk_generator_feed(g, &token, 1);
    }
    *tokens_s = now() - start;
    free(prompt);
    return status == STK_OK ? 0 : fail();
}

int main(int argc, char **argv)
{
    const char *size = argc > 1 ? argv[1] : "124m";
    int64_t n_tokens = argc > 2 ? atoll(argv[2]) : 100, n_prompt = argc > 3 ? atoll(argv[3]) : 64;
    stk_generator_options options = {.n_threads = argc > 4 ? atoi(argv[4]) : 0};
    stk_transformer_config config = {.layers = 4, .heads = 4, .width = 192, .vocabulary = 257, .positions = 1024};
    stk_generator *g;
    double prompt_s = 0, tokens_s = 0, best = 0, best_prompt = 1e9;
    if (strcmp(size, "char") && !stk_gpt2_size(size, &config)) {
        fprintf(stderr, "bench_generate: no size '%s'; there are 124m, mini and char\n", size);
        return 2;
    }
    if (n_tokens < 1 || n_prompt < 1 || n_tokens + n_prompt > config.positions) return 2;
    if (stk_generator_new(&config, 1, &options, &g) != STK_OK) return fail();
    for (int i = 0; i < 4; i++) { /* the first one compiles */
        if (measure(g, n_prompt, n_tokens, &prompt_s, &tokens_s)) return 1;
        if ((double)n_tokens / tokens_s > best) best = (double)n_tokens / tokens_s;
        if (prompt_s < best_prompt) best_prompt = prompt_s;
    }
    printf("%s: %.1f tokens/s, best of 4 times %lld, after a prompt of %lld in %.1f ms\n", size, best,
           (long long)n_tokens, (long long)n_prompt, 1e3 * best_prompt);
    stk_generator_close(g);
    return 0;
}
