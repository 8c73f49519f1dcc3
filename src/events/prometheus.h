/* A run's numbers in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats), and as a file for
 * node_exporter's textfile collector, replaced whole each time. Threads: one at a time.
 */
#ifndef STK_EVENTS_PROMETHEUS_H
#define STK_EVENTS_PROMETHEUS_H

#include "base/text.h"

typedef struct stk_gauge {
    const char *name; /* "stoker_train_loss"; one that ends in _total is a counter */
    const char *help;
    const char *label; /* "part=\"input\"" or ""; gauges of one name stand together */
    double value;      /* not finite: left out */
} stk_gauge;

/* run, folder: values of the labels "run" and "folder" of each; the latter tells runs of one name apart. */
void stk_prometheus_add(stk_text *out, const char *run, const char *folder, const stk_gauge *gauge, int n);
/* Nothing where text is empty. */
stk_status stk_prometheus_write(const char *path, const stk_text *text);

#endif
