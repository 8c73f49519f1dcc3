/* Weights in files, and a training that goes on where another stopped: a small network learns which of two numbers is
 * larger; its weights are saved, loaded into a second network, read and set by name; and a third training begins at a
 * checkpoint of the first.
 *
 *   11_save_and_load [FOLDER]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/train/trainer.h>
#include <stoker/train/weights.h>

enum { SAMPLES = 2000, BATCH = 50 };

static float points[SAMPLES][2];
static int32_t labels[SAMPLES];

static stk_dataset *make_data(void)
{
    const stk_array_field fields[] = {{.name = "image", .dtype = STK_F32, .sample = STK_SHAPE(2), .data = points},
                                      {.name = "label", .dtype = STK_I32, .data = labels}};
    stk_dataset *data = stk_dataset_arrays(SAMPLES, fields, 2);
    stk_dataset_shuffle(data, 1);
    stk_dataset_batch(data, BATCH, true);
    return data;
}

/* Alike but for the seed, which decides how weights begin. */
static stk_trainer *make_trainer(uint64_t seed)
{
    stk_model *model = stk_model_new("larger");
    stk_value x = stk_mlp(stk_model_input(model, STK_F32, 2), (const int64_t[]){16}, 1, 0, 2);
    stk_model_loss(model, stk_cross_entropy(x, stk_model_label(model)));
    stk_trainer *trainer = stk_trainer_new(model, make_data(), stk_adam(.lr = 0.01));
    stk_trainer_config config = stk_trainer_config_default();
    config.seed = seed;
    stk_trainer_configure(trainer, &config);
    return trainer;
}

static void must(stk_status status)
{
    if (status == STK_OK) return;
    fprintf(stderr, "%s\n", stk_error_text());
    exit(1);
}

static stk_metrics evaluate(stk_trainer *trainer)
{
    stk_metrics result;
    stk_dataset *data = make_data();
    must(stk_trainer_evaluate(trainer, data, &result));
    stk_dataset_free(data);
    return result;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/stoker-example-XXXXXX", file[4096], checkpoints[4096];
    const char *place = argc > 1 ? argv[1] : mkdtemp(folder);
    if (!place) return 1;
    snprintf(file, sizeof(file), "%s/larger.safetensors", place);
    snprintf(checkpoints, sizeof(checkpoints), "%s/checkpoints", place);
    for (int i = 0; i < SAMPLES; i++) {
        points[i][0] = (float)(i * 37 % 101) / 101;
        points[i][1] = (float)(i * 53 % 97) / 97;
        labels[i] = points[i][1] > points[i][0];
    }

    stk_trainer *first = make_trainer(1);
    must(stk_trainer_run(first, 3));
    must(stk_trainer_save_weights(first, file));
    must(stk_trainer_save_checkpoint(first, checkpoints, 2));
    printf("trained:    accuracy %.2f %% on %d points\n", 100 * evaluate(first).accuracy, SAMPLES);

    stk_trainer *second = make_trainer(2);
    must(stk_trainer_load_weights(second, file, NULL));
    printf("loaded:     accuracy %.2f %% on %d points\n", 100 * evaluate(second).accuracy, SAMPLES);
    if (evaluate(first).loss != evaluate(second).loss) return 1;

    stk_weight_info weight;
    for (int64_t i = 0; stk_trainer_weight(second, i, &weight) == STK_OK; i++)
        printf("            %s, %zu bytes\n", weight.name, weight.n_bytes);
    must(stk_trainer_weight(second, 0, &weight)); /* The first layer's bias. */
    float *numbers = malloc(weight.n_bytes);
    if (!numbers) return 1;
    must(stk_trainer_get_weight(second, weight.name, numbers, weight.n_bytes));
    numbers[0] += 100;
    must(stk_trainer_set_weight(second, weight.name, numbers, weight.n_bytes));
    printf("set:        loss %.4f instead of %.4f\n", evaluate(second).loss, evaluate(first).loss);
    free(numbers);

    /* Two more epochs, in one go and from the checkpoint: the same bits. */
    stk_trainer *third = make_trainer(1);
    must(stk_trainer_load_checkpoint(third, checkpoints));
    must(stk_trainer_run(third, 5));
    must(stk_trainer_run(first, 5));
    printf("resumed:    loss %.6f, and without a stop %.6f\n", evaluate(third).loss, evaluate(first).loss);
    int wrong = evaluate(third).loss != evaluate(first).loss;

    stk_trainer_free(first);
    stk_trainer_free(second);
    stk_trainer_free(third);
    return wrong;
}
