/* What trouble a run notices while it trains, each told once with a remedy. Threads: the trainer's. */
#ifndef STK_RUN_NOTICE_H
#define STK_RUN_NOTICE_H

#include "stoker/train/trainer.h"

enum { STK_NOTICE_NORMS = 101, STK_NOTICE_WAITS = 50 };

typedef struct stk_notice {
    double clip_norm; /* the recipe's; 0: none */
    int64_t n_steps;  /* of this process */
    double mean_loss, least_loss, most_scale;
    double norm[STK_NOTICE_NORMS]; /* the last ones that were sound, a ring */
    int n_norms, n_high;           /* n_high: in a row, far above their median */
    struct {
        double step_s, wait_s;
    } wait[STK_NOTICE_WAITS], waits; /* of the last steps, a ring, and their sums */
    bool told_input, told_loss, told_scale, told_norm, told_starving;
} stk_notice;

/* A step has ended. Something new is wrong: fills text and returns true. */
enum { STK_NOTICE_TEXT = 500 };
bool stk_notice_look(stk_notice *notice, const stk_train_event *event, char text[STK_NOTICE_TEXT]);

#endif
