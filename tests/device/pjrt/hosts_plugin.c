/* A PJRT plug-in whose clients join over the store of keys that the caller gives: for tests/cli/test_pjrt_hosts.py. It
 * is a thin one around a real plug-in for the processor, HOSTS_REAL, which joins none.
 *
 * As its client is made it tries the store in all ways, from a thread of its own. Then the real client gets a chip for
 * each process, of which this process is told of its own alone. A program of several chips is run by each process for
 * all of them: what lies on the others' chips comes over the store, and their results are dropped.
 *
 * The environment's HOSTS says what else it does: "apart", it joins nobody; "missing", it asks for a key that nobody
 * puts; "fails", process 1 fails, for which the others wait.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/pjrt/interface.h"

__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void);

enum { MOST = 8, MOST_DIMS = 8, VALUE_BYTES = 100000, NUM_OUTPUTS = 44, CHIPS_OF = 52, TYPE_OF = 59, DIMS_OF = 60 };

static const pjrt_api *real;
static pjrt_client_create_args given; /* what the caller gave */
static int64_t node, n_nodes;
static pjrt_chip *const *chip; /* the real client's, one for each process */

static bool is_wanted(const char *what)
{
    const char *wanted = getenv("HOSTS");
    return wanted && !strcmp(wanted, what);
}

/* --- errors: ours and the real plug-in's --- */

static const uint64_t own_mark = 0x73746f4820657241;

typedef struct own_error {
    uint64_t mark;
    int code;
    size_t n;
    char text[];
} own_error;

static pjrt_error *make_error(int code, const char *text, size_t n)
{
    own_error *e = malloc(sizeof(*e) + n);
    if (!e) abort();
    *e = (own_error){own_mark, code, n};
    memcpy(e->text, text, n);
    return (pjrt_error *)e;
}

static pjrt_error *fail(const char *text)
{
    return make_error(9, text, strlen(text));
}

static const own_error *own(const pjrt_error *error)
{
    const own_error *e = (const own_error *)error;
    return e && e->mark == own_mark ? e : NULL;
}

static pjrt_error *destroy_error(void *p)
{
    pjrt_error_args *args = p;
    if (!own(args->error)) return real->slot[PJRT_ERROR_DESTROY](p);
    free(args->error);
    return NULL;
}

static pjrt_error *get_message(void *p)
{
    pjrt_message_args *args = p;
    const own_error *e = own(args->error);
    if (!e) return real->slot[PJRT_ERROR_MESSAGE](p);
    args->text = e->text;
    args->n = e->n;
    return NULL;
}

static pjrt_error *get_code(void *p)
{
    pjrt_code_args *args = p;
    const own_error *e = own(args->error);
    if (!e) return real->slot[PJRT_ERROR_GET_CODE](p);
    args->code = e->code;
    return NULL;
}

/* --- the store --- */

static pjrt_make_error maker = make_error;

static pjrt_error *put(const char *key, const char *value, size_t n)
{
    pjrt_put_args args = {{sizeof(args), NULL}, key, strlen(key), value, n, &maker, given.put_user};
    return given.put(&args);
}

static pjrt_error *get(const char *key, int timeout_ms, char **value, size_t *n)
{
    pjrt_get_args args = {{sizeof(args), NULL}, key, strlen(key), timeout_ms, &maker, given.get_user, NULL, 0, NULL};
    pjrt_error *error = given.get(&args);
    if (error) return error;
    *value = malloc(args.value_bytes + 1);
    if (!*value) abort();
    memcpy(*value, args.value, args.value_bytes);
    *n = args.value_bytes;
    args.free_value(args.value);
    return NULL;
}

static pjrt_error *try_get(const char *key)
{
    pjrt_try_get_args args = {{sizeof(args), NULL}, key, strlen(key), &maker, given.try_get_user, NULL, 0, NULL};
    pjrt_error *error = given.try_get(&args);
    if (!error) args.free_value(args.value);
    return error;
}

/* Whether that error was wanted; with a word of its text. */
static bool take_error(pjrt_error *error, int code, const char *word)
{
    const own_error *e = own(error);
    char text[1024] = "";
    if (!e) return false;
    memcpy(text, e->text, e->n < sizeof(text) - 1 ? e->n : sizeof(text) - 1);
    bool is_right = e->code == code && strstr(text, word);
    free(error);
    return is_right;
}

static void fill(char *value, int64_t of)
{
    for (int i = 0; i < VALUE_BYTES; i++)
        value[i] = (char)((i * 7 + of) % 251);
}

static pjrt_error *try_store(void)
{
    char key[32], *theirs, *value = malloc(VALUE_BYTES), *want = malloc(VALUE_BYTES);
    size_t n;
    if (!value || !want) abort();
    snprintf(key, sizeof(key), "node %d", (int)node);
    if (!take_error(try_get(key), PJRT_CODE_NOT_FOUND, key)) return fail("a key is there that nobody has put");
    fill(value, node);
    pjrt_error *error = put(key, value, VALUE_BYTES);
    if (error) return error;
    memset(value, 0, VALUE_BYTES);
    if (!take_error(put(key, "x", 1), PJRT_CODE_ALREADY_EXISTS, key)) return fail("a key can be put twice");
    for (int64_t k = 0; k < n_nodes; k++) {
        snprintf(key, sizeof(key), "node %d", (int)k);
        error = get(key, 60000, &theirs, &n);
        if (error) return error;
        fill(want, k);
        if (n != VALUE_BYTES || memcmp(theirs, want, n) != 0) return fail("what another node put is not what came");
        free(theirs);
        error = try_get(key);
        if (error) return error;
    }
    if (!take_error(get("nobody's", 100, &theirs, &n), PJRT_CODE_DEADLINE_EXCEEDED, "'plug-in 0: nobody's'"))
        return fail("a key that nobody puts is waited for");
    free(value);
    free(want);
    return NULL;
}

static void *run_try(void *out)
{
    char *value;
    size_t n;
    pjrt_error **error = out;
    *error = try_store();
    if (!*error && is_wanted("missing")) *error = get("never", 300, &value, &n);
    if (!is_wanted("fails")) return NULL;
    if (!*error && node == 0) *error = put("node 0 waits", "", 0);
    if (!*error) *error = get(node == 1 ? "node 0 waits" : "of node 1", 100000, &value, &n);
    if (!*error && node == 1) *error = fail("node 1 has no chip");
    return NULL;
}

/* --- the client --- */

static bool read_option(const char *name, int64_t *out)
{
    for (size_t i = 0; i < given.n_options; i++) {
        const pjrt_named_value *o = &given.option[i];
        if (o->name_bytes != strlen(name) || memcmp(o->name, name, o->name_bytes) != 0) continue;
        *out = o->integer;
        return o->type == PJRT_VALUE_INTEGER && o->n == 1;
    }
    return false;
}

static pjrt_error *create_client(void *p)
{
    static const char count[] = "cpu_device_count";
    pjrt_client_create_args *args = p, create = {.head = {sizeof(create), NULL}};
    pjrt_named_value option = {{sizeof(option), NULL}, count, sizeof(count) - 1, PJRT_VALUE_INTEGER, {NULL}, 1};
    pthread_t thread;
    pjrt_error *error = NULL;
    given = *args;
    create.option = &option;
    create.n_options = 1;
    option.integer = 1;
    if (!is_wanted("apart")) {
        if (!read_option("node_id", &node) || !read_option("num_nodes", &n_nodes) || node < 0 || node >= n_nodes ||
            n_nodes > MOST || !args->get || !args->put || !args->try_get)
            return fail("it was not told of several hosts");
        if (pthread_create(&thread, NULL, run_try, &error) != 0) abort();
        pthread_join(thread, NULL);
        if (error) return error;
        option.integer = n_nodes;
    }
    error = real->slot[PJRT_CLIENT_CREATE](&create);
    args->client = create.client;
    return error;
}

static pjrt_error *list_own_chips(void *p)
{
    pjrt_chips_args *args = p;
    pjrt_error *error = real->slot[PJRT_CLIENT_ADDRESSABLE_DEVICES](p);
    if (error || is_wanted("apart")) return error;
    chip = args->chip;
    args->chip = chip + node;
    args->n = 1;
    return NULL;
}

/* --- running --- */

/* An argument in a message; its bytes follow, from a multiple of 8 on. */
typedef struct sent_argument {
    int64_t type, n_dims, dim[MOST_DIMS], bytes;
} sent_argument;

static pjrt_error *await(pjrt_event *event)
{
    pjrt_event_args args = {{sizeof(args), NULL}, event};
    pjrt_error *error = real->slot[PJRT_EVENT_AWAIT](&args);
    real->slot[PJRT_EVENT_DESTROY](&args);
    return error;
}

static size_t round_up(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static pjrt_error *add_argument(pjrt_buffer *buffer, char **message, size_t *n)
{
    struct {
        pjrt_head head;
        pjrt_buffer *buffer;
        int type;
        void *later[4];
    } type = {{sizeof(type), NULL}, buffer, 0, {NULL}};
    struct {
        pjrt_head head;
        pjrt_buffer *buffer;
        const int64_t *dim;
        size_t n;
        void *later[4];
    } dims = {{sizeof(dims), NULL}, buffer, NULL, 0, {NULL}};
    real->slot[TYPE_OF](&type);
    real->slot[DIMS_OF](&dims);
    sent_argument head = {.type = type.type, .n_dims = (int64_t)dims.n};
    int64_t minor_to_major[MOST_DIMS];
    for (size_t i = 0; i < dims.n; i++) {
        head.dim[i] = dims.dim[i];
        minor_to_major[i] = (int64_t)(dims.n - 1 - i);
    }
    pjrt_layout layout = {.head = {sizeof(layout), NULL},
                          .tiled_head = {sizeof(layout), NULL},
                          .minor_to_major = minor_to_major,
                          .n_dims = dims.n};
    pjrt_to_host_args args = {.head = {sizeof(args), NULL}, .buffer = buffer, .layout = &layout};
    pjrt_error *error = real->slot[PJRT_BUFFER_TO_HOST](&args);
    if (error) return error;
    head.bytes = (int64_t)args.dst_bytes;
    size_t at = *n;
    *n += sizeof(head) + round_up(args.dst_bytes);
    *message = realloc(*message, *n);
    if (!*message) abort();
    memcpy(*message + at, &head, sizeof(head));
    args.dst = *message + at + sizeof(head);
    error = real->slot[PJRT_BUFFER_TO_HOST](&args);
    return error ? error : await(args.done);
}

static pjrt_error *take_argument(const pjrt_client *client, const char **message, pjrt_chip *to, pjrt_buffer **out)
{
    sent_argument head;
    memcpy(&head, *message, sizeof(head));
    pjrt_from_host_args args = {.head = {sizeof(args), NULL},
                                .client = (pjrt_client *)client,
                                .data = *message + sizeof(head),
                                .type = (int)head.type,
                                .dim = head.dim,
                                .n_dims = (size_t)head.n_dims,
                                .semantics = PJRT_READ_DURING_CALL,
                                .chip = to};
    *message += sizeof(head) + round_up((size_t)head.bytes);
    pjrt_error *error = real->slot[PJRT_CLIENT_BUFFER_FROM_HOST](&args);
    *out = args.buffer;
    return error ? error : await(args.done);
}

static pjrt_client *made; /* the real client */

/* Arguments of node k, on its chip of the real client. */
static pjrt_error *bring_arguments(int64_t k, int n_run, size_t n_args, pjrt_buffer **out)
{
    char key[64], *message;
    size_t n;
    snprintf(key, sizeof(key), "run %d of node %d", n_run, (int)k);
    pjrt_error *error = get(key, 60000, &message, &n);
    if (error) return error;
    const char *at = message;
    for (size_t i = 0; i < n_args && !error; i++)
        error = take_argument(made, &at, chip[k], &out[i]);
    free(message);
    return error;
}

static pjrt_error *send_arguments(const pjrt_execute_args *args, int n_run)
{
    char key[64], *message = NULL;
    size_t n = 0;
    pjrt_error *error = NULL;
    for (size_t i = 0; i < args->n_args && !error; i++)
        error = add_argument(args->args[0][i], &message, &n);
    snprintf(key, sizeof(key), "run %d of node %d", n_run, (int)node);
    if (!error) error = put(key, message, n);
    free(message);
    return error;
}

static void destroy_buffers(pjrt_buffer **buffer, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pjrt_buffer_args args = {{sizeof(args), NULL}, buffer[i]};
        if (buffer[i]) real->slot[PJRT_BUFFER_DESTROY](&args);
    }
}

static size_t count_chips(pjrt_executable *executable)
{
    struct {
        pjrt_head head;
        pjrt_executable *executable;
        pjrt_chip *const *chip;
        size_t n;
        void *later[4];
    } args = {{sizeof(args), NULL}, executable, NULL, 0, {NULL}};
    return real->slot[CHIPS_OF](&args) ? 0 : args.n;
}

static size_t count_results(pjrt_executable *executable)
{
    pjrt_get_unloaded_args unloaded = {.head = {sizeof(unloaded), NULL}, .executable = executable};
    if (real->slot[PJRT_EXECUTABLE_GET_UNLOADED](&unloaded)) return 0;
    struct {
        pjrt_head head;
        pjrt_unloaded *executable;
        size_t n;
        void *later[4];
    } args = {{sizeof(args), NULL}, unloaded.unloaded, 0, {NULL}};
    pjrt_unloaded_args destroy = {{sizeof(destroy), NULL}, unloaded.unloaded};
    if (real->slot[NUM_OUTPUTS](&args)) return 0;
    real->slot[PJRT_UNLOADED_DESTROY](&destroy);
    return args.n;
}

static pjrt_error *run_all(pjrt_execute_args *args, int n_run)
{
    size_t n_args = args->n_args, n_results = count_results(args->executable);
    pjrt_buffer **argument[MOST] = {NULL}, **result[MOST] = {NULL};
    pjrt_buffer *const *arguments[MOST];
    pjrt_event *done[MOST] = {NULL};
    pjrt_error *error = send_arguments(args, n_run);
    for (int64_t k = 0; k < n_nodes && !error; k++) {
        argument[k] = calloc(n_args + 1, sizeof(pjrt_buffer *));
        result[k] = calloc(n_results + 1, sizeof(pjrt_buffer *));
        if (!argument[k] || !result[k]) abort();
        if (k != node) error = bring_arguments(k, n_run, n_args, argument[k]);
        arguments[k] = k == node ? args->args[0] : argument[k];
    }
    pjrt_execute_args all = *args;
    all.args = arguments;
    all.n_chips = (size_t)n_nodes;
    all.results = result;
    all.done = done;
    if (!error) error = real->slot[PJRT_EXECUTABLE_EXECUTE](&all);
    for (int64_t k = 0; k < n_nodes; k++) {
        if (!error && k == node) {
            memcpy(args->results[0], result[k], n_results * sizeof(pjrt_buffer *));
            args->done[0] = done[k];
        } else if (!error) {
            destroy_buffers(result[k], n_results);
            error = await(done[k]);
        }
        if (k != node && argument[k]) destroy_buffers(argument[k], n_args);
        free(argument[k]);
        free(result[k]);
    }
    return error;
}

static pjrt_error *execute(void *p)
{
    static int n_runs;
    pjrt_execute_args *args = p;
    if (is_wanted("apart") || count_chips(args->executable) < 2) return real->slot[PJRT_EXECUTABLE_EXECUTE](p);
    return args->n_chips == 1 ? run_all(args, n_runs++) : fail("a process runs the part of one chip");
}

static pjrt_error *create_and_note(void *p)
{
    pjrt_error *error = create_client(p);
    made = error ? NULL : ((pjrt_client_create_args *)p)->client;
    return error;
}

const pjrt_api *GetPjrtApi(void)
{
    const pjrt_api *(*get_api)(void);
    const char *path = getenv("HOSTS_REAL");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return NULL;
    *(void **)&get_api = dlsym(library, "GetPjrtApi");
    real = get_api();
    pjrt_api *api = malloc(real->head.size);
    if (!api) return NULL;
    memcpy(api, real, real->head.size);
    api->slot[PJRT_ERROR_DESTROY] = destroy_error;
    api->slot[PJRT_ERROR_MESSAGE] = get_message;
    api->slot[PJRT_ERROR_GET_CODE] = get_code;
    api->slot[PJRT_CLIENT_CREATE] = create_and_note;
    api->slot[PJRT_CLIENT_ADDRESSABLE_DEVICES] = list_own_chips;
    api->slot[PJRT_EXECUTABLE_EXECUTE] = execute;
    return api;
}
