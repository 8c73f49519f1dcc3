/* Every device of this build, one line each. The first is what "auto" would take. */
#include "device/device.h"

const stk_device_class *const stk_device_classes[] = {
    &stk_device_class_cpu,
    &stk_device_class_reference,
    &stk_device_class_opencl,
    NULL,
};
