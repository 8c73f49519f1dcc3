/* What a device keeps on disk for the next process: files of CACHE/FOLDER, each with a hash of what it holds. Threads:
 * any. */
#ifndef STK_DEVICE_KEPT_H
#define STK_DEVICE_KEPT_H

#include <stdbool.h>
#include <stddef.h>

/* False: there is none, or it is not whole, which is as good; *damaged (may be NULL) then says which. bytes is the
 * caller's to free(), and aligned. */
bool stk_kept_read(const char *folder, const char *name, void **bytes, size_t *n, bool *damaged);
/* False: it is not kept. A disk that is full or not there costs the next process some time, and nothing else. */
bool stk_kept_write(const char *folder, const char *name, const void *bytes, size_t n);

#endif
