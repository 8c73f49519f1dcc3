/* A source from its keys. See recipe/build.h. */
#include <string.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "data/source/source_list.h"
#include "recipe/build.h"
#include "recipe/keys.h"
#include "tensor/shape.h"

stk_status stk_build_source(const stk_yaml_node *source, uint64_t seed, stk_dataset **out)
{
    static const stk_combined_kind *const combined[] = {
#define X(kind) &stk_combined_##kind,
        STK_COMBINED_LIST(X)
#undef X
    };
    const stk_source_kind *kind = stk_source_kind_find(source->key);
    stk_source *opened = NULL;
    *out = NULL;
    for (size_t i = 0; i < sizeof(combined) / sizeof(combined[0]); i++)
        if (!strcmp(combined[i]->key.name, source->key)) return stk_build_combined(combined[i], source, seed, out);
    if (!kind) return stk_yaml_fail(source, "source '%s' cannot be built", source->key);
    STK_RETURN_IF_ERROR(kind->open(source, &opened));
    *out = stk_dataset_make(STK_OK, opened);
    return stk_build_check(source, *out);
}

void stk_build_class_labels(stk_dataset *dataset)
{
    stk_dtype dtype;
    stk_shape shape;
    if (stk_dataset_field(dataset, "label", false, &dtype, &shape) != STK_OK) return;
    bool is_number = shape.rank == 0 && !stk_dtype_is_float(dtype) && dtype != STK_I32;
    if (is_number) stk_dataset_apply_to(dataset, "label", stk_cast(STK_I32));
}
