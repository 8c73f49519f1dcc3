/* metrics.jsonl: a line for each log interval and for each epoch. Threads: one at a time. */
#ifndef STK_RUN_METRICS_H
#define STK_RUN_METRICS_H

#include <stdint.h>

#include "stoker/train/trainer.h"

typedef struct stk_metrics_file {
    int fd; /* -1: not open */
    char path[4096];
    int64_t n_bytes; /* whole lines */
    int64_t n_lost;  /* lines that could not be written */
} stk_metrics_file;

/* Opens folder/metrics.jsonl at the point of a checkpoint: lines of steps after `step`, and of epochs after the
 * n_epochs that are done, are cut, and so is a torn last line. step 0: everything is cut. */
stk_status stk_metrics_open(const char *folder, int64_t step, int64_t n_epochs, stk_metrics_file *out);
void stk_metrics_close(stk_metrics_file *file);
/* A line for a step. Failing leaves no torn line behind; the line is lost and counted. */
stk_status stk_metrics_write_step(stk_metrics_file *file, const stk_train_event *event);
/* A line for an epoch; loss is its last step's, NAN: not known. */
stk_status stk_metrics_write_epoch(stk_metrics_file *file, const stk_train_event *event, double loss);

#endif
