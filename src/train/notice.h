/* What a run notices while it trains: metrics.prom, and trouble, each told once with a remedy. Threads: the trainer's.
 */
#ifndef STK_TRAIN_NOTICE_H
#define STK_TRAIN_NOTICE_H

#include "stoker/trainer.h"

typedef struct stk_notice {
    int64_t n_steps; /* of this process */
    double mean_loss, least_loss, most_scale;
    bool told_input, told_loss, told_scale;
    int64_t written_ns; /* when metrics.prom was written last */
    bool gave_up;       /* it could not be written */
} stk_notice;

/* A step has ended. Something new is wrong: fills text and returns true. */
enum { STK_NOTICE_TEXT = 500 };
bool stk_notice_look(stk_notice *notice, const stk_train_event *event, char text[STK_NOTICE_TEXT]);
/* Writes folder/metrics.prom, at most once a second but at the end of an epoch. */
stk_status stk_notice_write(stk_notice *notice, const char *folder, const char *run, const stk_train_event *event);

#endif
