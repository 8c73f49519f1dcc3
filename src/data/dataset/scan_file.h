/* Answers of scans, kept in the cache folder for the next time: common/side_file.h says where that is. They count as
 * long as the scan's key and the names, sizes and times of all files asked are as they were.
 *
 * Threads: any, and any number of processes: a file is replaced whole.
 */
#ifndef STK_DATA_DATASET_SCAN_FILE_H
#define STK_DATA_DATASET_SCAN_FILE_H

#include <limits.h>

#include "base/file.h"
#include "data/dataset/scan.h"

/* Where answers lie, and of which state of the records. */
typedef struct stk_scan_file {
    char path[PATH_MAX]; /* "": they are not kept */
    uint64_t state;
} stk_scan_file;

/* The stages of field f as a part of a scan's key; 0 where it cannot be told whether they do what they did. */
uint64_t stk_scan_key_stages(const stk_dataset *dataset, int f, uint64_t key);

/* Where the answers of these records are; nothing is kept of few, or of a source that does not tell its files' times.
 */
void stk_scan_file_find(const stk_dataset *dataset, const stk_scan *scan, const uint32_t *list, int64_t n,
                        stk_scan_file *out);
/* False where there are none; *stale: there are, of another state of the records. */
bool stk_scan_file_read(const stk_scan_file *file, int32_t *answers, int64_t n, bool *stale);
/* Best effort: the next scan takes longer without. */
void stk_scan_file_write(const stk_scan_file *file, const int32_t *answers, int64_t n);

/* --- the bytes of such a file: scan_parse.c --- */

size_t stk_scan_bytes(int64_t n);
/* n answers of this state; false: something else, or a damaged file. Fuzzed. */
bool stk_scan_parse(stk_span bytes, uint64_t state, int32_t *answers, int64_t n);
/* out [stk_scan_bytes(n)] */
void stk_scan_print(uint64_t state, const int32_t *answers, int64_t n, uint8_t *out);

#endif
