/* NVIDIA's library on a thread of its own, since its calls may block: a driver that hangs must not stop the sampler.
 * Nothing more is done here than asking and waiting for a while; what is asked: nvml.h. Threads: one at a time. */
#ifndef STK_WATCH_DRIVER_H
#define STK_WATCH_DRIVER_H

#include "watch/facts.h"
#include "watch/nvml.h"
#include "watch/root.h"
#include "watch/sample.h"

typedef struct stk_watch_driver stk_watch_driver;

/* Begins to load path (NULL: the driver's own library), and waits for that for a second at most. path and root are
 * copied. *out is NULL where no thread can be had, which facts say. Errors: out of memory. */
stk_status stk_watch_driver_open(stk_watch_driver **out, const char *path, const stk_watch_root *root,
                                 stk_watch_facts *facts);
/* Fills sample->gpus, and holds_gpu of its processes; is_slow: calls that take long, too. Where no answer comes in time
 * sample->gpus is empty until one does, and later calls wait no more. driver may be NULL. Errors: out of memory. */
stk_status stk_watch_driver_read(stk_watch_driver *driver, bool is_slow, stk_watch_sample *sample,
                                 stk_watch_facts *facts);
/* What its GPUs are called, by its numbers, into *out, borrowed until closing; returns how many there are, 0 while the
 * library is being loaded, too. driver may be NULL. */
int stk_watch_driver_labels(stk_watch_driver *driver, const stk_watch_gpu_label **out);
/* Waits for a moment only: a thread that hangs keeps what it uses, and frees it should it ever come back. */
void stk_watch_driver_close(stk_watch_driver *driver);

#endif
