/* What was found out about the job and the machine in words: the command, the framework, file systems, and what could
 * not be read with what it would need. Threads: one at a time. */
#ifndef STK_WATCH_FACTS_H
#define STK_WATCH_FACTS_H

#include <stddef.h>

#include "stoker/status.h"

/* Keys: "command", "framework" (torch, tensorflow, keras, jax, stoker), "missing", "remote", "gpu", "process", "exit",
 * "signal" (that killed it), "cpu", "note", "metrics", "own" and "f32" (own.h), "host", "rank" and
 * "began" (origin.h), "stack" (stacks.h). A key may have several texts. */
typedef struct stk_watch_fact {
    char *key, *text;
} stk_watch_fact;

typedef struct stk_watch_facts {
    stk_watch_fact *fact;
    size_t n, capacity;
} stk_watch_facts;

/* Copies both, cut at 400 characters and with blanks for control characters. A pair that is there is not added again,
 * and after 2000 none is. */
stk_status stk_watch_facts_add(stk_watch_facts *facts, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The i-th text of a key, or NULL. Borrowed until freed. */
const char *stk_watch_facts_get(const stk_watch_facts *facts, const char *key, size_t i);
void stk_watch_facts_free(stk_watch_facts *facts);

#endif
