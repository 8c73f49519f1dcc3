/* See run/publish.h. */
#include "run/publish.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "events/prometheus.h"

static const int64_t EVERY_NS = 1000000000;

stk_status stk_publisher_open(const char *folder, const char *run, bool file, int port, stk_publisher *out)
{
    *out = (stk_publisher){.run = run, .loss = NAN, .grad_norm = NAN, .valid_loss = NAN, .valid_accuracy = NAN};
    if (!realpath(folder, out->folder)) snprintf(out->folder, sizeof(out->folder), "%s", folder);
    if (file) STK_RETURN_IF_ERROR(stk_path_join(out->path, sizeof(out->path), folder, "metrics.prom"));
    return port < 0 ? STK_OK : stk_exporter_open(port, &out->exporter);
}

static void make_text(stk_publisher *p, const stk_train_event *event)
{
    static const char share[] = "Share of the training loop's time.";
    const stk_time_shares *time = &event->time;
    double accuracy = event->train.accuracy >= 0 ? event->train.accuracy : NAN;
    const stk_gauge gauges[] = {
        {"stoker_steps_total", "Training steps done, resumed ones included.", "", (double)event->step},
        {"stoker_skipped_steps_total", "Steps that changed nothing: gradients were not finite.", "",
         (double)event->n_skipped_steps},
        {"stoker_epoch", "Epoch under way, from 1.", "", (double)event->epoch},
        {"stoker_train_loss", "Loss of the last step.", "", p->loss},
        {"stoker_train_accuracy_ratio", "Accuracy of the epoch so far.", "", accuracy},
        {"stoker_valid_loss", "Loss of the last validation.", "", p->valid_loss},
        {"stoker_valid_accuracy_ratio", "Accuracy of the last validation.", "", p->valid_accuracy},
        {"stoker_gradient_norm", "Norm of all gradients of the last step, before clipping.", "", p->grad_norm},
        {"stoker_learning_rate", "Learning rate of the last step.", "", event->lr},
        {"stoker_samples_per_second", "Samples trained on a second, smoothed.", "", event->samples_per_s},
        {"stoker_time_ratio", share, "part=\"input\"", time->input},
        {"stoker_time_ratio", share, "part=\"host\"", time->host},
        {"stoker_time_ratio", share, "part=\"launch\"", time->launch},
        {"stoker_time_ratio", share, "part=\"compute\"", time->compute},
        {"stoker_planned_memory_bytes", "Memory that the step was planned to need.", "",
         (double)event->peak_planned_bytes},
        {"stoker_remaining_seconds", "Estimate of the time that the run still takes.", "", event->left_s},
    };
    p->text.n = 0;
    stk_prometheus_add(&p->text, p->run, p->folder, gauges, sizeof(gauges) / sizeof(gauges[0]));
}

static void give_up_file(stk_publisher *p)
{
    p->path[0] = 0;
}

static void give_up_port(stk_publisher *p)
{
    stk_exporter_close(p->exporter);
    p->exporter = NULL;
}

static stk_status publish(stk_publisher *p, const stk_train_event *event)
{
    make_text(p, event);
    stk_status status = stk_text_status(&p->text);
    if (status != STK_OK) {
        give_up_file(p);
        give_up_port(p);
        return status;
    }
    if (p->exporter && (status = stk_exporter_put(p->exporter, &p->text)) != STK_OK) give_up_port(p);
    if (p->path[0]) {
        stk_status written = stk_prometheus_write(p->path, &p->text);
        if (written != STK_OK) give_up_file(p);
        if (status == STK_OK) status = written;
    }
    return status;
}

stk_status stk_publish(stk_publisher *p, const stk_train_event *event)
{
    int64_t now = stk_clock_ns();
    bool is_step = event->kind == STK_EVENT_STEP;
    if ((!is_step && event->kind != STK_EVENT_EPOCH) || (!p->path[0] && !p->exporter)) return STK_OK;
    p->last = *event;
    if (is_step) {
        p->loss = event->loss;
        p->grad_norm = event->grad_norm < 0 ? NAN : event->grad_norm;
    }
    if (is_step && p->published_ns > 0 && now - p->published_ns < EVERY_NS) return STK_OK;
    p->published_ns = now;
    p->last.kind = STK_EVENT_EPOCH;
    if (!is_step && event->valid.n_samples > 0) {
        p->valid_loss = event->valid.loss;
        p->valid_accuracy = event->valid.accuracy >= 0 ? event->valid.accuracy : NAN;
    }
    return publish(p, event);
}

void stk_publisher_close(stk_publisher *p)
{
    if (p->last.kind == STK_EVENT_STEP) (void)publish(p, &p->last);
    give_up_port(p);
    stk_text_free(&p->text);
}
