/* Units: gpu.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/gpu/gpu.h"
#include "device/gpu/texts.h"

const char *gpu_text_of(const char *name)
{
    for (const gpu_text *t = gpu_texts; t->name; t++)
        if (!strcmp(t->name, name)) return t->text;
    return NULL;
}

void gpu_kernel_name(const gpu_unit *unit, const char *kernel, char out[GPU_NAME_BYTES])
{
    snprintf(out, GPU_NAME_BYTES, "%s_%016llx", kernel, (unsigned long long)unit->key);
}

/* --- what is wanted --- */

static const char *const undone[] = {"SUFFIX", "index_t", NULL};

/* #undef of each name that settings define, so that the next unit begins without them. */
static void add_undefinitions(stk_text *out, const char *settings)
{
    static const char define[] = "#define ";
    for (int i = 0; undone[i]; i++)
        stk_text_add(out, "#undef %s\n", undone[i]);
    for (const char *p = settings; (p = strstr(p, define)); p++) {
        const char *name = p + sizeof(define) - 1;
        stk_text_add(out, "#undef %.*s\n", (int)strcspn(name, "( \n"), name);
    }
}

/* A text with its lines `#include "file.h"` replaced by the files of kernels/. */
static stk_status add_text(stk_text *out, const char *name, const char *text)
{
    static const char include[] = "#include \"";
    int line = 1;
    stk_text_add(out, "#line 1 \"%s\"\n", name);
    for (const char *p = text, *next; *p; p = next, line++) {
        const size_t n = strcspn(p, "\n"), head = sizeof(include) - 1;
        char file[64];
        next = p + n + (p[n] == '\n');
        if (strncmp(p, include, head) != 0) {
            stk_text_add(out, "%.*s\n", (int)n, p);
            continue;
        }
        snprintf(file, sizeof(file), "%.*s", (int)strcspn(p + head, "\""), p + head);
        if (!gpu_text_of(file)) return stk_fail(STK_INTERNAL, "there is no source of kernels '%s'", file);
        STK_RETURN_IF_ERROR(add_text(out, file, gpu_text_of(file)));
        stk_text_add(out, "#line %d \"%s\"\n", line + 1, name);
    }
    return stk_text_status(out);
}

static stk_status add_unit(gpu_device *device, const char *name, const char *settings, const char *text, gpu_unit **out)
{
    uint64_t key = stk_hash64(text, strlen(text), stk_hash64(settings, strlen(settings), stk_hash_text(name)));
    for (gpu_unit *u = device->units; u; u = u->next)
        if (u->key == key) {
            *out = u;
            return STK_OK;
        }
    stk_text whole = {0};
    stk_text_add(&whole, "#define SUFFIX _%016llx\n%s", (unsigned long long)key, settings);
    if (!strstr(settings, "#define index_t ")) stk_text_add(&whole, "#define index_t int\n");
    stk_status status = add_text(&whole, name, text);
    add_undefinitions(&whole, settings);
    gpu_unit *unit = calloc(1, sizeof(*unit));
    if (status == STK_OK) status = stk_text_status(&whole);
    if (status == STK_OK && !unit) status = stk_fail_memory(sizeof(*unit));
    if (status != STK_OK) {
        stk_text_free(&whole);
        free(unit);
        return status;
    }
    *unit = (gpu_unit){.key = key, .text = whole.data, .next = device->units};
    device->units = unit;
    device->n_pending++;
    *out = unit;
    return STK_OK;
}

stk_status gpu_unit_of_file(gpu_device *device, const char *file, const char *settings, gpu_unit **out)
{
    const char *text = gpu_text_of(file);
    if (!text) return stk_fail(STK_INTERNAL, "there is no source of kernels '%s'", file);
    return add_unit(device, file, settings, text, out);
}

stk_status gpu_unit_of_text(gpu_device *device, const char *name, const char *settings, const char *text,
                            gpu_unit **out)
{
    return add_unit(device, name, settings, text, out);
}

void gpu_free_units(gpu_device *device)
{
    for (gpu_unit *u = device->units, *next; u; u = next) {
        next = u->next;
        free(u->text);
        free(u);
    }
    for (int i = 0; i < device->n_modules; i++)
        device->driver->unload(device->module[i]);
    free(device->module);
}
