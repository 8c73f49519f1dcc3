/* Braces in paths, as WebDataset's lists of shards and shells have them: train-{000..099}.tar, {train,more}/x.tar. A
 * number with leading zeros sets the width. Other braces are what they are. Threads: any. */
#ifndef STK_DATA_SOURCE_BRACES_H
#define STK_DATA_SOURCE_BRACES_H

#include "base/file.h"

/* Adds all paths that the braces make, in their order; the path itself where it has none. */
stk_status stk_braces_expand(const char *path, stk_names *out, size_t *capacity);

#endif
