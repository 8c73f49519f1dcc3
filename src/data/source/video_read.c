/* See source/video_file.h. A clip is read from the last key frame before it. Frames are told by their times alone, so
 * that it does not matter where a container really enters: what comes before the key frame's packet is dropped, and
 * when it was entered behind it, or a frame does not come (as with key frames that only refresh the picture little by
 * little), an earlier key frame is taken. */
#include "data/source/video_file.h"

#ifndef STK_HAS_VIDEO

stk_status stk_video_read(stk_video_reader **reader, const stk_video_index *index, const stk_video_clip *clip,
                          uint8_t *dst)
{
    (void)reader, (void)index, (void)clip, (void)dst;
    return STK_UNSUPPORTED; /* there is no index to call this with */
}

void stk_video_reader_free(stk_video_reader *reader)
{
    (void)reader;
}

#else
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/source/video_scale.h"
#include "data/source/video_stream.h"

enum { WORTH_A_SEEK = 8 /* frames: sooner decoded than entered again */ };

struct stk_video_reader {
    stk_video_stream stream;
    stk_video_scaler scaler;
    const stk_video_index *index; /* of the open file; NULL: none is */
    int64_t last;                 /* frame that the decoder gave last; -1: none yet */
    int64_t i_key;                /* that it was entered at; -1: it cannot go on from where it is */
    bool before_key;              /* packets are dropped until this key's */
    bool ended;                   /* all packets are sent */
    int64_t sent;                 /* time of the last one */
    const stk_video_clip *clip;   /* being read */
};

static void close_file(stk_video_reader *r)
{
    stk_video_stream_close(&r->stream);
    r->index = NULL;
    r->i_key = -1;
}

static stk_status open_file(stk_video_reader *r, const stk_video_index *v)
{
    close_file(r);
    STK_RETURN_IF_ERROR(stk_video_stream_open(v->path, &r->stream));
    if (r->stream.input.n_bytes != v->file_bytes || r->stream.input.mtime_ns != v->file_mtime_ns)
        return stk_fail(STK_CORRUPT, "the file has changed since it was opened");
    STK_RETURN_IF_ERROR(stk_video_decoder_open(&r->stream, v->n_ahead));
    r->index = v;
    return STK_OK;
}

/* --- entering --- */

/* The last of n ascending times that is at most time; -1: none. */
static int64_t find_time(const int64_t *times, int64_t n, int64_t time)
{
    int64_t low = -1, high = n;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (times[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void begin(stk_video_reader *r, int64_t i_key)
{
    r->i_key = i_key;
    r->last = -1;
    r->before_key = r->index->time != NULL;
    r->ended = false;
    r->sent = INT64_MIN;
}

/* Seeks to at most key i_key. Behind the start, a container may refuse: then the file is opened again. */
static stk_status enter(stk_video_reader *r, const stk_video_index *v, int64_t i_key, int64_t i_seek)
{
    bool fresh = r->index != v;
    if (fresh) STK_RETURN_IF_ERROR(open_file(r, v));
    if (v->time && i_seek >= 0) {
        stk_video_stream *s = &r->stream;
        int answer = s->av->av_seek_frame(s->format, s->stream->index, v->key[i_seek], AVSEEK_FLAG_BACKWARD);
        if (answer < 0) i_seek = -1;
        s->av->avcodec_flush_buffers(s->codec);
    }
    if ((!v->time || i_seek < 0) && !fresh) STK_RETURN_IF_ERROR(open_file(r, v));
    begin(r, i_key);
    return STK_OK;
}

/* --- going on --- */

static bool is_wanted(const stk_video_reader *r, int64_t i_frame)
{
    int64_t i = i_frame - r->clip->from, past = (r->clip->n - 1) * r->clip->stride;
    return i >= 0 && (i > past || i % r->clip->stride == 0); /* what lies behind may be wanted next */
}

/* False: entered behind the key, or at the end. */
static stk_status reach_key(stk_video_reader *r, bool *reached)
{
    int64_t key = r->index->key[r->i_key];
    stk_video_stream *s = &r->stream;
    bool end = false;
    *reached = false;
    for (;;) {
        STK_RETURN_IF_ERROR(stk_video_next_packet(s, &end));
        if (end || ((s->packet->flags & AV_PKT_FLAG_KEY) && s->packet->pts > key)) return STK_OK;
        if (s->packet->pts != key) continue;
        r->before_key = false;
        *reached = true;
        return STK_OK;
    }
}

/* Sends one packet. What leads a key frame may refer to what was not read; it is not wanted either. */
static stk_status send_packet(stk_video_reader *r, bool *behind)
{
    stk_video_stream *s = &r->stream;
    const stk_video_index *v = r->index;
    bool reached = true;
    if (r->before_key) {
        STK_RETURN_IF_ERROR(reach_key(r, &reached));
        *behind = !reached;
        if (!reached) return STK_OK;
    } else {
        stk_status status = stk_video_next_packet(s, &r->ended);
        bool is_cut =
            status == STK_CORRUPT && v->time && v->n_whole < v->n_frames; /* what the decoder holds is whole */
        if (status != STK_OK && !is_cut) return status;
        r->ended = r->ended || is_cut;
    }
    if (v->time && !r->ended) {
        int64_t i = find_time(v->time, v->n_whole, s->packet->pts);
        s->codec->skip_frame = i >= 0 && !is_wanted(r, i) ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
        r->sent = s->packet->pts;
    }
    stk_status status = stk_video_send(s, r->ended);
    bool leads = v->time && !r->ended && r->sent < v->key[r->i_key];
    return status == STK_CORRUPT && leads ? STK_OK : status;
}

static stk_status take_frame(stk_video_reader *r, int64_t *i_frame)
{
    const stk_video_index *v = r->index;
    const AVFrame *frame = r->stream.frame;
    int64_t time = frame->pts;
    *i_frame = v->time ? find_time(v->time, v->n_whole, time) : r->last + 1;
    if (v->time && (*i_frame < 0 || v->time[*i_frame] != time)) *i_frame = -1; /* one that does not count */
    if (v->time && time < v->key[r->i_key]) *i_frame = -1;
    if (*i_frame < 0) return STK_OK;
    r->last = *i_frame;
    if (frame->decode_error_flags || (frame->flags & AV_FRAME_FLAG_CORRUPT))
        return stk_fail(STK_CORRUPT, "frame %" PRId64 ", which it needs, is damaged", *i_frame);
    return STK_OK;
}

/* Until frame i_frame is in stream.frame. *found false: another one came in its place, or the end. */
static stk_status go_to(stk_video_reader *r, int64_t i_frame, bool *found)
{
    *found = false;
    for (;;) {
        bool got = false, end = false, behind = false;
        int64_t i = -1;
        stk_status status = stk_video_receive(&r->stream, &got, &end);
        bool leads = r->index->time && r->sent < r->index->key[r->i_key];
        if (status != STK_OK && !(status == STK_CORRUPT && leads)) return status;
        if (status == STK_OK && end) return STK_OK;
        if (got) STK_RETURN_IF_ERROR(take_frame(r, &i));
        if (got && i < i_frame) continue;
        *found = got && i == i_frame;
        if (got) return STK_OK;
        STK_RETURN_IF_ERROR(send_packet(r, &behind));
        if (behind) return STK_OK;
    }
}

/* --- frames by number --- */

/* From key i_key, entered at it or as far before as it takes. Where the frame does not come, from earlier and earlier
 * keys, twice as far back each time. */
static stk_status find_from(stk_video_reader *r, const stk_video_index *v, int64_t i_key, int64_t i_frame)
{
    int64_t back = 1, i_seek = i_key;
    bool found = false;
    for (;;) {
        STK_RETURN_IF_ERROR(enter(r, v, i_key, i_seek));
        STK_RETURN_IF_ERROR(go_to(r, i_frame, &found));
        if (found) return STK_OK;
        if (i_seek < 0 || !v->time) return stk_fail(STK_CORRUPT, "it is missing");
        i_seek = i_seek > 0 && i_seek < back ? 0 : i_seek - back;
        if (!r->before_key) i_key = i_seek > 0 ? i_seek : 0; /* the key was entered, and that did not do */
        back *= 2;
    }
}

static stk_status find_frame(stk_video_reader *r, const stk_video_index *v, int64_t i_frame)
{
    int64_t i_key = v->time ? find_time(v->key, v->n_keys, v->time[i_frame]) : 0;
    bool found = false, goes_on = r->index == v && r->i_key >= 0 && r->last < i_frame;
    if (goes_on && v->time && i_key > r->i_key) {
        int64_t first = find_time(v->time, v->n_whole, v->key[i_key]);
        goes_on = first - r->last < WORTH_A_SEEK;
    }
    if (goes_on && r->last >= 0) {
        stk_status status = go_to(r, i_frame, &found);
        if (found || (status != STK_OK && status != STK_CORRUPT)) return status;
    }
    return find_from(r, v, i_key, i_frame);
}

static stk_status read_frame(stk_video_reader *r, const stk_video_index *v, int64_t i_frame, uint8_t *dst)
{
    stk_status status;
    if (i_frame >= v->n_whole) return stk_fail(STK_CORRUPT, "the file is cut short or damaged before it");
    STK_TRY(find_frame(r, v, i_frame));
    STK_TRY(stk_video_scale(&r->scaler, &r->stream, r->clip->height, r->clip->width,
                            r->clip->height == v->height && r->clip->width == v->width, dst));
done:
    if (status != STK_OK) close_file(r);
    return status;
}

stk_status stk_video_read(stk_video_reader **reader, const stk_video_index *index, const stk_video_clip *clip,
                          uint8_t *dst)
{
    size_t frame_bytes = (size_t)clip->height * (size_t)clip->width * 3;
    if (index->problem) return stk_fail(STK_CORRUPT, "frame %" PRId64 ": %s", clip->from, index->problem);
    if (!*reader) *reader = calloc(1, sizeof(**reader));
    stk_video_reader *r = *reader;
    if (!r) return stk_fail_memory(sizeof(*r));
    r->clip = clip;
    for (int64_t i = 0; i < clip->n; i++, dst += frame_bytes) {
        int64_t i_frame = clip->from + i * clip->stride;
        if (i_frame >= index->n_frames && i > 0 && i_frame - clip->stride >= index->n_frames - 1) {
            memcpy(dst, dst - frame_bytes, frame_bytes);
            continue;
        }
        if (i_frame >= index->n_frames) i_frame = index->n_frames - 1;
        stk_status status = read_frame(r, index, i_frame, dst);
        if (status != STK_OK)
            return stk_fail_prefix(status, "frame %" PRId64 " of %" PRId64 ": ", i_frame, index->n_frames);
    }
    return STK_OK;
}

void stk_video_reader_free(stk_video_reader *reader)
{
    if (!reader) return;
    stk_video_scaler_free(&reader->scaler);
    stk_video_stream_close(&reader->stream);
    free(reader);
}

#endif
