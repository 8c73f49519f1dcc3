/* See run/metrics.h. */
#include "run/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

/* *keep: the line belongs to what the checkpoint holds. One that is no JSON does not. */
static stk_status look_at(const char *line, size_t n, int64_t step, int64_t n_epochs, bool *keep)
{
    json_error_t error;
    json_t *object;
    if (stk_json_parse(line, n, 0, &object, &error) == STK_NO_MEMORY) return STK_NO_MEMORY;
    const char *kind = json_string_value(json_object_get(object, "kind"));
    json_t *line_step = json_object_get(object, "step"), *epoch = json_object_get(object, "epoch");
    *keep = kind && json_is_integer(line_step) && json_integer_value(line_step) <= step;
    /* An epoch that was not validated yet gets its line again. */
    if (*keep && !strcmp(kind, "epoch")) *keep = json_is_integer(epoch) && json_integer_value(epoch) <= n_epochs;
    json_decref(object);
    return STK_OK;
}

static stk_status cut(const char *path, int64_t step, int64_t n_epochs)
{
    uint8_t *data = NULL;
    size_t capacity = 0, n = 0;
    stk_text kept = {0};
    stk_status status;
    if (!stk_path_exists(path)) return STK_OK;
    STK_TRY(stk_file_read(path, &data, &capacity, &n));
    for (size_t at = 0; at < n;) {
        const uint8_t *end = memchr(data + at, '\n', n - at);
        if (!end) break; /* A line without an end was torn by a kill. */
        size_t length = (size_t)(end - (data + at)) + 1;
        bool keep;
        STK_TRY(look_at((const char *)data + at, length, step, n_epochs, &keep));
        if (keep) stk_text_add_bytes(&kept, data + at, length);
        at += length;
    }
    STK_TRY(stk_text_status(&kept));
    if (kept.n != n) STK_TRY(stk_file_write_durably(path, stk_text_get(&kept), kept.n));
done:
    free(data);
    stk_text_free(&kept);
    return status;
}

stk_status stk_metrics_open(const char *folder, int64_t step, int64_t n_epochs, stk_metrics_file *out)
{
    out->fd = -1;
    out->n_bytes = out->n_lost = 0;
    STK_RETURN_IF_ERROR(stk_path_join(out->path, sizeof(out->path), folder, "metrics.jsonl"));
    if (step > 0) STK_RETURN_IF_ERROR(cut(out->path, step, n_epochs));
    out->fd = open(out->path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | (step > 0 ? 0 : O_TRUNC), 0666);
    if (out->fd < 0) return stk_fail(STK_IO, "cannot open '%s': %s", out->path, stk_errno_text(errno));
    out->n_bytes = (int64_t)lseek(out->fd, 0, SEEK_END);
    return STK_OK;
}

void stk_metrics_close(stk_metrics_file *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

static stk_status write_line(stk_metrics_file *file, const char *line, size_t n)
{
    if (file->fd < 0) return STK_OK;
    if (stk_write_all(file->fd, file->path, line, n) == STK_OK) {
        file->n_bytes += (int64_t)n;
        return STK_OK;
    }
    file->n_lost++;
    /* Half a line would make the whole file unreadable. */
    if (ftruncate(file->fd, (off_t)file->n_bytes) < 0) return STK_IO;
    return STK_IO;
}

/* JSON has no NaN. */
static const char *number(double x, int digits, char out[40])
{
    if (isfinite(x))
        snprintf(out, 40, "%.*g", digits, x);
    else
        snprintf(out, 40, "null");
    return out;
}

static const char *accuracy(double x, char out[40])
{
    return number(x < 0 ? NAN : x, 6, out);
}

/* ", \"f1\": 0.9" for each. */
static int write_values(char *line, size_t bytes, const char *prefix, const stk_metrics *metrics)
{
    char text[40];
    int n = 0;
    for (int i = 0; i < metrics->n_values; i++)
        n += snprintf(line + n, bytes - (size_t)n, ", \"%s%s\": %s", prefix, metrics->value[i].name,
                      number(metrics->value[i].value, 9, text));
    return n;
}

/* Seconds since 1970. */
static double wall_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int write_common(char *line, size_t bytes, const char *kind, int64_t epoch, double loss,
                        const stk_train_event *event)
{
    char loss_text[40], accuracy_text[40];
    int n = snprintf(line, bytes,
                     "{\"kind\": \"%s\", \"step\": %" PRId64 ", \"epoch\": %" PRId64
                     ", \"loss\": %s, \"lr\": %.7g, \"accuracy\": %s, \"samples_per_s\": %.6g, "
                     "\"input_wait_share\": %.4g",
                     kind, event->step, epoch, number(loss, 9, loss_text), event->lr,
                     accuracy(event->train.accuracy, accuracy_text), event->samples_per_s, event->input_wait_share);
    n += snprintf(line + n, bytes - (size_t)n,
                  ", \"time\": %.3f, \"input\": %.4g, \"host\": %.4g, \"launch\": %.4g, \"compute\": %.4g", wall_time(),
                  event->time.input, event->time.host, event->time.launch, event->time.compute);
    if (event->train.perplexity > 0)
        n += snprintf(line + n, bytes - (size_t)n, ", \"perplexity\": %s",
                      number(event->train.perplexity, 6, loss_text));
    n += write_values(line + n, bytes - (size_t)n, "", &event->train);
    if (event->loss_scale > 0)
        n += snprintf(line + n, bytes - (size_t)n, ", \"loss_scale\": %.7g, \"skipped_steps\": %" PRId64,
                      event->loss_scale, event->n_skipped_steps);
    else if (event->n_skipped_steps > 0)
        n += snprintf(line + n, bytes - (size_t)n, ", \"skipped_steps\": %" PRId64, event->n_skipped_steps);
    return n;
}

stk_status stk_metrics_write_step(stk_metrics_file *file, const stk_train_event *event)
{
    char line[2048], norm[40];
    int n = write_common(line, sizeof(line), "step", event->epoch, event->loss, event);
    if (!(event->grad_norm < 0))
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", \"grad_norm\": %s", number(event->grad_norm, 7, norm));
    n += snprintf(line + n, sizeof(line) - (size_t)n, "}\n");
    return write_line(file, line, (size_t)n);
}

stk_status stk_metrics_write_epoch(stk_metrics_file *file, const stk_train_event *event, double loss)
{
    char line[4096], a[40], b[40];
    int n = write_common(line, sizeof(line), "epoch", event->epoch, loss, event);
    n += snprintf(line + n, sizeof(line) - (size_t)n, ", \"train_loss\": %s, \"epoch_s\": %.6g",
                  number(event->train.loss, 9, a), event->epoch_s);
    if (event->valid.n_samples > 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", \"valid_loss\": %s, \"valid_accuracy\": %s",
                      number(event->valid.loss, 9, a), accuracy(event->valid.accuracy, b));
    if (event->valid.n_samples > 0 && event->valid.perplexity > 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", \"valid_perplexity\": %s",
                      number(event->valid.perplexity, 6, a));
    if (event->valid.n_samples > 0) n += write_values(line + n, sizeof(line) - (size_t)n, "valid_", &event->valid);
    n += snprintf(line + n, sizeof(line) - (size_t)n, "}\n");
    return write_line(file, line, (size_t)n);
}
