/* Executables: by a module's text, in the process and on disk. Running them: pjrt.h.
 *
 * On disk one lies under a name made of all that it depends on: the text, XLA's options and flags, the chip, and the
 * plug-in with its version, size and date.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "device/kept.h"
#include "device/pjrt/pjrt.h"

static const char folder[] = "pjrt";
/* What is compiled as fast as that is compiled again. */
static const int64_t LEAST_KEPT_NS = 100000000;

/* --- on disk --- */

static uint64_t hash_more(uint64_t seed, const char *text)
{
    return stk_hash64(text ? text : "", text ? strlen(text) : 0, seed);
}

/* Two hashes, with two seeds. */
static void name_executable(const pjrt_plugin *plugin, const char *chip, const stk_text *text, const stk_text *options,
                            char out[48])
{
    struct stat file = {0};
    uint64_t hash[2];
    (void)!stat(plugin->path, &file);
    int64_t numbers[] = {plugin->api->version.major, plugin->api->version.minor, file.st_size, file.st_mtime};
    for (int i = 0; i < 2; i++) {
        hash[i] = stk_hash64(text->data, text->n, (uint64_t)i);
        hash[i] = stk_hash64(options->data, options->n, hash[i]);
        hash[i] = stk_hash64(numbers, sizeof(numbers), hash[i]);
        hash[i] = hash_more(hash[i], plugin->path);
        hash[i] = hash_more(hash[i], plugin->version);
        hash[i] = hash_more(hash[i], chip);
        hash[i] = hash_more(hash[i], getenv("XLA_FLAGS"));
        hash[i] = hash_more(hash[i], getenv("LIBTPU_INIT_ARGS"));
    }
    snprintf(out, 48, "%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
}

/* NULL: there is none, or none that the plug-in takes. */
static pjrt_executable *load(pjrt_device *device, const char *name)
{
    void *bytes;
    size_t n;
    bool damaged;
    pjrt_load_args args = {.head = {sizeof(args), NULL}, .client = device->plugin->client};
    if (stk_kept_read(folder, name, &bytes, &n, &damaged)) {
        args.bytes = bytes;
        args.n = n;
        if (pjrt_call(device->plugin, PJRT_EXECUTABLE_LOAD, &args, "loading a program") != STK_OK) damaged = true;
        free(bytes);
    }
    if (damaged)
        snprintf(device->base.note, sizeof(device->base.note),
                 "what was kept of the compiled step (%s/%s in the cache folder) is damaged: it was compiled again",
                 folder, name);
    return damaged ? NULL : args.executable;
}

stk_status pjrt_analyse_compiled(const pjrt_device *device, const pjrt_compiled *compiled, stk_compiled_program *out)
{
    const pjrt_plugin *plugin = device->plugin;
    pjrt_get_unloaded_args get = {.head = {sizeof(get), NULL}, .executable = compiled->executable};
    stk_device_memory memory;
    stk_text chip = {0};
    *out = (stk_compiled_program){.n_chips = 1, .compile_ns = compiled->compile_ns};
    STK_RETURN_IF_ERROR(pjrt_call(plugin, PJRT_EXECUTABLE_GET_UNLOADED, &get, "asking for a program's memory"));
    stk_status status = pjrt_analyse_executable(plugin, get.unloaded, out);
    pjrt_unloaded_args destroy = {.head = {sizeof(destroy), NULL}, .executable = get.unloaded};
    pjrt_call_quietly(plugin, PJRT_UNLOADED_DESTROY, &destroy);
    stk_device_add_chip(&device->base, &chip);
    snprintf(out->chip, sizeof(out->chip), "%s", stk_text_get(&chip));
    stk_text_free(&chip);
    if (stk_device_get_memory(&device->base, &memory) == STK_OK) out->memory_bytes = (int64_t)memory.total;
    return status;
}

/* By XLA's own account, which a plug-in need not give. */
static stk_status check_room(const pjrt_device *device, const pjrt_compiled *compiled)
{
    stk_compiled_program p;
    int64_t most = (int64_t)device->base.compiled_limit_bytes;
    if (!most || pjrt_analyse_compiled(device, compiled, &p) != STK_OK) return STK_OK;
    int64_t all = p.argument_bytes + p.result_bytes + p.scratch_bytes + p.code_bytes;
    if (all <= most) return STK_OK;
    return stk_fail(
        STK_NO_MEMORY,
        "the step needs %.1f MiB as XLA compiled it (%.1f for parameters, the optimiser's state and the batch, "
        "%.1f for what lies in between), the limit is %.1f MiB; make the batch smaller, the model smaller or "
        "the limit larger",
        (double)all / 1048576, (double)p.argument_bytes / 1048576, (double)p.scratch_bytes / 1048576,
        (double)most / 1048576);
}

/* A plug-in need not be able to. */
static void keep(pjrt_device *device, pjrt_executable *executable, const char *name)
{
    const pjrt_plugin *plugin = device->plugin;
    pjrt_get_unloaded_args get = {.head = {sizeof(get), NULL}, .executable = executable};
    if (!plugin->can_serialize) return;
    pjrt_call_quietly(plugin, PJRT_EXECUTABLE_GET_UNLOADED, &get);
    if (!get.unloaded) return;
    pjrt_serialize_args args = {.head = {sizeof(args), NULL}, .executable = get.unloaded};
    pjrt_call_quietly(plugin, PJRT_UNLOADED_SERIALIZE, &args);
    if (args.bytes && !stk_kept_write(folder, name, args.bytes, args.n))
        snprintf(device->base.note, sizeof(device->base.note),
                 "the compiled step could not be kept in the cache folder: the next run compiles it again");
    if (args.free_owner) args.free_owner(args.owner);
    pjrt_unloaded_args destroy = {.head = {sizeof(destroy), NULL}, .executable = get.unloaded};
    pjrt_call_quietly(plugin, PJRT_UNLOADED_DESTROY, &destroy);
}

/* --- compiling --- */

static stk_status compile(const pjrt_plugin *plugin, const stk_text *text, const stk_text *options,
                          pjrt_executable **out)
{
    pjrt_program program = pjrt_make_program(text);
    pjrt_compile_args args = {
        .head = {sizeof(args), NULL},
        .client = plugin->client,
        .program = &program,
        .options = options->data,
        .options_bytes = options->n,
    };
    stk_status status = pjrt_call(plugin, PJRT_CLIENT_COMPILE, &args, "compiling a program");
    *out = args.executable;
    return status;
}

/* The chips of comm's ranks, of which this device's is the first where they are of one process. */
static stk_status list_chips(const pjrt_device *device, const stk_comm *comm, int *id)
{
    const pjrt_plugin *plugin = device->plugin;
    int n = stk_comm_n_ranks(comm);
    if (pjrt_is_of_hosts(comm)) return pjrt_list_host_chips(device, id);
    if (device->i_chip + n > plugin->n_chips)
        return stk_fail(STK_NO_DEVICE, "%d replicas want a device each, and '%s' has %d", n, plugin->path,
                        plugin->n_chips);
    for (int i = 0; i < n; i++)
        STK_RETURN_IF_ERROR(pjrt_get_chip_id(plugin, plugin->chip[device->i_chip + i], &id[i]));
    return STK_OK;
}

/* Processes may compile together, so that none of them may find what the others have to compile: nothing is kept. */
static stk_status make_executable(pjrt_device *device, const stk_comm *comm, const stk_text *text,
                                  pjrt_compiled *compiled)
{
    int n = stk_comm_n_ranks(comm), *id = calloc((size_t)n, sizeof(*id));
    char name[48];
    stk_text options = {0}, chip = {0};
    stk_status status = STK_OK;
    if (!id) return stk_fail_memory((size_t)n * sizeof(*id));
    STK_TRY(list_chips(device, comm, id));
    pjrt_print_options(device->plugin, id, n, &options);
    stk_device_add_chip(&device->base, &chip);
    STK_TRY(stk_text_status(&options));
    STK_TRY(stk_text_status(&chip));
    name_executable(device->plugin, stk_text_get(&chip), text, &options, name);
    if (!pjrt_is_of_hosts(comm)) compiled->executable = load(device, name);
    if (!compiled->executable) {
        int64_t start_ns = stk_clock_ns();
        STK_TRY(compile(device->plugin, text, &options, &compiled->executable));
        compiled->compile_ns = stk_clock_ns() - start_ns;
        if (compiled->compile_ns >= LEAST_KEPT_NS && !pjrt_is_of_hosts(comm)) keep(device, compiled->executable, name);
    }
    STK_TRY(check_room(device, compiled));
done:
    free(id);
    stk_text_free(&options);
    stk_text_free(&chip);
    return status;
}

/* STOKER_PJRT_DUMP: a folder for the texts of modules. What cannot be written there is not missed. */
static void dump(const stk_text *text)
{
    static atomic_int n;
    const char *to = getenv("STOKER_PJRT_DUMP");
    char path[4096];
    if (!to || !*to) return;
    snprintf(path, sizeof(path), "%s/module-%d-%d.mlir", to, (int)getpid(), atomic_fetch_add(&n, 1));
    FILE *file = fopen(path, "we");
    if (!file) return;
    (void)!fwrite(text->data, 1, text->n, file);
    fclose(file);
}

static void free_compiled(pjrt_device *device, pjrt_compiled *compiled)
{
    pjrt_executable_args args = {.head = {sizeof(args), NULL}, .executable = compiled->executable};
    if (compiled->executable) pjrt_call_quietly(device->plugin, PJRT_EXECUTABLE_DESTROY, &args);
    free(compiled->text);
    free(compiled);
}

void pjrt_free_compiled(pjrt_device *device)
{
    while (device->compiled) {
        pjrt_compiled *first = device->compiled;
        device->compiled = first->next;
        free_compiled(device, first);
    }
}

/* Programs come again, as when an arena has moved; but those of earlier ones do not pile up. */
static void drop_unused(pjrt_device *device)
{
    enum { MOST_UNUSED = 8 };
    int n = 0;
    for (pjrt_compiled **at = &device->compiled; *at;) {
        pjrt_compiled *one = *at;
        if (one->n_users > 0 || n++ < MOST_UNUSED) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        free_compiled(device, one);
    }
}

stk_status pjrt_get_compiled(pjrt_device *device, const stk_comm *comm, stk_text *text, pjrt_compiled **out)
{
    for (pjrt_compiled *old = device->compiled; old; old = old->next)
        if (!strcmp(old->text, text->data)) {
            old->n_users++;
            *out = old;
            return STK_OK;
        }
    dump(text);
    pjrt_compiled *compiled = calloc(1, sizeof(*compiled));
    if (!compiled) return stk_fail_memory(sizeof(*compiled));
    stk_status status = make_executable(device, comm, text, compiled);
    if (status != STK_OK) {
        free_compiled(device, compiled);
        return status;
    }
    compiled->text = text->data;
    *text = (stk_text){0};
    compiled->n_users = 1;
    compiled->next = device->compiled;
    device->compiled = *out = compiled;
    drop_unused(device);
    return STK_OK;
}

/* --- running --- */

stk_status pjrt_execute(pjrt_launching *first, pjrt_launching *const *others, int n)
{
    pjrt_buffer *const *arguments[STK_MOST_DEVICES];
    pjrt_buffer **results[STK_MOST_DEVICES];
    pjrt_event *done[STK_MOST_DEVICES] = {NULL};
    for (int i = 0; i < n; i++) {
        pjrt_launching *one = i == 0 ? first : others[i];
        arguments[i] = one->argument;
        results[i] = one->result;
    }
    pjrt_execute_options options = {
        .head = {sizeof(options), NULL},
        .not_donated = first->not_donated,
        .n_not_donated = first->n_not_donated,
    };
    pjrt_execute_args args = {
        .head = {sizeof(args), NULL},
        .executable = first->executable,
        .options = &options,
        .args = arguments,
        .n_chips = (size_t)n,
        .n_args = (size_t)first->n_arguments,
        .results = results,
        .done = done,
    };
    STK_RETURN_IF_ERROR(pjrt_call(first->device->plugin, PJRT_EXECUTABLE_EXECUTE, &args, "running a program"));
    for (int i = 0; i < n; i++)
        (i == 0 ? first : others[i])->done = done[i];
    return STK_OK;
}
