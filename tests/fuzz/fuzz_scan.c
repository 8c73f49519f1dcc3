/* Files of scans' answers: whatever they hold, reading one stays inside its bytes, and what is read is printed to the
 * same bytes again. The checksum is mended first, as it would keep every change out.
 *
 * covers: data/dataset/scan_parse.c
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/little.h"
#include "data/dataset/scan_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void parse(const uint8_t *bytes, size_t n_bytes, int64_t n)
{
    int32_t *answers = malloc(((size_t)n + 1) * sizeof(*answers));
    uint8_t *again = malloc(stk_scan_bytes(n));
    uint64_t state = n_bytes >= 16 ? stk_little64(bytes + 8) : 0;
    if (answers && again && stk_scan_parse((stk_span){bytes, n_bytes}, state, answers, n)) {
        stk_scan_print(state, answers, n, again);
        if (memcmp(again, bytes, n_bytes) != 0) abort();
    }
    if (answers) (void)stk_scan_parse((stk_span){bytes, n_bytes}, state + 1, answers, n);
    free(answers);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t least = stk_scan_bytes(0);
    uint8_t *copy = malloc(n + 1);
    if (!copy) return 0;
    if (n) memcpy(copy, data, n);
    int64_t n_answers = n > least ? (int64_t)((n - least) / 4) : 0;
    parse(copy, n, n_answers);
    if (n >= least) {
        stk_put_little64(copy + 16, (uint64_t)n_answers);
        stk_put_little64(copy + n - 8, stk_hash64(copy, n - 8, 0));
        parse(copy, n, n_answers);
    }
    free(copy);
    return 0;
}
