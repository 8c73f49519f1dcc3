/* The public list of devices: stoker/graph/device.h. */
#include <stdio.h>

#include "base/error.h"
#include "device/device.h"
#include "stoker/graph/device.h"

stk_status stk_device_get_info(int i, stk_device_info *out)
{
    for (int k = 0; k <= i; k++)
        if (i < 0 || !stk_device_classes[k]) return stk_fail(STK_NOT_FOUND, "there is no device number %d", i);
    const stk_device_class *class = stk_device_classes[i];
    *out = (stk_device_info){.name = class->name, .about = class->about, .n_numbers = STK_MOST_DEVICES};
    stk_device *device = NULL;
    stk_status status = class->probe ? class->probe() : STK_OK;
    if (status == STK_OK) status = stk_device_open(class->name, NULL, &device);
    out->available = status == STK_OK;
    if (status != STK_OK) {
        snprintf(out->detail, sizeof(out->detail), "%s", stk_error_text());
        return STK_OK;
    }
    stk_text text = {0};
    class->describe(device, &text);
    snprintf(out->detail, sizeof(out->detail), "%s", stk_text_get(&text));
    stk_text_free(&text);
    stk_device_close(device);
    return STK_OK;
}
