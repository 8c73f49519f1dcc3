/* A run's numbers for Prometheus while it trains: RUN/metrics.prom, and a port of this machine to scrape. Nothing here
 * stops a run: what cannot be written or served is one warning. Threads: the trainer's.
 */
#ifndef STK_RUN_PUBLISH_H
#define STK_RUN_PUBLISH_H

#include "base/text.h"
#include "events/exporter.h"
#include "stoker/train/trainer.h"

typedef struct stk_publisher {
    char path[4096];        /* of metrics.prom; "": not wanted, or given up */
    stk_exporter *exporter; /* NULL: not wanted, or given up */
    const char *run;        /* its name; borrowed */
    char folder[4096];      /* absolute, where that is known */
    stk_text text;
    int64_t published_ns;   /* when numbers were published last */
    double loss, grad_norm; /* of the last step; NAN: not known */
    double valid_loss, valid_accuracy;
    stk_train_event last; /* kind STEP: not published yet */
} stk_publisher;

/* file: whether folder/metrics.prom is kept. port: where numbers are served; -1: nowhere, 0: at any free one. The
 * publisher does what it can: an error is that of the port. */
stk_status stk_publisher_open(const char *folder, const char *run, bool file, int port, stk_publisher *out);
/* A step or the end of an epoch; steps are published once a second, and the last one by stk_publisher_close. The first
 * call that fails returns why and gives that up. */
stk_status stk_publish(stk_publisher *publisher, const stk_train_event *event);
void stk_publisher_close(stk_publisher *publisher);

#endif
