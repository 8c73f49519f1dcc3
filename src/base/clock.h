/* Time. */
#ifndef STK_BASE_CLOCK_H
#define STK_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic, since an arbitrary start. */
int64_t stk_clock_ns(void);
/* Since the kernel started this process; 10 ms resolution. */
double stk_process_age_s(void);

#endif
