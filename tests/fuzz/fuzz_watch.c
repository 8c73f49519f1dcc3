/* What `stoker watch` reads: the kernel's texts, and recordings. The first byte says which.
 *
 * A recording that is accepted must be the same after being written and read again, and is judged: the report must be
 * sound JSON whatever the counters were.
 *
 * covers: watch/parse.c watch/record.c watch/sample.c watch/facts.c watch/history.c watch/signals.c watch/judge.c
 * watch/report.c watch/report_json.c watch/report_html.c watch/page.c watch/compare.c watch/together.c
 * watch/together_say.c watch/stacks.c watch/roles.c watch/report_account.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/cgroup.h"
#include "watch/compare.h"
#include "watch/parse.h"
#include "watch/record.h"
#include "watch/report.h"
#include "watch/together.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct counts {
    int64_t n, last_us;
    stk_watch_recorder *recorder; /* NULL: count only */
    const stk_watch_facts *facts;
    stk_watch_sample sample;    /* the last */
    stk_watch_history *history; /* NULL: not judged */
} counts;

static stk_status count(void *user, const stk_watch_sample *sample)
{
    counts *c = user;
    if (sample->time_us < c->last_us) abort();
    c->n++;
    c->last_us = sample->time_us;
    if (stk_watch_sample_copy(&c->sample, sample) != STK_OK) abort();
    if (c->history && stk_watch_history_add(c->history, sample) != STK_OK) abort();
    if (c->recorder) return stk_watch_recorder_put(c->recorder, sample, c->facts);
    return STK_OK;
}

static void check_same(const stk_watch_list *a, const stk_watch_list *b)
{
    if (a->n != b->n || (a->n && memcmp(a->data, b->data, a->n * a->entry_bytes))) abort();
}

static void check_together(const stk_watch_report *report)
{
    static stk_watch_member member[3];
    static const char *const paths[3] = {"a", "b", "b"};
    stk_watch_together together;
    stk_text text = {0}, json = {0};
    for (int i = 0; i < 3; i++)
        member[i].report = report;
    stk_watch_together_judge(member, paths, 3, &together);
    stk_watch_together_text(&together, 80, &text);
    stk_watch_together_html(&together, &text);
    stk_watch_together_json(&together, &json);
    json_t *object = json_loads(stk_text_get(&json), 0, NULL);
    if (!json_is_object(object)) abort();
    json_decref(object);
    stk_text_free(&text);
    stk_text_free(&json);
}

static void check_report(const stk_watch_history *history, const stk_watch_facts *facts)
{
    static stk_watch_report report;
    stk_text text = {0}, json = {0}, html = {0}, both = {0};
    stk_watch_report_make(history, facts, &report);
    stk_watch_report_text(&report, &text);
    stk_watch_report_line(&report, &text);
    stk_watch_report_html(&report, &html);
    stk_watch_report_json(&report, &json);
    stk_watch_compare_json(&report, &report, &both);
    stk_watch_compare_text(&report, &report, &text);
    check_together(&report);
    json_t *object = json_loads(stk_text_get(&json), 0, NULL), *compared = json_loads(stk_text_get(&both), 0, NULL);
    if (!json_is_object(object) || !json_is_object(compared)) abort();
    json_decref(object);
    json_decref(compared);
    stk_text_free(&text);
    stk_text_free(&json);
    stk_text_free(&html);
    stk_text_free(&both);
}

static void check_recording(const char *text, size_t n)
{
    static char again[1 << 20];
    stk_watch_facts facts = {0}, facts_again = {0};
    stk_watch_recorder recorder;
    stk_watch_history history;
    counts first = {0}, second = {0};
    if (stk_watch_history_open(&history) != STK_OK) abort();
    first.history = &history;
    memset(&recorder, 0, sizeof(recorder));
    stk_watch_sample_init(&first.sample);
    stk_watch_sample_init(&second.sample);
    stk_watch_sample_init(&recorder.last);
    recorder.file = fmemopen(again, sizeof(again), "w");
    if (!recorder.file) abort();
    fprintf(recorder.file, "stoker-watch-record 1\n");
    first.recorder = &recorder;
    first.facts = &facts;
    bool good = stk_watch_record_parse(text, n, &facts, count, &first) == STK_OK;
    bool written = stk_watch_recorder_close(&recorder, &facts) == STK_OK;
    if (good && written && strlen(again) + 1 < sizeof(again)) {
        if (stk_watch_record_parse(again, strlen(again), &facts_again, count, &second) != STK_OK) abort();
        if (first.n != second.n || first.last_us != second.last_us || facts.n != facts_again.n) abort();
        check_same(&first.sample.processes, &second.sample.processes);
        check_same(&first.sample.threads, &second.sample.threads);
        check_same(&first.sample.gpus, &second.sample.gpus);
    }
    if (good) check_report(&history, &facts);
    stk_watch_history_free(&history);
    stk_watch_sample_free(&first.sample);
    stk_watch_sample_free(&second.sample);
    stk_watch_facts_free(&facts);
    stk_watch_facts_free(&facts_again);
}

/* Folders lie below where groups are mounted, and become shorter up to there. */
static void visit(void *user, const char *folder, bool is_v1)
{
    size_t *longest = user, n = strlen(folder);
    (void)is_v1;
    if (strncmp(folder, "/root", 5) || n > *longest) abort();
}

static void check_text(uint8_t which, const char *text)
{
    stk_watch_stat stat;
    stk_watch_cpu_times times;
    stk_watch_disks disks;
    char type[STK_WATCH_PATH], point[STK_WATCH_PATH];
    int64_t a, b;
    size_t longest = strlen(text) + 20;
    bool has;
    stk_watch_call call;
    stk_watch_connection talk;
    stk_watch_code code[2];
    switch (which) {
    case 1:
        if (stk_watch_parse_stat(text, &stat) && strlen(stat.name) >= STK_WATCH_NAME) abort();
        break;
    case 2:
        if (stk_watch_parse_schedstat(text, &a, &b) && (a < 0 || b < 0)) abort();
        break;
    case 3: (void)stk_watch_parse_key(text, "VmSwap"); break;
    case 4: (void)stk_watch_parse_pressure(text, "some"); break;
    case 5:
        if (stk_watch_parse_cpu_times(text, &times) && times.busy < 0) abort();
        break;
    case 6:
        if (stk_watch_parse_disks(text, &disks) && (disks.read_sectors < 0 || disks.busy_ms < 0)) abort();
        break;
    case 7:
        if (stk_watch_parse_net(text, &a, &b) && (a < 0 || b < 0)) abort();
        break;
    case 8:
        if (stk_watch_parse_cpu_list(text, 3, &has) < -1) abort();
        break;
    case 9:
        if (stk_watch_parse_mount(text, "/data/x", type, point)) (void)stk_watch_is_remote(type);
        break;
    case 10:
        (void)stk_watch_parse_call(text, &call);
        (void)stk_watch_parse_connection(text, &a, &talk);
        break;
    case 11:
        if (stk_watch_parse_wchan(text) >= STK_WATCH_WAITS) abort();
        break;
    case 12:
        (void)stk_watch_parse_framework(text);
        (void)stk_watch_is_python(text);
        if (stk_watch_parse_openmp(text, code, 2) > 2 || stk_watch_parse_feeding(text, code, 2) > 2) abort();
        break;
    case 13:
        if (stk_watch_parse_ras(text) < -1) abort();
        break;
    case 15: stk_cgroup_visit(text, "/root", "cpu", visit, &longest); break;
    default: (void)stk_watch_parse_number(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    char *text = malloc(size);
    if (!text) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    if (data[0] == 'R')
        check_recording(text, size - 1);
    else
        check_text(data[0] & 15, text);
    free(text);
    return 0;
}
