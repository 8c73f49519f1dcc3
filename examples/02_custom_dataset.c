/* Data from a function of one's own: points of two intertwined spirals, made as they are needed. Stoker asks for sample
 * number i from any of its worker threads, in any order, and shuffles, batches and trains as with files.
 *
 *   02_custom_dataset
 */
#include <math.h>
#include <stdio.h>

#include <stoker/train/trainer.h>

/* A number in [0, 1) that depends on (i, stream) alone (splitmix64), so that every thread makes the same samples. */
static double random_share(uint64_t i, uint64_t stream)
{
    uint64_t z = (i * 4 + stream + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Writes one sample: out[0] is the place of "image", out[1] that of "label". user points at the first sample's number.
 */
static stk_status make_point(void *user, int64_t i_sample, void *const *out)
{
    uint64_t i = (uint64_t)(*(const int64_t *)user + i_sample);
    float *point = out[0];
    int32_t *label = out[1];
    double along = sqrt(random_share(i, 0)); /* The root spreads points evenly over the length. */
    *label = (int32_t)(i % 2);
    double angle = 3 * 3.14159265358979 * along + 3.14159265358979 * *label;
    point[0] = (float)(along * cos(angle) + 0.02 * (random_share(i, 1) - 0.5));
    point[1] = (float)(along * sin(angle) + 0.02 * (random_share(i, 2) - 0.5));
    return STK_OK; /* A sample that cannot be made would be an error here: STK_CORRUPT, for example. */
}

static stk_dataset *make_points(int64_t n, const int64_t *first)
{
    const stk_array_field fields[] = {{.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(2)},
                                      {.name = "label", .dtype = STK_I32}};
    return stk_dataset_function(n, fields, 2, make_point, (void *)first);
}

int main(void)
{
    static const int64_t first_train = 0, first_test = 1000000; /* Other numbers are other points. */
    stk_dataset *train = make_points(4000, &first_train), *test = make_points(1000, &first_test);
    stk_dataset_shuffle(train, 1);
    stk_dataset_batch(train, 50, true);
    stk_dataset_batch(test, 50, false);

    stk_model *model = stk_model_new("spirals");
    stk_value x = stk_model_input(model, STK_F32, 2);
    x = stk_mlp(x, (const int64_t[]){64, 64}, 2, 0, 2);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));

    stk_trainer *trainer = stk_trainer_new(model, train, stk_adam(.lr = 0.01));
    stk_trainer_config config = stk_trainer_config_default();
    config.schedule = stk_cosine_schedule();
    stk_trainer_configure(trainer, &config);
    stk_metrics result = {0};
    stk_status status = stk_trainer_run(trainer, 20);
    if (status == STK_OK) status = stk_trainer_evaluate(trainer, test, &result);
    if (status == STK_OK)
        printf("loss %.4f  accuracy %.2f %% on %lld new points\n", result.loss, 100 * result.accuracy,
               (long long)result.n_samples);
    else
        fprintf(stderr, "%s\n", stk_error_text());
    stk_trainer_free(trainer); /* Frees the model and the training data too, which it took. */
    stk_dataset_free(test);
    return status != STK_OK;
}
