/* A scan asks every record once for one small integer: whether a filter keeps it, how long it is, how many samples
 * are made of it. The answers make orders that depend on what is in the records into arithmetic like all others.
 *
 * Threads: the asking is done by several of its own; an asker is called by all of them at once.
 */
#ifndef STK_DATA_DATASET_SCAN_H
#define STK_DATA_DATASET_SCAN_H

#include "data/dataset/dataset.h"

/* What a record that cannot be read answers, where such are skipped; others answer 0 and more. */
enum { STK_UNREADABLE = -1 };

typedef struct stk_scan {
    /* The record's answer; item is by the source's fields, before any stage. A pure function of them. */
    stk_status (*ask)(void *user, const stk_dataset *dataset, const stk_stage_key *key, const stk_item *item,
                      int32_t *answer);
    void *user;
    unsigned fields; /* bit f: it looks at field f; the others need not be read */
    uint64_t key;    /* of what is asked, so that answers can be kept for the next time; 0: they cannot */
} stk_scan;

typedef struct stk_scan_result {
    int64_t n_asked, n_unreadable;
    double seconds;
    bool was_known,
        was_stale; /* the answers were kept; those that were kept are of another state of the files, or damaged */
} stk_scan_result;

/* Asks the records of `list`, [n], or the first n where it is NULL; answers is [n]. A record that cannot be read fails
 * the scan and is named, the first of several, unless the data set skips such. */
stk_status stk_scan_run(const stk_dataset *dataset, const stk_scan *scan, const uint32_t *list, int64_t n,
                        int32_t *answers, stk_scan_result *result);

/* What it took: "0.8 s", "kept from before, 0.01 s". */
enum { STK_SCAN_COST = 64 };
const char *stk_scan_cost(const stk_scan_result *result, char out[STK_SCAN_COST]);
/* Keeps a line for 'stoker data explain': what a scan found. */
void stk_scan_report(stk_dataset *dataset, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
