/* Samples that come one after the other: windows of a simulated signal, whose every value follows from the one before.
 * One thread at a time asks for the next; workers run the stages on the samples side by side, and batches keep their
 * order. Resuming makes the samples before again and drops them.
 *
 *   06_generator
 */
#include <math.h>
#include <stdio.h>

#include <stoker/data/custom.h>
#include <stoker/data/loader.h>

enum { N_SAMPLES = 1000, WINDOW = 32 };

/* x' = r x (1 - x): chaotic, so that no value can be had without those before it. */
typedef struct simulation {
    double r, x;
} simulation;

static stk_status begin(void *user, int64_t i_epoch)
{
    simulation *s = user;
    s->x = 0.1 + 0.01 * (double)(i_epoch % 50); /* another run in each epoch */
    return STK_OK;
}

/* It could end before N_SAMPLES with *ended = true, if it had not promised so many. */
static stk_status next(void *user, void *const *out, bool *ended)
{
    simulation *s = user;
    float *values = out[0], *following = out[1];
    (void)ended;
    for (int i = 0; i < WINDOW; i++) {
        values[i] = (float)s->x;
        s->x = s->r * s->x * (1 - s->x);
    }
    *following = (float)s->x;
    return isfinite(s->x) ? STK_OK : stk_fail(STK_CORRUPT, "the simulation has left its range");
}

/* Reads the rest of an epoch from a batch on; a hash of all batches but those before `compare`. */
static stk_status read_epoch(const stk_dataset *dataset, int64_t from, int64_t compare, uint64_t *hash, int64_t *n)
{
    stk_loader *loader;
    *hash = 0;
    *n = 0;
    stk_status status = stk_loader_open(dataset, &(stk_loader_config){.n_epochs = 1, .i_batch = from}, &loader);
    for (const stk_batch *batch; status == STK_OK && (batch = stk_loader_next(loader)); stk_batch_release(batch)) {
        *n += stk_batch_count(batch);
        if (stk_batch_index(batch) >= compare) *hash = *hash * 31 + stk_batch_hash(batch);
    }
    if (status == STK_OK) status = stk_loader_status(loader);
    stk_loader_close(loader);
    return status;
}

int main(void)
{
    simulation s = {.r = 3.9};
    const stk_array_field fields[] = {{.name = "signal", .dtype = STK_F32, .sample = STK_SHAPE(WINDOW)},
                                      {.name = "next", .dtype = STK_F32}};
    const stk_sample_generator generator = {.n_samples = N_SAMPLES, .begin = begin, .next = next, .user = &s};
    stk_dataset *dataset = stk_dataset_generator(fields, 2, &generator);
    stk_dataset_apply_to(dataset, "signal", stk_scale(2));
    stk_dataset_batch(dataset, 64, false);

    uint64_t whole = 0, resumed = 1;
    int64_t n_whole = 0, n_resumed = 0;
    stk_status status = read_epoch(dataset, 0, 9, &whole, &n_whole);
    if (status == STK_OK) status = read_epoch(dataset, 9, 9, &resumed, &n_resumed);
    if (status != STK_OK) fprintf(stderr, "%s\n", stk_error_text());
    printf("%lld samples; from batch 9 on %lld, %s\n", (long long)n_whole, (long long)n_resumed,
           whole == resumed ? "the same again" : "which differ");
    stk_dataset_free(dataset);
    return status != STK_OK || n_whole != N_SAMPLES || whole != resumed;
}
