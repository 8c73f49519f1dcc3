/* A table from memory: where its rows begin, their cells, and numbers in them. The first byte chooses the signs.
 *
 * covers: data/codec/csv.c data/codec/lines.c */
#include <stdlib.h>
#include <string.h>

#include "data/codec/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_CELLS = 16 };

static void check_cell(stk_span cell, stk_span row, const uint8_t *work)
{
    static const stk_dtype types[] = {STK_F32, STK_F64, STK_I64, STK_I32, STK_I8, STK_U8, STK_BOOL};
    bool in_row = cell.data >= row.data && cell.data + cell.n <= row.data + row.n;
    bool in_work = cell.data >= work && cell.data + cell.n <= work + row.n;
    double element;
    if (!in_row && !in_work) abort();
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        (void)stk_csv_number(cell, types[i], &element);
}

static void check_row(stk_span row, const stk_cells *how)
{
    stk_span cell[MOST_CELLS];
    uint8_t *work = malloc(row.n + 1);
    int n = 0;
    if (stk_csv_cells(row, how, work, cell, MOST_CELLS, &n) == STK_OK) {
        if (n < 1 || (size_t)n > row.n + 1) abort();
        for (int i = 0; i < n && i < MOST_CELLS; i++)
            check_cell(cell[i], row, work);
    }
    free(work);
}

/* Rows lie one after the other; only the first need not begin at 0, where empty lines come before it. */
static void check_table(stk_span table, const stk_cells *how)
{
    stk_input input = stk_input_of_memory(table);
    uint64_t *start;
    int64_t n;
    if (stk_lines_find(&input, how, &start, &n) != STK_OK) return;
    for (int64_t i = 0; i < n; i++) {
        uint64_t end = i + 1 < n ? start[i + 1] : table.n;
        if (end <= start[i] || end > table.n) abort();
        stk_span row = {table.data + start[i], end - start[i]};
        if (how)
            check_row(row, how);
        else if (memchr(row.data, '\n', row.n - 1))
            abort(); /* a line has one end */
    }
    free(start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    stk_cells how = {data[0] & 1 ? '\t' : ',', data[0] & 2 ? 0 : '"'};
    stk_span table = {data + 1, size - 1};
    check_table(table, &how);
    check_table(table, NULL);
    return 0;
}
