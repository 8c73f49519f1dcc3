/* A JPEG as another JPEG of the same coefficients, so of the same pixels to the bit: one baseline scan with Huffman
 * tables of its own, whatever it was before (progressive, arithmetic, scans of one component). All application
 * markers and comments are kept: EXIF, colour profiles. Through libjpeg, after jpegtran. Threads: any.
 */
#ifndef STK_DATA_CODEC_JPEG_TRANSCODE_H
#define STK_DATA_CODEC_JPEG_TRANSCODE_H

#include "base/file.h"

/* *out is malloc'ed. STK_CORRUPT for damage that libjpeg sees, STK_UNSUPPORTED for what it cannot read. */
stk_status stk_jpeg_transcode(stk_span encoded, uint8_t **out, size_t *n_bytes);

#endif
