/* Optimisers' settings: defaults, ranges, and what a recipe says. See optim/optimizer.h. */
#include "optim/optimizer.h"

#include <string.h>

#include "base/error.h"

const char *const stk_optim_like_words[] = {"pytorch", "keras", NULL};

static const stk_optimizer_class *const classes[STK_N_OPTIMIZERS] = {
#define X(KIND, name) [STK_OPTIMIZER_##KIND] = &stk_optimizer_class_##name,
    STK_OPTIMIZER_LIST(X)
#undef X
};

const stk_key *const stk_optimizer_kinds[] = {
#define X(KIND, name) &stk_optimizer_class_##name.key,
    STK_OPTIMIZER_LIST(X)
#undef X
        NULL};

/* The numbers of a stk_optimizer, called as in recipes. */
static const struct {
    const char *name;
    size_t offset;
    enum { ANY, FROM_0, BELOW_1 } range;
} numbers[] = {{"lr", offsetof(stk_optimizer, lr), ANY},
               {"weight_decay", offsetof(stk_optimizer, weight_decay), FROM_0},
               {"momentum", offsetof(stk_optimizer, momentum), BELOW_1},
               {"beta1", offsetof(stk_optimizer, beta1), BELOW_1},
               {"beta2", offsetof(stk_optimizer, beta2), BELOW_1},
               {"eps", offsetof(stk_optimizer, eps), FROM_0},
               {"trust", offsetof(stk_optimizer, trust), FROM_0},
               {"rest_lr", offsetof(stk_optimizer, rest_lr), FROM_0}};
enum { N_NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static double get_number(const stk_optimizer *o, int i)
{
    double value;
    memcpy(&value, (const char *)o + numbers[i].offset, sizeof(value));
    return value;
}

static void set_number(stk_optimizer *o, int i, double value)
{
    memcpy((char *)o + numbers[i].offset, &value, sizeof(value));
}

const stk_optimizer_class *stk_optimizer_class_of(stk_optimizer_kind kind)
{
    return (unsigned)kind < STK_N_OPTIMIZERS ? classes[kind] : NULL;
}

/* --- defaults --- */

stk_optimizer stk_optimizer_default(stk_optimizer_kind kind, bool like_keras)
{
    const stk_optimizer_class *class = stk_optimizer_class_of(kind);
    stk_optimizer o = {.kind = kind};
    if (class) o = like_keras && class->keras.like_keras ? class->keras : class->defaults;
    o.kind = kind;
    return o;
}

stk_optimizer stk_optimizer_fill(stk_optimizer_kind kind, stk_optimizer settings)
{
    stk_optimizer o = settings, defaults = stk_optimizer_default(kind, settings.like_keras);
    o.kind = kind;
    for (int i = 0; i < N_NUMBERS; i++)
        if (get_number(&o, i) == STK_NOT_SET) set_number(&o, i, get_number(&defaults, i));
    return o;
}

#define X(KIND, name)                                                                                                  \
    stk_optimizer stk_##name##_default(void)                                                                           \
    {                                                                                                                  \
        return stk_optimizer_default(STK_OPTIMIZER_##KIND, false);                                                     \
    }
STK_OPTIMIZER_LIST(X)
#undef X

/* --- checks --- */

stk_status stk_optimizer_check(const stk_optimizer *o)
{
    const stk_optimizer_class *class = stk_optimizer_class_of(o->kind);
    if (!class) return stk_fail(STK_INVALID, "optimizer: there is no kind %d", (int)o->kind);
    for (int i = 0; i < N_NUMBERS; i++) {
        double value = get_number(o, i);
        if (numbers[i].range == BELOW_1 && !(value >= 0 && value < 1))
            return stk_fail(STK_INVALID, "optimizer: %s is %g, and must be in [0,1)", numbers[i].name, value);
        if (numbers[i].range == FROM_0 && !(value >= 0))
            return stk_fail(STK_INVALID, "optimizer: %s is %g, and must be 0 or more", numbers[i].name, value);
    }
    return class->check ? class->check(o) : STK_OK;
}

/* --- recipes --- */

stk_status stk_optimizer_read(const stk_yaml_node *node, stk_optimizer *out)
{
    int kind = 0;
    while (kind < STK_N_OPTIMIZERS && strcmp(classes[kind]->key.name, node->key))
        kind++;
    if (kind == STK_N_OPTIMIZERS) return stk_yaml_fail_key(node, "no optimizer '%.60s'", node->key);
    const stk_optimizer_class *class = classes[kind];
    stk_optimizer o = stk_optimizer_default((stk_optimizer_kind)kind, stk_yaml_is(node, "like", "keras"));
    for (int i = 0; i < N_NUMBERS; i++)
        set_number(&o, i, stk_yaml_real(node, numbers[i].name, get_number(&o, i)));
    o.nesterov = stk_yaml_bool(node, "nesterov");
    o.centered = stk_yaml_bool(node, "centered");
    *out = o;
    return class->check_recipe ? class->check_recipe(node, &o) : STK_OK;
}
