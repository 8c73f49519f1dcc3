/* profile.json: what a run's time and memory went to, for 'stoker report' and for scripts. docs/observing.md has its
 * fields. Threads: the trainer's.
 */
#ifndef STK_TRAIN_PROFILE_H
#define STK_TRAIN_PROFILE_H

#include "stoker/plan.h"
#include "train/energy.h"
#include "train/trainer.h"

typedef struct stk_profile_info {
    const stk_run_info *run;
    const stk_energy *energy;
    const stk_device_speed *peaks; /* NULL: not measured */
    size_t peak_rss_bytes;         /* of the process, before that was measured */
} stk_profile_info;

/* Writes it whole or not at all. The trainer has run. */
stk_status stk_profile_write(stk_trainer *trainer, const stk_profile_info *info, const char *path);
/* Keeps what a loader knows of its work before it is closed. */
void stk_profile_keep_loader(stk_trainer *trainer, const stk_loader *loader);

#endif
