/* Captures, and graphs: a stream's work written down instead of done, which is then launched as one. A graph here is a
 * chain, since one stream is captured at a time. */
#include <stdlib.h>
#include <string.h>

#include "device/play/play.h"

static int n_captures; /* of all threads */

/* --- lists --- */

void play_release_list(play_list *list)
{
    if (!list || --list->n_references > 0) return;
    for (int i = 0; i < list->n; i++)
        play_free_deed(&list->deed[i]);
    free(list->deed);
    free(list);
}

void play_close_graph(void *list)
{
    play_release_list(list);
}

void play_close_exec(void *object)
{
    play_exec *exec = object;
    play_release_list(exec->list);
    free(exec);
}

/* --- captures --- */

void play_free_capture(play_capture *capture)
{
    play_release_list(capture->list);
    free(capture);
    n_captures--;
}

int play_break_capture(play_stream *s, int code)
{
    play_misuse("error %d in a capture", code);
    s->capture->is_invalid = true;
    return code;
}

int play_refuse_in_capture(void)
{
    for (int c = 0; n_captures > 0 && c < MOST_CHIPS; c++)
        for (play_stream *s = play_contexts[c].streams; s; s = s->next) {
            if (!s->capture || s->capture->mode == 2) continue;
            if (s->capture->mode == 0 || pthread_equal(s->capture->thread, pthread_self()))
                return play_break_capture(s, CAPTURE_UNSUPPORTED);
        }
    return WELL;
}

int play_record(play_stream *s, play_deed *deed)
{
    play_list *list = s->capture->list;
    if (s->capture->is_invalid) {
        play_free_deed(deed);
        return CAPTURE_INVALIDATED;
    }
    if (deed->what == DO_RECORD) { /* It is no work: a mark in the order alone. */
        play_free_deed(deed);
        return WELL;
    }
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->deed = realloc(list->deed, (size_t)list->capacity * sizeof(*list->deed));
        if (!list->deed) abort();
    }
    list->deed[list->n++] = *deed;
    return WELL;
}

int cuStreamBeginCapture_v2(handle stream, int mode)
{
    int code = play_enter(CALL_cuStreamBeginCapture);
    if (code) return code;
    play_stream *s = play_stream_of(stream);
    if (!s) return play_leave(INVALID_HANDLE);
    if (mode < 0 || mode > 2) return play_leave(INVALID_VALUE);
    if (s == s->context->legacy) return play_leave(CAPTURE_UNSUPPORTED);
    if (s->capture) return play_leave(ILLEGAL_STATE);
    s->capture = calloc(1, sizeof(*s->capture));
    if (s->capture) s->capture->list = calloc(1, sizeof(*s->capture->list));
    if (!s->capture || !s->capture->list) abort();
    s->capture->list->n_references = 1;
    s->capture->mode = mode;
    s->capture->thread = pthread_self();
    n_captures++;
    return play_leave(WELL);
}

int cuStreamEndCapture(handle stream, handle *out)
{
    int code = play_enter(CALL_cuStreamEndCapture);
    if (code) return code;
    play_stream *s = play_stream_of(stream);
    if (!s) return play_leave(INVALID_HANDLE);
    *out = NULL;
    if (!s->capture) return play_leave(ILLEGAL_STATE);
    if (s->capture->mode != 2 && !pthread_equal(s->capture->thread, pthread_self()))
        return play_leave(CAPTURE_WRONG_THREAD);
    if (s->capture->is_invalid) {
        code = CAPTURE_INVALIDATED;
    } else {
        s->capture->list->n_references++;
        *out = play_open_handle(A_GRAPH, s->capture->list, s->context);
    }
    play_free_capture(s->capture);
    s->capture = NULL;
    return play_leave(code);
}

/* --- graphs --- */

int cuGraphGetNodes(handle graph, handle *out, size_t *n)
{
    int code = play_enter(CALL_cuGraphGetNodes);
    if (code) return code;
    const play_list *list = play_find(A_GRAPH, graph);
    if (!list) return play_leave(INVALID_HANDLE);
    for (size_t i = 0; out && i < *n; i++)
        out[i] = i < (size_t)list->n ? (handle)(uintptr_t)(i + 1) : NULL;
    if (!out || *n > (size_t)list->n) *n = (size_t)list->n;
    return play_leave(WELL);
}

int cuGraphInstantiateWithFlags(handle *out, handle graph, unsigned long long flags)
{
    int code = play_enter(CALL_cuGraphInstantiateWithFlags);
    if (code) return code;
    play_list *list = play_find(A_GRAPH, graph);
    if (!list) return play_leave(INVALID_HANDLE);
    if (flags) {
        play_misuse("cuGraphInstantiateWithFlags: flags %llu are not played", flags);
        return play_leave(INVALID_VALUE);
    }
    play_exec *exec = calloc(1, sizeof(*exec));
    if (!exec) abort();
    exec->list = list;
    list->n_references++;
    *out = play_open_handle(AN_EXEC, exec, play_current());
    return play_leave(WELL);
}

int cuGraphDestroy(handle graph)
{
    int code = play_enter(CALL_cuGraphDestroy);
    if (code) return code;
    play_list *list = play_find(A_GRAPH, graph);
    if (!list) return play_leave(INVALID_HANDLE);
    play_close_handle(graph);
    play_release_list(list);
    return play_leave(play_current()->broken);
}

/* What still runs goes on to its end. */
int cuGraphExecDestroy(handle h)
{
    int code = play_enter(CALL_cuGraphExecDestroy);
    if (code) return code;
    play_exec *exec = play_find(AN_EXEC, h);
    if (!exec) return play_leave(INVALID_HANDLE);
    play_close_handle(h);
    play_close_exec(exec);
    return play_leave(play_current()->broken);
}

static int find_exec(handle h, handle stream, play_exec **exec, play_stream **s)
{
    *exec = play_find(AN_EXEC, h);
    *s = play_stream_of(stream);
    if (!*exec || !*s) return INVALID_HANDLE;
    if (!(*s)->capture) return WELL;
    play_misuse("a graph in a graph is not played");
    return play_break_capture(*s, CAPTURE_UNSUPPORTED);
}

int cuGraphUpload(handle h, handle stream)
{
    play_exec *exec;
    play_stream *s;
    int code = play_enter(CALL_cuGraphUpload);
    if (code) return code;
    code = find_exec(h, stream, &exec, &s);
    return play_leave(code ? code : play_enqueue(s, &(play_deed){.what = DO_NOTHING}, false));
}

/* Behind the stream's work, and behind the last launch of the same, wherever that was. */
int cuGraphLaunch(handle h, handle stream)
{
    play_exec *exec;
    play_stream *s;
    int code = play_enter(CALL_cuGraphLaunch);
    if (code) return code;
    code = find_exec(h, stream, &exec, &s);
    if (code) return play_leave(code);
    if (exec->stream) play_wait_for(s, exec->stream, exec->number);
    exec->list->n_references++;
    exec->stream = s;
    exec->number = s->n_enqueued + 1;
    return play_leave(play_enqueue(s, &(play_deed){.what = DO_LIST, .list = exec->list},
                                   play_hangs(CALL_cuGraphLaunch, play_count.calls[CALL_cuGraphLaunch])));
}
