/* .npy headers, and .npz archives of them, from memory.
 *
 * covers: data/codec/npy.c data/codec/zip.c
 */
#include <stdlib.h>

#include "data/codec/npy.h"
#include "data/codec/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 16 << 20 };

static void parse(stk_span bytes)
{
    stk_tensor_desc desc;
    uint64_t data_at;
    stk_npy_stored stored;
    stk_span start = {bytes.data, bytes.n < STK_NPY_MOST_HEADER ? bytes.n : STK_NPY_MOST_HEADER};
    if (stk_npy_parse(start, bytes.n, &desc, &data_at, &stored) != STK_OK) return;
    /* What it promises must be there: exactly the rest of the bytes. */
    uint64_t n = stk_npy_stored_bytes(stored, desc.dtype);
    for (int i = 0; i < desc.shape.rank; i++)
        n *= (uint64_t)desc.shape.dim[i];
    if (data_at + n != bytes.n) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_input input = stk_input_of_memory((stk_span){data, size});
    stk_zip zip;
    parse((stk_span){data, size});
    if (stk_zip_open(&input, &zip) == STK_OK) {
        for (size_t i = 0; i < zip.n_members && i < 8; i++) {
            if (zip.member[i].n > MOST_BYTES) continue;
            uint8_t *bytes = malloc(zip.member[i].n ? zip.member[i].n : 1);
            if (bytes && stk_zip_read(&input, &zip.member[i], bytes) == STK_OK)
                parse((stk_span){bytes, zip.member[i].n});
            free(bytes);
        }
    }
    stk_zip_free(&zip);
    return 0;
}
