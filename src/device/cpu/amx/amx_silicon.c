/* Built with the instructions for tiles; empty where the compiler or the family of processors has none. */
#ifdef __AMX_BF16__

#include "device/cpu/amx/amx_tmpl.h"
#include "device/cpu/amx/amx_weights_tmpl.h"

const stk_amx_fns stk_amx_silicon = {pack_b, pack_a, copy_places, multiply, &weight_fns};

#else
typedef int stk_amx_silicon_is_not_built;
#endif
