/* The .npy format of NumPy, versions 1 to 3 (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): the
 * header only. Bytes in, a description out; fuzzed. Other element types, big-endian data and Fortran order
 * are refused by name. */
#ifndef STK_DATA_CODEC_NPY_H
#define STK_DATA_CODEC_NPY_H

#include "base/file.h"
#include "tensor/shape.h"

/* No header is longer; NumPy itself reads 10,000 bytes at most unless told otherwise. */
enum { STK_NPY_MOST_HEADER = 65536 };

/* How elements lie in the file where their type is none of ours: each is read into the next wider one, i32 for the
 * first two, i64 for the others. */
typedef enum stk_npy_stored { STK_NPY_AS_IS, STK_NPY_I16, STK_NPY_U16, STK_NPY_U32, STK_NPY_U64 } stk_npy_stored;

/* Bytes in the file of an element that is read as dtype. */
size_t stk_npy_stored_bytes(stk_npy_stored stored, stk_dtype dtype);
/* n elements as they lie in the file -> i32 or i64; from has any alignment. STK_CORRUPT where a number of 64 bits does
 * not fit. */
stk_status stk_npy_widen(stk_npy_stored stored, const void *from, int64_t n, void *to);

/* start: the first bytes of the array's file, STK_NPY_MOST_HEADER of them or all there are. n_bytes: of the whole file.
 * data_at: where the elements begin; they are exactly the rest of the file. desc: as they are read. stored NULL: only
 * what is read as it lies is taken. Texts do not name the file. */
stk_status stk_npy_parse(stk_span start, uint64_t n_bytes, stk_tensor_desc *desc, uint64_t *data_at,
                         stk_npy_stored *stored);

#endif
