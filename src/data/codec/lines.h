/* Where the lines of a text begin, or the rows of a table, whose quoted cells may go over several lines (RFC 4180).
 * Fuzzed. Threads: any. */
#ifndef STK_DATA_CODEC_LINES_H
#define STK_DATA_CODEC_LINES_H

#include "base/input.h"

/* How a table is read. */
typedef struct stk_cells {
    char delimiter; /* ',' or '\t' */
    char quote;     /* '"'; 0: none, so that a row is a line */
} stk_cells;

/* Lines end with \n; a last one without it counts, an empty one at the end does not, and no empty one is a row: the
 * bytes of the row before go up to the start of the next. *start is malloc'ed. cells NULL: plain lines. */
stk_status stk_lines_find(const stk_input *input, const stk_cells *cells, uint64_t **start, int64_t *n_lines);
/* Without the \n or \r\n at its end. */
stk_span stk_line_trim(stk_span line);

#endif
