/* What the files of generation share. */
#ifndef STK_INFER_GENERATOR_H
#define STK_INFER_GENERATOR_H

#include "engine/engine.h"
#include "stoker/train/generate.h"

/* Borrowed; its variables are the parameters and the caches. */
stk_engine *stk_generator_engine(stk_generator *generator);

#endif
