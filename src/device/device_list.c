/* Every device of this build, one line each. The first is what "auto" would take, "gpu" the first that has one. */
#include "device/device.h"

const stk_device_class *const stk_device_classes[] = {
    &stk_device_class_cpu,
    &stk_device_class_reference,
    &stk_device_class_cuda,
    &stk_device_class_opencl,
    &stk_device_class_pjrt,
    &stk_device_class_tpu,
    NULL,
};
