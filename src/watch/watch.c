#include "watch/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "watch/origin.h"
#include "watch/own.h"

stk_status stk_watch_open(stk_watch *watch, const stk_watch_config *config, const char *record)
{
    stk_status status;
    memset(watch, 0, sizeof(*watch));
    STK_TRY(stk_watch_sampler_open(&watch->sampler, config));
    watch->is_open = true;
    STK_TRY(stk_watch_origin_note(&watch->sampler.facts));
    STK_TRY(stk_watch_history_open(&watch->history));
    if (record) STK_TRY(stk_watch_recorder_open(&watch->recorder, record));
done:
    if (status != STK_OK) stk_watch_close(watch);
    return status;
}

stk_status stk_watch_take(stk_watch *watch, bool *is_over)
{
    STK_RETURN_IF_ERROR(stk_watch_sampler_take(&watch->sampler));
    const stk_watch_sample *sample = &watch->sampler.sample;
    *is_over = sample->processes.n == 0;
    STK_RETURN_IF_ERROR(stk_watch_history_add(&watch->history, sample));
    if (watch->takes_stacks) {
        STK_RETURN_IF_ERROR(stk_watch_stacks_step(&watch->stacks, (double)sample->time_us * 1e-6,
                                                  watch->history.drives_pid, &watch->sampler.facts));
        watch->sampler.tool_pid = watch->stacks.tool;
    }
    if (!watch->recorder.file) return STK_OK;
    return stk_watch_recorder_put(&watch->recorder, sample, &watch->sampler.facts);
}

static stk_status add_sample(void *user, const stk_watch_sample *sample)
{
    stk_watch *watch = user;
    return stk_watch_history_add(&watch->history, sample);
}

stk_status stk_watch_replay(stk_watch *watch, const char *path)
{
    stk_status status;
    uint8_t *text = NULL;
    size_t capacity = 0, n = 0;
    memset(watch, 0, sizeof(*watch));
    STK_TRY(stk_watch_history_open(&watch->history));
    STK_TRY(stk_file_read(path, &text, &capacity, &n));
    status = stk_watch_record_parse((const char *)text, n, &watch->sampler.facts, add_sample, watch);
    if (status != STK_OK) stk_fail_prefix(status, "'%s': ", path);
done:
    free(text);
    if (status != STK_OK) stk_watch_close(watch);
    return status;
}

void stk_watch_report_now(const stk_watch *watch, stk_watch_report *out)
{
    const char *overhead = stk_watch_facts_get(&watch->sampler.facts, "overhead", 0);
    stk_watch_report_make(&watch->history, &watch->sampler.facts, out);
    if (overhead) out->overhead = strtod(overhead, NULL);
}

stk_status stk_watch_finish(stk_watch *watch, int exit_code, int by_signal)
{
    stk_watch_facts *facts = &watch->sampler.facts;
    stk_watch_stacks_end(&watch->stacks);
    if (watch->is_open)
        STK_RETURN_IF_ERROR(
            stk_watch_facts_add(facts, "overhead", "%.6f", stk_watch_sampler_overhead(&watch->sampler)));
    if (watch->is_open) STK_RETURN_IF_ERROR(stk_watch_own_note(facts));
    if (exit_code >= 0) STK_RETURN_IF_ERROR(stk_watch_facts_add(facts, "exit", "%d", exit_code));
    if (by_signal > 0) STK_RETURN_IF_ERROR(stk_watch_facts_add(facts, "signal", "%d", by_signal));
    /* A job that is killed takes no more samples. */
    int64_t kills = watch->is_open && exit_code >= 0 ? stk_watch_sampler_last_kills(&watch->sampler) : 0;
    if (kills > 0) STK_RETURN_IF_ERROR(stk_watch_facts_add(facts, "killed", "%" PRId64, kills));
    return stk_watch_recorder_close(&watch->recorder, facts);
}

void stk_watch_close(stk_watch *watch)
{
    stk_watch_stacks_end(&watch->stacks);
    (void)stk_watch_recorder_close(&watch->recorder, &watch->sampler.facts);
    if (watch->is_open)
        stk_watch_sampler_close(&watch->sampler);
    else
        stk_watch_facts_free(&watch->sampler.facts);
    stk_watch_history_free(&watch->history);
    memset(watch, 0, sizeof(*watch));
}
