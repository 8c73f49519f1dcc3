/* The profile of a run at its end, with what the machine can do, measured where the run was long enough to be worth it.
 */
#include <stdio.h>

#include "base/error.h"
#include "base/file.h"
#include "engine/breakdown.h"
#include "train/profile.h"
#include "train/run_state.h"

static const double WORTH_MEASURING_S = 20; /* the measurement takes about half a second */

void stk_run_write_profile(stk_run *run, const stk_train_result *result)
{
    char path[STK_PATH_BYTES], text[700];
    stk_device_speed speed;
    /* A limit holds until the end. */
    size_t limit = stk_trainer_step_limit(run->trainer);
    bool fits = limit == 0 || stk_trainer_planned(run->trainer) + STK_MEASURE_BYTES <= limit;
    bool worth = fits && (result->wall_s >= WORTH_MEASURING_S || run->options.trace_first > 0);
    bool measured = worth && stk_run_measure(run, &speed) == STK_OK;
    stk_energy_count(&run->energy);
    stk_profile_info info = {&run->info, &run->energy, measured ? &speed : NULL, result->peak_rss_bytes};
    stk_status status = stk_path_join(path, sizeof(path), run->folder, "profile.json");
    if (status == STK_OK) status = stk_profile_write(run->trainer, &info, path);
    if (status == STK_OK) return;
    snprintf(text, sizeof(text), "no profile: %.600s", stk_error_text());
    stk_run_warn(run, text);
}
