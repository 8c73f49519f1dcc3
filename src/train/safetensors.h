/* The safetensors format: u64 header length, a JSON header (dtype, shape, data_offsets), data. Bytes in, views out; no
 * files here. Specification: github.com/huggingface/safetensors, README, "Format".
 */
#ifndef STK_TRAIN_SAFETENSORS_H
#define STK_TRAIN_SAFETENSORS_H

#include "base/file.h"
#include "base/text.h"
#include "tensor/shape.h"

typedef struct stk_safetensors_entry {
    char *name; /* owned by the set */
    stk_tensor_desc desc;
    size_t begin, end; /* in the data part */
    const void *data;  /* borrowed from the file's bytes */
} stk_safetensors_entry;

typedef struct stk_safetensors {
    stk_safetensors_entry *entry; /* sorted by place in the file */
    size_t n;
} stk_safetensors;

/* Checks everything: header at most 100 MB, known dtypes, sizes that match shapes, no overlap, no gap, nothing left
 * over. Error texts do not name the file: the caller does. Borrows file for the entries' data. */
stk_status stk_safetensors_parse(stk_span file, stk_safetensors *out);
/* Accepts an empty set. */
void stk_safetensors_free(stk_safetensors *set);
/* NULL when there is none of that name. */
const stk_safetensors_entry *stk_safetensors_find(const stk_safetensors *set, const char *name);

/* The length and the header for n tensors whose data follow in this order, padded so that data start at a multiple
 * of 8. */
stk_status stk_safetensors_header(const char *const *names, const stk_tensor_desc *descs, size_t n, stk_text *out);

#endif
