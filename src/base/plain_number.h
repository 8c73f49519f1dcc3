/* Numbers as people write them, for everything that a screen shows: no "3.45e+03". What programs read (JSON, metrics)
 * is written with all its digits elsewhere. Each fills and returns out. Threads: any.
 */
#ifndef STK_BASE_PLAIN_NUMBER_H
#define STK_BASE_PLAIN_NUMBER_H

enum { STK_PLAIN_TEXT = 64 };

/* Four digits that count: "3,450", "0.8312", "1e-5". */
const char *stk_plain_number(double x, char out[STK_PLAIN_TEXT]);
/* A loss: four decimals, so that lines stay in columns, unless it is very large or small. */
const char *stk_plain_loss(double x, char out[STK_PLAIN_TEXT]);
/* How many in a second: "19,194", "14.2", "0.53". */
const char *stk_plain_rate(double x, char out[STK_PLAIN_TEXT]);
/* "1.31 GiB" */
const char *stk_plain_bytes(double bytes, char out[STK_PLAIN_TEXT]);
/* "1.11 GFLOP" */
const char *stk_plain_flops(double flops, char out[STK_PLAIN_TEXT]);
/* Of a step or a record: "1.52 s", "12.3 ms", "350 us". */
const char *stk_plain_time(double s, char out[STK_PLAIN_TEXT]);
/* Of what somebody waits for: "3:09:02", "1:07", "12 s", "0.8 s". */
const char *stk_plain_duration(double s, char out[STK_PLAIN_TEXT]);

#endif
