/* A run's training step as a module of StableHLO. See stoker/files/exchange.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/new_file.h"
#include "engine/whole.h"
#include "run/ahead.h"
#include "run/export.h"
#include "run/state.h"
#include "stoker/files/exchange.h"
#include "train/trainer_state.h"

static const char magic[] = "module @stoker";

/* A device that is not here writes the module for any that is. What the caller sets comes behind, and counts. */
static stk_status open_run(const char *path, const stk_run_options *options, stk_run **out)
{
    enum { MOST = 80 };
    const char *set[MOST] = {"device=tpu:v5e:1x1"};
    stk_run_options own = options ? *options : (stk_run_options){0};
    if (own.n_set >= MOST) return stk_fail(STK_INVALID, "more than %d keys are set", MOST - 1);
    for (int i = 0; i < own.n_set; i++)
        set[i + 1] = own.set[i];
    own.set = set;
    own.n_set++;
    return stk_path_is_dir(path) ? stk_run_open_folder(path, &own, out) : stk_run_open(path, &own, out);
}

static stk_status write_text(const stk_text *text, const char *path)
{
    stk_new_file file;
    STK_RETURN_IF_ERROR(stk_new_file_check_kind(path, "a module of Stoker", 0, magic, sizeof(magic) - 1));
    STK_RETURN_IF_ERROR(stk_new_file_begin(&file, path));
    stk_status status = stk_write_all(file.fd, path, text->data, text->n);
    if (status == STK_OK) status = stk_new_file_finish(&file, true);
    stk_new_file_end(&file);
    return status;
}

stk_status stk_run_export_stablehlo(const char *path, const char *out, const stk_run_options *run_options,
                                    stk_export_report *report)
{
    static const stk_plan_request plain = {.batch = 0};
    stk_run *run = NULL;
    stk_program *program = NULL;
    stk_text text = {0};
    stk_status status = STK_OK;
    int64_t batch;
    if (!path || !report) return stk_fail(STK_INVALID, "there is no path, or no place for the report");
    *report = (stk_export_report){.n_files = 1};
    if (access(path, F_OK) != 0) return stk_fail(STK_IO, "cannot open '%s': %s", path, stk_errno_text(errno));
    if (!out && !stk_path_is_dir(path))
        STK_TRY(stk_fail(STK_INVALID, "a recipe's module needs a name: say where to write it"));
    STK_TRY(stk_export_path(path, "step.mlir", out, report->path));
    STK_TRY(stk_dir_check_for(report->path));
    STK_TRY(open_run(path, run_options, &run));
    STK_TRY(stk_run_compile_ahead(run, &plain, &batch, &program));
    STK_TRY(stk_program_print_module(program, &text));
    STK_TRY(write_text(&text, report->path));
    report->n_tensors = stk_engine_n_variables(run->trainer->engine);
    report->n_bytes = (int64_t)text.n;
done:
    stk_text_free(&text);
    if (program) stk_engine_discard(run->trainer->engine, program);
    stk_run_close(run);
    return status;
}
