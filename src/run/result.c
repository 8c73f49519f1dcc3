/* result.json: what a run came to, for scripts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "recipe/expect.h"
#include "run/state.h"
#include "train/precision.h"
#include "train/trainer_state.h"

static json_t *real_or_null(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

/* A row for each label, a column for each class given. */
static int set_confusion(const stk_run *run, json_t *object)
{
    int64_t n;
    const double *count = stk_trainer_confusion(run->trainer, &n);
    json_t *rows = count ? json_array() : NULL;
    int bad = 0;
    for (int64_t i = 0; rows && i < n; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < n; j++)
            bad |= json_array_append_new(row, json_integer((json_int_t)count[i * n + j]));
        bad |= json_array_append_new(rows, row);
    }
    return count ? bad | json_object_set_new(object, "test_confusion", rows) : 0;
}

/* "expected": [{"what": "test_iou >= 0.9", "value": 0.93, "met": true}] */
static int set_expected(const stk_run_result *result, json_t *object)
{
    json_t *list = result->n_expected > 0 ? json_array() : NULL;
    int bad = 0;
    for (int i = 0; list && i < result->n_expected; i++) {
        const stk_expected *e = &result->expected[i];
        json_t *one = json_object();
        bad |= json_object_set_new(one, "what", json_string(e->text));
        bad |= json_object_set_new(one, "value", real_or_null(true, e->value));
        bad |= json_object_set_new(one, "met", json_boolean(e->is_met));
        bad |= json_array_append_new(list, one);
    }
    return result->n_expected > 0 ? bad | json_object_set_new(object, "expected", list) : 0;
}

/* Of this process, which is as long as the chip was looked at. */
static double trained_samples(const stk_run *run)
{
    return (double)run->trainer->timing.n_steps * (double)stk_trainer_step_rows(run->trainer);
}

static json_t *make_object(const stk_run *run, const stk_run_result *result)
{
    const stk_train_result *train = &result->train;
    bool is_tested = result->test.n_samples > 0;
    json_t *object = json_object();
    if (!object) return NULL;
    int bad = 0;
    bad |= json_object_set_new(object, "name", json_string(run->recipe->name));
    bad |= json_object_set_new(object, "test_accuracy",
                               real_or_null(is_tested && result->test.accuracy >= 0, result->test.accuracy));
    if (is_tested && result->test.top5 >= 0)
        bad |= json_object_set_new(object, "test_top5", real_or_null(true, result->test.top5));
    bad |= json_object_set_new(object, "test_loss", real_or_null(is_tested, result->test.loss));
    if (is_tested && result->test.perplexity > 0)
        bad |= json_object_set_new(object, "test_perplexity", real_or_null(true, result->test.perplexity));
    for (int i = 0; is_tested && i < result->test.n_values; i++) {
        char key[32];
        snprintf(key, sizeof(key), "test_%s", result->test.value[i].name);
        bad |= json_object_set_new(object, key, real_or_null(true, result->test.value[i].value));
    }
    if (is_tested) bad |= set_confusion(run, object);
    bad |= set_expected(result, object);
    bad |= json_object_set_new(object, "tested_step", is_tested ? json_integer(result->evaluated_step) : json_null());
    bad |= json_object_set_new(object, "epochs", json_integer(train->n_epochs));
    bad |= json_object_set_new(object, "steps", json_integer(train->n_steps));
    bad |= json_object_set_new(object, "finished", json_boolean(result->is_finished));
    bad |= json_object_set_new(object, "early_stopped", json_boolean(train->early_stopped));
    bad |= json_object_set_new(object, "wall_s", json_real(train->wall_s));
    bad |=
        json_object_set_new(object, "step_ms_median", real_or_null(train->step_ms_median > 0, train->step_ms_median));
    bad |= json_object_set_new(object, "samples_per_s", real_or_null(true, train->samples_per_s));
    bad |= json_object_set_new(object, "samples_per_s_overall", real_or_null(true, train->samples_per_s_overall));
    double epoch_rows = (double)run->trainer->n_batches * (double)stk_trainer_step_rows(run->trainer);
    bad |= json_object_set_new(
        object, "epoch_s", real_or_null(epoch_rows > 0 && train->samples_per_s > 0, epoch_rows / train->samples_per_s));
    if (train->tokens_per_s > 0)
        bad |= json_object_set_new(object, "tokens_per_s", real_or_null(true, train->tokens_per_s));
    bad |= json_object_set_new(object, "input_wait_share", real_or_null(true, train->input_wait_share));
    bad |=
        json_object_set_new(object, "time",
                            json_pack("{s:f,s:f,s:f,s:f,s:f,s:f}", "input", train->time.input, "host", train->time.host,
                                      "launch", train->time.launch, "communication", train->time.communication,
                                      "compute", train->time.compute, "idle", train->time.idle));
    bad |= json_object_set_new(object, "peak_planned_bytes", json_integer((json_int_t)train->peak_planned_bytes));
    bad |=
        json_object_set_new(object, "checkpoint_copy_bytes", json_integer((json_int_t)result->checkpoint_copy_bytes));
    bad |= json_object_set_new(object, "peak_used_bytes", json_integer((json_int_t)train->peak_used_bytes));
    bad |= json_object_set_new(object, "peak_rss_bytes", json_integer((json_int_t)train->peak_rss_bytes));
    bad |= json_object_set_new(object, "first_step_s", real_or_null(train->first_step_s > 0, train->first_step_s));
    bad |= json_object_set_new(object, "skipped_records", json_integer(train->n_skipped));
    bad |= json_object_set_new(object, "data_threads", json_integer(train->n_data_threads));
    if (train->n_shapes > 1) {
        bad |= json_object_set_new(object, "shapes", json_integer(train->n_shapes));
        bad |= json_object_set_new(object, "compile_s", json_real(train->compile_s));
    }
    bad |= json_object_set_new(object, "device", json_string(run->recipe->device));
    json_t *chip = stk_chip_json(&run->chip, trained_samples(run));
    if (chip) bad |= json_object_set_new(object, "gpu", chip);
    if (train->loss_scale > 0) bad |= json_object_set_new(object, "loss_scale", json_real(train->loss_scale));
    if (train->loss_scale > 0 || run->recipe->config.on_nan == STK_ON_NAN_SKIP)
        bad |= json_object_set_new(object, "skipped_steps", json_integer(train->n_skipped_steps));
    const char *precision = train->precision ? train->precision : stk_precision_name(run->recipe->precision);
    bad |= json_object_set_new(object, "precision", json_string(precision));
    if (!bad) return object;
    json_decref(object);
    return NULL;
}

/* Takes object, which was made since the mark. */
static stk_status write_object(const stk_run *run, json_t *object, unsigned mark)
{
    char path[STK_PATH_BYTES], *text;
    STK_RETURN_IF_ERROR(stk_json_print(object, mark, JSON_INDENT(2) | JSON_REAL_PRECISION(12), &text));
    size_t n = strlen(text);
    text[n] = '\n'; /* The end of a line in place of the end of the text. */
    stk_status status = stk_path_join(path, sizeof(path), run->folder, "result.json");
    if (status == STK_OK) status = stk_file_write_durably(path, text, n + 1);
    free(text);
    return status;
}

stk_status stk_result_write(const stk_run *run, const stk_run_result *result)
{
    unsigned mark = stk_json_mark();
    return write_object(run, make_object(run, result), mark);
}

/* What is expected may have changed since the run was trained. */
static stk_status rewrite_expected(const stk_run *run, const stk_run_result *result, json_t *object)
{
    unsigned mark = stk_json_mark();
    json_t *before = json_incref(json_object_get(object, "expected"));
    stk_status status = STK_OK;
    (void)json_object_del(object, "expected");
    if (set_expected(result, object)) status = stk_fail_memory(1024);
    const json_t *now = json_object_get(object, "expected");
    bool is_same = before == now || (before && now && json_equal(before, now));
    if (status == STK_OK && !is_same) status = write_object(run, json_incref(object), mark);
    json_decref(before);
    return status;
}

stk_status stk_result_judge(const stk_run *run, const char *path, stk_run_result *result)
{
    char key[32];
    json_t *object;
    stk_status read = stk_json_read(path, 0, &object);
    if (read == STK_CORRUPT) return stk_fail(read, "%s; without it the run is tested again", stk_error_text());
    STK_RETURN_IF_ERROR(read);
    if (json_is_false(json_object_get(object, "finished"))) {
        json_decref(object);
        return STK_OK;
    }
    result->was_finished = result->is_finished = true;
    result->unjudged_epochs = run->recipe->unjudged_epochs;
    result->n_expected = result->unjudged_epochs > 0 ? 0 : run->recipe->n_expected;
    for (int i = 0; i < result->n_expected; i++) {
        result->expected[i] = run->recipe->expected[i];
        snprintf(key, sizeof(key), "test_%s", result->expected[i].name);
        const json_t *value = json_object_get(object, key);
        stk_expect_set(&result->expected[i], json_is_number(value) ? json_number_value(value) : NAN);
    }
    stk_status status = rewrite_expected(run, result, object);
    json_decref(object);
    return status;
}

bool stk_result_is_finished(const char *folder, int64_t n_epochs)
{
    char path[STK_PATH_BYTES];
    json_t *object;
    if (stk_path_join(path, sizeof(path), folder, "result.json") != STK_OK || stk_json_read(path, 0, &object) != STK_OK)
        return false;
    bool is_finished = json_is_true(json_object_get(object, "finished")) &&
                       (json_is_true(json_object_get(object, "early_stopped")) ||
                        json_integer_value(json_object_get(object, "epochs")) >= n_epochs);
    json_decref(object);
    return is_finished;
}
