/* Contact sheets: samples of a data set as the trainer would get them, as one picture with their labels below.
 *
 * Threads: any; each call opens a loader of its own.
 */
#ifndef STOKER_DATA_SHEET_H
#define STOKER_DATA_SHEET_H

#include "stoker/data/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_sheet_config {
    int n_rows, n_columns; /* pictures; 0: 4 and 8. At most 256 each */
    const char *field;     /* NULL: "image" */
} stk_sheet_config;

typedef struct stk_sheet_info {
    int64_t n_samples;     /* on the sheet: fewer than asked for where an epoch has no more */
    int64_t height, width; /* of the sheet, in pixels */
    bool undone; /* values were turned back by the constants of the stages; false: spread from least to most instead */
} stk_sheet_info;

/* Writes the first samples of an epoch of a batched data set to a PNG file. Images are u8 or f32, [H,W,C] or [C,H,W]
 * with one or three channels; small ones are enlarged and large ones reduced by whole numbers. loader (may be NULL):
 * seed, threads, and i_epoch count. config may be NULL; info too. STK_BUSY where a file of another kind is there. */
STK_API stk_status stk_dataset_sheet(const stk_dataset *dataset, const stk_loader_config *loader,
                                     const stk_sheet_config *config, const char *path, stk_sheet_info *info);

#ifdef __cplusplus
}
#endif
#endif
