/* The model of tiles in plain C, for any processor. */
#include "device/cpu/amx/amx_tmpl.h"
#include "device/cpu/amx/amx_weights_tmpl.h"

const stk_amx_fns stk_amx_model = {pack_b, pack_a, copy_places, multiply, &weight_fns};
