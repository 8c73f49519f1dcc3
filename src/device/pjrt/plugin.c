/* Finding and loading plug-ins, and calling them: pjrt.h. */
#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/foreign.h"
#include "base/thread.h"
#include "comm/store.h"
#include "device/pjrt/pjrt.h"

enum { MOST_PLUGINS = STK_MOST_DEVICES };

static struct {
    stk_mutex lock;
    pjrt_plugin *plugin[MOST_PLUGINS];      /* guarded by lock; what it points to stays as it is once it is here */
    int n;                                  /* guarded by lock */
    const pjrt_plugin *named[MOST_PLUGINS]; /* guarded by lock: those that pjrt_find was asked for */
    int n_named;                            /* guarded by lock */
} loaded;
static stk_once once = STK_ONCE_INIT;

static void make_lock(void)
{
    stk_mutex_init(&loaded.lock);
}

/* --- calling --- */

static pjrt_function get_function(const pjrt_plugin *plugin, enum pjrt_slot slot)
{
    const pjrt_api *api = plugin->api;
    size_t end = offsetof(pjrt_api, slot) + ((size_t)slot + 1) * sizeof(pjrt_function);
    return end <= api->head.size ? api->slot[slot] : NULL;
}

/* Takes the error. */
static stk_status turn_error(const pjrt_plugin *plugin, pjrt_error *error, const char *doing)
{
    pjrt_code_args code = {.head = {sizeof(code), NULL}, .error = error};
    pjrt_message_args message = {.head = {sizeof(message), NULL}, .error = error};
    pjrt_error_args destroy = {.head = {sizeof(destroy), NULL}, .error = error};
    pjrt_call_quietly(plugin, PJRT_ERROR_GET_CODE, &code);
    pjrt_call_quietly(plugin, PJRT_ERROR_MESSAGE, &message);
    stk_status status = code.code == PJRT_CODE_RESOURCE_EXHAUSTED ? STK_NO_MEMORY
                        : code.code == PJRT_CODE_UNIMPLEMENTED    ? STK_UNSUPPORTED
                                                                  : STK_DEVICE;
    int n = message.text ? (int)(message.n < 1500 ? message.n : 1500) : 0;
    stk_fail(status, "%s: the plug-in '%s' says: %.*s", doing, plugin->path, n, message.text ? message.text : "");
    pjrt_call_quietly(plugin, PJRT_ERROR_DESTROY, &destroy);
    return status;
}

stk_status pjrt_call(const pjrt_plugin *plugin, enum pjrt_slot slot, void *args, const char *doing)
{
    pjrt_function function = get_function(plugin, slot);
    if (!function)
        return stk_fail(STK_UNSUPPORTED, "%s: the plug-in '%s' (PJRT %d.%d) has no such function", doing, plugin->path,
                        plugin->api->version.major, plugin->api->version.minor);
    stk_foreign_enter(plugin->foreign, doing);
    pjrt_error *error = function(args);
    stk_foreign_leave();
    return error ? turn_error(plugin, error, doing) : STK_OK;
}

void pjrt_call_quietly(const pjrt_plugin *plugin, enum pjrt_slot slot, void *args)
{
    pjrt_function function = get_function(plugin, slot);
    if (!function) return;
    /* Two functions of the table return nothing. */
    if (slot == PJRT_ERROR_DESTROY || slot == PJRT_ERROR_MESSAGE) {
        ((void (*)(void *))(void *)function)(args);
        return;
    }
    stk_foreign_enter(plugin->foreign, "asked for a detail, or tidying up");
    pjrt_error *error = function(args);
    stk_foreign_leave();
    if (!error) return;
    pjrt_error_args destroy = {.head = {sizeof(destroy), NULL}, .error = error};
    pjrt_call_quietly(plugin, PJRT_ERROR_DESTROY, &destroy);
}

void pjrt_destroy_buffer(const pjrt_plugin *plugin, pjrt_buffer *buffer)
{
    pjrt_buffer_args args = {.head = {sizeof(args), NULL}, .buffer = buffer};
    if (buffer) pjrt_call_quietly(plugin, PJRT_BUFFER_DESTROY, &args);
}

void pjrt_destroy_event(const pjrt_plugin *plugin, pjrt_event *event)
{
    pjrt_event_args args = {.head = {sizeof(args), NULL}, .event = event};
    if (event) pjrt_call_quietly(plugin, PJRT_EVENT_DESTROY, &args);
}

/* --- where plug-ins are --- */

static bool find_by_pattern(const char *pattern, char *out, size_t size)
{
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (any) snprintf(out, size, "%s", found.gl_pathv[0]);
    globfree(&found);
    return any;
}

static bool is_plain_name(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-') return false;
    return *name != '\0';
}

/* Packages of the active Python environment, as JAX's plug-ins are installed: by their folder's name, or the one that
 * pip calls them by, with '-' for '_'. */
static stk_status find_in_environment(const char *name, char *out, size_t size)
{
    char folder[256];
    static const char *const patterns[] = {
        "%s/lib/python3*/site-packages/jax_plugins/%s/*.so",
        "%s/lib/python3*/site-packages/%s/*pjrt*.so",
        "%s/lib/python3*/site-packages/%s/libtpu.so",
    };
    const char *root = getenv("VIRTUAL_ENV");
    char pattern[768];
    if (!is_plain_name(name))
        return stk_fail(STK_NO_DEVICE, "'%.60s' is neither a plug-in's name nor a path, which has a '/'", name);
    snprintf(folder, sizeof(folder), "%s", name);
    for (char *p = folder; *p; p++)
        if (*p == '-') *p = '_';
    for (size_t i = 0; root && *root && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(pattern, sizeof(pattern), patterns[i], root, folder);
#pragma GCC diagnostic pop
        if (find_by_pattern(pattern, out, size)) return STK_OK;
    }
    return stk_fail(STK_NO_DEVICE,
                    "no PJRT plug-in '%.60s' among the packages of %s; name the file: 'pjrt:/path/to/plugin.so'", name,
                    root && *root ? root : "an active Python environment (VIRTUAL_ENV is not set)");
}

/* "'a', 'b'": plug-ins of the active environment; "" where there are none. */
static void list_in_environment(stk_text *out)
{
    static const char *const patterns[] = {"%s/lib/python3*/site-packages/jax_plugins/*/*.so",
                                           "%s/lib/python3*/site-packages/*/*pjrt*.so"};
    const char *root = getenv("VIRTUAL_ENV");
    for (size_t i = 0; root && *root && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        char pattern[768];
        glob_t found;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(pattern, sizeof(pattern), patterns[i], root);
#pragma GCC diagnostic pop
        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++) {
                char *file = strrchr(found.gl_pathv[k], '/');
                *file = '\0';
                stk_text_add(out, "%s'pjrt:%s'", out->n ? ", " : "", strrchr(found.gl_pathv[k], '/') + 1);
                *file = '/';
            }
        globfree(&found);
    }
}

static stk_status fail_nameless(void)
{
    stk_text names = {0};
    list_in_environment(&names);
    stk_status status = names.n
                            ? stk_fail(STK_NO_DEVICE,
                                       "no plug-in is named: say %s, which the active Python environment has, or "
                                       "'pjrt:/path/to/plugin.so'",
                                       stk_text_get(&names))
                            : stk_fail(STK_NO_DEVICE, "no plug-in is named: set STOKER_PJRT_PATH to its file, or say "
                                                      "'pjrt:/path/to/plugin.so' or 'pjrt:NAME'");
    stk_text_free(&names);
    return status;
}

static stk_status find_tpu(char *out, size_t size)
{
    const char *own = getenv("TPU_LIBRARY_PATH");
    if (own && *own) {
        snprintf(out, size, "%s", own);
        return STK_OK;
    }
    if (find_in_environment("libtpu", out, size) != STK_OK) snprintf(out, size, "libtpu.so");
    return STK_OK;
}

/* libtpu itself looks for chips for many minutes where there are none. */
static stk_status check_tpu(void)
{
    char path[64];
    if (find_by_pattern("/dev/accel[0-9]*", path, sizeof(path)) ||
        find_by_pattern("/dev/vfio/[0-9]*", path, sizeof(path)))
        return STK_OK;
    return stk_fail(STK_NO_DEVICE, "no TPU is here: neither /dev/accel0 nor a device in /dev/vfio is there");
}

static stk_status find_path(const char *name, char *out, size_t size)
{
    const char *own = getenv("STOKER_PJRT_PATH");
    if (!name && (!own || !*own)) return fail_nameless();
    if (name && !strcmp(name, "tpu")) return find_tpu(out, size);
    if (name && !strchr(name, '/')) return find_in_environment(name, out, size);
    snprintf(out, size, "%s", name ? name : own);
    return STK_OK;
}

/* --- loading --- */

static stk_status open_library(pjrt_plugin *plugin)
{
    char what[sizeof(plugin->path) + 64];
    snprintf(what, sizeof(what), "the PJRT plug-in '%s'", plugin->path);
    plugin->foreign = stk_foreign_add(what);
    stk_foreign_enter(plugin->foreign, "loading");
    void *library = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
    stk_foreign_leave();
    if (!library)
        return stk_fail(STK_NO_DEVICE, "cannot load the PJRT plug-in: %s%s", dlerror(),
                        strcmp(plugin->path, "libtpu.so") != 0
                            ? ""
                            : " (pip install libtpu, in an active virtual environment, or set TPU_LIBRARY_PATH)");
    const pjrt_api *(*get_api)(void);
    *(void **)&get_api = dlsym(library, "GetPjrtApi");
    if (!get_api) {
        dlclose(library);
        return stk_fail(STK_NO_DEVICE, "'%s' is no PJRT plug-in: it has no GetPjrtApi", plugin->path);
    }
    stk_foreign_enter(plugin->foreign, "loading");
    plugin->api = get_api(); /* The library stays: what it has started does not end. */
    stk_foreign_leave();
    if (!plugin->api) return stk_fail(STK_NO_DEVICE, "'%s': GetPjrtApi gives nothing", plugin->path);
    const pjrt_version *version = &plugin->api->version;
    snprintf(what, sizeof(what), "the PJRT plug-in '%s' (PJRT %d.%d)", plugin->path, version->major, version->minor);
    stk_foreign_found(plugin->foreign, what, *(void **)&get_api);
    if (version->major != 0 || !get_function(plugin, PJRT_BUFFER_TO_HOST))
        return stk_fail(STK_NO_DEVICE, "'%s' has version %d.%d of PJRT's interface, and 0.23 or newer is wanted",
                        plugin->path, version->major, version->minor);
    return STK_OK;
}

/* The first line of a text of the plug-in's. */
static void copy_text(const pjrt_plugin *plugin, enum pjrt_slot slot, const void *of, char *out, size_t size)
{
    pjrt_text_args args = {.head = {sizeof(args), NULL}, .of = of};
    pjrt_call_quietly(plugin, slot, &args);
    size_t n = 0;
    for (; args.text && n < args.n && n + 1 < size && args.text[n] != '\n'; n++)
        out[n] = args.text[n];
    out[n] = '\0';
}

static stk_status start_client(pjrt_plugin *plugin, bool is_tpu)
{
    pjrt_initialize_args initialize = {.head = {sizeof(initialize), NULL}};
    STK_RETURN_IF_ERROR(pjrt_call(plugin, PJRT_PLUGIN_INITIALIZE, &initialize, "starting"));
    STK_RETURN_IF_ERROR(pjrt_create_client(plugin, is_tpu));
    pjrt_chips_args chips = {.head = {sizeof(chips), NULL}, .client = plugin->client};
    STK_RETURN_IF_ERROR(pjrt_call(plugin, PJRT_CLIENT_ADDRESSABLE_DEVICES, &chips, "listing devices"));
    plugin->chip = chips.chip;
    plugin->n_chips = chips.n < STK_MOST_DEVICES ? (int)chips.n : STK_MOST_DEVICES;
    if (plugin->n_chips == 0) return stk_fail(STK_NO_DEVICE, "'%s' finds no device here", plugin->path);
    copy_text(plugin, PJRT_CLIENT_PLATFORM_NAME, plugin->client, plugin->platform, sizeof(plugin->platform));
    copy_text(plugin, PJRT_CLIENT_PLATFORM_VERSION, plugin->client, plugin->version, sizeof(plugin->version));
    plugin->can_serialize = get_function(plugin, PJRT_UNLOADED_SERIALIZE) && get_function(plugin, PJRT_EXECUTABLE_LOAD);
    return pjrt_join_hosts(plugin);
}

/* A failed plug-in stays where the client may still call its store. */
static stk_status load(const char *path, bool is_tpu, const pjrt_plugin **out)
{
    for (int i = 0; i < loaded.n; i++)
        if (!strcmp(loaded.plugin[i]->path, path)) {
            *out = loaded.plugin[i];
            return STK_OK;
        }
    if (loaded.n == MOST_PLUGINS) return stk_fail(STK_UNSUPPORTED, "more than %d PJRT plug-ins at once", MOST_PLUGINS);
    pjrt_plugin *plugin = calloc(1, sizeof(*plugin));
    if (!plugin) return stk_fail_memory(sizeof(*plugin));
    snprintf(plugin->path, sizeof(plugin->path), "%s", path);
    stk_status status = pjrt_find_hosts(&plugin->hosts, loaded.n);
    if (status == STK_OK) status = open_library(plugin);
    if (status == STK_OK) status = pjrt_explain_busy(start_client(plugin, is_tpu));
    if (status != STK_OK) {
        stk_store_abort(plugin->hosts.store, stk_error_text()); /* The other processes would wait for this one. */
        if (!plugin->hosts.store) free(plugin);
        return status;
    }
    *out = loaded.plugin[loaded.n++] = plugin;
    return STK_OK;
}

stk_status pjrt_load(const char *name, const pjrt_plugin **out)
{
    char path[sizeof(((pjrt_plugin *)NULL)->path)];
    *out = NULL;
    if (name && !strcmp(name, "tpu")) STK_RETURN_IF_ERROR(check_tpu());
    STK_RETURN_IF_ERROR(find_path(name, path, sizeof(path)));
    stk_once_run(&once, make_lock);
    stk_mutex_lock(&loaded.lock);
    stk_status status = load(path, name && !strcmp(name, "tpu"), out);
    stk_mutex_unlock(&loaded.lock);
    return status;
}

stk_status pjrt_load_compiler(const char *name, pjrt_plugin *out)
{
    pjrt_initialize_args initialize = {.head = {sizeof(initialize), NULL}};
    *out = (pjrt_plugin){.client = NULL};
    STK_RETURN_IF_ERROR(find_path(name, out->path, sizeof(out->path)));
    STK_RETURN_IF_ERROR(open_library(out));
    return pjrt_call(out, PJRT_PLUGIN_INITIALIZE, &initialize, "starting");
}

stk_status pjrt_find(const char *name, int *number)
{
    const pjrt_plugin *plugin;
    STK_RETURN_IF_ERROR(pjrt_load(name, &plugin));
    stk_mutex_lock(&loaded.lock);
    for (*number = 0; *number < loaded.n_named && loaded.named[*number] != plugin; ++*number) {
    }
    if (*number == loaded.n_named) loaded.named[loaded.n_named++] = plugin;
    stk_mutex_unlock(&loaded.lock);
    return STK_OK;
}

int pjrt_n_named(void)
{
    stk_once_run(&once, make_lock);
    stk_mutex_lock(&loaded.lock);
    int n = loaded.n_named;
    stk_mutex_unlock(&loaded.lock);
    return n;
}

const pjrt_plugin *pjrt_get_named(int number)
{
    stk_mutex_lock(&loaded.lock);
    const pjrt_plugin *plugin = loaded.named[number];
    stk_mutex_unlock(&loaded.lock);
    return plugin;
}
