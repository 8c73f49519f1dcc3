/* Whether this process keeps on disk what it finds out about data: index files, answers of surveys, rows of caches,
 * entry points. See stk_keep_data in stoker/cache.h. Threads: any.
 */
#ifndef STK_DATA_COMMON_KEEP_H
#define STK_DATA_COMMON_KEEP_H

#include "stoker/cache.h"

bool stk_keeps_data(void);

#endif
