/* All of libstoker. */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include "stoker/combine.h"
#include "stoker/custom.h"
#include "stoker/dataset.h"
#include "stoker/device.h"
#include "stoker/digits.h"
#include "stoker/explain.h"
#include "stoker/fields.h"
#include "stoker/graph.h"
#include "stoker/index.h"
#include "stoker/lint.h"
#include "stoker/loader.h"
#include "stoker/memory.h"
#include "stoker/mixup.h"
#include "stoker/nn.h"
#include "stoker/optim.h"
#include "stoker/pack.h"
#include "stoker/ragged.h"
#include "stoker/rng.h"
#include "stoker/run.h"
#include "stoker/sheet.h"
#include "stoker/sources.h"
#include "stoker/status.h"
#include "stoker/survey.h"
#include "stoker/text.h"
#include "stoker/tokenizer.h"
#include "stoker/trainer.h"
#include "stoker/types.h"
#include "stoker/verify.h"

#endif
