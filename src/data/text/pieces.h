/* Texts in pieces that can be encoded one by one, with the tokens of the whole. Threads: one at a time. */
#ifndef STK_DATA_TEXT_PIECES_H
#define STK_DATA_TEXT_PIECES_H

#include "data/source/shards.h"
#include "data/text/tokenizer.h"

typedef struct stk_pieces {
    const stk_shards *files;
    bool lines;     /* cut behind any line; else only where no token can lie over the cut */
    bool can_cut;   /* at all */
    uint64_t piece; /* about N bytes */
    int i_file;
    uint64_t at; /* in that file */
} stk_pieces;

typedef struct stk_piece {
    uint8_t *text; /* kept for the next; free it in the end */
    size_t n, room;
    bool ends;        /* the file ends with it */
    const char *path; /* borrowed from the files */
    uint64_t at;      /* of text in the file */
} stk_piece;

/* files: each as one record. */
void stk_pieces_open(stk_pieces *pieces, const stk_shards *files, const stk_tokenizer *tokenizer, bool lines,
                     uint64_t piece_bytes);
/* *any is false behind the last one. */
stk_status stk_pieces_next(stk_pieces *pieces, stk_piece *piece, bool *any);

/* Where a text may be cut: behind a single \n with a character that is no space on either side; 0: nowhere. */
size_t stk_find_cut(stk_span text, bool lines);

#endif
