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

/* The number in "cpu" and "cpu:0" (0), "cpu:1" and so on; -1: another name. Digits alone, and no zeros before them. */
static int number_of(const char *name, const char *class_name)
{
    size_t n = strlen(class_name);
    if (strncmp(name, class_name, n) || (name[n] && name[n] != ':')) return -1;
    if (!name[n]) return 0;
    const char *digit = name + n + 1;
    bool is_number = digit[0] >= '0' && digit[0] <= '9' && !digit[1];
    return is_number && digit[0] - '0' < STK_MOST_DEVICES ? digit[0] - '0' : -1;
}

_Static_assert(STK_MOST_DEVICES == 8, "one digit, and the text below");

/* The part of a sentence that says why there is no such device. */
static const char *explain_absence(const char *name)
{
    if (!strncmp(name, "rocm", 4) && (!name[4] || name[4] == ':')) return "this build has no ROCm support; ";
    for (int i = 0; stk_device_classes[i]; i++) {
        size_t n = strlen(stk_device_classes[i]->name);
        if (!strncmp(name, stk_device_classes[i]->name, n) && name[n] == ':')
            return "devices of this kind have numbers from 0 to 7; ";
    }
    return "";
}

static const char *find_nearest(const char *name)
{
    enum { MOST = 16 };
    const char *names[MOST] = {NULL};
    int n = 0;
    for (int i = 0; stk_device_classes[i] && n < MOST - 2; i++)
        names[n++] = stk_device_classes[i]->name;
    names[n] = "gpu";
    return stk_nearest_name(name, names);
}

static stk_status fail_unknown(const char *name)
{
    stk_text names = {0};
    for (int i = 0; stk_device_classes[i]; i++)
        stk_text_add(&names, i ? ", %s" : "%s", stk_device_classes[i]->name);
    const char *nearest = find_nearest(name);
    if (nearest) stk_text_add(&names, " (did you mean '%s'?)", nearest);
    stk_status status = stk_fail(STK_NO_DEVICE, "no device '%.60s': %sdevices here: %s", name, explain_absence(name),
                                 stk_text_get(&names));
    stk_text_free(&names);
    return status;
}

static void add_chips(const stk_device_class *class, stk_text *out)
{
    int n = stk_device_count(class);
    for (int i = 0; i < n; i++) {
        stk_device *device = NULL;
        stk_text_add(out, i ? ", " : ": ");
        if (class->open(&(stk_device_config){.number = i}, &device) != STK_OK) {
            stk_text_add(out, "%s", stk_error_text());
            continue;
        }
        stk_device_add_chip(device, out);
        class->close(device);
    }
}

/* "gpu": of the first kind that has one. NULL, with the text of what was looked at. */
static const stk_device_class *find_gpu(int *number, stk_text *looked)
{
    for (int i = 0; stk_device_classes[i]; i++) {
        const stk_device_class *class = stk_device_classes[i];
        if (!class->best_gpu) continue;
        stk_status status = class->probe ? class->probe() : STK_OK;
        if (status == STK_OK && (*number = class->best_gpu()) >= 0) return class;
        stk_text_add(looked, "%s%s: %s", looked->n ? "; " : "", class->name,
                     status != STK_OK ? stk_error_text() : "none of them is a GPU");
        if (status == STK_OK) add_chips(class, looked);
    }
    return NULL;
}

static stk_status fail_no_gpu(const stk_text *looked)
{
    return stk_fail(STK_NO_DEVICE, "no device 'gpu': %s",
                    looked->n ? stk_text_get(looked) : "this build has no GPU support");
}

/* What follows "cuda:" where that is a name and no number; NULL: the device's kind has no names, or this is none. */
static const char *own_name(const char *name, const stk_device_class *class)
{
    size_t n = strlen(class->name);
    if (!class->find || strncmp(name, class->name, n) != 0 || name[n] != ':') return NULL;
    char first = name[n + 1];
    bool is_letter = (first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z');
    return is_letter || (class->loads_by_name && (first == '/' || first == '.')) ? name + n + 1 : NULL;
}

/* *number is -1 where the device is to be found by its name. */
static const stk_device_class *find_class(const char *name, int *number)
{
    for (int i = 0; stk_device_classes[i]; i++)
        if ((*number = number_of(name, stk_device_classes[i]->name)) >= 0 || own_name(name, stk_device_classes[i]))
            return stk_device_classes[i];
    return added && (*number = number_of(name, added->name)) >= 0 ? added : NULL;
}

/* Which one a name means, without opening it. */
static stk_status choose(const char *name, const stk_device_class **out, int *number)
{
    stk_text looked = {0};
    bool any_gpu = name && !strcmp(name, "gpu");
    *out = any_gpu ? find_gpu(number, &looked) : name ? find_class(name, number) : NULL;
    if (!*out && any_gpu) fail_no_gpu(&looked);
    stk_text_free(&looked);
    if (!*out) return any_gpu ? STK_NO_DEVICE : fail_unknown(name ? name : "");
    bool loads = *number < 0 && (*out)->loads_by_name;
    stk_status status = (*out)->probe && !loads ? (*out)->probe() : STK_OK;
    if (status == STK_OK && *number < 0) status = (*out)->find(own_name(name, *out), number);
    if (status == STK_OK && (*out)->count && !(*out)->on_host && *number >= 0 && *number >= (*out)->count())
        status = stk_fail(STK_NO_DEVICE, "%s has %d device%s here, from 0 on", (*out)->name, stk_device_count(*out),
                          stk_device_count(*out) == 1 ? "" : "s");
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "device '%s': ", name);
}

stk_status stk_device_check(const char *name)
{
    const stk_device_class *class;
    int number;
    return choose(name, &class, &number);
}

stk_status stk_device_open(const char *name, const stk_device_config *config, stk_device **out)
{
    static const stk_device_caps no_caps = {.capture = false};
    stk_device_config chosen = config ? *config : (stk_device_config){0};
    const stk_device_class *class;
    *out = NULL;
    STK_RETURN_IF_ERROR(choose(name, &class, &chosen.number));
    stk_status status = class->open(&chosen, out);
    if (status != STK_OK) return stk_fail_prefix(status, "device '%s': ", name);
    (*out)->number = chosen.number;
    if (!(*out)->caps) (*out)->caps = class->caps ? class->caps : &no_caps;
    return STK_OK;
}

void stk_device_close(stk_device *device)
{
    if (device) device->class->close(device);
}

void stk_device_print_name(const stk_device *device, stk_text *out)
{
    stk_text_add(out, "%s", device->class->name);
    if (device->absent[0])
        stk_text_add(out, ":%s", device->absent);
    else if (device->number)
        stk_text_add(out, ":%d", device->number);
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
