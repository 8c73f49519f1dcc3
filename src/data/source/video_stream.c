/* See source/video_stream.h. Bytes come through stk_input, so that no file or network is opened by FFmpeg itself. */
#ifdef STK_HAS_VIDEO
#include "data/source/video_stream.h"

#include <string.h>

#include "base/error.h"
#include "data/source/fields.h"

enum { BUFFER_BYTES = 64 << 10 };
static const char containers[] = "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,h264,hevc,m4v,ogg";

stk_status stk_video_fail(const stk_video_stream *s, int answer, const char *what)
{
    char text[128] = "unknown error";
    if (s->io_status != STK_OK) return s->io_status; /* its text is the last one */
    if (answer == AVERROR(ENOMEM)) return stk_fail_memory(0);
    s->av->av_strerror(answer, text, sizeof(text));
    if (text[0] >= 'A' && text[0] <= 'Z') text[0] = (char)(text[0] - 'A' + 'a');
    return stk_fail(STK_CORRUPT, "%s: %s", what, text);
}

static int read_bytes(void *user, uint8_t *dst, int n)
{
    stk_video_stream *s = user;
    if (s->at >= s->input.n_bytes) return AVERROR_EOF;
    if ((uint64_t)n > s->input.n_bytes - s->at) n = (int)(s->input.n_bytes - s->at);
    s->io_status = stk_input_read(&s->input, s->at, dst, (size_t)n);
    if (s->io_status != STK_OK) return AVERROR(EIO);
    s->at += (uint64_t)n;
    return n;
}

static int64_t seek_bytes(void *user, int64_t to, int whence)
{
    stk_video_stream *s = user;
    if (whence & AVSEEK_SIZE) return (int64_t)s->input.n_bytes;
    whence &= ~AVSEEK_FORCE;
    if (whence == SEEK_CUR) to += (int64_t)s->at;
    if (whence == SEEK_END) to += (int64_t)s->input.n_bytes;
    if (to < 0) return AVERROR(EINVAL);
    s->at = (uint64_t)to;
    return to;
}

static stk_status open_container(stk_video_stream *s)
{
    AVDictionary *options = NULL;
    uint8_t *buffer = s->av->av_malloc(BUFFER_BYTES);
    if (!buffer) return stk_fail_memory(BUFFER_BYTES);
    s->io = s->av->avio_alloc_context(buffer, BUFFER_BYTES, 0, s, read_bytes, NULL, seek_bytes);
    if (!s->io) {
        s->av->av_freep(&buffer);
        return stk_fail_memory(sizeof(*s->io));
    }
    if (!(s->format = s->av->avformat_alloc_context())) return stk_fail_memory(sizeof(*s->format));
    s->format->pb = s->io;
    s->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    if (s->av->av_dict_set(&options, "format_whitelist", containers, 0) < 0 ||
        s->av->av_dict_set(&options, "protocol_whitelist", "none", 0) < 0) {
        s->av->av_dict_free(&options);
        return stk_fail_memory(sizeof(containers));
    }
    int answer = s->av->avformat_open_input(&s->format, NULL, NULL, &options);
    s->av->av_dict_free(&options);
    return answer < 0 ? stk_video_fail(s, answer, "it is no video that can be read") : STK_OK;
}

/* Containers that say all of a stream in their header need no look at its packets, which takes decoding. */
static bool says_all(const AVFormatContext *format)
{
    bool tells = !strncmp(format->iformat->name, "mov", 3) || !strncmp(format->iformat->name, "matroska", 8);
    for (unsigned i = 0; i < format->nb_streams && tells; i++) {
        const AVCodecParameters *p = format->streams[i]->codecpar;
        if (p->codec_type == AVMEDIA_TYPE_VIDEO && (p->width < 1 || p->height < 1)) tells = false;
    }
    return tells;
}

static stk_status choose_stream(stk_video_stream *s)
{
    if (!says_all(s->format)) {
        int answer = s->av->avformat_find_stream_info(s->format, NULL);
        if (answer < 0) return stk_video_fail(s, answer, "its streams cannot be told apart");
    }
    int chosen = s->av->av_find_best_stream(s->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (chosen == AVERROR(ENOMEM)) return stk_fail_memory(0);
    if (chosen < 0) return stk_fail(STK_CORRUPT, "it has no video stream");
    s->stream = s->format->streams[chosen];
    if (s->stream->codecpar->width < 1 || s->stream->codecpar->height < 1)
        return stk_fail(STK_CORRUPT, "it does not say how large its frames are");
    for (unsigned i = 0; i < s->format->nb_streams; i++)
        if ((int)i != chosen) s->format->streams[i]->discard = AVDISCARD_ALL;
    return STK_OK;
}

stk_status stk_video_stream_open(const char *path, stk_video_stream *s)
{
    *s = (stk_video_stream){.input = {.fd = -1}};
    STK_RETURN_IF_ERROR(stk_video_load(&s->av));
    STK_RETURN_IF_ERROR(stk_record_open(path, &s->input));
    if (!(s->packet = s->av->av_packet_alloc())) return stk_fail_memory(sizeof(*s->packet));
    if (!(s->frame = s->av->av_frame_alloc())) return stk_fail_memory(sizeof(*s->frame));
    STK_RETURN_IF_ERROR(open_container(s));
    return choose_stream(s);
}

void stk_video_stream_close(stk_video_stream *s)
{
    if (!s->av) return;
    if (s->codec) s->av->avcodec_free_context(&s->codec);
    if (s->format) s->av->avformat_close_input(&s->format);
    if (s->io) s->av->av_freep(&s->io->buffer);
    if (s->io) s->av->avio_context_free(&s->io);
    if (s->packet) s->av->av_packet_free(&s->packet);
    if (s->frame) s->av->av_frame_free(&s->frame);
    stk_input_close(&s->input);
    *s = (stk_video_stream){.input = {.fd = -1}};
}

/* One thread. What is damaged is found by the flags of frames: AV_EF_EXPLODE would refuse open groups of pictures,
 * whose first frames do away with references that were not read. */
stk_status stk_video_decoder_open(stk_video_stream *s, int64_t n_ahead)
{
    const AVCodec *decoder = s->av->avcodec_find_decoder(s->stream->codecpar->codec_id);
    if (!decoder)
        return stk_fail(STK_UNSUPPORTED, "FFmpeg has no decoder for '%s'",
                        s->av->avcodec_get_name(s->stream->codecpar->codec_id));
    if (!(s->codec = s->av->avcodec_alloc_context3(decoder))) return stk_fail_memory(sizeof(*s->codec));
    int answer = s->av->avcodec_parameters_to_context(s->codec, s->stream->codecpar);
    if (answer < 0) return stk_video_fail(s, answer, "its decoder cannot be set up");
    s->codec->pkt_timebase = s->stream->time_base;
    s->codec->thread_count = 1;
    s->codec->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER;
    s->codec->flags &= ~AV_CODEC_FLAG_OUTPUT_CORRUPT;
    if (s->codec->has_b_frames < n_ahead) s->codec->has_b_frames = (int)(n_ahead < 16 ? n_ahead : 16);
    answer = s->av->avcodec_open2(s->codec, decoder, NULL);
    return answer < 0 ? stk_video_fail(s, answer, "its decoder cannot be opened") : STK_OK;
}

stk_status stk_video_next_packet(stk_video_stream *s, bool *end)
{
    *end = false;
    for (;;) {
        s->av->av_packet_unref(s->packet);
        int answer = s->av->av_read_frame(s->format, s->packet);
        *end = answer == AVERROR_EOF;
        if (*end && s->io_status != STK_OK) return s->io_status;
        if (*end) return STK_OK;
        if (answer < 0) return stk_video_fail(s, answer, "the file is damaged or cut short");
        if (s->packet->stream_index != s->stream->index) continue;
        if (s->packet->flags & AV_PKT_FLAG_CORRUPT) return stk_fail(STK_CORRUPT, "the file is damaged or cut short");
        return STK_OK;
    }
}

stk_status stk_video_send(stk_video_stream *s, bool end)
{
    int answer = s->av->avcodec_send_packet(s->codec, end ? NULL : s->packet);
    return answer < 0 ? stk_video_fail(s, answer, "it cannot be decoded") : STK_OK;
}

stk_status stk_video_receive(stk_video_stream *s, bool *got, bool *end)
{
    int answer = s->av->avcodec_receive_frame(s->codec, s->frame);
    *got = answer == 0;
    *end = answer == AVERROR_EOF;
    if (answer < 0 && answer != AVERROR(EAGAIN) && !*end) return stk_video_fail(s, answer, "it cannot be decoded");
    return STK_OK;
}

#endif
