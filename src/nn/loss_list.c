#include "nn/loss_list.h"

#include <string.h>

const stk_key *const stk_loss_kinds[] = {
#define X(name) &stk_loss_class_##name.key,
    STK_LOSS_LIST(X)
#undef X
        NULL};

const stk_key stk_loss_target_keys[] = {STK_LOSS_TARGET, STK_LOSS_END};

static const stk_loss_class *const classes[] = {
#define X(name) &stk_loss_class_##name,
    STK_LOSS_LIST(X)
#undef X
};

const stk_loss_class *stk_loss_class_of(const char *name)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (!strcmp(classes[i]->key.name, name)) return classes[i];
    return NULL;
}
