/* stoker-pack.json from memory.
 *
 * covers: data/source/manifest.c
 */
#include <stdlib.h>

#include "data/source/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_pack_manifest m;
    if (stk_pack_manifest_parse((stk_span){data, size}, &m) == STK_OK)
        for (int64_t i = 0; i < m.n_shards; i++)
            if (!m.shard[i].file || m.shard[i].n_bytes < 0 || m.shard[i].n_records < 0) abort();
    stk_pack_manifest_free(&m);
    return 0;
}
