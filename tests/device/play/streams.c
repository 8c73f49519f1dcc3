/* Streams and events: work that waits to be done, in the order that is allowed and least expected. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/play/play.h"

enum { MOST_PENDING = 1000 }; /* of a stream: what is enqueued then waits */

/* --- streams --- */

play_stream *play_stream_of(handle h)
{
    return h ? play_find(A_STREAM, h) : play_current()->legacy;
}

play_stream *play_add_stream(play_context *context, bool is_blocking)
{
    play_stream *s = calloc(1, sizeof(*s));
    if (!s) abort();
    s->context = context;
    s->is_blocking = is_blocking;
    s->index = context->n_streams++;
    s->is_hasty = play_set.order >> s->index % 3 & 1;
    s->next = context->streams;
    context->streams = s;
    return s;
}

static void free_work(play_work *w)
{
    play_free_deed(&w->deed);
    free(w->after);
    free(w);
}

void play_free_streams(play_context *context)
{
    for (play_stream *s = context->streams, *next; s; s = next) {
        next = s->next;
        for (play_work *w = s->first, *following; w; w = following) {
            following = w->next;
            free_work(w);
        }
        if (s->capture) play_free_capture(s->capture);
        free(s->wait);
        free(s);
    }
    context->streams = context->legacy = NULL;
}

bool play_is_busy(const play_stream *s)
{
    return s->n_done < s->n_enqueued;
}

bool play_is_read(const play_context *context, const void *p, size_t bytes)
{
    const address at = (address)(uintptr_t)p;
    for (const play_stream *s = context->streams; s; s = s->next)
        for (const play_work *w = s->first; w; w = w->next) {
            const play_deed *d = &w->deed;
            if (d->what == DO_COPY && !d->staged && d->src < at + bytes && at < d->src + d->bytes) return true;
        }
    return false;
}

/* --- who goes on next --- */

static uint64_t next_number(void)
{
    static uint64_t state;
    if (!state) state = play_set.order;
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static const play_after *find_missing(const play_work *w)
{
    for (int i = 0; i < w->n_after; i++)
        if (w->after[i].stream->n_done < w->after[i].number) return &w->after[i];
    return NULL;
}

static bool can_go_on(const play_stream *s)
{
    return s->first && !s->first->hangs && !find_missing(s->first);
}

/* Whoever must go on so that this one can; NULL: something hangs. */
static play_stream *find_needed(play_stream *s)
{
    while (s->first && !s->first->hangs) {
        const play_after *missing = find_missing(s->first);
        if (!missing) return s;
        s = missing->stream;
    }
    return NULL;
}

static play_stream *find_any(void)
{
    int n = 0;
    play_stream *found = NULL;
    for (int c = 0; c < MOST_CHIPS; c++)
        for (play_stream *s = play_contexts[c].streams; s; s = s->next)
            if (can_go_on(s) && next_number() % (uint64_t)++n == 0) found = s;
    return found;
}

static void do_first(play_stream *s)
{
    play_work *w = s->first;
    int code = w->fails ? w->fails : s->context->broken ? s->context->broken : play_do(s, &w->deed);
    if (code && !s->context->broken) s->context->broken = code;
    s->first = w->next;
    if (!s->first) s->last = NULL;
    s->n_done = w->number;
    free_work(w);
}

bool play_step(play_stream *stream, uint64_t number)
{
    if (stream->n_done >= number) return true;
    play_stream *s = play_set.order && next_number() % 2 ? find_any() : NULL;
    if (!s) s = find_needed(stream);
    if (s) do_first(s);
    return s != NULL;
}

int play_finish(play_stream *stream, uint64_t number, const char *call)
{
    while (stream->n_done < number)
        if (!play_step(stream, number)) {
            play_misuse("%s would wait for ever, for work that hangs", call);
            return LAUNCH_TIMEOUT;
        }
    return stream->context->broken;
}

int play_finish_all(const play_context *context, const char *call)
{
    for (play_stream *s = context->streams; s; s = s->next) {
        int code = play_finish(s, s->n_enqueued, call);
        if (code) return code;
    }
    return WELL;
}

/* --- work --- */

static void add_after(play_after **list, int *n, play_stream *stream, uint64_t number)
{
    if (stream->n_done >= number) return;
    *list = realloc(*list, (size_t)(*n + 1) * sizeof(**list));
    if (!*list) abort();
    (*list)[(*n)++] = (play_after){stream, number};
}

void play_wait_for(play_stream *stream, play_stream *after, uint64_t number)
{
    if (stream != after) add_after(&stream->wait, &stream->n_waits, after, number);
}

/* The stream NULL and those that are not CU_STREAM_NON_BLOCKING: each in the order of the other. */
static void keep_legacy_order(play_stream *s)
{
    if (!s->is_blocking) return;
    if (s != s->context->legacy) {
        play_wait_for(s, s->context->legacy, s->context->legacy->n_enqueued);
        return;
    }
    for (play_stream *other = s->context->streams; other; other = other->next)
        if (other->is_blocking) play_wait_for(s, other, other->n_enqueued);
}

int play_enqueue(play_stream *s, play_deed *deed, bool hangs)
{
    const int fails = play_take_late_failure();
    if (s->capture) return play_record(s, deed);
    keep_legacy_order(s);
    play_work *w = malloc(sizeof(*w));
    if (!w) abort();
    *w = (play_work){.number = ++s->n_enqueued, .after = s->wait, .n_after = s->n_waits, .deed = *deed};
    w->fails = fails;
    w->hangs = hangs;
    s->wait = NULL;
    s->n_waits = 0;
    if (s->last)
        s->last->next = w;
    else
        s->first = w;
    s->last = w;
    while (s->is_hasty && can_go_on(s))
        do_first(s);
    if (s->n_enqueued - s->n_done > MOST_PENDING) play_step(s, s->n_enqueued);
    return WELL;
}

/* --- the calls: streams --- */

int cuStreamCreateWithPriority(handle *out, unsigned flags, int priority)
{
    int code = play_enter(CALL_cuStreamCreateWithPriority);
    if (code) return code;
    (void)priority;
    if (flags > 1) return play_leave(INVALID_VALUE);
    play_stream *s = play_add_stream(play_current(), flags == 0);
    *out = s->self = play_open_handle(A_STREAM, s, s->context);
    return play_leave(WELL);
}

/* Its work goes on without it. */
int cuStreamDestroy_v2(handle stream)
{
    int code = play_enter(CALL_cuStreamDestroy);
    if (code) return code;
    play_stream *s = play_find(A_STREAM, stream);
    if (!s) return play_leave(INVALID_HANDLE);
    if (s->capture) {
        play_misuse("cuStreamDestroy: the stream captures");
        return play_leave(CAPTURE_UNSUPPORTED);
    }
    play_close_handle(stream);
    return play_leave(play_current()->broken);
}

int cuStreamQuery(handle stream)
{
    int code = play_enter(CALL_cuStreamQuery);
    if (code) return code;
    play_stream *s = play_stream_of(stream);
    if (!s) return play_leave(INVALID_HANDLE);
    if (s->capture) return play_leave(play_break_capture(s, CAPTURE_UNSUPPORTED));
    if (!play_is_busy(s)) return play_leave(WELL);
    play_step(s, s->n_enqueued);
    return play_leave(s->context->broken ? s->context->broken : NOT_READY);
}

int cuStreamSynchronize(handle stream)
{
    int code = play_enter(CALL_cuStreamSynchronize);
    if (code) return code;
    play_stream *s = play_stream_of(stream);
    if (!s) return play_leave(INVALID_HANDLE);
    if (s->capture) return play_leave(play_break_capture(s, CAPTURE_UNSUPPORTED));
    return play_leave(play_finish(s, s->n_enqueued, "cuStreamSynchronize"));
}

/* --- the calls: events --- */

void play_release_event(play_event *event)
{
    if (--event->n_references == 0) free(event);
}

int cuEventCreate(handle *out, unsigned flags)
{
    int code = play_enter(CALL_cuEventCreate);
    if (code) return code;
    if (flags & ~7u) return play_leave(INVALID_VALUE);
    play_event *event = calloc(1, sizeof(*event));
    if (!event) abort();
    event->n_references = 1;
    event->has_time = !(flags & 2);
    *out = play_open_handle(AN_EVENT, event, play_current());
    return play_leave(WELL);
}

int cuEventDestroy_v2(handle h)
{
    int code = play_enter(CALL_cuEventDestroy);
    if (code) return code;
    play_event *event = play_find(AN_EVENT, h);
    if (!event) return play_leave(INVALID_HANDLE);
    play_close_handle(h);
    play_release_event(event);
    return play_leave(play_current()->broken);
}

int cuEventRecord(handle h, handle stream)
{
    int code = play_enter(CALL_cuEventRecord);
    if (code) return code;
    play_event *event = play_find(AN_EVENT, h);
    play_stream *s = play_stream_of(stream);
    if (!event || !s) return play_leave(INVALID_HANDLE);
    event->n_references++;
    event->is_captured = s->capture != NULL;
    event->stream = s;
    if (!s->capture) event->number = s->n_enqueued + 1;
    return play_leave(
        play_enqueue(s, &(play_deed){.what = DO_RECORD, .event = event, .number = s->n_enqueued + 1}, false));
}

int cuStreamWaitEvent(handle stream, handle h, unsigned flags)
{
    int code = play_enter(CALL_cuStreamWaitEvent);
    if (code) return code;
    play_event *event = play_find(AN_EVENT, h);
    play_stream *s = play_stream_of(stream);
    if (!event || !s) return play_leave(INVALID_HANDLE);
    if (flags) play_misuse("cuStreamWaitEvent: flags %u are not played", flags);
    if (s->capture && event->stream && !(event->is_captured && event->stream == s))
        return play_leave(play_break_capture(s, CAPTURE_ISOLATION));
    if (!s->capture && event->is_captured) {
        play_misuse("cuStreamWaitEvent: captures of several streams are not played");
        return play_leave(NOT_SUPPORTED);
    }
    if (s->capture || !event->stream) return play_leave(WELL);
    play_wait_for(s, event->stream, event->number);
    return play_leave(play_enqueue(s, &(play_deed){.what = DO_NOTHING}, false));
}

int cuEventQuery(handle h)
{
    int code = play_enter(CALL_cuEventQuery);
    if (code) return code;
    play_event *event = play_find(AN_EVENT, h);
    if (!event) return play_leave(INVALID_HANDLE);
    if (event->is_captured) return play_leave(CAPTURED_EVENT);
    if (!event->stream || event->stream->n_done >= event->number) return play_leave(WELL);
    play_step(event->stream, event->number);
    return play_leave(play_current()->broken ? play_current()->broken : NOT_READY);
}

int cuEventSynchronize(handle h)
{
    int code = play_enter(CALL_cuEventSynchronize);
    if (code) return code;
    play_event *event = play_find(AN_EVENT, h);
    if (!event) return play_leave(INVALID_HANDLE);
    if (event->is_captured) return play_leave(CAPTURED_EVENT);
    return play_leave(event->stream ? play_finish(event->stream, event->number, "cuEventSynchronize") : WELL);
}

int cuEventElapsedTime(float *milliseconds, handle h_begin, handle h_end)
{
    int code = play_enter(CALL_cuEventElapsedTime);
    if (code) return code;
    const play_event *begin = play_find(AN_EVENT, h_begin), *end = play_find(AN_EVENT, h_end);
    if (!begin || !end || !begin->has_time || !end->has_time || !begin->stream || !end->stream)
        return play_leave(INVALID_HANDLE);
    if (begin->stream->n_done < begin->number || end->stream->n_done < end->number) return play_leave(NOT_READY);
    *milliseconds = (float)((double)(end->done_ns - begin->done_ns) * 1e-6);
    return play_leave(WELL);
}
