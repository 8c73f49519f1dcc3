/* A tar archive from memory, as it is and with its headers' checksums put right; and the same bytes as an index.
 *
 * covers: data/codec/tar.c data/source/tar_samples.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/common/side_file.h"
#include "data/source/tar_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const stk_tar_samples *samples, size_t size)
{
    for (int64_t i = 0; i < samples->n_samples; i++) {
        const stk_tar_sample *sample = &samples->sample[i];
        if (sample->i_part >= sample[1].i_part || sample->key_at >= samples->n_names) abort();
        (void)stk_tar_samples_find(samples, i, "jpg", 3);
    }
    for (int64_t i = 0; i < samples->n_parts; i++) {
        const stk_tar_part *part = &samples->part[i];
        if (part->extension_at >= samples->n_names || part->at > size || part->n_bytes > size - part->at) abort();
    }
    if (samples->n_names && samples->names[samples->n_names - 1]) abort();
}

static void read_archive(stk_span bytes)
{
    stk_input input = stk_input_of_memory(bytes);
    stk_tar_samples samples;
    bool stale;
    if (stk_tar_samples_open(&input, &samples, &stale) == STK_OK) check(&samples, bytes.n);
    stk_tar_samples_free(&samples);
}

static void mend(uint8_t *p, size_t n)
{
    for (size_t at = 0; at + 512 <= n; at += 512) {
        unsigned sum = 0;
        memset(p + at + 148, ' ', 8);
        for (int i = 0; i < 512; i++)
            sum += p[at + i];
        if (sum == 8 * ' ')
            memset(p + at, 0, 512);
        else
            snprintf((char *)p + at + 148, 8, "%06o", sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_input input = stk_input_of_memory((stk_span){data, size});
    stk_tar_samples samples;
    stk_span payload;
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    read_archive((stk_span){data, size});
    mend(copy, size);
    read_archive((stk_span){copy, size});
    free(copy);
    if (stk_tar_samples_parse(&input, (stk_span){data, size}, &samples) == STK_OK) check(&samples, size);
    stk_tar_samples_free(&samples);
    if (stk_index_parse((stk_span){data, size}, STK_INDEX_TAR, 7, 9, &payload) && payload.n + 48 != size) abort();
    return 0;
}
