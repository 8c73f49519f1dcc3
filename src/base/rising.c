#include "base/rising.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

stk_status stk_rising_insert(int64_t x, int64_t **array, int64_t *n, size_t *capacity)
{
    int64_t at = 0, end = *n;
    while (at < end) {
        int64_t middle = at + (end - at) / 2;
        if ((*array)[middle] < x)
            at = middle + 1;
        else
            end = middle;
    }
    if (at < *n && (*array)[at] == x) return STK_OK;
    if ((size_t)*n == *capacity) {
        size_t more = *capacity ? 2 * *capacity : 16;
        int64_t *grown = realloc(*array, more * sizeof(*grown));
        if (!grown) return stk_fail_memory(more * sizeof(*grown));
        *array = grown;
        *capacity = more;
    }
    memmove(*array + at + 1, *array + at, (size_t)(*n - at) * sizeof(**array));
    (*array)[at] = x;
    ++*n;
    return STK_OK;
}
