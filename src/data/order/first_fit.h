/* Packing samples into rows: each goes, in order, into the first row that has room for it. First fit takes at most 1.7
 * times as many rows as are needed at all (Garey, Graham and Ullman 1972), and for many short samples hardly any more.
 */
#ifndef STK_DATA_ORDER_FIRST_FIT_H
#define STK_DATA_ORDER_FIRST_FIT_H

#include <stdint.h>

#include "stoker/status.h"

typedef struct stk_rows {
    int64_t n;
    int64_t *start;   /* [n + 1] */
    uint32_t *member; /* row i has members start[i] to start[i + 1], ascending */
} stk_rows;

/* lengths is [n], each at most `room`; those that are not above 0 are left out. In O(n log n) time. */
stk_status stk_first_fit(const int32_t *lengths, int64_t n, int64_t room, stk_rows *out);
void stk_rows_free(stk_rows *rows);

#endif
