/* The safetensors format: u64 header length, a JSON header (dtype, shape, data_offsets), data. Of a file only the
 * header is read here; what tensors there are takes at most three times its bytes, besides a tree of at most 256 MiB
 * meanwhile. Specification: github.com/huggingface/safetensors, README, "Format".
 */
#ifndef STK_WEIGHTS_SAFETENSORS_H
#define STK_WEIGHTS_SAFETENSORS_H

#include "base/input.h"
#include "base/text.h"
#include "stoker/files/safetensors.h"
#include "tensor/shape.h"

typedef struct stk_safetensors_entry {
    char *name;           /* owned by the set */
    const char *type;     /* as the file says, "F32"; a constant */
    stk_tensor_desc desc; /* dtype: STK_N_DTYPES for a type that is none of ours */
    size_t begin, end;    /* in the data part */
    const void *data;     /* borrowed from the file's bytes; NULL: they are in no memory */
} stk_safetensors_entry;

typedef struct stk_safetensors {
    stk_safetensors_entry *entry; /* sorted by place in the file */
    size_t n;
    char **metadata;   /* keys and values in turn */
    size_t n_metadata; /* pairs */
    uint64_t data_at;  /* byte of the file where the data part begins */
} stk_safetensors;

/* Checks everything: header at most 100 MB, known dtypes, sizes that match shapes, no overlap, no gap, nothing left
 * over. Error texts do not name the file: the caller does. Borrows file for the entries' data. */
stk_status stk_safetensors_parse(stk_span file, stk_safetensors *out);
/* The same of a file whose data stay there. */
stk_status stk_safetensors_scan(const stk_input *file, stk_safetensors *out);
/* Accepts an empty set. */
void stk_safetensors_free(stk_safetensors *set);
/* NULL when there is none of that name. */
const stk_safetensors_entry *stk_safetensors_find(const stk_safetensors *set, const char *name);

/* The length and the header for n tensors whose data follow in this order, padded so that data start at a multiple
 * of 8. metadata: keys and values in turn, ended by NULL, besides "format"; may be NULL. */
stk_status stk_safetensors_header(const char *const *names, const stk_tensor_desc *descs, size_t n,
                                  const char *const *metadata, stk_text *out);

/* n elements of the type a tensor has in its file, to dtype; permutation as in stk_safetensors_read. name is for the
 * message, and so is the first element's number, where src is a part of the tensor. */
stk_status stk_safetensors_convert_part(const char *name, const char *type, stk_shape shape, const void *src,
                                        int64_t i_first, stk_dtype dtype, const int32_t *permutation, void *dst);
stk_status stk_safetensors_convert(const char *name, const char *type, stk_shape shape, const void *src,
                                   stk_dtype dtype, const int32_t *permutation, void *dst);
/* Writes as stk_safetensors_write does; the data of each entry are asked for when its turn comes, and borrowed until
 * the next is. */
typedef stk_status (*stk_safetensors_fetch_fn)(void *user, int64_t i_entry, const void **data);
stk_status stk_safetensors_write_by(const char *path, const stk_safetensors_entry_out *tensors, int64_t n_tensors,
                                    const stk_safetensors_options *options, stk_safetensors_fetch_fn fetch, void *user,
                                    int64_t *n_files);
/* The type that a dtype has in a file: "F32". */
const char *stk_safetensors_type(stk_dtype dtype);

#endif
