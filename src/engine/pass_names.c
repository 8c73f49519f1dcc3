/* The names that dump_after takes. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/engine.h"
#include "passes/passes.h"

stk_status stk_engine_check_pass(const char *name)
{
    static const char *const names[] = {
#define X(pass) #pass,
        STK_PASS_LIST(X) "plan",
        "all",
        NULL,
#undef X
    };
    stk_text text = {0};
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i])) return STK_OK;
    const char *nearest = stk_nearest_name(name, names);
    if (nearest) stk_text_add(&text, " (did you mean '%s'?)", nearest);
    for (int i = 0; names[i]; i++)
        stk_text_add(&text, "%s%s", i ? ", " : "; there are ", names[i]);
    stk_status status = stk_text_status(&text);
    if (status == STK_OK) status = stk_fail(STK_NOT_FOUND, "no pass '%s'%s", name, stk_text_get(&text));
    stk_text_free(&text);
    return status;
}
