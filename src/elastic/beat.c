/* See elastic/beat.h. */
#include "elastic/beat.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

/* Many ranks beat less often, so that who listens gets at most 1,000 beats a second as long as it can. A beat that
 * comes LATE_MS after its time tells that the process was held. */
enum { EVERY_MS = 100, SELDOM_MS = 1000, LATE_MS = 50, MOST_LISTENERS = 2, MOST_COUNTERS = 2 };

typedef struct listener {
    int socket;
    uint64_t token;
} listener;

struct stk_beat {
    listener listener[MOST_LISTENERS];
    int n_listeners;
    stk_thread thread;
    stk_mutex lock;
    stk_cond changed;
    bool ending, has_ended;                         /* guarded by lock */
    const _Atomic uint64_t *counter[MOST_COUNTERS]; /* guarded by lock; NULL: none */
    stk_beat_state state;                           /* guarded by lock, without what follows */
    int every_ms;
    /* Of the beat's thread. */
    int64_t sent_ns, late_ns;     /* the last beat; how much later than planned all came */
    int64_t waited_ns, queued_ns; /* at the last beat: in collectives, and for a core */
    int64_t coreless_ns;          /* for a core, but in collectives */
    int trainer;                  /* the thread that opened this */
    /* Of the thread that trains. */
    _Atomic int64_t step, n_calls, wait_ns, aside_ns, call_ns, phase_ns; /* call_ns, phase_ns: when it began; 0: none */
    _Atomic int32_t phase;
    _Atomic(const char *) call;
};

const char *stk_phase_words(int phase)
{
#define X(name, words) words,
    static const char *const all[] = {STK_PHASE_LIST(X)};
#undef X
    return phase >= 0 && phase < STK_N_PHASES ? all[phase] : "?";
}

/* --- sending --- */

static int64_t ms_since(int64_t begin_ns, int64_t now_ns)
{
    return begin_ns > 0 && now_ns > begin_ns ? (now_ns - begin_ns) / 1000000 : 0;
}

static bool is_aside(int32_t phase)
{
    return phase == STK_PHASE_starting || phase == STK_PHASE_evaluation || phase == STK_PHASE_saving;
}

/* How long the thread that trains could have run and waited for a core, also for a quota's: the second number there. */
static int64_t read_queued_ns(const stk_beat *beat)
{
    char path[64];
    long long ran, waited = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", beat->trainer);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (fscanf(file, "%lld %lld", &ran, &waited) != 2) waited = 0;
    fclose(file);
    return waited;
}

/* What a rank waits for a core in a collective, where it only asks whether others have come, holds nobody up: of the
 * time since the last beat the part that went by elsewhere counts. The lock is held. */
static void look_whether_held(stk_beat *beat)
{
    int64_t now = stk_clock_ns(), begun = beat->sent_ns, call = atomic_load(&beat->call_ns);
    int64_t planned = begun + beat->every_ms * INT64_C(1000000), queued = read_queued_ns(beat);
    int64_t waited = atomic_load(&beat->wait_ns) + (call > 0 && now > call ? now - call : 0);
    if (begun && now > begun) {
        double elsewhere = 1 - (double)(waited - beat->waited_ns) / (double)(now - begun);
        if (now - planned > LATE_MS * INT64_C(1000000))
            beat->late_ns += now - planned;
        else if (elsewhere > 0)
            beat->coreless_ns += (int64_t)(elsewhere * (double)(queued - beat->queued_ns));
    }
    beat->sent_ns = now;
    beat->waited_ns = waited;
    beat->queued_ns = queued;
}

/* The lock is held. */
static void fill(stk_beat *beat)
{
    stk_beat_state *s = &beat->state;
    int64_t now = stk_clock_ns(), call = atomic_load(&beat->call_ns);
    s->n_beats++;
    s->step = atomic_load(&beat->step);
    s->n_calls = atomic_load(&beat->n_calls);
    s->n_given = 0;
    for (int i = 0; i < MOST_COUNTERS && beat->counter[i]; i++)
        s->n_given += (int64_t)atomic_load(beat->counter[i]);
    int32_t phase = atomic_load(&beat->phase);
    s->phase_ms = ms_since(atomic_load(&beat->phase_ns), now);
    s->aside_ms = atomic_load(&beat->aside_ns) / 1000000 + (is_aside(phase) ? s->phase_ms : 0);
    s->held_ms = (beat->late_ns + beat->coreless_ns) / 1000000;
    s->phase = s->phase == STK_PHASE_ended ? s->phase : phase;
    s->in_call = call > 0;
    s->call_ms = ms_since(call, now);
    s->wait_ms = atomic_load(&beat->wait_ns) / 1000000 + (is_aside(phase) ? 0 : s->call_ms);
    const char *name = atomic_load(&beat->call);
    snprintf(s->call, sizeof(s->call), "%s", name ? name : "");
}

/* The lock is held. */
static void send_beat(stk_beat *beat)
{
    stk_beat_packet packet = {.head = {.mark = {'S', 'T', 'K', 'B'}, .bytes = sizeof(packet)}};
    fill(beat);
    packet.state = beat->state;
    for (int i = 0; i < beat->n_listeners; i++) {
        packet.head.token = beat->listener[i].token;
        (void)!send(beat->listener[i].socket, &packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void run(void *arg)
{
    stk_beat *beat = arg;
    stk_mutex_lock(&beat->lock);
    while (!beat->ending) {
        look_whether_held(beat);
        send_beat(beat);
        (void)stk_cond_wait_ms(&beat->changed, &beat->lock, beat->every_ms);
    }
    stk_mutex_unlock(&beat->lock);
}

/* --- opening --- */

/* "HOST:PORT:TOKEN" */
static stk_status connect_to(const char *text, size_t n, listener *out)
{
    char host[STK_BEAT_ADDRESS];
    *out = (listener){.socket = -1};
    snprintf(host, sizeof(host), "%.*s", (int)n, text);
    char *port = strchr(host, ':'), *token = port ? strchr(port + 1, ':') : NULL;
    if (!token || n >= sizeof(host)) return stk_fail(STK_INVALID, "'%s' is no address to send beats to", text);
    *port++ = 0;
    *token++ = 0;
    struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
    int error = getaddrinfo(host, port, &want, &found);
    if (error) return stk_fail(STK_NOT_FOUND, "cannot find '%s' to send beats to: %s", host, gai_strerror(error));
    out->token = strtoull(token, NULL, 16);
    out->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (out->socket < 0 || connect(out->socket, found->ai_addr, found->ai_addrlen) != 0) {
        stk_fail(STK_IO, "cannot send beats to '%s': %s", host, strerror(errno));
        if (out->socket >= 0) close(out->socket);
        out->socket = -1;
    }
    freeaddrinfo(found);
    return out->socket >= 0 ? STK_OK : STK_IO;
}

static stk_status connect_all(stk_beat *beat, const char *address)
{
    stk_status status = STK_OK;
    while (*address && beat->n_listeners < MOST_LISTENERS) {
        size_t n = strcspn(address, ",");
        stk_status own = connect_to(address, n, &beat->listener[beat->n_listeners]);
        if (own == STK_OK)
            beat->n_listeners++;
        else
            status = own;
        address += n + (address[n] == ',');
    }
    return beat->n_listeners ? STK_OK : status;
}

stk_status stk_beat_open(const char *address, int rank, int n_ranks, stk_beat **out)
{
    stk_status status;
    *out = NULL;
    stk_beat *beat = calloc(1, sizeof(*beat));
    if (!beat) return stk_fail_memory(sizeof(*beat));
    beat->state.rank = rank;
    beat->state.n_ranks = n_ranks;
    beat->state.pid = getpid();
    beat->every_ms = n_ranks < EVERY_MS ? EVERY_MS : n_ranks > SELDOM_MS ? SELDOM_MS : n_ranks; /* 1 ms for each */
    beat->trainer = (int)syscall(SYS_gettid);
    atomic_store(&beat->phase_ns, stk_clock_ns());
    (void)gethostname(beat->state.host, sizeof(beat->state.host) - 1);
    STK_TRY(connect_all(beat, address));
    STK_TRY(stk_mutex_init(&beat->lock));
    STK_TRY(stk_cond_init(&beat->changed));
    STK_TRY(stk_thread_start(&beat->thread, "stk-beat", false, run, beat));
    *out = beat;
    return STK_OK;
done:
    for (int i = 0; i < beat->n_listeners; i++)
        close(beat->listener[i].socket);
    free(beat);
    return status;
}

void stk_beat_close(stk_beat *beat)
{
    if (!beat) return;
    stk_beat_end(beat, STK_OK, NULL);
    stk_mutex_lock(&beat->lock);
    beat->ending = true;
    stk_cond_broadcast(&beat->changed);
    stk_mutex_unlock(&beat->lock);
    stk_thread_join(&beat->thread);
    for (int i = 0; i < beat->n_listeners; i++)
        close(beat->listener[i].socket);
    stk_cond_destroy(&beat->changed);
    stk_mutex_destroy(&beat->lock);
    free(beat);
}

/* --- marks --- */

void stk_beat_phase(stk_beat *beat, stk_phase phase)
{
    int32_t before = beat ? atomic_load_explicit(&beat->phase, memory_order_relaxed) : 0;
    if (!beat || before == (int32_t)phase) return;
    int64_t now = stk_clock_ns(), begun = atomic_load_explicit(&beat->phase_ns, memory_order_relaxed);
    if (is_aside(before)) atomic_fetch_add_explicit(&beat->aside_ns, now - begun, memory_order_relaxed);
    atomic_store_explicit(&beat->phase_ns, now, memory_order_relaxed);
    atomic_store_explicit(&beat->phase, (int32_t)phase, memory_order_relaxed);
}

void stk_beat_step(stk_beat *beat, int64_t step)
{
    if (beat) atomic_store_explicit(&beat->step, step, memory_order_relaxed);
}

void stk_beat_enter(stk_beat *beat, const char *call)
{
    if (!beat) return;
    atomic_store_explicit(&beat->call, call, memory_order_relaxed);
    atomic_fetch_add_explicit(&beat->n_calls, 1, memory_order_relaxed);
    atomic_store_explicit(&beat->call_ns, stk_clock_ns(), memory_order_release);
}

void stk_beat_leave(stk_beat *beat)
{
    if (!beat) return;
    int64_t begun = atomic_load_explicit(&beat->call_ns, memory_order_relaxed);
    if (!is_aside(atomic_load_explicit(&beat->phase, memory_order_relaxed)))
        atomic_fetch_add_explicit(&beat->wait_ns, stk_clock_ns() - begun, memory_order_relaxed);
    atomic_store_explicit(&beat->call_ns, 0, memory_order_release);
}

void stk_beat_count(stk_beat *beat, const _Atomic uint64_t *const *counter, int n)
{
    if (!beat) return;
    stk_mutex_lock(&beat->lock);
    for (int i = 0; i < n && i < MOST_COUNTERS; i++)
        beat->counter[i] = counter[i];
    stk_mutex_unlock(&beat->lock);
}

/* Whole lines go at the beginning where there is no room. The lock is held. */
static void add_line(stk_beat_state *s, const char *line)
{
    size_t have = strlen(s->log), add = strnlen(line, sizeof(s->log) / 2);
    while (have > 0 && have + add + 2 > sizeof(s->log)) {
        size_t first = strcspn(s->log, "\n") + 1;
        if (first > have) first = have;
        memmove(s->log, s->log + first, have - first + 1);
        have -= first;
    }
    snprintf(s->log + have, sizeof(s->log) - have, "%s%.*s", have ? "\n" : "", (int)add, line);
}

void stk_beat_say(stk_beat *beat, const char *format, ...)
{
    char line[STK_BEAT_LOG];
    va_list args;
    if (!beat) return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    stk_mutex_lock(&beat->lock);
    add_line(&beat->state, line);
    stk_mutex_unlock(&beat->lock);
}

void stk_beat_tell_run(stk_beat *beat, const char *folder, const char *device, int64_t batch)
{
    if (!beat) return;
    stk_mutex_lock(&beat->lock);
    if (folder) snprintf(beat->state.folder, sizeof(beat->state.folder), "%s", folder);
    if (device) snprintf(beat->state.device, sizeof(beat->state.device), "%s", device);
    beat->state.batch = batch;
    stk_mutex_unlock(&beat->lock);
}

void stk_beat_tell_start(stk_beat *beat, int64_t step, bool from_memory)
{
    if (!beat) return;
    stk_beat_step(beat, step);
    stk_mutex_lock(&beat->lock);
    beat->state.resumed_step = step;
    beat->state.from_memory = from_memory;
    stk_mutex_unlock(&beat->lock);
}

void stk_beat_end(stk_beat *beat, stk_status status, const char *text)
{
    if (!beat) return;
    stk_mutex_lock(&beat->lock);
    if (!beat->has_ended) {
        beat->has_ended = true;
        beat->state.status = status;
        beat->state.phase = STK_PHASE_ended;
        if (text) add_line(&beat->state, text);
        send_beat(beat);
    }
    stk_mutex_unlock(&beat->lock);
}
