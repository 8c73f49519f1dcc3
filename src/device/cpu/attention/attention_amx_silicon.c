/* Built with the instructions for tiles; empty where the compiler or the family of processors has none. */
#ifdef __AMX_BF16__

#include "device/cpu/attention/attention_amx_tmpl.h"

const stk_attention_products stk_attention_by_tiles = ATTENTION_PRODUCTS;

#else
typedef int stk_attention_amx_silicon_is_not_built;
#endif
