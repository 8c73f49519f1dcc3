#include "data/common/item.h"

void *stk_scratch_get(stk_scratch *scratch, size_t bytes)
{
    stk_block block = {scratch->data, scratch->n_bytes, scratch->memory};
    void *data = stk_block_get(&block, bytes);
    *scratch = (stk_scratch){.data = block.data, .n_bytes = block.n_bytes, .memory = block.memory};
    return data;
}

void stk_scratch_free(stk_scratch *scratch)
{
    stk_block_free(&(stk_block){scratch->data, scratch->n_bytes, scratch->memory});
    *scratch = (stk_scratch){0};
}
