/* Which of two validations is better, by any number that a run measures. Threads: one at a time. */
#ifndef STK_TRAIN_JUDGE_H
#define STK_TRAIN_JUDGE_H

#include "stoker/train/trainer.h"

enum { STK_METRIC_NAME_BYTES = 24 };

/* A number by the name that it has in result.json behind "test_": loss, accuracy, top5, perplexity, or a measure's as
 * f1 and top3. NAN: it has none here. */
double stk_metric_get(const stk_metrics *metrics, const char *name);
/* True for losses and errors, of which less is better. */
bool stk_metric_wants_less(const char *name);
/* STK_INVALID, with what there is, where a prepared trainer does not measure it. */
stk_status stk_metric_check(const stk_trainer *trainer, const char *name);

/* After a validation: whether it is the best so far. Also counts the epochs without a better one. */
bool stk_judge(stk_trainer *trainer, const stk_metrics *valid);

#endif
