/* Units: gpu.h. All that are wanted when the first kernel is launched are built together, as few programs, which are
 * kept on disk under a hash of source, driver and chip, and read back by the next process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/gpu/gpu.h"
#include "device/gpu/kept.h"
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

/* --- programs on disk --- */

/* <driver>-<hash>, of source, driver and chip. False: it is not to be kept. */
static bool name_program(const gpu_device *device, const char *source, char *out, size_t n)
{
    const char *asked = getenv("STOKER_GPU_CACHE");
    /* PoCL keeps its own, and compiles all of a program a second time to give its bytes out. */
    if (!device->chip.is_gpu && !(asked && !strcmp(asked, "1"))) return false;
    uint64_t key = stk_hash_text(source);
    key = stk_hash64(device->chip.name, strlen(device->chip.name), key);
    key = stk_hash64(device->chip.driver, strlen(device->chip.driver), key);
    return (size_t)snprintf(out, n, "%s-%016llx", device->driver->name, (unsigned long long)key) < n;
}

static gpu_module *read_program(gpu_device *device, const char *name)
{
    void *bytes;
    size_t n;
    gpu_module *module = NULL;
    if (!gpu_kept_read(name, &bytes, &n)) return NULL;
    if (device->driver->restore(device->context, bytes, n, &module) != STK_OK) module = NULL;
    free(bytes);
    return module;
}

static void write_program(gpu_device *device, const gpu_module *module, const char *name)
{
    void *bytes = NULL;
    size_t n;
    if (device->driver->save(module, &bytes, &n) == STK_OK) gpu_kept_write(name, bytes, n);
    free(bytes);
}

/* --- building --- */

static int compare_units(const void *a, const void *b)
{
    const gpu_unit *x = *(gpu_unit *const *)a, *y = *(gpu_unit *const *)b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* All that are pending, in an order that depends on what they are alone. */
static stk_status list_pending(const gpu_device *device, gpu_unit ***out)
{
    int n = 0;
    gpu_unit **list = calloc((size_t)device->n_pending + 1, sizeof(gpu_unit *));
    if (!list) return stk_fail_memory((size_t)device->n_pending * sizeof(gpu_unit *));
    for (gpu_unit *u = device->units; u; u = u->next)
        if (!u->module) list[n++] = u;
    qsort(list, (size_t)n, sizeof(gpu_unit *), compare_units);
    *out = list;
    return STK_OK;
}

static stk_status make_room(gpu_device *device)
{
    gpu_module **grown = realloc(device->module, ((size_t)device->n_modules + 1) * sizeof(gpu_module *));
    if (!grown) return stk_fail_memory(((size_t)device->n_modules + 1) * sizeof(gpu_module *));
    device->module = grown;
    return STK_OK;
}

static stk_status build_some(gpu_device *device, gpu_unit *const *list, int n)
{
    stk_text source = {0};
    gpu_module *module = NULL;
    char name[64];
    stk_status status = STK_OK;
    const char *driver_text = gpu_text_of(device->driver->dialect), *text = gpu_text_of("dialect.h");
    if (!driver_text || !text) return stk_fail(STK_INTERNAL, "there is no dialect '%s'", device->driver->dialect);
    STK_TRY(make_room(device));
    stk_text_add(&source, "#line 1 \"%s\"\n%s#line 1 \"dialect.h\"\n%s", device->driver->dialect, driver_text, text);
    for (int i = 0; i < n; i++)
        stk_text_add(&source, "%s", list[i]->text);
    STK_TRY(stk_text_status(&source));
    bool is_kept = name_program(device, stk_text_get(&source), name, sizeof(name));
    if (is_kept) module = read_program(device, name);
    if (!module) {
        STK_TRY(device->driver->build(device->context, stk_text_get(&source), &module));
        if (is_kept) write_program(device, module, name);
    }
    device->module[device->n_modules++] = module;
    for (int i = 0; i < n; i++) {
        list[i]->module = module;
        free(list[i]->text);
        list[i]->text = NULL;
    }
    device->n_pending -= n;
done:
    stk_text_free(&source);
    return status;
}

/* PoCL goes through a whole program for each of its kernels, so that time would grow with the square of their number.
 */
enum { MOST_UNITS = 12 };

stk_status gpu_build(gpu_device *device)
{
    gpu_unit **list = NULL;
    int n = device->n_pending;
    stk_status status = STK_OK;
    if (n == 0) return STK_OK;
    STK_TRY(list_pending(device, &list));
    for (int i = 0; i < n; i += MOST_UNITS)
        STK_TRY(build_some(device, list + i, n - i < MOST_UNITS ? n - i : MOST_UNITS));
done:
    free(list);
    return status;
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
