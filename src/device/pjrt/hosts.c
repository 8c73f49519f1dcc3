/* Processes of a launcher, on one host or several, each with a chip of its own, that run one program: pjrt.h.
 *
 *   making the client   each gives the plug-in its number, their count and the store of keys; then all tell their chips
 *   compiling           all must have the same module; each compiles it, for the chips of all
 *   a launch            all must have come with the same program; each runs it on its own chip, and XLA adds up
 *
 * A plug-in whose client then sees no other process's chips would train each process for itself, and is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/store.h"
#include "device/pjrt/pjrt.h"

/* How long a process waits for the chips of others, whose plug-in may take long to begin. */
enum { WAIT_MS = 10 * 60 * 1000 };

/* --- what the plug-in calls, from any thread --- */

/* The keys of several plug-ins lie in one store. */
static stk_text name_key(const pjrt_hosts *hosts, const char *key, size_t n)
{
    stk_text name = {0};
    stk_text_add(&name, "plug-in %d: ", hosts->number);
    stk_text_add_bytes(&name, key, n);
    return name;
}

static stk_bytes bytes_of(const stk_text *text)
{
    return (stk_bytes){stk_text_get(text), text->n};
}

static pjrt_error *make_error(pjrt_make_error make, stk_status status)
{
    const char *text = stk_error_text();
    int code = status == STK_NO_MEMORY ? PJRT_CODE_RESOURCE_EXHAUSTED
               : status == STK_INVALID ? PJRT_CODE_ALREADY_EXISTS
                                       : PJRT_CODE_ABORTED;
    return make(code, text, strlen(text));
}

static stk_status get(const pjrt_hosts *hosts, const char *key, size_t key_bytes, int timeout_ms, char **value,
                      size_t *n)
{
    void *copy = NULL;
    stk_text name = name_key(hosts, key, key_bytes);
    stk_status status = stk_text_status(&name);
    if (status == STK_OK) status = stk_store_get(hosts->store, bytes_of(&name), timeout_ms, &copy, n);
    stk_text_free(&name);
    *value = copy;
    return status;
}

static void free_value(char *value)
{
    free(value);
}

static pjrt_error *call_get(pjrt_get_args *args)
{
    stk_status status = get(args->user, args->key, args->key_bytes, args->timeout_ms, &args->value, &args->value_bytes);
    args->free_value = free_value;
    if (status == STK_OK) return NULL;
    if (status != STK_NOT_FOUND) return make_error(*args->error, status);
    const char *text = stk_error_text();
    return (*args->error)(PJRT_CODE_DEADLINE_EXCEEDED, text, strlen(text));
}

static pjrt_error *call_try_get(pjrt_try_get_args *args)
{
    stk_status status = get(args->user, args->key, args->key_bytes, 0, &args->value, &args->value_bytes);
    args->free_value = free_value;
    if (status == STK_OK) return NULL;
    if (status != STK_NOT_FOUND) return make_error(*args->error, status);
    return (*args->error)(PJRT_CODE_NOT_FOUND, args->key, args->key_bytes);
}

static pjrt_error *call_put(pjrt_put_args *args)
{
    const pjrt_hosts *hosts = args->user;
    stk_text name = name_key(hosts, args->key, args->key_bytes);
    stk_status status = stk_text_status(&name);
    if (status == STK_OK)
        status = stk_store_put(hosts->store, bytes_of(&name), (stk_bytes){args->value, args->value_bytes});
    stk_text_free(&name);
    return status == STK_OK ? NULL : make_error(*args->error, status);
}

/* --- making the client --- */

stk_status pjrt_find_hosts(pjrt_hosts *out, int number)
{
    *out = (pjrt_hosts){.number = number, .n_ranks = 1};
    STK_RETURN_IF_ERROR(stk_store_open(&out->store));
    if (!out->store) return STK_OK;
    out->rank = stk_store_rank(out->store);
    out->n_ranks = stk_store_n_ranks(out->store);
    return STK_OK;
}

static pjrt_named_value make_option(const char *name, int64_t x)
{
    return (pjrt_named_value){.head = {sizeof(pjrt_named_value), NULL},
                              .name = name,
                              .name_bytes = strlen(name),
                              .type = PJRT_VALUE_INTEGER,
                              .integer = x,
                              .n = 1};
}

/* As JAX does: libtpu gets the store, and learns by itself which hosts there are. Another plug-in that knows no such
 * options says so, and is asked again without. */
stk_status pjrt_create_client(pjrt_plugin *plugin, bool is_tpu)
{
    pjrt_hosts *hosts = &plugin->hosts;
    pjrt_named_value option[] = {make_option("node_id", hosts->rank), make_option("num_nodes", hosts->n_ranks)};
    pjrt_client_create_args args = {.head = {sizeof(args), NULL}};
    if (hosts->store) {
        args.get = call_get;
        args.put = call_put;
        args.try_get = call_try_get;
        args.get_user = args.put_user = args.try_get_user = hosts;
        args.option = is_tpu ? NULL : option;
        args.n_options = is_tpu ? 0 : sizeof(option) / sizeof(option[0]);
    }
    stk_status status = pjrt_call(plugin, PJRT_CLIENT_CREATE, &args, "opening");
    const char *said = stk_error_text();
    if (status != STK_OK && args.n_options > 0 && (strstr(said, option[0].name) || strstr(said, option[1].name))) {
        args.n_options = 0;
        status = pjrt_call(plugin, PJRT_CLIENT_CREATE, &args, "opening");
    }
    plugin->client = args.client;
    return status;
}

/* --- whose chips there are --- */

enum { MOST_CHIPS = STK_MOST_DEVICES };

/* What a process says of its chips. */
typedef struct own_chips {
    int32_t n, id[MOST_CHIPS];
} own_chips;

static stk_status tell_chips(const pjrt_plugin *plugin)
{
    char key[64];
    own_chips own = {.n = plugin->n_chips};
    for (int i = 0; i < own.n; i++) {
        int id;
        STK_RETURN_IF_ERROR(pjrt_get_chip_id(plugin, plugin->chip[i], &id));
        own.id[i] = id;
    }
    int n = snprintf(key, sizeof(key), "chips of plug-in %d, rank %d", plugin->hosts.number, plugin->hosts.rank);
    return stk_store_put(plugin->hosts.store, (stk_bytes){key, (size_t)n}, (stk_bytes){&own, sizeof(own)});
}

static stk_status ask_chips(const pjrt_plugin *plugin, int rank, own_chips *out)
{
    char key[64];
    void *value;
    size_t bytes;
    int n = snprintf(key, sizeof(key), "chips of plug-in %d, rank %d", plugin->hosts.number, rank);
    STK_RETURN_IF_ERROR(stk_store_get(plugin->hosts.store, (stk_bytes){key, (size_t)n}, WAIT_MS, &value, &bytes));
    if (bytes == sizeof(*out)) memcpy(out, value, sizeof(*out));
    free(value);
    return bytes == sizeof(*out) ? STK_OK : stk_fail(STK_MISMATCH, "rank %d is of another version of Stoker", rank);
}

stk_status pjrt_join_hosts(pjrt_plugin *plugin)
{
    const pjrt_hosts *hosts = &plugin->hosts;
    int64_t n_chips = 0;
    if (!hosts->store) return STK_OK;
    pjrt_chips_args all = {.head = {sizeof(all), NULL}, .client = plugin->client};
    STK_RETURN_IF_ERROR(pjrt_call(plugin, PJRT_CLIENT_DEVICES, &all, "listing devices of all hosts"));
    STK_RETURN_IF_ERROR(tell_chips(plugin));
    for (int r = 0; r < hosts->n_ranks; r++) {
        own_chips theirs;
        STK_RETURN_IF_ERROR(ask_chips(plugin, r, &theirs));
        n_chips += theirs.n;
    }
    if ((int64_t)all.n >= n_chips) return STK_OK;
    return stk_fail(STK_UNSUPPORTED,
                    "'%s' does not join hosts: it sees %zu chip%s, and %d processes with %lld were launched; start one "
                    "process, whose chips '--replicas' shares a batch among",
                    plugin->path, all.n, all.n == 1 ? "" : "s", hosts->n_ranks, (long long)n_chips);
}

stk_status pjrt_list_host_chips(const pjrt_device *device, int *id)
{
    const pjrt_hosts *hosts = &device->plugin->hosts;
    for (int r = 0; r < hosts->n_ranks; r++) {
        own_chips theirs;
        STK_RETURN_IF_ERROR(ask_chips(device->plugin, r, &theirs));
        if (device->i_chip >= theirs.n)
            return stk_fail(STK_NO_DEVICE, "rank %d has %d chips of '%s', and number %d is wanted", r, (int)theirs.n,
                            device->plugin->path, device->i_chip);
        id[r] = theirs.id[device->i_chip];
        for (int k = 0; k < r; k++)
            if (id[k] == id[r])
                return stk_fail(STK_UNSUPPORTED, "ranks %d and %d have the same chip of '%s', number %d", k, r,
                                device->plugin->path, id[r]);
    }
    return STK_OK;
}

/* --- running --- */

bool pjrt_is_of_hosts(const stk_comm *comm)
{
    return comm && strcmp(comm->class->name, "local") != 0;
}

stk_status pjrt_check_hosts(const pjrt_device *device, const stk_comm *comm)
{
    if (device->base.absent[0] || device->plugin->hosts.n_ranks == comm->n_ranks) return STK_OK;
    return stk_fail(STK_UNSUPPORTED,
                    "'%s' was opened by this process for itself, before it was one of %d that train together",
                    device->plugin->path, comm->n_ranks);
}

stk_status pjrt_agree(stk_comm *comm, uint64_t text_hash)
{
    uint64_t *all = calloc((size_t)comm->n_ranks, sizeof(*all));
    if (!all) return stk_fail_memory((size_t)comm->n_ranks * sizeof(*all));
    stk_comm_call gather = {.kind = STK_COLLECTIVE_all_gather, .dtype = STK_I64, .n = 1, .src = &text_hash, .dst = all};
    stk_status status = stk_comm_run(comm, &gather, comm->timeout_ms);
    for (int r = 0; r < comm->n_ranks && status == STK_OK; r++)
        if (all[r] != text_hash)
            status = stk_fail(STK_MISMATCH,
                              "ranks %d and %d have different programs: is it the same recipe and version of Stoker "
                              "everywhere?",
                              comm->rank, r);
    free(all);
    return status;
}

stk_status pjrt_launch_part(pjrt_launching *own)
{
    STK_RETURN_IF_ERROR(pjrt_agree(own->comm, own->text_hash));
    return pjrt_execute(own, NULL, 1);
}
