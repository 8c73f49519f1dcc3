/* See source/video_file.h. The index is made of the packets' times, without decoding; a file whose packets have none is
 * decoded once, to count its frames. What the side file holds: video_index_parse.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/little.h"
#include "data/common/side_file.h"
#include "data/remote/remote.h"
#include "data/source/video_file.h"

#ifndef STK_HAS_VIDEO

stk_status stk_video_index_open(const char *path, stk_video_index *out, bool *was_stale)
{
    (void)was_stale;
    *out = (stk_video_index){0};
    return stk_fail(STK_UNSUPPORTED,
                    "'%s' is a video, which this build cannot read: install libavformat-dev, libavcodec-dev and "
                    "libswscale-dev, and build again",
                    path);
}

#else
#include "data/source/video_stream.h"

/* --- the side file --- */

enum {
    N_HEAD = STK_VIDEO_INDEX_HEAD,
    FORMAT = 1 << 16 | LIBAVFORMAT_VERSION_MAJOR /* times are as this version gives them */
};

static void write_index(const stk_input *file, const stk_video_index *v)
{
    int64_t n_times = v->time ? v->n_whole : 0, n = N_HEAD + n_times + v->n_keys;
    int64_t head[N_HEAD] = {FORMAT,     v->height,  v->width,        v->n_frames,
                            v->n_whole, v->n_ahead, v->time != NULL, v->n_keys};
    uint8_t *payload = malloc((size_t)n * 8);
    if (!payload) return;
    for (int64_t i = 0; i < n; i++)
        stk_put_little64(payload + 8 * i, (uint64_t)(i < N_HEAD             ? head[i]
                                                     : i < N_HEAD + n_times ? v->time[i - N_HEAD]
                                                                            : v->key[i - N_HEAD - n_times]));
    stk_index_write(file, STK_INDEX_VIDEO, payload, (size_t)n * 8);
    free(payload);
}

/* --- making it --- */

typedef struct packet_time {
    int64_t time;
    bool is_key, is_hidden; /* hidden: decoded and not shown, before the start that the file gives */
} packet_time;

typedef struct packets {
    packet_time *packet; /* in the file's order */
    int64_t n, capacity;
    int64_t n_missing; /* at least; more than 0: the file is cut short */
    bool timed;
} packets;

static stk_status add_packet(packets *p, const AVPacket *packet)
{
    if (p->n == p->capacity) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 256;
        packet_time *grown = realloc(p->packet, (size_t)capacity * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)capacity * sizeof(*grown));
        p->packet = grown;
        p->capacity = capacity;
    }
    p->packet[p->n++] =
        (packet_time){packet->pts, packet->flags & AV_PKT_FLAG_KEY, packet->flags & AV_PKT_FLAG_DISCARD};
    if (packet->pts == AV_NOPTS_VALUE) p->timed = false;
    return STK_OK;
}

/* An element's size at *at, which moves behind it; UINT64_MAX: it is not known. */
static uint64_t read_ebml_size(const uint8_t *bytes, size_t n, size_t *at)
{
    uint8_t first = *at < n ? bytes[*at] : 0;
    size_t n_more = 0;
    while (n_more < 8 && !(first & 0x80 >> n_more))
        n_more++;
    if (n_more == 8 || *at + n_more >= n) return UINT64_MAX;
    uint64_t size = first & (0x7fu >> n_more), unknown = (UINT64_C(1) << 7 * (n_more + 1)) - 1;
    for (size_t i = 1; i <= n_more; i++)
        size = size << 8 | bytes[*at + i];
    *at += n_more + 1;
    return size == unknown ? UINT64_MAX : size;
}

/* FFmpeg takes a Matroska file that is cut short for one that ends there. Its second element says how long all is. */
static bool ends_before_segment(const stk_input *file)
{
    uint8_t bytes[128];
    size_t n = file->n_bytes < sizeof(bytes) ? (size_t)file->n_bytes : sizeof(bytes), at = 4;
    if (stk_input_read(file, 0, bytes, n) != STK_OK) return false;
    uint64_t head = read_ebml_size(bytes, n, &at);
    if (head > n || at + head + 4 > n || memcmp(bytes + at + head, "\x18\x53\x80\x67", 4)) return false;
    at += (size_t)head + 4;
    uint64_t size = read_ebml_size(bytes, n, &at);
    return size != UINT64_MAX && size > file->n_bytes - at;
}

static stk_status list_packets(stk_video_stream *s, packets *p)
{
    bool end = false, counted = !strncmp(s->format->iformat->name, "mov", 3);
    int64_t n_announced = counted ? s->av->avformat_index_get_entries_count(s->stream) : 0;
    stk_status status;
    p->timed = true;
    while ((status = stk_video_next_packet(s, &end)) == STK_OK && !end) {
        STK_RETURN_IF_ERROR(add_packet(p, s->packet));
        if (!p->timed) return STK_OK;
    }
    if (status != STK_OK && status != STK_CORRUPT) return status;
    bool is_cut = status == STK_CORRUPT;
    if (!strncmp(s->format->iformat->name, "matroska", 8)) is_cut = is_cut || ends_before_segment(&s->input);
    p->n_missing = n_announced > p->n ? n_announced - p->n : is_cut;
    return STK_OK;
}

static int compare_packets(const void *a, const void *b)
{
    int64_t x = ((const packet_time *)a)->time, y = ((const packet_time *)b)->time;
    return (x > y) - (x < y);
}

/* The most packets that come before one that is shown earlier. */
static int64_t measure_reordering(const packets *p)
{
    int64_t most = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t n = 0;
        for (int64_t k = i - 1; k >= 0 && k >= i - 32; k--)
            n += p->packet[k].time > p->packet[i].time;
        if (n > most) most = n;
    }
    return most;
}

/* Frames that are shown before the first key frame cannot be decoded, and do not count. */
static stk_status take_packets(packets *p, stk_video_index *v)
{
    bool has_key = false;
    v->n_frames = p->n_missing;
    if (p->n == 0) return STK_OK;
    v->n_ahead = measure_reordering(p);
    qsort(p->packet, (size_t)p->n, sizeof(*p->packet), compare_packets);
    for (int64_t i = 1; i < p->n; i++)
        if (p->packet[i].time == p->packet[i - 1].time) p->timed = false;
    if (!p->timed) return STK_OK; /* the caller counts */
    v->time = malloc((size_t)p->n * sizeof(*v->time));
    v->key = malloc((size_t)p->n * sizeof(*v->key));
    if (!v->time || !v->key) return stk_fail_memory((size_t)p->n * sizeof(*v->time));
    for (int64_t i = 0; i < p->n; i++) {
        const packet_time *packet = &p->packet[i];
        has_key = has_key || packet->is_key;
        if (packet->is_key) v->key[v->n_keys++] = packet->time;
        if (!has_key || packet->is_hidden) continue;
        v->time[v->n_whole++] = packet->time;
    }
    v->n_frames = v->n_whole + p->n_missing;
    /* What is missing may be shown before as many of the last ones as there is reordering. */
    if (p->n_missing > 0) v->n_whole = v->n_whole > v->n_ahead ? v->n_whole - v->n_ahead : 0;
    return STK_OK;
}

/* Where frames have no times of their own: from the start to the end. */
static stk_status count_frames(const char *path, stk_video_index *v)
{
    stk_video_stream s;
    bool got = false, end = false, no_packet = false;
    stk_status status;
    STK_TRY(stk_video_stream_open(path, &s));
    STK_TRY(stk_video_decoder_open(&s, 0));
    for (;;) {
        STK_TRY(stk_video_receive(&s, &got, &end));
        if (end) break;
        v->n_whole += got;
        if (got) continue;
        STK_TRY(stk_video_next_packet(&s, &no_packet));
        STK_TRY(stk_video_send(&s, no_packet));
    }
done:
    stk_video_stream_close(&s);
    v->n_frames = v->n_whole + (status == STK_CORRUPT);
    return status == STK_CORRUPT ? STK_OK : status;
}

static stk_status index_stream(stk_video_stream *s, stk_video_index *v)
{
    packets p = {0};
    stk_status status;
    STK_TRY(list_packets(s, &p));
    if (p.timed) STK_TRY(take_packets(&p, v));
    if (!p.timed) STK_TRY(count_frames(v->path, v));
    v->height = s->stream->codecpar->height;
    v->width = s->stream->codecpar->width;
    if (v->n_frames == 0) STK_TRY(stk_fail(STK_CORRUPT, "it has no frame that can be decoded"));
done:
    free(p.packet);
    return status;
}

static stk_status make_index(stk_video_index *v)
{
    stk_video_stream s;
    stk_status status;
    STK_TRY(stk_video_stream_open(v->path, &s));
    STK_TRY(index_stream(&s, v));
    write_index(&s.input, v);
done:
    stk_video_stream_close(&s);
    if (status != STK_CORRUPT) return status;
    v->problem = strdup(stk_error_text());
    return v->problem ? STK_OK : stk_fail_memory(200);
}

stk_status stk_video_index_open(const char *path, stk_video_index *out, bool *was_stale)
{
    stk_input file = {.fd = -1};
    uint8_t *payload = NULL;
    size_t n;
    bool stale = false;
    stk_status status;
    const stk_video_calls *av;
    *out = (stk_video_index){0};
    STK_RETURN_IF_ERROR(stk_video_load(&av));
    STK_RETURN_IF_ERROR(stk_open_input(path, false, &file));
    if (!(out->path = strdup(path))) STK_TRY(stk_fail_memory(strlen(path)));
    STK_TRY(stk_index_read(&file, STK_INDEX_VIDEO, &payload, &n, &stale));
    if (!payload || !stk_video_index_parse(payload, n, FORMAT, out)) {
        char *kept = out->path;
        out->path = NULL;
        stk_video_index_close(out);
        out->path = kept;
        *was_stale = *was_stale || payload || stale;
        STK_TRY(make_index(out));
    }
    if (out->n_keys > 0 && (!out->time || !out->key)) STK_TRY(stk_fail_memory((size_t)out->n_whole * 8));
    out->file_bytes = file.n_bytes;
    out->file_mtime_ns = file.mtime_ns;
done:
    free(payload);
    stk_input_close(&file);
    if (status != STK_OK) stk_video_index_close(out);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "'%s': ", path);
}

#endif
