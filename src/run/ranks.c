/* See run/ranks.h. */
#include "run/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread.h"

enum { TIMEOUT_MS = STK_RUN_TIMEOUT_MS, TEXT = 1000 };

stk_status stk_run_open_ranks(stk_run *run)
{
    if (!run->options.ranks) return STK_OK;
    STK_RETURN_IF_ERROR(stk_comm_open_mpi(TIMEOUT_MS, &run->comm));
    if (run->comm && run->comm->note && stk_run_is_first(run)) stk_run_warn(run, run->comm->note);
    run->alarm = run->options.on_event;
    if (stk_run_is_first(run)) return STK_OK;
    run->options.on_event = NULL;
    run->options.on_info = NULL;
    run->options.dump_graph = NULL;
    return STK_OK;
}

int stk_run_rank(const stk_run *run)
{
    if (!run) return 0;
    return run->comm ? run->comm->rank : 0;
}

int stk_run_n_ranks(const stk_run *run)
{
    return run ? stk_comm_n_ranks(run->comm) : 0;
}

typedef struct report {
    int32_t status;
    uint64_t what; /* of recipe and steps, which all must have alike */
    char host[64], text[TEXT];
} report;

stk_status stk_run_agree(stk_run *run, stk_status own)
{
    if (!run->comm) return own;
    int n = run->comm->n_ranks, first = -1;
    report mine = {.status = own}, *all = calloc((size_t)n, sizeof(*all));
    if (own != STK_OK) snprintf(mine.text, TEXT, "%s", stk_error_text());
    mine.what = stk_hash64(stk_text_get(&run->recipe_text), run->recipe_text.n, (uint64_t)run->options.max_steps);
    (void)gethostname(mine.host, sizeof(mine.host) - 1);
    if (!all) return stk_run_tell_failure(run, stk_fail_memory((size_t)n * sizeof(*all)));
    stk_comm_call call = {
        .kind = STK_COLLECTIVE_all_gather, .dtype = STK_U8, .n = (int64_t)sizeof(mine), .src = &mine, .dst = all};
    stk_status status = stk_comm_run(run->comm, &call, TIMEOUT_MS);
    for (int r = n - 1; r >= 0 && status == STK_OK; r--)
        if (all[r].status != STK_OK) first = r;
    for (int r = 1; r < n && status == STK_OK && first < 0; r++) {
        if (all[r].what == all[0].what) continue;
        first = r;
        all[r].status = STK_MISMATCH;
        snprintf(all[r].text, TEXT, "another recipe, or another '--steps', than rank 0: they train together");
    }
    if (first >= 0 && run->comm->rank > 0)
        status = stk_fail(STK_LOST, "rank %d: %s", first, all[first].text);
    else if (first > 0)
        status =
            stk_fail((stk_status)all[first].status, "rank %d on '%s': %s", first, all[first].host, all[first].text);
    else if (first == 0)
        status = stk_fail((stk_status)all[0].status, "%s", all[0].text);
    free(all);
    return status;
}

stk_status stk_run_share_number(stk_run *run, int64_t *number)
{
    if (!run->comm) return STK_OK;
    stk_comm_call call = {.kind = STK_COLLECTIVE_broadcast, .dtype = STK_I64, .n = 1, .src = number, .dst = number};
    return stk_comm_run(run->comm, &call, TIMEOUT_MS);
}

stk_status stk_run_tell_failure(stk_run *run, stk_status status)
{
    if (!run->comm || status == STK_OK || status == STK_INTERRUPTED) return status;
    char text[TEXT];
    snprintf(text, sizeof(text), "%s", stk_error_text());
    stk_comm_abort(run->comm, text);
    return stk_fail(status, "%s", text);
}

int stk_run_replicas(const stk_run *run)
{
    int64_t n = run->recipe->replicas;
    if (n > 0) return (int)n;
    if (run->comm) return 1;
    int64_t parts = run->recipe->config.strict ? run->recipe->config.strict : run->recipe->batch;
    for (n = stk_n_cores() < STK_MOST_REPLICAS ? stk_n_cores() : STK_MOST_REPLICAS; parts % n != 0;)
        n--;
    return (int)n;
}

int stk_run_rank_threads(const stk_run *run)
{
    return run->comm ? stk_n_cores_of(run->comm->n_here) : 0;
}
