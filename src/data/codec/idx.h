/* The IDX format of MNIST: magic 00 00 type rank, big-endian sizes, data (yann.lecun.com/exdb/mnist, "The IDX file
 * format"). Bytes in, a description out; fuzzed. u8 only, as MNIST and its relatives are. */
#ifndef STK_DATA_CODEC_IDX_H
#define STK_DATA_CODEC_IDX_H

#include "base/file.h"
#include "tensor/shape.h"

/* shape: of the whole array, rank 1 to 4; data: borrowed from bytes, exactly as many as the shape says. Texts do not
 * name the file: the caller does. */
stk_status stk_idx_parse(stk_span bytes, stk_shape *shape, const uint8_t **data);
/* gzip (RFC 1952) -> malloc'ed bytes that the caller frees. At most most_bytes come out. */
stk_status stk_gunzip(stk_span compressed, size_t most_bytes, uint8_t **out, size_t *n);
bool stk_is_gzip(stk_span bytes);

#endif
