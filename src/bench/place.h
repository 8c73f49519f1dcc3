/* Where the raw runs of a result are, for links to them; and texts of a result as cells of tables that programs read.
 * Threads: any. */
#ifndef STK_BENCH_PLACE_H
#define STK_BENCH_PLACE_H

#include "bench/result.h"

enum { STK_BENCH_PLACE = 4096 };

/* "runs/bench-quick" of ".../runs/bench-quick/result.json"; a file of another name as it is. Returns out. */
const char *stk_bench_folder_of(const stk_bench_kept *kept, char out[STK_BENCH_PLACE]);
/* The result's runs.csv, or where there is none its result.json: relative to the folder of the file `from`, or of this
 * folder for NULL, so that both can move together. Returns out. */
const char *stk_bench_raw_place(const stk_bench_kept *kept, const char *from, char out[STK_BENCH_PLACE]);

/* Whether its ending is that of a page: .html, .htm. */
bool stk_bench_is_page(const char *path);

/* A text in Markdown, as which neither it nor the HTML in it takes it for more than that. */
void stk_bench_put_text(stk_text *out, const char *text);
/* A cell of a table in Markdown, with a blank and '|' behind it: a text, which is never markup; with place != NULL a
 * link to that. */
void stk_bench_put_cell(stk_text *out, const char *text, const char *place);
/* A field of a CSV file, in quotes; without what is in front of or behind it. */
void stk_bench_put_field(stk_text *out, const char *text);
/* A number with all its digits; nothing where it is none. */
void stk_bench_put_number(stk_text *out, double x);

#endif
