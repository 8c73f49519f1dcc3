/* Training, metrics, optimisers, runs, and trained networks at work. All of stoker/train/. */
#ifndef STOKER_TRAIN_H
#define STOKER_TRAIN_H

#include "stoker/train/classify.h"
#include "stoker/train/generate.h"
#include "stoker/train/metric.h"
#include "stoker/train/optim.h"
#include "stoker/train/run.h"
#include "stoker/train/trainer.h"
#include "stoker/train/weights.h"

#endif
