/* Reports: what runs came to and where their time and memory went, as one HTML file that opens without a network.
 *
 * Read from the run folders alone: recipe.yaml, metrics.jsonl, result.json, profile.json and trace.json; what is not
 * there is left out. Several runs are set side by side. Threads: any.
 */
#ifndef STOKER_OBSERVE_REPORT_H
#define STOKER_OBSERVE_REPORT_H

#include "stoker/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STK_MOST_REPORTED = 8 }; /* runs in one report */

/* Writes path whole or not at all. STK_BUSY where a file is there that is no HTML page. STK_NOT_FOUND where a folder
 * holds no run, or the one for path is not there. */
STK_API stk_status stk_report_write(const char *const *folder, int n_folders, const char *path);

#ifdef __cplusplus
}
#endif
#endif
