/* A row of a table: its cells (RFC 4180), and numbers in them. Fuzzed. Threads: any. */
#ifndef STK_DATA_CODEC_CSV_H
#define STK_DATA_CODEC_CSV_H

#include "data/codec/lines.h"
#include "stoker/types.h"

/* Cuts a row into its cells, of which the first `room` go to cell; *n_cells is how many there are. The row ends at its
 * first \n, or \r\n, outside of quotes; what follows does not count. Cells lie in the row, or, where two quotes stand
 * for one, in work, which has the row's bytes. STK_CORRUPT for a quoted cell that does not end, or goes on after its
 * end. */
stk_status stk_csv_cells(stk_span row, const stk_cells *how, uint8_t *work, stk_span *cell, int room, int *n_cells);

/* A number as an element of dtype (not f16, bf16), rounded once; spaces around it do not count. bool: 0, 1, false,
 * true. STK_CORRUPT where it is none, or out of range. */
stk_status stk_csv_number(stk_span cell, stk_dtype dtype, void *element);

#endif
