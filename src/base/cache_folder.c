/* See base/cache_folder.h. */
#include "base/cache_folder.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

stk_status stk_cache_folder(char *out, size_t out_bytes)
{
    const char *own = getenv("STOKER_CACHE"), *shared = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = own && own[0]         ? snprintf(out, out_bytes, "%s", own)
            : shared && shared[0] ? snprintf(out, out_bytes, "%s/stoker", shared)
            : home && home[0]     ? snprintf(out, out_bytes, "%s/.cache/stoker", home)
                                  : -1;
    if (n < 0) return stk_fail(STK_NOT_FOUND, "there is no cache folder: set STOKER_CACHE to one");
    if ((size_t)n >= out_bytes) return stk_fail(STK_INVALID, "the path of the cache folder is too long");
    return STK_OK;
}
