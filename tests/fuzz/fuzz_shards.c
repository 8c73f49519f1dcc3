/* Weights in shards and their index: N1 INDEX N2 SHARD SHARD, N1 and N2 being lengths in two bytes, written to a folder
 * and opened there. The shards are called "a" and "b".
 *
 * covers: weights/safetensors_file.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/folder.h"
#include "stoker/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As many bytes as the next two say, or all that are left. */
static stk_span cut(stk_span *rest)
{
    size_t n = rest->n < 2 ? 0 : rest->data[0] | (size_t)rest->data[1] << 8;
    if (rest->n >= 2) *rest = (stk_span){rest->data + 2, rest->n - 2};
    if (n > rest->n) n = rest->n;
    stk_span part = {rest->data, n};
    if (n) *rest = (stk_span){rest->data + n, rest->n - n};
    return part;
}

/* Every tensor is found by its name, is the one that is listed there, and lies in its file with all its bytes. */
static void read_all(const stk_safetensors_file *file)
{
    unsigned sum = 0;
    for (int64_t i = 0; i < stk_safetensors_count(file); i++) {
        stk_safetensor t = stk_safetensors_at(file, i), same;
        if (!stk_safetensors_has(file, t.name, &same) || same.at != t.at || same.n_bytes != t.n_bytes) abort();
        uint8_t *bytes = malloc(t.n_bytes + 1);
        if (!bytes) abort();
        if (t.dtype < STK_N_DTYPES && stk_safetensors_read(&t, t.dtype, NULL, bytes) != STK_OK) abort();
        for (size_t k = 0; k < t.n_bytes && t.dtype < STK_N_DTYPES; k++)
            sum += bytes[k];
        free(bytes);
    }
    stk_safetensor none;
    if (stk_safetensors_get(file, "no such tensor", &none) == STK_OK && stk_safetensors_count(file) == 0) abort();
    (void)stk_safetensors_metadata(file, "format");
    if (sum == 1) fputs("", stderr); /* so that the reads are not left out */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_span rest = {data, size}, index = cut(&rest), a = cut(&rest);
    stk_safetensors_file *file;
    const char *folder = fuzz_folder();
    fuzz_write("model.safetensors.index.json", index);
    fuzz_write("a", a);
    fuzz_write("b", rest);
    if (stk_safetensors_open(folder, &file) == STK_OK) {
        read_all(file);
        stk_safetensors_close(file);
    } else if (file) {
        abort(); /* an error leaves nothing behind */
    }
    /* A shard alone, by its path. */
    char path[256];
    snprintf(path, sizeof(path), "%s/a", folder);
    if (stk_safetensors_open(path, &file) == STK_OK) {
        read_all(file);
        stk_safetensors_close(file);
    }
    return 0;
}
