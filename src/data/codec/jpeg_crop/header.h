/* What stands before the entropy-coded data of a baseline JPEG (ITU T.81, B.2). Everything that the own decoder does
 * not take (progressive, arithmetic, 12-bit, CMYK and RGB files, several scans, odd sampling, DNL, any damage) is
 * refused; the library then reads the file. Nothing is decoded here.
 */
#ifndef STK_DATA_CODEC_JPEG_CROP_HEADER_H
#define STK_DATA_CODEC_JPEG_CROP_HEADER_H

#include "base/file.h"

/* Natural (row by row) position of the coefficient that comes k-th in a file, k < 64. */
extern const uint8_t stk_jpeg_natural_order[64];

typedef struct stk_jpeg_component {
    uint8_t id, h, v;      /* h, v: sampling factors, 1 or 2 */
    uint8_t quant, dc, ac; /* numbers of tables, all defined */
} stk_jpeg_component;

/* A Huffman table as the file has it: 16 counts, then n_symbols symbols. Borrowed from the file. */
typedef struct stk_jpeg_code {
    const uint8_t *counts;
    int n_symbols;
} stk_jpeg_code;

typedef struct stk_jpeg_header {
    int height, width, n_components; /* 1 (grey) or 3 (YCbCr, chroma factors 1) */
    int hmax, vmax;
    stk_jpeg_component component[3];
    uint16_t quant[4][64] __attribute__((aligned(64))); /* natural order */
    stk_jpeg_code dc[4], ac[4];
    int restart_interval; /* MCUs, 0: none */
    size_t scan;          /* where the entropy-coded data start */
} stk_jpeg_header;

/* False: not for us. */
bool stk_jpeg_read_header(stk_span encoded, stk_jpeg_header *out);

#endif
