/* What a run of 'stoker train' says of itself besides the figure that is measured: from the result.json and the
 * profile.json of its folder. And what follows from that: use of the peaks, as published and as measured next to it.
 * Threads: any. */
#ifndef STK_BENCH_METRIC_H
#define STK_BENCH_METRIC_H

#include <jansson.h>
#include <math.h>

/* X(name, file, place in it, what a reader is told) The names say the unit. */
#define STK_BENCH_METRICS(X)                                                                                           \
    X(samples_per_s, result, "samples_per_s", "samples a second")                                                      \
    X(tokens_per_s, result, "tokens_per_s", "tokens a second")                                                         \
    X(batch, profile, "batch", "samples a step, of all replicas")                                                      \
    X(steps, result, "steps", "steps of the run")                                                                      \
    X(step_s, profile, "step.median_s", "a step, median")                                                              \
    X(first_step_s, result, "first_step_s", "the first step, with compiling")                                          \
    X(epoch_s, result, "epoch_s", "an epoch at the rate of the median step")                                           \
    X(training_s, result, "wall_s", "training alone, without start and data's opening")                                \
    X(input_share, result, "input_wait_share", "the share of time in which it waits for data")                         \
    X(planned_bytes, result, "peak_planned_bytes", "memory of the step, planned")                                      \
    X(used_bytes, result, "peak_used_bytes", "memory of the step, in use")                                             \
    X(resident_bytes, result, "peak_rss_bytes", "memory of the process")                                               \
    X(gpu_bytes, result, "gpu.most_memory_bytes", "memory in use on the GPU, by all")                                  \
    X(step_flop, profile, "step.flops", "operations of a step")                                                        \
    X(recomputed_flop, profile, "step.recompute_flops", "of which recomputed")                                         \
    X(step_bytes, profile, "step.bytes", "memory traffic of a step at least")                                          \
    X(cpu_joules_per_sample, profile, "energy.joules_per_sample", "energy of a sample, of the machine's processors")   \
    X(gpu_joules_per_sample, result, "gpu.joules_per_sample", "energy of a sample, of the GPU")                        \
    X(test_accuracy, result, "test_accuracy", "accuracy on the test data")                                             \
    X(test_loss, result, "test_loss", "loss on the test data")

enum {
#define X(name, file, place, text) STK_BENCH_METRIC_##name,
    STK_BENCH_METRICS(X)
#undef X
        STK_BENCH_N_METRICS
};

const char *stk_bench_metric_name(int i);
const char *stk_bench_metric_text(int i);
/* path: of a result.json that a command wrote; NULL: of none. What is not there, or is no run of Stoker's, is NaN. */
void stk_bench_metrics_read(const char *path, double out[STK_BENCH_N_METRICS]);
/* Those that are known. Returned: json_decref. */
json_t *stk_bench_metrics_json(const double metric[STK_BENCH_N_METRICS]);
void stk_bench_metrics_parse(const json_t *object, double out[STK_BENCH_N_METRICS]);

/* The number at "a.b" of an object; NaN: there is none. */
double stk_bench_number_at(const json_t *object, const char *place);

/* What can be done at most, of one chip; NaN: not known. */
typedef struct stk_bench_roof {
    double flop_per_s, byte_per_s;
} stk_bench_roof;

/* How well a run uses what there is; shares of 1, NaN where something is not known. */
typedef struct stk_bench_use {
    double flop_per_s;          /* of the model's own operations: what is recomputed does not count */
    double of_published;        /* MFU */
    double of_measured;         /* of the best product that was measured in the same precision */
    double hardware_share;      /* of_measured with what is recomputed */
    double intensity;           /* operations for each byte of memory traffic at least */
    double roofline_flop_per_s; /* what the measured roof allows at that intensity */
} stk_bench_use;
/* n_replicas: each with operations like that; at least 1. */
stk_bench_use stk_bench_use_of(const double metric[STK_BENCH_N_METRICS], int n_replicas, stk_bench_roof published,
                               stk_bench_roof measured);

#endif
