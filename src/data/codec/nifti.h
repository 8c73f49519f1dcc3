/* The header of a NIfTI file, versions 1 and 2, either byte order (nifti.nimh.nih.gov): what lies where, how numbers
 * are scaled, and where a voxel is in the body. Bytes in, a description out; fuzzed. Files of two parts (.hdr, .img)
 * and element types that hold more than one number are refused by name.
 */
#ifndef STK_DATA_CODEC_NIFTI_H
#define STK_DATA_CODEC_NIFTI_H

#include "base/file.h"

enum { STK_NIFTI_HEADER = 540 }; /* bytes of the longer header */

typedef enum stk_number {
    STK_NUMBER_U8,
    STK_NUMBER_I8,
    STK_NUMBER_I16,
    STK_NUMBER_U16,
    STK_NUMBER_I32,
    STK_NUMBER_U32,
    STK_NUMBER_I64,
    STK_NUMBER_F32,
    STK_NUMBER_F64,
    STK_NUMBER_F16
} stk_number;

typedef struct stk_nifti {
    stk_number number;  /* as stored */
    bool swapped;       /* in the other byte order than this machine's */
    int64_t side[3];    /* z, y, x: the slowest first */
    int64_t n_channels; /* the product of further sides; each channel is a whole volume, one after the other */
    uint64_t data_at;
    double slope, inter; /* a number means stored * slope + inter */
    double affine[3][4]; /* of voxel (x, y, z, 1): millimetres to the right, to the front, up */
} stk_nifti;

/* start: the first STK_NIFTI_HEADER bytes or all there are. n_bytes: of the whole file, which holds all elements. Texts
 * do not name the file. */
stk_status stk_nifti_parse(stk_span start, uint64_t n_bytes, stk_nifti *out);

size_t stk_number_bytes(stk_number number);
/* n numbers of src, which may be unaligned, as f64. */
void stk_number_read(stk_number number, bool swapped, const uint8_t *src, int64_t n, double *dst);

#endif
