/* How much memory a recipe allows; apart from the trainer, which reading and predicting do without. See recipe/build.h.
 */
#include "base/memory.h"
#include "recipe/build.h"

size_t stk_build_memory_limit(const stk_recipe *recipe)
{
    if (recipe->memory_bytes >= 0) return (size_t)recipe->memory_bytes;
    if (recipe->memory_bytes == -1) return stk_machine_memory(true);
    return (size_t)((double)stk_machine_memory(false) * recipe->memory_share);
}

size_t stk_build_data_memory(const stk_recipe *recipe)
{
    if (recipe->data_memory_bytes >= 0) return (size_t)recipe->data_memory_bytes;
    if (recipe->data_memory_bytes == -1) return 0;
    return (size_t)((double)stk_machine_memory(false) * recipe->data_memory_share);
}

size_t stk_build_read_memory(const stk_recipe *recipe)
{
    size_t data = stk_build_data_memory(recipe), all = recipe->memory_bytes >= 0 ? (size_t)recipe->memory_bytes : 0;
    return data ? data : all;
}
