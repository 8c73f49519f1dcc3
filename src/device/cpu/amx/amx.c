#include "device/cpu/amx/amx.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/simd/isa.h"

const stk_amx_fns *stk_amx_of(stk_isa isa)
{
    const char *wanted = getenv("STOKER_AMX");
    if (wanted && !strcmp(wanted, "model")) return &stk_amx_model;
    if (wanted && !strcmp(wanted, "off")) return NULL;
#ifdef STK_AMX
    if (stk_isa_has_amx(isa)) return &stk_amx_silicon;
#endif
    (void)isa;
    return NULL;
}

const char *stk_amx_impl(const stk_amx_fns *fns)
{
    return fns == &stk_amx_model ? "own amx model" : "own amx";
}
