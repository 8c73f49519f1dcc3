/* What `stoker train` shows: lines about data, model and plan, progress, a table at the end. On a terminal one line
 * moves; elsewhere there is a line for each epoch; as JSON, a line for each event. */
#ifndef STOKER_CLI_PROGRESS_H
#define STOKER_CLI_PROGRESS_H

#include "stoker/train/run.h"

typedef struct progress {
    bool quiet, json;
    bool terminal;       /* stdout is one */
    bool line_shown;     /* the moving line is on the screen */
    bool compiles_steps; /* as the event of the plan says */
    int64_t last_ns;     /* when it, or a plain line of a step, was last written */
    stk_run_info info;
    stk_train_event last; /* the last step */
} progress;

progress progress_make(bool quiet, bool json);
void progress_info(void *user, const stk_run_info *info);
void progress_event(void *user, const stk_train_event *event);
/* A graph after a pass; user: a progress. */
void progress_graph(void *user, const char *pass, const char *text);
/* Takes the moving line away, so that something else may be printed. */
void progress_clear(progress *p);
void progress_result(progress *p, const stk_run *run, const stk_run_result *result);

#endif
