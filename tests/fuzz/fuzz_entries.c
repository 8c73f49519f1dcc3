/* Index files of entry points: whatever they hold, reading one stays inside its bytes. The checksum is mended first, as
 * it would keep every change out.
 *
 * covers: data/source/entries.c
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/little.h"
#include "data/source/entries.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(stk_entries *entries)
{
    static volatile uint64_t sum;
    stk_jpeg_hint hint = {0};
    stk_entries_file found;
    char path[300];
    entries->folder = "f";
    entries->n_folder = 1;
    for (int64_t i = 0; i < entries->n_files; i++) {
        stk_entries_file file = stk_entries_get(entries, i);
        for (uint32_t k = 0; k < file.n_entries; k++)
            sum += file.entry[k].offset + file.entry[k].bit + (uint16_t)file.entry[k].dc[2];
        if (strlen(file.name) > 250) continue;
        path[0] = 'f';
        path[1] = '/';
        strcpy(path + 2, file.name);
        static const uint8_t bytes[4096];
        stk_span encoded = {bytes, file.n_bytes < sizeof(bytes) ? file.n_bytes : sizeof(bytes)};
        stk_entries_give(entries, path, encoded, file.times, &hint);
        if (stk_entries_find(entries, path, &found)) sum += found.n_bytes + (uint64_t)hint.n_entries;
    }
    (void)stk_entries_find(entries, "f/no such file", &found);
    (void)sum;
    entries->folder = NULL; /* not its own here */
    stk_entries_close(entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    stk_entries entries;
    uint8_t *copy = malloc(n + 1);
    if (!copy) return 0;
    if (n) memcpy(copy, data, n);
    if (stk_entries_parse((stk_span){copy, n}, &entries) == STK_OK) use(&entries);
    if (n >= 8) {
        stk_put_little64(copy + n - 8, stk_hash64(copy, n - 8, 0));
        if (stk_entries_parse((stk_span){copy, n}, &entries) == STK_OK) use(&entries);
    }
    free(copy);
    return 0;
}
