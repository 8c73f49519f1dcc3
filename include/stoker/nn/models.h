/* The networks that a recipe can name, as they are without any settings. Threads: any. */
#ifndef STOKER_NN_MODELS_H
#define STOKER_NN_MODELS_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_known_model {
    const char *name;   /* "resnet50", "bert: {size: mini}": what `model:` takes */
    const char *sample; /* what it is counted for: "224 x 224 x 3, 1000 classes" */
} stk_known_model;
/* Number i of them; false past the last. */
STK_API bool stk_known_model_get(int i, stk_known_model *out);

typedef struct stk_model_line {
    const char *name;  /* of a layer's parameters, "layer1.0.conv1"; NULL: of all together */
    const char *shape; /* of the first of them, "[64,3,3,64]" */
    int64_t n_parameters;
    double forward_flops; /* of one sample; only of all together */
} stk_model_line;
/* Builds the network and tells its size, and with `layers` before it each layer that has parameters. name: as above, or
 * the name alone, or the text of a `model:` key. Texts are borrowed until the callback returns. */
STK_API stk_status stk_known_model_show(const char *name, bool layers,
                                        void (*on_line)(void *user, const stk_model_line *line), void *user);

#ifdef __cplusplus
}
#endif
#endif
