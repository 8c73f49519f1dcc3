/* Tensors in files of the safetensors format: read when asked for, converted on the way, written in one file or in
 * shards.
 *
 * Format: github.com/huggingface/safetensors, README, "Format". A file is checked whole before the first tensor is
 * given: lengths, dtypes, shapes, no overlap, no gap, nothing left over. Shards are those of Hugging Face: files
 * NAME-00001-of-00003.safetensors next to NAME.safetensors.index.json, which tells where each tensor is.
 *
 * Threads: an open file may be read by any number of threads at once.
 */
#ifndef STOKER_FILES_SAFETENSORS_H
#define STOKER_FILES_SAFETENSORS_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_safetensors_file stk_safetensors_file;

/* One tensor of a file, row-major and little-endian. All borrowed from the file until it is closed. */
typedef struct stk_safetensor {
    const char *name;
    const char *type; /* as the file says: "F32", "BF16", "I16", "F8_E4M3" ... */
    stk_dtype
        dtype; /* the same; STK_N_DTYPES for I16, U16, U32, U64, F8_E4M3 and F8_E5M2, which can only be converted */
    stk_shape shape;
    size_t n_bytes;
    const void *file; /* where stk_safetensors_read takes the bytes from */
    uint64_t at;      /* the first byte in that file */
} stk_safetensor;

/* path: a file, an index (NAME.safetensors.index.json), or a folder with model.safetensors or its index. Headers
 * are read, tensors stay in the files, which are open until the end. At most 100,000 shards, headers of 100 MB, whose
 * tree, and that of the index, take at most 256 MiB. STK_CORRUPT tells what is wrong in which file;
 * STK_UNSUPPORTED is a dtype that is not in the list above, or another format, as PyTorch's .pt, with the way to
 * convert it. Returned in *out: stk_safetensors_close. */
STK_API stk_status stk_safetensors_open(const char *path, stk_safetensors_file **out);
STK_API void stk_safetensors_close(stk_safetensors_file *file); /* accepts NULL */

STK_API int64_t stk_safetensors_count(const stk_safetensors_file *file);
/* Tensor number i, 0 <= i < count, in the order of the files. */
STK_API stk_safetensor stk_safetensors_at(const stk_safetensors_file *file, int64_t i);
/* False: there is none of that name; *out then stays as it is. out may be NULL. */
STK_API bool stk_safetensors_has(const stk_safetensors_file *file, const char *name, stk_safetensor *out);
/* The same; STK_NOT_FOUND names the nearest one that there is. */
STK_API stk_status stk_safetensors_get(const stk_safetensors_file *file, const char *name, stk_safetensor *out);
/* The text under a key of "__metadata__", of the first shard that has it; NULL: none. Borrowed. */
STK_API const char *stk_safetensors_metadata(const stk_safetensors_file *file, const char *key);

/* Writes the tensor to dst, as dtype: floats are rounded to nearest, ties to even; integers that do not fit, and floats
 * that are no integer of dtype, are STK_UNSUPPORTED. permutation: NULL, or [rank]: dst is numpy.transpose(tensor,
 * permutation). dst: as many elements, borrowed until the call returns. Takes memory of its own only to convert: up to
 * 4 MiB or a row, the whole tensor's where the first axis moves. STK_CORRUPT, with file and byte, where the file has
 * become shorter. */
STK_API stk_status stk_safetensors_read(const stk_safetensor *tensor, stk_dtype dtype, const int32_t *permutation,
                                        void *dst);
/* One tensor to be written. */
typedef struct stk_safetensors_entry_out {
    const char *name;
    stk_dtype dtype; /* of data */
    stk_shape shape; /* of data */
    const void *data;
    stk_dtype stored;           /* what the file shall hold, converted as in stk_safetensors_read */
    const int32_t *permutation; /* NULL, or [rank]: the file shall hold numpy.transpose(data, permutation) */
} stk_safetensors_entry_out;

typedef struct stk_safetensors_options {
    const char *const *metadata; /* keys and values in turn, ended by NULL; may be NULL. "format" is always "pt" */
    int64_t shard_bytes;         /* more bytes of tensors than this become shards; 0: one file in any case */
} stk_safetensors_options;

/* Writes path, or where the tensors are more than shard_bytes, its shards and then their index, and removes a file path
 * that was there. Each file appears whole or not at all; STK_BUSY, and nothing is written, where one of another kind is
 * in the place of any. All borrowed until the call returns; one tensor is converted at a time. options may be NULL.
 * *n_files, which may be NULL, becomes 1 or the number of shards. */
STK_API stk_status stk_safetensors_write(const char *path, const stk_safetensors_entry_out *tensors, int64_t n_tensors,
                                         const stk_safetensors_options *options, int64_t *n_files);

#ifdef __cplusplus
}
#endif
#endif
