/* TFRecord framing: u64 length, masked CRC32C of it, data, masked CRC32C of the data, all little-endian
 * (tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details"). What the data mean is not known here.
 * Fuzzed. Threads: any.
 */
#ifndef STK_DATA_CODEC_TFRECORD_H
#define STK_DATA_CODEC_TFRECORD_H

#include "base/input.h"

enum { STK_TFRECORD_HEADER_BYTES = 12, STK_TFRECORD_FRAME_BYTES = 16 };

/* The length that a header states; STK_CORRUPT where its CRC is wrong. */
stk_status stk_tfrecord_parse_header(const uint8_t header[STK_TFRECORD_HEADER_BYTES], uint64_t *n_data);
/* A whole record with header and both CRCs; *data lies in it. */
stk_status stk_tfrecord_parse(stk_span record, stk_span *data);

/* Where each record begins, by hopping from header to header; the data's CRCs are not read. *start is malloc'ed. A file
 * that does not end with a whole record is corrupt; texts name record and byte, not the file. */
stk_status stk_tfrecord_find(const stk_input *input, uint64_t **start, int64_t *n_records);

/* The bytes before and after data. */
void stk_tfrecord_frame(stk_span data, uint8_t header[STK_TFRECORD_HEADER_BYTES], uint8_t footer[4]);

typedef enum stk_tfrecord_packing { STK_TFRECORD_PLAIN, STK_TFRECORD_GZIP, STK_TFRECORD_ZLIB } stk_tfrecord_packing;
/* By the first bytes, of which two tell GZIP and twelve the others. */
stk_tfrecord_packing stk_tfrecord_packing_of(stk_span start);

#endif
