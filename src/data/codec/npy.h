/* The .npy format of NumPy, versions 1 to 3 (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): the
 * header only. Bytes in, a description out; fuzzed. Element types that are not ours, big-endian data and Fortran order
 * are refused by name. */
#ifndef STK_DATA_CODEC_NPY_H
#define STK_DATA_CODEC_NPY_H

#include "base/file.h"
#include "tensor/shape.h"

/* No header is longer; NumPy itself reads 10,000 bytes at most unless told otherwise. */
enum { STK_NPY_MOST_HEADER = 65536 };

/* start: the first bytes of the array's file, STK_NPY_MOST_HEADER of them or all there are. n_bytes: of the whole file.
 * data_at: where the elements begin; they are exactly the rest of the file. Texts do not name the file. */
stk_status stk_npy_parse(stk_span start, uint64_t n_bytes, stk_tensor_desc *desc, uint64_t *data_at);

#endif
