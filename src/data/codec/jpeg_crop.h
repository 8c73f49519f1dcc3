/* The part of a JPEG inside a rectangle, row by row, without the rest of the image: a decoder of our own for baseline
 * files, with libjpeg-turbo behind it for all others and for damage. The pixels are those of libjpeg-turbo's decoding
 * of the whole image (ISLOW, fancy upsampling), to the bit.
 *
 * Only what the rectangle needs is read. Damage before or inside it gives libjpeg-turbo's pixels or error, as from
 * stk_jpeg_decode; damage after the last MCU that it needs goes unseen, unless the rectangle is the whole image.
 */
#ifndef STK_DATA_CODEC_JPEG_CROP_H
#define STK_DATA_CODEC_JPEG_CROP_H

#include "data/codec/image.h"

/* Where an MCU starts: the file's byte and the bit in it, and the DC predictions. */
typedef struct stk_jpeg_entry {
    uint32_t offset;
    uint16_t bit;
    int16_t dc[3];
} stk_jpeg_entry;

/* Entry points of one very file, which the caller keeps: the same number in each row of MCUs, the first at its start
 * and the others evenly spaced, so that later reads need not parse what lies above their rectangle, nor, with several
 * in a row, most of what lies next to it. Entries [0, n_known) are used, and those that the reader passes are added.
 * Entries of another file give wrong pixels. */
typedef struct stk_jpeg_index {
    stk_jpeg_entry *entry; /* [n] */
    int n; /* what stk_jpeg_reader_index_size gives; 0: one a row, set by reading, with STK_JPEG_MOST_ROWS places */
    int n_known;
} stk_jpeg_index;
enum { STK_JPEG_MOST_ROWS = 8192 }; /* of MCUs in any file */

/* Kept by a worker: its memory and tables are used again by the next file. Threads: one at a time. */
typedef struct stk_jpeg_reader stk_jpeg_reader;
stk_status stk_jpeg_reader_open(stk_jpeg_reader **out);
void stk_jpeg_reader_close(stk_jpeg_reader *reader); /* NULL: nothing */
/* Frees what it keeps between files; the next one takes it again. */
void stk_jpeg_reader_trim(stk_jpeg_reader *reader);

/* Starts on a file, which is borrowed until its last row. rect: not empty, inside the image. channels: 1 (grey) or 3
 * (RGB). index may be NULL. */
stk_status stk_jpeg_reader_begin(stk_jpeg_reader *reader, stk_span encoded, stk_rect rect, int channels,
                                 stk_jpeg_index *index);
/* The next n rows of the rectangle, each of rect.width * channels bytes, stride_bytes apart. */
stk_status stk_jpeg_reader_rows(stk_jpeg_reader *reader, int64_t n, uint8_t *dst, size_t stride_bytes);
/* Leaves out the next n rows. */
stk_status stk_jpeg_reader_skip(stk_jpeg_reader *reader, int64_t n);
/* Whether the last file had to be given to libjpeg-turbo. */
bool stk_jpeg_reader_fell_back(const stk_jpeg_reader *reader);
/* Whether it is faster than libjpeg-turbo for whole images, too: there are kernels for this processor. */
bool stk_jpeg_reader_is_fast(const stk_jpeg_reader *reader);
/* A reader of the calling thread, closed when the thread ends; NULL when out of memory. */
stk_jpeg_reader *stk_jpeg_reader_of_thread(void);

/* The two calls in one. dst [rect.height, rect.width, channels] */
stk_status stk_jpeg_decode_crop(stk_jpeg_reader *reader, stk_span encoded, stk_rect rect, int channels, uint8_t *dst);

/* How many entries a file's index has with one at least every N MCUs, at most 65,535; every 0: one a row. 0 for
 * files that libjpeg-turbo reads, which have none; -1: no memory, and the error is set. */
int stk_jpeg_reader_index_size(stk_jpeg_reader *reader, stk_span encoded, int every);
/* Parses a file to its end, from the last entry that is known, and fills index. STK_CORRUPT, without another try, when
 * the file is damaged. */
stk_status stk_jpeg_reader_index(stk_jpeg_reader *reader, stk_span encoded, stk_jpeg_index *index);

#endif
