#include "base/isa.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[STK_N_ISAS] = {"baseline", "avx2", "avx512"};

const char *stk_isa_name(stk_isa isa)
{
    return names[isa];
}

bool stk_isa_find(const char *name, stk_isa *out)
{
    for (int i = 0; i < STK_N_ISAS; i++) {
        if (strcmp(name, names[i])) continue;
        *out = (stk_isa)i;
        return true;
    }
    return false;
}

stk_isa stk_isa_allowed(void)
{
    const char *wanted = getenv("STOKER_ISA");
    stk_isa isa = STK_ISA_AVX512;
    if (wanted) stk_isa_find(wanted, &isa);
    return isa;
}
