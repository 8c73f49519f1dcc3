/* What results came to as one table, a row a case, with everything that is known of it: for programs (CSV, JSON) and
 * for pages in Markdown. Each row has the place of its raw runs. Nothing that was not measured has a number.
 *
 * Threads: one at a time.
 */
#ifndef STK_BENCH_TABLE_H
#define STK_BENCH_TABLE_H

#include "bench/price.h"

#define STK_BENCH_TABLE_SCHEMA "stoker-bench-table-1"

/* X(name, place in a case of result.json; "": computed) The names say the unit; figures are in the row's own. */
#define STK_BENCH_COLUMNS(X)                                                                                           \
    X(median, "summary.median.value")                                                                                  \
    X(low, "summary.median.low")                                                                                       \
    X(high, "summary.median.high")                                                                                     \
    X(counted_runs, "summary.counted_runs")                                                                            \
    X(marked_runs, "summary.marked_runs")                                                                              \
    X(outliers, "summary.outliers")                                                                                    \
    X(further_runs, "summary.further_runs")                                                                            \
    X(first_run_s, "summary.first_run_s")                                                                              \
    X(wall_s, "summary.wall_s")                                                                                        \
    X(resident_kib, "summary.resident_kib")                                                                            \
    X(samples_per_s, "summary.metrics.samples_per_s")                                                                  \
    X(tokens_per_s, "summary.metrics.tokens_per_s")                                                                    \
    X(batch, "summary.metrics.batch")                                                                                  \
    X(replicas, "replicas")                                                                                            \
    X(replica_batch, "")                                                                                               \
    X(step_s, "summary.metrics.step_s")                                                                                \
    X(first_step_s, "summary.metrics.first_step_s")                                                                    \
    X(epoch_s, "summary.metrics.epoch_s")                                                                              \
    X(input_share, "summary.metrics.input_share")                                                                      \
    X(flop_per_s, "")                                                                                                  \
    X(share_of_measured_peak, "")                                                                                      \
    X(share_of_published_peak, "")                                                                                     \
    X(planned_bytes, "summary.metrics.planned_bytes")                                                                  \
    X(used_bytes, "")                                                                                                  \
    X(run_joules, "")                                                                                                  \
    X(sample_joules, "")                                                                                               \
    X(efficiency, "")                                                                                                  \
    X(efficiency_low, "")                                                                                              \
    X(efficiency_high, "")                                                                                             \
    X(change, "")                                                                                                      \
    X(change_low, "")                                                                                                  \
    X(change_high, "")                                                                                                 \
    X(pairs, "")                                                                                                       \
    X(test_accuracy, "summary.metrics.test_accuracy")                                                                  \
    X(test_loss, "summary.metrics.test_loss")

enum {
#define X(name, place) STK_BENCH_COLUMN_##name,
    STK_BENCH_COLUMNS(X)
#undef X
        STK_BENCH_N_COLUMNS
};

/* Of case i of a result; NaN: not known. change: compared with the case that it ran in turns with, of the figure. */
void stk_bench_row_read(const stk_bench_kept *kept, int i, double column[STK_BENCH_N_COLUMNS]);

/* kept [n]. from: the file that the table goes to, NULL: this folder's; places of raw runs are relative to it. With
 * several results cases that they share are compared, too, but not in CSV (stoker bench compare --csv). */
stk_status stk_bench_table_markdown(const stk_bench_kept *kept, int n, const char *from, stk_text *out);
/* The same of one result, for its own folder. */
void stk_bench_table_report(const stk_bench_kept *kept, stk_text *out);
void stk_bench_table_csv(const stk_bench_kept *kept, int n, const char *from, stk_text *out);
stk_status stk_bench_table_json(const stk_bench_kept *kept, int n, const char *from, stk_text *out);

/* By the ending of path: .md, .csv or .json; other kinds of file are not replaced. prices: what stands behind the
 * tables in Markdown, filled; else and for other kinds NULL. Errors: STK_UNSUPPORTED, another ending; STK_BUSY, such a
 * file is there. */
stk_status stk_bench_table_write(const stk_bench_kept *kept, int n, const stk_bench_prices *prices, const char *path);
bool stk_bench_is_table(const char *path);

#endif
