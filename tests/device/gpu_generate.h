/* What gpu_compile.c cannot do itself: headers of generation and of the data plane each have a stk_sampling. */
#ifndef STK_TESTS_GPU_GENERATE_H
#define STK_TESTS_GPU_GENERATE_H

#include "engine/engine.h"
#include "stoker/nn/transformer.h"

/* Feeds two tokens and one more to a network with weights of its own on the device; look gets the engine, which then
 * has the programs of a prompt and of one token. */
stk_status gpu_generate(const char *device, const stk_transformer_config *config,
                        stk_status (*look)(const stk_engine *engine));

#endif
