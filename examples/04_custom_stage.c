/* A stage of one's own: speckle noise of random strength on grey images. The function gets a stream of random numbers
 * that belongs to (seed, epoch, sample), so that any number of threads makes the same batches.
 *
 *   04_custom_stage
 */
#include <stdio.h>

#include <stoker/data/custom.h>
#include <stoker/data/loader.h>

/* What comes out, for what goes in: u8 of any shape becomes f32 of the same. */
static stk_status speckle_shape(void *user, const stk_map_array *src, stk_dtype *dtype, stk_shape *shape)
{
    (void)user, (void)shape; /* *shape is src->shape already. */
    if (src->dtype != STK_U8) return stk_fail(STK_INVALID, "needs u8, not %s", stk_dtype_name(src->dtype));
    *dtype = STK_F32;
    return STK_OK;
}

/* Called by several threads at once, each with a sample of its own. */
static stk_status speckle(void *user, const stk_map_call *call)
{
    const float *most = user;
    const uint8_t *src = call->src.data;
    float *dst = call->dst.data, strength = *most * stk_rng_uniform(call->rng);
    for (size_t i = 0; i < call->src.n_bytes; i++)
        dst[i] = (float)src[i] / 255 * (1 + strength * stk_rng_normal(call->rng));
    return STK_OK;
}

int main(void)
{
    static uint8_t images[1000][8][8][1];
    static float most = 0.5f;
    for (int i = 0; i < 1000 * 64; i++)
        images[i / 64][i / 8 % 8][i % 8][0] = (uint8_t)(i * 7 % 256);
    const stk_array_field field = {"image", STK_U8, STK_SHAPE(8, 8, 1), images};
    const stk_map_config config = {
        .name = "speckle", .shape = speckle_shape, .run = speckle, .user = &most, .random = true};

    stk_dataset *dataset = stk_dataset_arrays(1000, &field, 1);
    stk_dataset_apply(dataset, stk_random_flip(), stk_map(&config), NULL);
    stk_dataset_batch(dataset, 100, true);
    stk_loader *loader = NULL;
    stk_status status = stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1}, &loader);
    for (const stk_batch *batch; status == STK_OK && (batch = stk_loader_next(loader)); stk_batch_release(batch))
        printf("batch %lld: %016llx\n", (long long)stk_batch_index(batch), (unsigned long long)stk_batch_hash(batch));
    if (status == STK_OK) status = stk_loader_status(loader);
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    stk_loader_close(loader);
    stk_dataset_free(dataset);
    return status != STK_OK;
}
