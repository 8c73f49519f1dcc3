/* Opening devices by name. */
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const stk_device_class *added; /* by stk_device_add */

void stk_device_add(const stk_device_class *class)
{
    added = class;
}

/* True for "cpu" and "cpu:0". */
static bool is_named(const char *name, const char *class_name)
{
    size_t n = strlen(class_name);
    return !strncmp(name, class_name, n) && (!name[n] || !strcmp(name + n, ":0"));
}

/* The part of a sentence that says why there is no such device. */
static const char *explain_absence(const char *name)
{
    static const char *const gpus[][2] = {
        {"cuda", "this build has no CUDA support; "},
        {"gpu", "this build has no GPU support; "},
        {"opencl", "this build has no OpenCL support; "},
        {"rocm", "this build has no ROCm support; "},
    };
    for (size_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
        size_t n = strlen(gpus[i][0]);
        if (!strncmp(name, gpus[i][0], n) && (!name[n] || name[n] == ':')) return gpus[i][1];
    }
    for (int i = 0; stk_device_classes[i]; i++) {
        size_t n = strlen(stk_device_classes[i]->name);
        if (!strncmp(name, stk_device_classes[i]->name, n) && name[n] == ':')
            return "there is one device of this kind, number 0; ";
    }
    return "";
}

static stk_status fail_unknown(const char *name)
{
    stk_text names = {0};
    for (int i = 0; stk_device_classes[i]; i++)
        stk_text_add(&names, i ? ", %s" : "%s", stk_device_classes[i]->name);
    stk_status status = stk_fail(STK_NO_DEVICE, "no device '%.60s': %sdevices here: %s", name, explain_absence(name),
                                 stk_text_get(&names));
    stk_text_free(&names);
    return status;
}

static const stk_device_class *find_class(const char *name)
{
    for (int i = 0; stk_device_classes[i]; i++)
        if (is_named(name, stk_device_classes[i]->name)) return stk_device_classes[i];
    return added && is_named(name, added->name) ? added : NULL;
}

stk_status stk_device_open(const char *name, const stk_device_config *config, stk_device **out)
{
    static const stk_device_config none = {0};
    static const stk_device_caps no_caps = {.capture = false};
    const stk_device_class *class = name ? find_class(name) : NULL;
    *out = NULL;
    if (!class) return fail_unknown(name ? name : "");
    stk_status status = class->probe ? class->probe() : STK_OK;
    if (status == STK_OK) status = class->open(config ? config : &none, out);
    if (status == STK_OK && !(*out)->caps) (*out)->caps = class->caps ? class->caps : &no_caps;
    return status == STK_OK ? status : stk_fail_prefix(status, "device '%s': ", name);
}

void stk_device_close(stk_device *device)
{
    if (device) device->class->close(device);
}

void stk_kernel_free(stk_kernel *kernel)
{
    if (!kernel || !kernel->state) return;
    if (kernel->release)
        kernel->release(kernel->state);
    else
        free(kernel->state);
    memset(kernel, 0, sizeof(*kernel));
}
