/* Serves a text at http://127.0.0.1:PORT/metrics, as Prometheus scrapes it, and a page at /: HTTP/1.1, GET and HEAD,
 * one answer a connection. Reached from this machine only. One thread of low priority serves one connection at a time,
 * each for two seconds at most, so that a client that says nothing cannot hold up the others for long.
 */
#ifndef STK_EVENTS_EXPORTER_H
#define STK_EVENTS_EXPORTER_H

#include "base/text.h"

/* Threads: stk_exporter_put and stk_exporter_put_page may be called while the exporter serves; the rest by one thread
 * at a time. */
typedef struct stk_exporter stk_exporter;

/* Listens and serves an empty text. port 0: any free one. Errors: STK_IO with the port and why. */
stk_status stk_exporter_open(int port, stk_exporter **out);
int stk_exporter_port(const stk_exporter *exporter);
/* What is served from now on. Copies text. */
stk_status stk_exporter_put(stk_exporter *exporter, const stk_text *text);
/* The page at / from now on, HTML, which browsers ask for again after some seconds; until then / is a line of text.
 * Copies page. */
stk_status stk_exporter_put_page(stk_exporter *exporter, const stk_text *page);
/* Answers nobody any more, waits for the thread, and frees. Accepts NULL. */
void stk_exporter_close(stk_exporter *exporter);

#endif
