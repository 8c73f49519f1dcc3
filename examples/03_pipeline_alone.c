/* The input pipeline alone, for a training loop of one's own: a folder of images becomes batches that are shuffled,
 * augmented and made ahead by worker threads.
 *
 *   03_pipeline_alone [FOLDER]    a sub-folder for each class; without FOLDER a few digits are made first
 */
#include <stdio.h>

#include <stoker/data/digits.h>
#include <stoker/data/loader.h>

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "digits-for-03/train";
    stk_digits_config few = stk_digits_config_default();
    few.n_train = few.n_test = 500;
    /* Busy: an earlier run has made them. */
    if (argc < 2) stk_digits_generate("digits-for-03", &few, NULL, NULL);

    stk_dataset *train = stk_dataset_images(folder);
    stk_dataset_shuffle(train, 1);
    stk_dataset_apply(train, stk_decode(), stk_random_resized_crop(24, true), stk_random_flip(),
                      stk_normalize_imagenet(), NULL);
    stk_dataset_batch(train, 64, true);

    stk_loader_config config = stk_loader_config_default();
    config.n_epochs = 2;
    config.seed = 7;
    stk_loader *loader = NULL;
    stk_status status = stk_loader_open(train, &config, &loader); /* Reports what went wrong above, too. */
    for (const stk_batch *batch; status == STK_OK && (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
        const float *images = stk_batch_data(batch, "image");   /* [64,24,24,3] */
        const int32_t *labels = stk_batch_data(batch, "label"); /* [64] */
        /* Train on them here. The next batches are made meanwhile. */
        printf("epoch %lld batch %lld: first label %d, first value %.3f\n", (long long)stk_batch_epoch(batch),
               (long long)stk_batch_index(batch), labels[0], images[0]);
    }
    if (status == STK_OK) status = stk_loader_status(loader);
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    stk_loader_close(loader);
    stk_dataset_free(train);
    return status != STK_OK;
}
