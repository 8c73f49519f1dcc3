/* What trouble a run notices while it trains, each told once with a remedy. Threads: the trainer's. */
#ifndef STK_TRAIN_NOTICE_H
#define STK_TRAIN_NOTICE_H

#include "stoker/trainer.h"

typedef struct stk_notice {
    int64_t n_steps; /* of this process */
    double mean_loss, least_loss, most_scale;
    bool told_input, told_loss, told_scale;
} stk_notice;

/* A step has ended. Something new is wrong: fills text and returns true. */
enum { STK_NOTICE_TEXT = 500 };
bool stk_notice_look(stk_notice *notice, const stk_train_event *event, char text[STK_NOTICE_TEXT]);

#endif
