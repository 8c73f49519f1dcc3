/* See codec/lines.h. */
#include "data/codec/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { BLOCK_BYTES = 1 << 20 };

typedef struct starts {
    uint64_t *at;
    int64_t n, room;
} starts;

static stk_status add(starts *s, uint64_t at)
{
    if (s->n == s->room) {
        int64_t room = 2 * s->room + 1024;
        STK_RETURN_IF_ERROR(stk_memory_hold((size_t)(room - s->room) * sizeof(*s->at)));
        s->room = room;
        uint64_t *p = realloc(s->at, (size_t)room * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)room * sizeof(*p));
        s->at = p;
    }
    s->at[s->n++] = at;
    return STK_OK;
}

static stk_status scan_plain(const uint8_t *block, size_t n, uint64_t at, starts *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *end = memchr(block + i, '\n', n - i);
        if (!end) break;
        i = (size_t)(end - block);
        STK_RETURN_IF_ERROR(add(out, at + i + 1));
    }
    return STK_OK;
}

/* Where in a row the scan is; a quote counts only where a cell begins, and in such a cell. */
typedef enum place { CELL_START, IN_CELL, IN_QUOTES, AFTER_QUOTE } place;

typedef struct row_scan {
    int delimiter, quote; /* -1: none */
    place where;
    bool cr_first; /* the row's first byte is \r */
} row_scan;

/* A row ends before byte `next`. Empty lines are no rows: then the one to come begins later. */
static stk_status end_row(row_scan *r, uint64_t next, starts *out)
{
    uint64_t *row = &out->at[out->n - 1], n = next - 1 - *row;
    r->where = CELL_START;
    if (n > 0 && !(n == 1 && r->cr_first)) return add(out, next);
    *row = next;
    return STK_OK;
}

static stk_status scan_rows(row_scan *r, const uint8_t *block, size_t n, uint64_t at, starts *out)
{
    for (size_t i = 0; i < n; i++) {
        int c = block[i];
        if (at + i == out->at[out->n - 1]) r->cr_first = c == '\r';
        if (r->where == IN_QUOTES) {
            if (c == r->quote) r->where = AFTER_QUOTE;
        } else if (c == r->quote && r->where != IN_CELL) {
            r->where = IN_QUOTES; /* the first, or one of two in a quoted cell */
        } else if (c == '\n') {
            STK_RETURN_IF_ERROR(end_row(r, at + i + 1, out));
        } else {
            r->where = c == r->delimiter ? CELL_START : IN_CELL;
        }
    }
    return STK_OK;
}

stk_status stk_lines_find(const stk_input *input, const stk_cells *cells, uint64_t **start, int64_t *n_lines)
{
    starts s = {0};
    row_scan rows = {cells ? (uint8_t)cells->delimiter : -1, cells && cells->quote ? (uint8_t)cells->quote : -1,
                     CELL_START, false};
    stk_status status = STK_OK;
    uint8_t *block = malloc(BLOCK_BYTES);
    if (!block) STK_TRY(stk_fail_memory(BLOCK_BYTES));
    if (input->n_bytes) STK_TRY(add(&s, 0));
    for (uint64_t at = 0; at < input->n_bytes; at += BLOCK_BYTES) {
        size_t n = input->n_bytes - at < BLOCK_BYTES ? (size_t)(input->n_bytes - at) : BLOCK_BYTES;
        STK_TRY(stk_input_read(input, at, block, n));
        STK_TRY(cells ? scan_rows(&rows, block, n, at, &s) : scan_plain(block, n, at, &s));
    }
    if (rows.where == IN_QUOTES)
        STK_TRY(stk_fail(STK_CORRUPT, "a quoted cell of row %lld, which begins at byte %llu, does not end",
                         (long long)s.n, (unsigned long long)s.at[s.n - 1]));
    if (s.n && s.at[s.n - 1] == input->n_bytes) s.n--;
done:
    free(block);
    stk_memory_let_go((size_t)s.room * sizeof(*s.at));
    *start = status == STK_OK ? s.at : NULL;
    *n_lines = status == STK_OK ? s.n : 0;
    if (status != STK_OK) free(s.at);
    return status;
}

stk_span stk_line_trim(stk_span line)
{
    if (line.n && line.data[line.n - 1] == '\n') line.n--;
    if (line.n && line.data[line.n - 1] == '\r') line.n--;
    return line;
}
