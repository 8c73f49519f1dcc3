/* Keys of models: those of the descriptors that src/nn/model_list.h lists. */
#include <string.h>

#include "nn/model_list.h"
#include "recipe/build.h"
#include "recipe/keys.h"

#define X(model) &stk_model_class_##model.key,
const stk_key *const stk_model_kinds[] = {STK_MODEL_LIST(X) NULL};
#undef X

#define X(model) &stk_model_class_##model,
static const stk_model_class *const classes[] = {STK_MODEL_LIST(X) NULL};
#undef X

const stk_model_class *stk_model_class_at(int i)
{
    return classes[i];
}

const stk_model_class *stk_model_class_find(const char *name)
{
    for (int i = 0; classes[i]; i++)
        if (!strcmp(classes[i]->key.name, name)) return classes[i];
    return NULL;
}
