/* Parts of stoker top: the processes of a job in an order, and small curves of the last values. Threads: one at a time.
 */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "cli.h"
#include "watch/sample.h"

/* --- top_spark.c --- */

enum { TOP_SPARK = 8, TOP_SPARK_TEXT = 3 * TOP_SPARK + 1 };
/* Of whatever has that id, a share of what it could be at most; remembers the last TOP_SPARK of each. */
void top_spark_add(int64_t id, double share);
/* TOP_SPARK characters, the newest value last; blank where there is none yet. Returns out. */
const char *top_spark_text(int64_t id, char out[TOP_SPARK_TEXT]);

/* --- top_processes.c --- */

typedef enum top_order { TOP_BY_CORES, TOP_BY_MEMORY, TOP_BY_GPU, TOP_BY_PID } top_order;
enum { TOP_MOST_PROCESSES = 2000 };
/* False: no such name. */
bool top_order_by_name(const char *name, top_order *out);
/* Of the live view; other keys change nothing. */
void top_order_by_key(char key, top_order *order);

/* Ids of all processes of the sample in that order into out [TOP_MOST_PROCESSES]; s: seconds since before. */
void top_sort(const stk_watch_sample *now, const stk_watch_sample *before, double s, top_order order, int64_t *out);
extern const char top_process_head[];
/* The program's name as it was called. */
void top_read_name(int64_t pid, char out[32]);
void top_process_line(const stk_watch_sample *now, const stk_watch_sample *before, int64_t id, double s, char *out,
                      size_t bytes);

/* --- top_serve.c --- */

/* Serves the GPUs' numbers at that port of this machine until Ctrl-C; an exit code. */
int top_serve(int port);

/* --- top_keys.c: on a terminal that is in raw mode --- */

/* One key, or 0: none within that time; 'q' where there will be no more. */
char top_read_key(int ms);
/* A question, or something else to be read, in the last line. */
void top_ask(const char *question, const char *answer);
/* Asks which process of the job, and whether it is meant; what came of it into out. Only 'y' ends one. */
void top_end_process(const stk_watch_sample *sample, char out[CLI_TEXT]);

#endif
