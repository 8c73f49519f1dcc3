/* Schedules' settings: defaults, checks, and what a recipe says. See optim/schedule.h. */
#include "optim/schedule.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static const stk_schedule_class *const classes[STK_N_SCHEDULES] = {
#define X(KIND, name) [STK_SCHEDULE_##KIND] = &stk_schedule_class_##name,
    STK_SCHEDULE_LIST(X)
#undef X
};

const stk_key *const stk_schedule_kinds[] = {
#define X(KIND, name) &stk_schedule_class_##name.key,
    STK_SCHEDULE_LIST(X)
#undef X
        NULL};

/* The numbers of a stk_schedule, called as in recipes. */
static const struct {
    const char *name;
    size_t offset;
} numbers[] = {{"warmup", offsetof(stk_schedule, warmup_epochs)}, {"every", offsetof(stk_schedule, every_epochs)},
               {"gamma", offsetof(stk_schedule, gamma)},          {"final", offsetof(stk_schedule, final_share)},
               {"first", offsetof(stk_schedule, first_share)},    {"peak", offsetof(stk_schedule, peak)}};
enum { N_NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static double get_number(const stk_schedule *s, int i)
{
    double value;
    memcpy(&value, (const char *)s + numbers[i].offset, sizeof(value));
    return value;
}

static void set_number(stk_schedule *s, int i, double value)
{
    memcpy((char *)s + numbers[i].offset, &value, sizeof(value));
}

const stk_schedule_class *stk_schedule_class_of(stk_schedule_kind kind)
{
    return (unsigned)kind < STK_N_SCHEDULES ? classes[kind] : NULL;
}

static stk_schedule make_default(stk_schedule_kind kind)
{
    stk_schedule s = stk_schedule_class_of(kind) ? stk_schedule_class_of(kind)->defaults : (stk_schedule){0};
    s.kind = kind;
    return s;
}

#define X(KIND, name)                                                                                                  \
    stk_schedule stk_##name##_schedule_default(void)                                                                   \
    {                                                                                                                  \
        return make_default(STK_SCHEDULE_##KIND);                                                                      \
    }
STK_SCHEDULE_LIST(X)
#undef X

stk_schedule stk_schedule_fill(stk_schedule_kind kind, stk_schedule settings)
{
    stk_schedule s = settings, defaults = make_default(kind);
    s.kind = kind;
    for (int i = 0; i < N_NUMBERS; i++)
        if (get_number(&s, i) == STK_NOT_SET) set_number(&s, i, get_number(&defaults, i));
    return s;
}

stk_status stk_schedule_check(const stk_schedule *settings)
{
    STK_NEED(settings);
    if (!stk_schedule_class_of(settings->kind))
        return stk_fail(STK_INVALID, "schedule: there is no kind %d", (int)settings->kind);
    for (int i = 0; i < N_NUMBERS; i++)
        if (!(get_number(settings, i) >= 0))
            return stk_fail(STK_INVALID, "schedule: %s is %g, and must be 0 or more", numbers[i].name,
                            get_number(settings, i));
    return STK_OK;
}

stk_status stk_schedule_read(const stk_yaml_node *node, stk_schedule *out)
{
    for (int kind = 0; kind < STK_N_SCHEDULES; kind++) {
        if (strcmp(classes[kind]->key.name, node->key)) continue;
        *out = make_default((stk_schedule_kind)kind);
        for (int i = 0; i < N_NUMBERS; i++)
            set_number(out, i, stk_yaml_real(node, numbers[i].name, get_number(out, i)));
        return STK_OK;
    }
    return stk_yaml_fail_key(node, "no schedule '%.60s'", node->key);
}

double stk_schedule_steps(double epochs, int64_t steps_per_epoch)
{
    double n = epochs * (double)steps_per_epoch;
    return n > 0 ? floor(n + 0.5) : 0; /* NaN is 0 too. */
}
