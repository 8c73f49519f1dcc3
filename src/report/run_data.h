/* What a run folder says, read for a report. */
#ifndef STK_REPORT_RUN_DATA_H
#define STK_REPORT_RUN_DATA_H

#include <jansson.h>
#include <stdbool.h>

#include "stoker/status.h"

/* A line of metrics.jsonl; NAN: not there. */
typedef struct stk_point {
    double step, epoch, loss, accuracy, lr, samples_per_s, input, time;
    double train_loss, valid_loss, valid_accuracy; /* of an epoch */
    bool is_epoch;
} stk_point;

typedef struct stk_run_data {
    const char *folder; /* borrowed */
    char *recipe;       /* text; "" where there is none */
    stk_point *point;
    int n_points;
    json_t *result, *profile, *data; /* NULL: there is none */
} stk_run_data;

stk_status stk_run_data_read(const char *folder, stk_run_data *out);
void stk_run_data_free(stk_run_data *data);
/* The folder's last part. Borrowed. */
const char *stk_run_data_name(const stk_run_data *data);

/* A number at a path like "time.input"; NAN where there is none. */
double stk_json_number(const json_t *object, const char *path);
/* The same of a text; "" where there is none. Borrowed. */
const char *stk_json_text(const json_t *object, const char *path);
/* The same of anything; NULL. */
const json_t *stk_json_find(const json_t *object, const char *path);

#endif
