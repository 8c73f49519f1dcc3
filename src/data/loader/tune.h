/* Tuning a loader while it runs: how many of its workers work, and how many of its slots are used. Each change is a
 * trial, and stays where samples come faster, or as fast with less. Arithmetic on what the consumer sees; no clock, no
 * threads and no ring here. Threads: the consumer's.
 */
#ifndef STK_DATA_LOADER_TUNE_H
#define STK_DATA_LOADER_TUNE_H

#include <stdbool.h>
#include <stdint.h>

enum { STK_TUNE_MOST_TEXTS = 32, STK_TUNE_TEXT = 160, STK_TUNE_HISTORY = 32 };

typedef struct stk_tuner {
    int most_threads, most_slots; /* that there are */
    int n_threads, n_slots;       /* to be used */
    bool can_rest;                /* workers that are not needed are parked, so that others have the cores */
    /* the window under way */
    int64_t start_ns, from_ns, from_wait_ns, from_samples;
    int n_batches;
    bool settles; /* the first window after a change is not counted */
    /* the trial under way */
    int before_threads, before_slots; /* 0: none */
    double before_rate, before_share;
    int no_up, no_down; /* windows for which that is not tried again */
    int n_idle;         /* windows in a row in which nobody waited */
    int n_texts;
    char text[STK_TUNE_MOST_TEXTS][STK_TUNE_TEXT];
    /* how many batches were ready when the consumer came; means of `each` batches */
    float ready[STK_TUNE_HISTORY];
    int n_history;
    int64_t each, n_in_last;
    double ready_sum;
    int64_t n_ready;
} stk_tuner;

void stk_tuner_start(stk_tuner *tuner, int64_t now_ns);
/* After each batch, with totals. True: n_threads or n_slots has changed. */
bool stk_tuner_step(stk_tuner *tuner, int64_t now_ns, int64_t wait_ns, int64_t n_samples);
/* That many batches were ready when one was asked for. */
void stk_tuner_note_ready(stk_tuner *tuner, int n_ready);

#endif
