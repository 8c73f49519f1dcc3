/* By the model of tiles. */
#include "device/cpu/attention/attention_amx_tmpl.h"

const stk_attention_products stk_attention_by_model = ATTENTION_PRODUCTS;
