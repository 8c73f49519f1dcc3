/* Compiles modules (STOKER_PJRT_DUMP writes them) by libtpu for chips that are not here, and prints a row of a table
 * for each: what they are, memory of a chip, arithmetic, and how long it took. ./dev tpu-compile calls it.
 *
 * usage: tpu_compile TOPOLOGY NAME=MODULE.mlir...   TOPOLOGY: v5e:1x1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/pjrt/pjrt.h"

static bool read_file(const char *path, stk_text *out)
{
    char part[65536];
    size_t n;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    while ((n = fread(part, 1, sizeof(part), file)) > 0)
        stk_text_add_bytes(out, part, n);
    fclose(file);
    return stk_text_status(out) == STK_OK && out->n > 0;
}

static double mib(int64_t bytes)
{
    return (double)bytes / 1048576;
}

static int compile_one(const pjrt_plugin *compiler, const char *topology, const char *argument)
{
    const char *path = strchr(argument, '=');
    stk_text module = {0}, chip = {0};
    pjrt_ahead ahead;
    int n_name = path ? (int)(path - argument) : 0, bad = 0;
    if (!path || !read_file(path + 1, &module)) {
        fprintf(stderr, "cannot read '%s'\n", argument);
        bad = 1;
    } else if (pjrt_compile_ahead(compiler, topology, &module, &chip, &ahead) != STK_OK) {
        printf("| %.*s | %s | refused: %s |\n", n_name, argument, topology, stk_error_text());
        bad = 1;
    } else {
        printf("| %.*s | %s, %s | %.1f | %.1f | %.1f | %.2f | %.2f | %.1f |\n", n_name, argument, topology,
               stk_text_get(&chip), mib(ahead.arguments_bytes), mib(ahead.results_bytes - ahead.alias_bytes),
               mib(ahead.scratch_bytes), ahead.flops / 1e9, ahead.bytes / 1e9, (double)ahead.compile_ns / 1e9);
    }
    fflush(stdout);
    stk_text_free(&module);
    stk_text_free(&chip);
    return bad;
}

int main(int argc, char **argv)
{
    pjrt_plugin compiler;
    int n_bad = 0;
    if (argc < 3) return fprintf(stderr, "usage: tpu_compile TOPOLOGY NAME=MODULE.mlir...\n"), 2;
    if (pjrt_load_compiler("tpu", &compiler) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return 77;
    }
    for (int i = 2; i < argc; i++)
        n_bad += compile_one(&compiler, argv[1], argv[i]);
    return n_bad > 0;
}
