/* Where the mean of the weights begins. What it is: optim/average.h. */
#include <string.h>

#include "base/error.h"
#include "optim/average.h"
#include "train/trainer_state.h"

/* "conv.weight" of "conv.weight.raw", its mean. -1: it is no such weight. */
static int64_t find_mean(const stk_trainer *trainer, size_t i_raw)
{
    const char *raw = trainer->tensor[i_raw].name;
    size_t n = strlen(raw), n_end = strlen(STK_AVERAGE_RAW);
    if (n <= n_end || strcmp(raw + n - n_end, STK_AVERAGE_RAW)) return -1;
    for (size_t i = 0; i < trainer->n_tensors; i++)
        if (strlen(trainer->tensor[i].name) == n - n_end && !strncmp(trainer->tensor[i].name, raw, n - n_end))
            return (int64_t)i;
    return -1;
}

stk_status stk_trainer_start_average(stk_trainer *trainer)
{
    const stk_named_tensor *tensors;
    size_t n;
    if (trainer->config.average.decay == 0 || trainer->state.step > 0) return STK_OK;
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &tensors, &n));
    for (size_t i = 0; i < n; i++) {
        int64_t i_mean = find_mean(trainer, i);
        if (i_mean < 0) continue;
        memcpy(tensors[i].view.data, tensors[i_mean].view.data, stk_desc_bytes(tensors[i].view.desc));
    }
    return stk_trainer_put_tensors(trainer);
}
