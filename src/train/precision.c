#include "train/precision.h"

#include <math.h>

#include "base/error.h"
#include "train/trainer_state.h"

static stk_dtype dtype_of(stk_precision precision)
{
    return precision == STK_PRECISION_BF16 ? STK_BF16 : precision == STK_PRECISION_F16 ? STK_F16 : STK_F32;
}

static bool has_dtype(const stk_device *device, stk_dtype dtype)
{
    return dtype == STK_BF16 ? device->caps->bf16 : dtype == STK_F16 ? device->caps->f16 : true;
}

/* A device that does not tell is not known to be fast. */
static bool is_fast(const stk_device *device, stk_dtype dtype)
{
    return has_dtype(device, dtype) && device->class->slow_dtype && !device->class->slow_dtype(device, dtype);
}

stk_status stk_trainer_choose_precision(stk_trainer *trainer)
{
    const stk_device *device = stk_engine_device(trainer->engine);
    stk_precision wanted = trainer->config.precision;
    if (wanted == STK_PRECISION_AUTO) wanted = is_fast(device, STK_BF16) ? STK_PRECISION_BF16 : STK_PRECISION_F32;
    trainer->compute = dtype_of(wanted);
    if (!has_dtype(device, trainer->compute))
        return stk_fail(STK_UNSUPPORTED, "precision %s: the device '%s' has no numbers of that kind",
                        stk_precision_name(wanted), device->class->name);
    trainer->tf32 = wanted == STK_PRECISION_TF32;
    if (trainer->tf32 && !device->caps->tf32)
        return stk_fail(
            STK_UNSUPPORTED,
            "precision tf32: the device '%s' has no products in TF32; the device 'cuda' has them, on chips of "
            "compute capability 8.0 or more and with cuBLASLt ('stoker devices' says what is here)",
            device->class->name);
    trainer->result.precision = stk_precision_name(wanted);
    trainer->loss_scale = trainer->config.loss_scale;
    if (trainer->loss_scale.kind == STK_LOSS_SCALE_AUTO)
        trainer->loss_scale.kind = trainer->compute == STK_F16 ? STK_LOSS_SCALE_DYNAMIC : STK_LOSS_SCALE_NONE;
    if (trainer->compute == STK_F32 || !device->class->slow_dtype || is_fast(device, trainer->compute))
        return stk_loss_scale_check(&trainer->loss_scale);
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = device->class->slow_dtype(device, trainer->compute)};
    stk_trainer_emit(trainer, &event);
    return stk_loss_scale_check(&trainer->loss_scale);
}

/* --- the loss scale --- */

enum { MOST_IN_A_ROW = 20 };
static const double least_scale = 0x1p-14;

static stk_status explain_fall(const stk_trainer *trainer, int64_t last, int64_t in_a_row, double loss)
{
    int64_t first = last - in_a_row + 1;
    const char *what = isfinite(loss) ? "gradients overflow" : "the loss itself is not finite";
    return stk_fail(STK_INVALID,
                    "the loss scale only falls: it is %g, steps %lld to %lld were skipped and %lld in all, and still "
                    "%s; %s ends at %s, so try a lower learning rate, clip_norm, 'dtype: f32' on the layers with "
                    "large activations, or precision: bf16",
                    trainer->result.loss_scale, (long long)first, (long long)last,
                    (long long)trainer->result.n_skipped_steps, what, trainer->result.precision,
                    trainer->compute == STK_F16 ? "65504" : "3.4e38");
}

stk_status stk_trainer_watch_scale(stk_trainer *trainer, int64_t step, double loss)
{
    if (trainer->loss_scale.kind < STK_LOSS_SCALE_FIXED) return STK_OK;
    trainer->result.loss_scale = stk_step_scalar(&trainer->train, "loss_scale");
    if (trainer->loss_scale.kind == STK_LOSS_SCALE_FIXED) return STK_OK;
    trainer->result.n_skipped_steps = (int64_t)stk_step_scalar(&trainer->train, "n_skipped");
    int64_t in_a_row = (int64_t)stk_step_scalar(&trainer->train, "n_skipped_in_a_row");
    bool falls = in_a_row >= MOST_IN_A_ROW || (in_a_row > 0 && trainer->result.loss_scale < least_scale);
    return falls ? explain_fall(trainer, step, in_a_row, loss) : STK_OK;
}
