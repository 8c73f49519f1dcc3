#include "data/codec/jpeg_errors.h"

#include <jerror.h>

#include "base/error.h"

static void on_error(j_common_ptr info)
{
    stk_jpeg_errors *state = (stk_jpeg_errors *)info->err;
    info->err->format_message(info, state->text);
    longjmp(state->jump, 1);
}

/* Level -1 is a warning: the data are damaged though the library would go on. */
static void on_message(j_common_ptr info, int level)
{
    if (level < 0) on_error(info);
}

static void no_output(j_common_ptr info)
{
    (void)info;
}

void stk_jpeg_errors_init(stk_jpeg_errors *errors, struct jpeg_error_mgr **err)
{
    *err = jpeg_std_error(&errors->base);
    errors->base.error_exit = on_error;
    errors->base.emit_message = on_message;
    errors->base.output_message = no_output;
}

stk_status stk_jpeg_fail(const stk_jpeg_errors *errors)
{
    switch (errors->base.msg_code) {
    case JERR_OUT_OF_MEMORY: return stk_fail(STK_NO_MEMORY, "cannot allocate memory for a JPEG");
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EOF: return stk_fail(STK_CORRUPT, "truncated JPEG");
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED: return stk_fail(STK_UNSUPPORTED, "this kind of JPEG is not supported: %s", errors->text);
    default: return stk_fail(STK_CORRUPT, "damaged JPEG: %s", errors->text);
    }
}
