/* Trains a small network on MNIST, from the four files that it comes as, and prints how well it does on new digits:
 *   01_train_mnist FOLDER [EPOCHS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <stoker/train/trainer.h>

static stk_dataset *open_part(const char *folder, const char *part)
{
    char images[1024], labels[1024];
    snprintf(images, sizeof(images), "%s/%s-images-idx3-ubyte.gz", folder, part);
    snprintf(labels, sizeof(labels), "%s/%s-labels-idx1-ubyte.gz", folder, part);
    if (access(images, R_OK)) {
        printf("SKIP: cannot open '%s'; get it with: stoker get mnist, and give the folder, as 01_train_mnist "
               "data/mnist\n",
               images);
        exit(77);
    }
    stk_dataset *dataset = stk_dataset_idx(images, labels);
    stk_dataset_apply(dataset, stk_normalize_mnist(), NULL);
    return dataset;
}

static void report(void *user, const stk_train_event *event)
{
    (void)user;
    if (event->kind == STK_EVENT_EPOCH)
        printf("epoch %lld  loss %.4f  accuracy %.2f %%\n", (long long)event->epoch, event->train.loss,
               100 * event->train.accuracy);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "data/mnist";
    stk_dataset *train = open_part(folder, "train"), *test = open_part(folder, "t10k");
    stk_dataset_shuffle(train, 1);
    stk_dataset_batch(train, 128, true);
    stk_dataset_batch(test, 500, false);

    stk_model *model = stk_model_new("mnist-mlp");
    stk_value x = stk_flatten(stk_model_input(model, STK_F32, 28, 28, 1));
    x = stk_dropout(stk_relu(stk_dense(x, 128)), 0.1);
    stk_model_loss(model, stk_cross_entropy(stk_dense(x, 10), stk_model_label(model)));

    /* Nothing above needs a check of its own: the first error of any part comes out of stk_trainer_run. */
    stk_trainer *trainer = stk_trainer_new(model, train, stk_adam(.lr = 0.001));
    stk_trainer_config config = stk_trainer_config_default();
    config.on_event = report;
    stk_trainer_configure(trainer, &config);
    stk_metrics result = {0};
    stk_status status = stk_trainer_run(trainer, argc > 2 ? atoi(argv[2]) : 5);
    if (status == STK_OK) status = stk_trainer_evaluate(trainer, test, &result);
    if (status == STK_OK)
        printf("accuracy %.2f %% on %lld new digits\n", 100 * result.accuracy, (long long)result.n_samples);
    else
        fprintf(stderr, "%s\n", stk_error_text());
    stk_trainer_free(trainer); /* Frees the model and the training data too, which it took. */
    stk_dataset_free(test);
    return status != STK_OK;
}
