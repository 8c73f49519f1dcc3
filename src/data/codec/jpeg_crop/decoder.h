/* The own decoder: a header, a scan, and the rows of MCUs that a rectangle needs.
 *
 *    rows of MCUs above      parsed, or jumped over by the index
 *    a row that is needed    parsed | stored: coefficients -> planes | parsed
 *    rows below              not read
 *
 * Planes hold one row of MCUs, or two where chroma is interpolated between rows: the last row of one row of MCUs
 * needs the first chroma row of the next.
 */
#ifndef STK_DATA_CODEC_JPEG_CROP_DECODER_H
#define STK_DATA_CODEC_JPEG_CROP_DECODER_H

#include "base/memory.h"
#include "data/codec/jpeg_crop.h"
#include "data/codec/jpeg_crop/kernels.h"

typedef struct stk_jpeg_plane {
    uint8_t *data; /* [n_rows][stride]; row y of the component is number y % n_rows, column 0 that of the first MCU */
    size_t stride;
    int n_rows;
    int16_t *coefs;          /* [v][n_blocks][64], 0 between rows of MCUs */
    int n_blocks;            /* side by side */
    int height, width, left; /* of the component's real samples; left: the component's column in column 0 */
} stk_jpeg_plane;

typedef struct stk_jpeg_decoder {
    const stk_jpeg_kernels *kernels;
    stk_jpeg_header header;
    stk_jpeg_scan scan;
    stk_jpeg_tables tables;

    stk_span encoded;
    stk_rect rect;
    int channels;
    stk_jpeg_index *index;
    int per_row;                      /* entries of the index */
    bool whole;                       /* the rectangle is the image: check the file's end, too */
    int mcus_across, mcus_down;       /* of the image */
    int mcu_left, mcu_right;          /* columns that are stored: [mcu_left, mcu_right) */
    int mcu_row, mcu_top, mcu_bottom; /* next row to read; rows that are stored: [mcu_top, mcu_bottom) */
    int mcu_column;                   /* next MCU of that row */
    int64_t y;                        /* next row of the image to hand out */

    int n_planes; /* 1 where grey is wanted */
    stk_jpeg_plane plane[3];
    uint8_t *chroma[2]; /* a row of interpolated samples */
    stk_block memory;   /* of planes, coefficients and rows */
} stk_jpeg_decoder;

/* What all three return: STK_OK, STK_NO_MEMORY with its text, or STK_UNSUPPORTED for files and damage that the
 * library must judge, without one. */
stk_status stk_jpeg_decoder_begin(stk_jpeg_decoder *d, stk_span encoded, stk_rect rect, int channels,
                                  stk_jpeg_index *index);
stk_status stk_jpeg_decoder_rows(stk_jpeg_decoder *d, int64_t n, uint8_t *dst, size_t stride);
/* Reads on, storing nothing, to the end of the file. */
stk_status stk_jpeg_decoder_skip_to_end(stk_jpeg_decoder *d);

#endif
