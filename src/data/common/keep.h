/* Whether this process keeps on disk what it finds out about data: index files, answers of scans, rows of caches,
 * entry points. See stk_keep_data in stoker/data/cache.h. Threads: any.
 */
#ifndef STK_DATA_COMMON_KEEP_H
#define STK_DATA_COMMON_KEEP_H

#include "stoker/data/cache.h"

bool stk_keeps_data(void);

#endif
