/* A safetensors file from memory; what is accepted is written and must read the same.
 *
 * covers: weights/safetensors.c weights/safetensors_convert.c
 */
#include <stdlib.h>
#include <string.h>

#include "weights/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every tensor's bytes, so that the address sanitizer sees one that lies outside. */
static void add_data(const stk_safetensors *set, stk_text *out)
{
    for (size_t i = 0; i < set->n; i++)
        stk_text_add_bytes(out, set->entry[i].data, set->entry[i].end - set->entry[i].begin);
}

static void compare(const stk_safetensors *a, const stk_safetensors *b)
{
    if (a->n != b->n) abort();
    for (size_t i = 0; i < a->n; i++) {
        const stk_safetensors_entry *x = &a->entry[i], *y = stk_safetensors_find(b, x->name);
        if (!y || x->begin != y->begin || x->end != y->end || x->desc.dtype != y->desc.dtype) abort();
        if (!stk_shape_equal(x->desc.shape, y->desc.shape)) abort();
    }
}

static void write_and_read(const stk_safetensors *set)
{
    const char **names = calloc(set->n + 1, sizeof(*names));
    stk_tensor_desc *descs = calloc(set->n + 1, sizeof(*descs));
    stk_text file = {0};
    stk_safetensors again;
    if (!names || !descs) abort();
    for (size_t i = 0; i < set->n; i++) {
        names[i] = set->entry[i].name;
        descs[i] = set->entry[i].desc;
    }
    if (stk_safetensors_header(names, descs, set->n, NULL, &file) != STK_OK || file.n % 8) abort();
    add_data(set, &file);
    if (stk_safetensors_parse((stk_span){(const uint8_t *)file.data, file.n}, &again) != STK_OK) abort();
    compare(set, &again);
    stk_safetensors_free(&again);
    stk_text_free(&file);
    free((void *)names);
    free(descs);
}

/* Every tensor to every dtype, its axes the other way round. */
static void convert(const stk_safetensors_entry *entry)
{
    int64_t n = stk_shape_count(entry->desc.shape);
    int32_t turned[STK_MAX_RANK];
    uint8_t *out = malloc((size_t)n * 8 + 1);
    if (!out) abort();
    for (int i = 0; i < entry->desc.shape.rank; i++)
        turned[i] = entry->desc.shape.rank - 1 - i;
    for (int d = 0; d < STK_N_DTYPES; d++)
        (void)stk_safetensors_convert(entry->name, entry->type, entry->desc.shape, entry->data, (stk_dtype)d, turned,
                                      out);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_safetensors set;
    bool all_known = true;
    if (stk_safetensors_parse((stk_span){data, size}, &set) != STK_OK) return 0;
    for (size_t i = 0; i < set.n; i++) {
        convert(&set.entry[i]);
        all_known &= set.entry[i].desc.dtype < STK_N_DTYPES;
    }
    if (all_known) write_and_read(&set); /* other types are read only */
    stk_safetensors_free(&set);
    return 0;
}
