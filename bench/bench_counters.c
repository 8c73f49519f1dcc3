/* What the counters that are always on cost: a training run that switches them off and on every 16 steps, so that each
 * stretch with them has one step that is timed kernel by kernel, as runs do. Neighbouring stretches are compared, which
 * of them is first changes each time, and the median of their ratios counts. One thread, and its time on a core, which
 * other programs change little; and what recording costs while no trace is wanted.
 *
 *     bench_counters [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "trace/trace.h"
#include "train/trainer_state.h"

enum { SIDE = 28, BATCH = 16, N_SAMPLES = 16 * 512, STRETCH = STK_PROFILED_EVERY, MOST_PAIRS = 20000 };

typedef struct meter {
    int64_t end_ns, i_step;
    double before_s; /* the process's time on cores, when the last step ended */
    double sum_s[2]; /* of a pair: with counters, and without */
    double ratio[MOST_PAIRS], step_s;
    int n;
} meter;

static stk_status make_sample(void *user, int64_t i_sample, void *const *out)
{
    (void)user;
    float *x = out[0];
    for (int k = 0; k < SIDE * SIDE; k++)
        x[k] = (float)((i_sample * 31 + k * 7) % 101) / 101;
    *(int32_t *)out[1] = (int32_t)(i_sample % 10);
    return STK_OK;
}

/* Pairs begin with counters and without in turn. */
static bool is_off(int64_t i_step)
{
    int64_t i_stretch = i_step / STRETCH;
    return (i_stretch + i_stretch / 2) % 2 == 1;
}

/* Of one thread that computes alone: what others do on the same core does not count. */
static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static stk_status after_step(void *user, stk_trainer *trainer, const stk_train_event *event)
{
    meter *m = user;
    double now_s = cpu_s();
    (void)event;
    m->sum_s[is_off(m->i_step)] += now_s - m->before_s;
    m->before_s = now_s;
    m->i_step++;
    trainer->timing.off = is_off(m->i_step);
    if (m->i_step % (2 * STRETCH) == 0) {
        if (m->i_step > 8 * STRETCH && m->n < MOST_PAIRS) { /* behind the warming up */
            m->ratio[m->n++] = m->sum_s[0] / m->sum_s[1];
            m->step_s += m->sum_s[1] / STRETCH;
        }
        m->sum_s[0] = m->sum_s[1] = 0;
    }
    if (stk_clock_ns() > m->end_ns) stk_trainer_stop(trainer);
    return STK_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static stk_trainer *make_trainer(void)
{
    const stk_array_field fields[] = {{"image", STK_F32, STK_SHAPE(SIDE, SIDE, 1), NULL},
                                      {"label", STK_I32, {0}, NULL}};
    stk_dataset *dataset = stk_dataset_function(N_SAMPLES, fields, 2, make_sample, NULL);
    stk_dataset_batch(dataset, BATCH, true);
    stk_model *model = stk_model_new("small");
    stk_value x = stk_model_input_named(model, "image", STK_F32, STK_SHAPE(SIDE, SIDE, 1));
    x = stk_max_pool(stk_relu(stk_batch_norm(stk_conv2d(x, 16, 3))), 2);
    x = stk_relu(stk_batch_norm(stk_conv2d(x, 32, 3)));
    stk_model_loss(model, stk_cross_entropy(stk_dense(stk_flatten(x), 10), stk_model_label(model)));
    return stk_trainer_new(model, dataset, stk_adam(.lr = 0.001));
}

static double time_of_recording_nothing(void)
{
    enum { N = 20000000 };
    int64_t begin = stk_clock_ns();
    for (int i = 0; i < N; i++) {
        stk_trace_end(stk_trace_begin(), STK_TRACE_HOST, "nothing", i);
        __asm__ volatile("" ::: "memory"); /* each is looked at again */
    }
    return (double)(stk_clock_ns() - begin) / N;
}

int main(int argc, char **argv)
{
    static meter m;
    double seconds = argc > 1 ? atof(argv[1]) : 20;
    stk_trainer_hooks hooks = {.after_step = after_step, .user = &m};
    stk_trainer *trainer = make_trainer();
    stk_trainer_config config = stk_trainer_config_default();
    config.n_threads = 1;
    stk_trainer_configure(trainer, &config);
    m.end_ns = stk_clock_ns() + (int64_t)(seconds * 1e9);
    stk_trainer_set_hooks(trainer, &hooks);
    stk_status status = stk_trainer_run(trainer, 1000000);
    if (status != STK_INTERRUPTED || m.n < 3) {
        fprintf(stderr, "bench_counters: %s\n",
                status != STK_INTERRUPTED ? stk_error_text() : "too short: give more seconds");
        return 1;
    }
    qsort(m.ratio, (size_t)m.n, sizeof(*m.ratio), compare);
    printf("counters    %+.2f %% of a step of %.2f ms (median of %d pairs of %d steps; the middle half: %+.2f to %+.2f "
           "%%)\n",
           100 * (m.ratio[m.n / 2] - 1), 1e3 * m.step_s / m.n, m.n, STRETCH, 100 * (m.ratio[m.n / 4] - 1),
           100 * (m.ratio[m.n * 3 / 4] - 1));
    printf("trace, off  %.2f ns each time that something could be recorded\n", time_of_recording_nothing());
    stk_trainer_free(trainer);
    return 0;
}
