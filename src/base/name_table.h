/* Numbers by name: a hash table, so that what a file or a graph holds is found in a time that does not grow with it.
 * Which names fall together differs from process to process, so that no file can be made to be slow. Threads: one at a
 * time.
 */
#ifndef STK_BASE_NAME_TABLE_H
#define STK_BASE_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

/* Starts zeroed. */
typedef struct stk_name_table {
    struct stk_name_slot *slot; /* [capacity], a power of 2 */
    size_t n, capacity;
    uint64_t seed;
} stk_name_table;

/* Adds a name that is not there yet, borrowed until the table is freed; number >= 0. */
stk_status stk_name_table_add(stk_name_table *table, const char *name, int32_t number);
/* Where its number stands, until the next is added; NULL: it is not there. */
int32_t *stk_name_table_get(const stk_name_table *table, const char *name);
/* -1: it is not there. */
int32_t stk_name_table_find(const stk_name_table *table, const char *name);
/* By the first n bytes of name, among which is no zero. */
int32_t stk_name_table_find_part(const stk_name_table *table, const char *name, size_t n);
/* Back to a zeroed one. */
void stk_name_table_free(stk_name_table *table);

#endif
