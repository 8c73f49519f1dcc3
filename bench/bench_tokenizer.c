/* How fast a text becomes tokens, on one thread: bench_tokenizer TOKENIZER TEXT-FILE [LINE-BY-LINE: 1]. The peer's
 * figure is `tokenizers`' encode of the same text with RAYON_NUM_THREADS=1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "stoker/data/tokenizer.h"

enum { N_RUNS = 5 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t encode(const stk_tokenizer *t, const char *text, size_t n, bool by_line, int32_t *ids, size_t room)
{
    size_t n_all = 0;
    for (size_t at = 0, n_part; at < n; at += n_part) {
        const char *end = by_line ? memchr(text + at, '\n', n - at) : NULL;
        n_part = end ? (size_t)(end - text) + 1 - at : n - at;
        size_t n_ids;
        if (stk_tokenizer_encode(t, text + at, n_part, false, ids, room, &n_ids) != STK_OK) return 0;
        n_all += n_ids;
    }
    return n_all;
}

int main(int argc, char **argv)
{
    stk_tokenizer *t = NULL;
    uint8_t *text = NULL;
    size_t capacity = 0, n = 0, n_ids = 0;
    if (argc == 1) { /* with all benchmarks */
        puts("needs a tokenizer and a text");
        return 0;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: bench_tokenizer TOKENIZER TEXT-FILE [1: line by line]\n");
        return 2;
    }
    double start = now();
    if (stk_tokenizer_open(argv[1], NULL, &t) != STK_OK || stk_file_read(argv[2], &text, &capacity, &n) != STK_OK) {
        fprintf(stderr, "bench_tokenizer: %s\n", stk_error_text());
        return 1;
    }
    double opened = now() - start, best = 1e9;
    int32_t *ids = malloc((n + 64) * 4 * sizeof(*ids));
    if (!ids) return 1;
    for (int i = 0; i < N_RUNS; i++) {
        start = now();
        n_ids = encode(t, (const char *)text, n, argc > 3, ids, 4 * (n + 64));
        double took = now() - start;
        if (took < best) best = took;
    }
    printf("%.1f MB/s, %.1f million tokens/s (%zu bytes, %zu tokens), opened in %.1f ms\n", (double)n / best / 1e6,
           (double)n_ids / best / 1e6, n, n_ids, opened * 1e3);
    free(ids);
    free(text);
    stk_tokenizer_free(t);
    return 0;
}
