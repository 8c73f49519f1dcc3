/* Rows of bytes by record number, in memory or in a file. No fields, no stages here.
 *
 * Threads: any number get and put at once. A file may be used by any number of processes; a row that is killed in the
 * writing is absent, and one that was damaged is found by its checksum.
 */
#ifndef STK_DATA_CACHE_ROW_STORE_H
#define STK_DATA_CACHE_ROW_STORE_H

#include "base/file.h"
#include "data/common/item.h"

/* Of what a row was made; another stamp makes it absent. */
typedef struct stk_row_stamp {
    uint64_t name, n_bytes;
    int64_t mtime_ns;
} stk_row_stamp;

typedef struct stk_row_store stk_row_store;

/* Holds rows of N bytes in all. */
stk_status stk_row_store_in_memory(int64_t n_records, size_t n_bytes, stk_row_store **out);
/* Opens the file, or makes it, also where it is of another key. STK_BUSY where something that is no such file is there.
 * Where nothing is to be kept (data/common/side_file.h) it is only read, and need not be there. */
stk_status stk_row_store_in_file(const char *path, uint64_t key, int64_t n_records, stk_row_store **out);
void stk_row_store_close(stk_row_store *store); /* accepts NULL */

/* False where it is absent. The bytes are the store's own, or lie in place; 64-byte aligned. */
bool stk_row_store_get(stk_row_store *store, int64_t i_record, const stk_row_stamp *stamp, stk_scratch *place,
                       stk_span *out);
/* Best effort: what cannot be stored stays absent. */
void stk_row_store_put(stk_row_store *store, int64_t i_record, const stk_row_stamp *stamp, stk_span row);

/* Whether the disk has no room for more. */
bool stk_row_store_is_full(const stk_row_store *store);
void stk_row_store_count(stk_row_store *store, int64_t *n_rows, size_t *n_bytes);

#endif
