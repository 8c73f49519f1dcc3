/* A source of one's own: a file format that Stoker does not know, here records of 1 + 64 bytes, a class and an image.
 * A function reads record number i; shuffling, batching, resuming and error messages come with it.
 *
 *   05_custom_source
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <stoker/data/custom.h>
#include <stoker/data/loader.h>

enum { N_RECORDS = 1000, RECORD_BYTES = 65 };

/* Called by several threads at once, with different numbers: pread has no position that they would share. */
static stk_status read_record(void *user, int64_t i_sample, void *const *out)
{
    const int *fd = user;
    uint8_t record[RECORD_BYTES];
    if (pread(*fd, record, RECORD_BYTES, i_sample * RECORD_BYTES) != RECORD_BYTES)
        return stk_fail(STK_CORRUPT, "cannot read all of it");
    *(int32_t *)out[0] = record[0];
    for (int i = 0; i < 64; i++)
        ((float *)out[1])[i] = (float)record[1 + i] / 255;
    return STK_OK;
}

int main(void)
{
    FILE *made = tmpfile(); /* Such a file, to have one. */
    if (!made) return 1;
    for (int i = 0; i < N_RECORDS * RECORD_BYTES; i++)
        putc(i % RECORD_BYTES ? i % 251 : i / RECORD_BYTES % 10, made);
    fflush(made);
    int fd = fileno(made);

    const stk_array_field fields[] = {{.name = "label", .dtype = STK_I32},
                                      {.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(8, 8, 1)}};
    stk_dataset *dataset = stk_dataset_function(N_RECORDS, fields, 2, read_record, &fd);
    stk_dataset_shuffle(dataset, 1);
    stk_dataset_batch(dataset, 250, false);
    stk_loader *loader = NULL;
    stk_status status = stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1}, &loader);
    int n_of_class[10] = {0};
    for (const stk_batch *batch; status == STK_OK && (batch = stk_loader_next(loader)); stk_batch_release(batch))
        for (int64_t i = 0; i < stk_batch_count(batch); i++)
            n_of_class[((const int32_t *)stk_batch_data(batch, "label"))[i]]++;
    if (status == STK_OK) status = stk_loader_status(loader);
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    for (int i = 0; i < 10; i++)
        printf("class %d: %d samples\n", i, n_of_class[i]);
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    fclose(made);
    return status != STK_OK || n_of_class[3] != N_RECORDS / 10;
}
