/* A set of whole numbers, as a rising array.
 *
 * Threads: plain data.
 */
#ifndef STK_BASE_RISING_H
#define STK_BASE_RISING_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

/* Puts x into array [*n], which has room for *capacity, at most once; it grows where it must. The caller frees it. */
stk_status stk_rising_insert(int64_t x, int64_t **array, int64_t *n, size_t *capacity);

#endif
