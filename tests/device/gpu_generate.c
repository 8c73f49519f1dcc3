/* See gpu_generate.h. */
#include "device/gpu_generate.h"

#include "base/error.h"
#include "infer/generator.h"

stk_status gpu_generate(const char *device, const stk_transformer_config *config,
                        stk_status (*look)(const stk_engine *engine))
{
    static const int32_t tokens[] = {1, 2, 3};
    stk_generator_options options = {.device = device};
    stk_generator *generator = NULL;
    stk_status status = STK_OK;
    STK_TRY(stk_generator_new(config, 1, &options, &generator));
    STK_TRY(stk_generator_feed(generator, tokens, 2));
    STK_TRY(stk_generator_feed(generator, tokens + 2, 1));
    STK_TRY(look(stk_generator_engine(generator)));
done:
    stk_generator_close(generator);
    return status;
}
