/* Vision transformers: images in patches, and the block that they are made of. Names, errors and threads as in nn.h.
 *
 * The parameters have the names and layouts of torchvision's vit_b_16, so that its weights can be taken over name by
 * name.
 */
#ifndef STOKER_NN_VIT_H
#define STOKER_NN_VIT_H

#include "stoker/nn/transformer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x [N,T,C] -> [N,T,C] as stk_encoder_block, but with each half's input normalised instead of the sum, and the exact
 * GELU. eps 0: 1e-6. Names within the scope: ln_1, self_attention.in_proj_weight, ..., ln_2, mlp.0, mlp.3. */
STK_API stk_value stk_prenorm_block(stk_value x, const stk_block_config *config);

typedef struct stk_vit_config {
    int layers, heads, patch; /* patches are patch x patch pixels, and tile the image */
    int64_t width, hidden;    /* hidden 0: 4 width */
    double dropout, attention_dropout;
    double eps; /* of the layer norms; 0: 1e-6, as torchvision. Hugging Face's ViTs: 1e-12 */
} stk_vit_config;
/* "tiny", "small", "base": 12 layers of 192, 384 and 768, patches of 16. False: there is no such size. */
STK_API bool stk_vit_size(const char *size, stk_vit_config *out);
/* Images [N,H,W,C] -> logits [N,classes]. Dosovitskiy et al. 2021. "base" has 86,567,656 parameters with 224 x 224
 * pixels and 1000 classes. */
STK_API stk_value stk_vit(stk_value x, const stk_vit_config *config, int64_t classes);

#ifdef __cplusplus
}
#endif
#endif
