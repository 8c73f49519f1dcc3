/* What a run needs and what it came to. All of stoker/observe/. */
#ifndef STOKER_OBSERVE_H
#define STOKER_OBSERVE_H

#include "stoker/observe/plan.h"
#include "stoker/observe/report.h"

#endif
