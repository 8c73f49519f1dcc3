/* Devices and contexts, and what holds for every call: what it needs, when it is refused, and the broken context that
 * gives one error for ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/play/play.h"

play_context play_contexts[MOST_CHIPS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_initialized;
static int late_failure;
static _Thread_local play_context *current;

#define X(name, symbol, since, needs, parameters) {#name, since, needs, (void (*)(void))symbol},
static const struct {
    const char *name;
    int since, needs;
    void (*function)(void);
} calls[] = {PLAY_API(X)};
#undef X

/* --- every call --- */

/* Those that break a context for ever. */
static bool is_lasting(int code)
{
    return code == 214 || code == 220 || code == 226 || code == ILLEGAL_ADDRESS || code == LAUNCH_TIMEOUT ||
           (code >= 714 && code <= 719) || code == 710 || code == 721;
}

static bool only_enqueues(play_call call)
{
    return call == CALL_cuLaunchKernel || call == CALL_cuGraphLaunch || call == CALL_cuMemcpyAsync ||
           call == CALL_cuMemsetD8Async;
}

static int refuse(play_call call)
{
    const int needs = calls[call].needs;
    if ((needs & INIT) && !is_initialized) return NOT_INITIALIZED;
    if ((needs & CONTEXT) && !current) return INVALID_CONTEXT;
    if ((needs & CONTEXT) && !current->is_made) return CONTEXT_IS_DESTROYED;
    if ((needs & CONTEXT) && !(needs & FREES) && current->broken) return current->broken;
    int code = play_failure(call, play_count.calls[call]);
    if (code && is_lasting(code) && only_enqueues(call)) {
        late_failure = code;
        code = WELL;
    } else if (code && is_lasting(code) && current) {
        current->broken = code;
    }
    return code ? code : needs & UNSAFE ? play_refuse_in_capture() : WELL;
}

int play_enter(play_call call)
{
    pthread_mutex_lock(&lock);
    play_count.calls[call]++;
    late_failure = 0;
    int code = refuse(call);
    return code ? play_leave(code) : WELL;
}

int play_leave(int code)
{
    pthread_mutex_unlock(&lock);
    return code;
}

play_context *play_current(void)
{
    return current;
}

int play_take_late_failure(void)
{
    int code = late_failure;
    late_failure = 0;
    return code;
}

int stk_play_load_library(void)
{
    pthread_mutex_lock(&lock);
    return play_leave(play_refuse_in_capture());
}

void stk_play_misuse(const char *text)
{
    pthread_mutex_lock(&lock);
    play_misuse("%s", text);
    play_leave(WELL);
}

/* A later version of a call has the same name and another interface: who asks for an older one would get that. */
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    int answer = 1, code = NOT_FOUND;
    pthread_mutex_lock(&lock);
    *out = NULL;
    if (!is_initialized && play_set.driver == 0) play_read_settings();
    if (flags != 0) play_misuse("cuGetProcAddress: flags %llu are not played", (unsigned long long)flags);
    for (int i = 0; i < N_CALLS; i++) {
        if (strcmp(calls[i].name, name) != 0 || play_is_missing(name) || calls[i].since > play_set.driver) continue;
        if (version < calls[i].since) {
            play_misuse("cuGetProcAddress: %s of version %d is another one than of %d", name, version, calls[i].since);
            answer = 2;
            break;
        }
        memcpy(out, &calls[i].function, sizeof(*out));
        answer = 0;
        code = WELL;
    }
    if (status) *status = answer;
    return play_leave(code);
}

/* --- the driver --- */

int cuInit(unsigned flags)
{
    int code = play_enter(CALL_cuInit);
    if (code) return code;
    if (flags != 0) return play_leave(INVALID_VALUE);
    if (play_set.driver == 0) play_read_settings();
    code = play_failure(CALL_cuInit, play_count.calls[CALL_cuInit]);
    if (code == WELL) code = play_open_opencl();
    is_initialized = code == WELL;
    return play_leave(code);
}

int cuDriverGetVersion(int *out)
{
    int code = play_enter(CALL_cuDriverGetVersion);
    if (code) return code;
    if (play_set.driver == 0) play_read_settings();
    *out = play_set.driver;
    return play_leave(WELL);
}

/* --- devices --- */

#define ENTER_WITH_DEVICE(call)                                                                                        \
    do {                                                                                                               \
        int code_ = play_enter(CALL_##call);                                                                           \
        if (code_) return code_;                                                                                       \
        if (device < 0 || device >= play_set.n_chips) return play_leave(INVALID_DEVICE);                               \
    } while (0)

int cuDeviceGetCount(int *out)
{
    int code = play_enter(CALL_cuDeviceGetCount);
    if (code) return code;
    *out = play_set.n_chips;
    return play_leave(WELL);
}

int cuDeviceGet(int *out, int device)
{
    ENTER_WITH_DEVICE(cuDeviceGet);
    *out = device;
    return play_leave(WELL);
}

int cuDeviceGetName(char *out, int n, int device)
{
    ENTER_WITH_DEVICE(cuDeviceGetName);
    snprintf(out, (size_t)n, "%s%s", play_set.name, play_set.is_slice ? " MIG 1g.10gb" : "");
    return play_leave(WELL);
}

int cuDeviceGetAttribute(int *out, int what, int device)
{
    static const struct {
        int what, value;
    } known[] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535},      {7, 65535}, {8, 48 * 1024},
                 {10, 32},  {18, 0},   {41, 1},   {78, 1}, {81, 228 << 10}, {97, 227 << 10}, {115, 1}};
    ENTER_WITH_DEVICE(cuDeviceGetAttribute);
    *out = what == 16 ? play_set.n_units : what == 75 ? play_set.capability / 10 : play_set.capability % 10;
    if (what == 16 || what == 75 || what == 76) return play_leave(WELL);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].what == what) {
            *out = known[i].value;
            return play_leave(WELL);
        }
    play_misuse("cuDeviceGetAttribute: attribute %d is not played", what);
    return play_leave(INVALID_VALUE);
}

int cuDeviceTotalMem_v2(size_t *out, int device)
{
    ENTER_WITH_DEVICE(cuDeviceTotalMem);
    *out = play_set.memory;
    return play_leave(WELL);
}

int cuDeviceGetUuid_v2(char *out, int device)
{
    ENTER_WITH_DEVICE(cuDeviceGetUuid);
    for (int i = 0; i < 16; i++)
        out[i] = (char)(i * 37 + device * 11 + 0x5a);
    return play_leave(WELL);
}

int cuDeviceGetPCIBusId(char *out, int n, int device)
{
    ENTER_WITH_DEVICE(cuDeviceGetPCIBusId);
    snprintf(out, (size_t)n, "0000:%02X:00.0", device + 1);
    return play_leave(WELL);
}

int cuDeviceCanAccessPeer(int *out, int device, int peer)
{
    ENTER_WITH_DEVICE(cuDeviceCanAccessPeer);
    if (peer < 0 || peer >= play_set.n_chips) return play_leave(INVALID_DEVICE);
    *out = play_set.has_peers && device != peer;
    return play_leave(WELL);
}

/* --- contexts: the primary one of each device, which takes a little of its memory --- */

int cuDevicePrimaryCtxRetain(handle *out, int device)
{
    ENTER_WITH_DEVICE(cuDevicePrimaryCtxRetain);
    play_context *context = &play_contexts[device];
    if (!context->is_made) {
        const int broken = context->broken; /* Only another process gets a new one. */
        *context = (play_context){.number = device, .is_made = true, .broken = broken};
        context->used_bytes = play_set.memory / 64;
        context->self = play_open_handle(A_CONTEXT, context, context);
        context->legacy = play_add_stream(context, true);
    }
    context->n_retained++;
    *out = context->self;
    return play_leave(WELL);
}

static void close_object(play_kind kind, void *object)
{
    if (kind == AN_EVENT) play_release_event(object);
    if (kind == A_MODULE) play_close_module(object);
    if (kind == A_GRAPH) play_close_graph(object);
    if (kind == AN_EXEC) play_close_exec(object);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    ENTER_WITH_DEVICE(cuDevicePrimaryCtxRelease);
    play_context *context = &play_contexts[device];
    if (context->n_retained == 0) {
        play_misuse("cuDevicePrimaryCtxRelease: it is released already");
        return play_leave(INVALID_CONTEXT);
    }
    if (--context->n_retained > 0) return play_leave(WELL);
    (void)play_finish_all(context, "cuDevicePrimaryCtxRelease");
    play_close_handles(context, close_object);
    play_free_streams(context);
    play_free_blocks(context);
    context->is_made = false;
    return play_leave(WELL);
}

int cuCtxSetCurrent(handle h)
{
    int code = play_enter(CALL_cuCtxSetCurrent);
    if (code) return code;
    play_context *context = h ? play_find(A_CONTEXT, h) : NULL;
    if (h && !context) return play_leave(INVALID_CONTEXT);
    current = context;
    return play_leave(WELL);
}

int cuCtxEnablePeerAccess(handle h, unsigned flags)
{
    int code = play_enter(CALL_cuCtxEnablePeerAccess);
    if (code) return code;
    const play_context *peer = play_find(A_CONTEXT, h);
    if (!peer) return play_leave(INVALID_CONTEXT);
    if (flags != 0) return play_leave(INVALID_VALUE);
    if (peer == current || !play_set.has_peers) return play_leave(INVALID_DEVICE);
    if (current->reaches[peer->number]) return play_leave(PEER_IS_ENABLED);
    current->reaches[peer->number] = true;
    return play_leave(WELL);
}

/* --- handles --- */

static struct slot {
    uint32_t generation;
    play_kind kind;
    void *object;
    const play_context *context;
} * slots;
static size_t n_slots, n_capacity;
static const char *const kinds[] = {"", "context", "stream", "event", "module", "kernel", "graph", "graph to launch"};

/* Nothing lies at such an address: who reads there faults. */
static const uintptr_t mark = (uintptr_t)0x7a << 56;

static struct slot *slot_of(handle h)
{
    const uintptr_t n = (uintptr_t)h;
    const size_t i = n >> 4 & 0xffffff;
    if ((n & (uintptr_t)0xff << 56) != mark || i >= n_slots) return NULL;
    return slots[i].object && slots[i].generation == (uint32_t)(n >> 28 & 0xfffffff) ? &slots[i] : NULL;
}

handle play_open_handle(play_kind kind, void *object, play_context *context)
{
    size_t i = 0;
    if (n_slots == n_capacity) {
        while (i < n_slots && slots[i].object)
            i++;
    } else {
        i = n_slots;
    }
    if (i == n_capacity) {
        n_capacity = n_capacity ? 2 * n_capacity : 256;
        slots = realloc(slots, n_capacity * sizeof(*slots));
        if (!slots) abort();
        memset(slots + i, 0, (n_capacity - i) * sizeof(*slots));
    }
    if (i == n_slots) n_slots++;
    const uint32_t generation = (slots[i].generation + 1) & 0xfffffff;
    slots[i] = (struct slot){generation, kind, object, context};
    return (handle)(mark | (uintptr_t)generation << 28 | (uintptr_t)i << 4);
}

void *play_find(play_kind kind, handle h)
{
    const struct slot *slot = slot_of(h);
    if (slot && slot->kind == kind) return slot->object;
    play_misuse("%p is no %s, or is destroyed", h, kinds[kind]);
    return NULL;
}

void play_close_handle(handle h)
{
    struct slot *slot = slot_of(h);
    if (slot) slot->object = NULL;
}

void play_close_handles(const play_context *context, void (*close)(play_kind kind, void *object))
{
    for (size_t i = 0; i < n_slots; i++) {
        void *object = slots[i].object;
        if (!object || slots[i].context != context) continue;
        slots[i].object = NULL;
        close(slots[i].kind, object);
    }
}
