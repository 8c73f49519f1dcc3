/* The public list of devices: stoker/graph/device.h. */
#include <stdio.h>

#include "base/error.h"
#include "device/device.h"
#include "stoker/graph/device.h"

/* Entries of a class: one for all numbers on the host, where they are the same chip. */
static int n_entries(const stk_device_class *class)
{
    int n = class->on_host || (class->probe && class->probe() != STK_OK) ? 1 : stk_device_count(class);
    return n > 0 ? n : 1;
}

static void take_text(stk_text *text, char *out, size_t n)
{
    snprintf(out, n, "%s", stk_text_get(text));
    stk_text_free(text);
}

static void fill(const stk_device *device, stk_device_info *out)
{
    stk_text detail = {0}, chip = {0};
    stk_device_memory memory;
    device->class->describe(device, &detail);
    if (device->class->list_more) stk_text_add(&detail, ", ");
    if (device->class->list_more) device->class->list_more(device, &detail);
    take_text(&detail, out->detail, sizeof(out->detail));
    stk_device_add_chip(device, &chip);
    take_text(&chip, out->chip, sizeof(out->chip));
    if (stk_device_get_memory(device, &memory) != STK_OK) return;
    out->memory_bytes = memory.total;
    out->free_bytes = memory.free;
    out->others_bytes = memory.others;
}

stk_status stk_device_get_info(int i, stk_device_info *out)
{
    STK_NEED(out);
    int k = 0, number = i;
    while (number >= 0 && stk_device_classes[k] && number >= n_entries(stk_device_classes[k]))
        number -= n_entries(stk_device_classes[k++]);
    if (number < 0 || !stk_device_classes[k]) return stk_fail(STK_NOT_FOUND, "there is no device number %d", i);
    const stk_device_class *class = stk_device_classes[k];
    *out = (stk_device_info){.name = class->name, .about = class->about, .on_host = class->on_host, .number = number};
    out->n_numbers = class->on_host ? STK_MOST_DEVICES : n_entries(class);
    char name[64];
    stk_device *device = NULL;
    snprintf(name, sizeof(name), "%s:%d", class->name, number);
    stk_status status = class->probe ? class->probe() : STK_OK;
    if (status == STK_OK) status = stk_device_open(name, NULL, &device);
    out->available = status == STK_OK;
    if (status != STK_OK) {
        snprintf(out->detail, sizeof(out->detail), "%s", stk_error_text());
        return STK_OK;
    }
    out->is_gpu = device->is_gpu;
    fill(device, out);
    stk_device_close(device);
    return STK_OK;
}
