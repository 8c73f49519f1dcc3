/* One kernel, launched many times over, for tests of what a launch is and costs. DEVICE is the device's name. */
#ifndef TESTS_DEVICE_GPU_ENDLESS_H
#define TESTS_DEVICE_GPU_ENDLESS_H

#include "device/gpu/expect.h"

static const char endless[] __attribute__((unused)) =
    "KERNEL(endless, 64, 1, 1)(BUFFER(float, x), int n)\n{\n    POINTER(float, x);\n"
    "    float y = x[0];\n"
    "    for (int i = 0; i < n; i++)\n"
    "        for (int j = 0; j < 1000000; j++)\n"
    "            y = y * 0.999f + 1.0f;\n"
    "    x[ITEM_X] = y;\n}\n";

/* An entry that launches it n times, for about that many rounds each. */
typedef struct endless_entry {
    stk_op_call call;
    gpu_kernel made;
    gpu_maker maker;
    stk_kernel kernel;
    void *x;
    stk_entry entry;
} endless_entry;

static inline void make_endless(stk_device *device, int n, int rounds, endless_entry *e)
{
    gpu_unit *unit;
    *e = (endless_entry){0};
    e->maker = (gpu_maker){.device = (gpu_device *)device, .call = &e->call, .kernel = &e->made};
    expect_ok(device->class->alloc(device, 256, STK_MEMORY_ZEROED, &e->x));
    expect_ok(gpu_unit_of_text((gpu_device *)device, "endless.dev", "", endless, &unit));
    for (int i = 0; i < n; i++) {
        gpu_add_unit(&e->maker, unit, "endless");
        gpu_in(&e->maker, 0);
        gpu_int(&e->maker, rounds);
        gpu_items(&e->maker, 64, 64);
    }
    expect_ok(e->maker.status);
    e->kernel = (stk_kernel){.state = &e->made};
    e->entry = (stk_entry){.kernel = &e->kernel, .args = {.in = &e->x}};
}

static inline void free_endless(endless_entry *e)
{
    free(e->made.launch);
    free(e->made.values);
}

#endif
