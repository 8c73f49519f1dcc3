/* stoker data verify: reads and decodes every record once, and lists those that are corrupt. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "stoker/data/sources.h"
#include "stoker/data/verify.h"

enum { MOST_LINES = 100 }; /* as text; as JSON all are listed */

typedef struct verify_view {
    bool terminal, json;
    const char *part; /* of a recipe; NULL: all that a folder or file holds */
    int64_t n_listed;
    double start_s;
} verify_view;

static bool show(void *user, const stk_verify_progress *p)
{
    const verify_view *view = user;
    if (view->terminal) cli_bar("records", p->n_done, p->n_records, 0, view->start_s);
    return !cli_stopped();
}

static void list(void *user, const stk_corrupt_record *record)
{
    verify_view *view = user;
    if (!view->json && view->n_listed == MOST_LINES) return;
    if (view->terminal && view->n_listed == 0) cli_clear_bar();
    if (view->json) {
        printf("%s{\"record\": %lld, \"name\": ", view->n_listed ? ", " : "", (long long)record->i_record);
        cli_json_place(stdout, record->name);
        printf(", \"file\": ");
        if (record->file)
            cli_json_place(stdout, record->file);
        else
            printf("null");
        if (record->offset_bytes >= 0)
            printf(", \"offset\": %lld", (long long)record->offset_bytes);
        else
            printf(", \"offset\": null");
        printf(", \"reason\": ");
        cli_json_place(stdout, record->reason);
        printf("}");
    } else {
        cli_printf("%s: %s\n", cli_shown(record->name), cli_shown(record->reason));
    }
    view->n_listed++;
}

/* A part of the recipe's data, or what a folder, a pack or tar shards hold. False: a message is out. */
static bool open_any(data_job *job, const char **part)
{
    struct stat info;
    static char place[CLI_PATH];
    const char *path = cli_find_data(job->recipe, place);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        job->dataset = stk_dataset_files(&path, 1, STK_LABELS_NONE, NULL);
    else if (cli_is_tar(path))
        job->dataset = stk_dataset_tar(&path, 1, NULL, 0);
    else {
        *part = job->split;
        return data_open(job);
    }
    if (stk_dataset_status(job->dataset) == STK_OK) return true;
    cli_fail();
    return false;
}

static void print_result(const data_job *job, const verify_view *view, const stk_verify_progress *p, stk_status status)
{
    char n[CLI_TEXT], bad[CLI_TEXT], bytes[CLI_TEXT], time_text[CLI_TEXT];
    double s = cli_now() - view->start_s;
    if (view->json) {
        printf("], \"source\": ");
        cli_json_place(stdout, job->recipe);
        printf(", \"records\": %lld, \"n_corrupt\": %lld, \"bytes\": %lld, \"seconds\": %.3f, \"error\": ",
               (long long)p->n_done, (long long)p->n_corrupt, (long long)p->n_bytes, s);
        if (status == STK_OK)
            printf("null}\n");
        else {
            cli_json_place(stdout, stk_error_text());
            printf("}\n");
        }
        return;
    }
    if (p->n_corrupt > view->n_listed)
        cli_printf("... and %s more; --json lists them\n", cli_count(p->n_corrupt - view->n_listed, bad));
    if (status == STK_OK)
        cli_printf("all %s records are whole: %s in %s\n", cli_count(p->n_done, n),
                   cli_bytes((double)p->n_bytes, bytes), cli_duration(s, time_text));
    if (view->part) cli_printf("looked at data.%s alone; --split takes another part\n", view->part);
}

int data_verify(data_job *job)
{
    verify_view view = {.json = cli_has(job->args, "--json"), .start_s = cli_now()};
    view.terminal = !view.json && cli_is_terminal(stdout);
    stk_verify_progress progress;
    if (!open_any(job, &view.part)) return CLI_FAILED;
    cli_catch_stop();
    int n_threads = job->n_threads ? (int)job->n_threads : job->config.n_threads;
    stk_verify_options options = {.n_threads = n_threads, .on_progress = show, .on_corrupt = list, .user = &view};
    if (view.json) printf("{\"corrupt\": [");
    stk_status status = stk_dataset_verify(job->dataset, &options, &progress);
    if (view.terminal && view.n_listed == 0) cli_clear_bar();
    print_result(job, &view, &progress, status);
    if (status == STK_OK) return CLI_OK;
    fflush(stdout);
    cli_fail();
    return cli_stopped() ? cli_stop_code() : CLI_FAILED;
}
