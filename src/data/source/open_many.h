/* Opening many files: one after the other, or many at once where each has to wait for a server. */
#ifndef STK_DATA_SOURCE_OPEN_MANY_H
#define STK_DATA_SOURCE_OPEN_MANY_H

#include <stdbool.h>
#include <stddef.h>

#include "stoker/status.h"

/* Opens file i. far: in one of several threads. */
typedef stk_status (*stk_open_fn)(void *user, size_t i);

/* Calls open for each i in [0, n). far: from up to 16 threads. After an error no more are opened; that of the first i
 * in order is returned, with its text. */
stk_status stk_open_many(size_t n, bool far, stk_open_fn open, void *user);

#endif
