#include "train/precision.h"

#include "train/trainer_state.h"

const char *stk_precision_name(stk_precision precision)
{
    static const char *const names[] = {"f32", "bf16", "f16", "auto"};
    return names[precision];
}

static stk_dtype dtype_of(stk_precision precision)
{
    return precision == STK_PRECISION_BF16 ? STK_BF16 : precision == STK_PRECISION_F16 ? STK_F16 : STK_F32;
}

/* A device that does not tell is not known to be fast. */
static bool is_fast(const stk_device *device, stk_dtype dtype)
{
    return device->class->slow_dtype && !device->class->slow_dtype(device, dtype);
}

void stk_trainer_choose_precision(stk_trainer *trainer)
{
    const stk_device *device = stk_engine_device(trainer->engine);
    stk_precision wanted = trainer->config.precision;
    if (wanted == STK_PRECISION_AUTO) wanted = is_fast(device, STK_BF16) ? STK_PRECISION_BF16 : STK_PRECISION_F32;
    trainer->compute = dtype_of(wanted);
    trainer->result.precision = stk_precision_name(wanted);
    if (trainer->compute == STK_F32 || !device->class->slow_dtype || is_fast(device, trainer->compute)) return;
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = device->class->slow_dtype(device, trainer->compute)};
    stk_trainer_emit(trainer, &event);
}
