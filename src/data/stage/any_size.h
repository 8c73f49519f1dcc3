/* One encoded image of any size through the stages of a data set whose images have one size and are not resized, as for
 * prediction. An image that the stages make what is wanted of is left to them. Of any other the shorter side becomes
 * the wanted one (bilinear with antialiasing, as PIL) and the middle is taken, right behind the decoding; what is
 * wanted there follows from the stages. Threads: any.
 */
#ifndef STK_DATA_STAGE_ANY_SIZE_H
#define STK_DATA_STAGE_ANY_SIZE_H

#include "data/stage/chain.h"

/* chain: of encoded images. want: all sides known; dst has room for it. *fitted: the image was resized. */
stk_status stk_chain_run_any_size(const stk_chain *chain, stk_span encoded, const stk_field_type *want, void *dst,
                                  bool *fitted);

#endif
