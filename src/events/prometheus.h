/* A run's numbers as a text file for Prometheus' node_exporter (its textfile collector), replaced whole each time.
 * prometheus.io/docs/instrumenting/exposition_formats. Threads: one at a time.
 */
#ifndef STK_EVENTS_PROMETHEUS_H
#define STK_EVENTS_PROMETHEUS_H

#include "stoker/status.h"

typedef struct stk_gauge {
    const char *name; /* "stoker_train_loss"; one that ends in _total is a counter */
    const char *help;
    const char *label; /* "part=\"input\"" or ""; gauges of one name stand together */
    double value;      /* not finite: left out */
} stk_gauge;

/* run: the value of the label "run" of each. */
stk_status stk_prometheus_write(const char *path, const char *run, const stk_gauge *gauge, int n);

#endif
