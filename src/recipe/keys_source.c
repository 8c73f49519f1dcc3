/* The sources of a recipe: those of data/source/source_list.h, whose keys are in their files, and those made of whole
 * data sets. */
#include "data/source/source_list.h"
#include "recipe/keys.h"

const stk_key *const stk_source_kinds[] = {
#define X(kind) &stk_source_kind_##kind.key,
    STK_SOURCE_LIST(X)
#undef X
#define X(kind) &stk_combined_##kind.key,
        STK_COMBINED_LIST(X)
#undef X
            NULL};
