/* All of libstoker: stoker/data.h, graph.h, nn.h, train.h, files.h and observe.h, each of which is the headers of a
 * folder, and what all of them use.
 *
 * Of the process it leaves signals and descriptors alone: a program that calls it sees to it that 0, 1 and 2 are open,
 * if only on /dev/null, or files get these numbers and prints go into them; and where SIGPIPE or SIGXFSZ would end the
 * process it ignores them, so that a connection that broke and a file that may not grow are errors.
 */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include "stoker/data.h"
#include "stoker/files.h"
#include "stoker/graph.h"
#include "stoker/memory.h"
#include "stoker/nn.h"
#include "stoker/observe.h"
#include "stoker/printable.h"
#include "stoker/rng.h"
#include "stoker/status.h"
#include "stoker/train.h"
#include "stoker/types.h"

#endif
