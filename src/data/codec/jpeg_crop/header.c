#include "data/codec/jpeg_crop/header.h"

#include <string.h>

const uint8_t stk_jpeg_natural_order[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* Marker codes of T.81, table B.1. */
enum {
    SOF0 = 0xC0,
    SOF1 = 0xC1,
    DHT = 0xC4,
    SOI = 0xD8,
    SOS = 0xDA,
    DQT = 0xDB,
    DRI = 0xDD,
    APP0 = 0xE0,
    APP14 = 0xEE,
    APP15 = 0xEF,
    COM = 0xFE
};
enum { MOST_SIDE = 65500 }; /* of libjpeg */

typedef struct parser {
    stk_jpeg_header *out;
    bool has_frame, has_quant[4], has_jfif, has_adobe;
    int adobe_transform;
} parser;

static int read_u16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

/* p, n: what follows the length field. */
static bool read_quant(parser *s, const uint8_t *p, int n)
{
    while (n > 0) {
        int wide = p[0] >> 4 != 0, i_table = p[0] & 15, bytes = wide ? 129 : 65;
        if (i_table > 3 || n < bytes) return false;
        for (int k = 0; k < 64; k++)
            s->out->quant[i_table][stk_jpeg_natural_order[k]] =
                wide ? (uint16_t)read_u16(p + 1 + 2 * k) : (uint16_t)p[1 + k];
        s->has_quant[i_table] = true;
        p += bytes;
        n -= bytes;
    }
    return true;
}

static bool read_codes(parser *s, const uint8_t *p, int n)
{
    while (n > 0) {
        if (n < 17 || (p[0] & 0xEF) > 3) return false;
        stk_jpeg_code *code = &(p[0] & 0x10 ? s->out->ac : s->out->dc)[p[0] & 3];
        int count = 0;
        for (int l = 1; l <= 16; l++)
            count += p[l];
        if (count > 256 || n < 17 + count) return false;
        *code = (stk_jpeg_code){p + 1, count};
        p += 17 + count;
        n -= 17 + count;
    }
    return true;
}

static bool read_frame(parser *s, const uint8_t *p, int n)
{
    stk_jpeg_header *h = s->out;
    if (s->has_frame || n < 6 || p[0] != 8) return false;
    s->has_frame = true;
    h->height = read_u16(p + 1);
    h->width = read_u16(p + 3);
    h->n_components = p[5];
    if (h->height < 1 || h->width < 1 || h->height > MOST_SIDE || h->width > MOST_SIDE) return false;
    if ((h->n_components != 1 && h->n_components != 3) || n != 6 + 3 * h->n_components) return false;
    for (int i = 0; i < h->n_components; i++) {
        const uint8_t *c = p + 6 + 3 * i;
        h->component[i] = (stk_jpeg_component){.id = c[0], .h = c[1] >> 4, .v = c[1] & 15, .quant = c[2]};
        if (c[2] > 3) return false;
    }
    return true;
}

/* One component has one block an MCU, whatever its factors say (T.81, A.2.2). */
static bool check_sampling(stk_jpeg_header *h)
{
    stk_jpeg_component *c = h->component;
    if (h->n_components == 1) {
        if (c->h < 1 || c->h > 4 || c->v < 1 || c->v > 4) return false;
        c->h = c->v = 1;
    } else if (c[0].h < 1 || c[0].h > 2 || c[0].v < 1 || c[0].v > 2 || c[1].h != 1 || c[1].v != 1 || c[2].h != 1 ||
               c[2].v != 1)
        return false;
    h->hmax = c->h;
    h->vmax = c->v;
    /* Chroma this narrow is repeated by the library, not interpolated. */
    return h->hmax == 1 || h->width > 4;
}

/* As the library guesses it; where it would warn we refuse. */
static bool check_color(const parser *s)
{
    const stk_jpeg_component *c = s->out->component;
    if (s->out->n_components == 1 || s->has_jfif) return true;
    if (s->has_adobe) return s->adobe_transform == 1;
    return !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B');
}

static bool read_scan(const parser *s, const uint8_t *p, int n)
{
    stk_jpeg_header *h = s->out;
    if (!s->has_frame || n < 1 || p[0] != h->n_components || n != 4 + 2 * h->n_components) return false;
    for (int i = 0; i < h->n_components; i++) {
        stk_jpeg_component *c = &h->component[i];
        c->dc = p[2 + 2 * i] >> 4;
        c->ac = p[2 + 2 * i] & 15;
        if (p[1 + 2 * i] != c->id || c->dc > 3 || c->ac > 3) return false;
        if (!h->dc[c->dc].counts || !h->ac[c->ac].counts || !s->has_quant[c->quant]) return false;
        for (int k = 0; k < i; k++)
            if (h->component[k].id == c->id) return false;
    }
    const uint8_t *rest = p + 1 + 2 * h->n_components;
    return rest[0] == 0 && rest[1] == 63 && rest[2] == 0;
}

static bool read_segment(parser *s, int marker, const uint8_t *p, int n)
{
    switch (marker) {
    case SOF0:
    case SOF1: return read_frame(s, p, n);
    case DHT: return read_codes(s, p, n);
    case DQT: return read_quant(s, p, n);
    case DRI:
        if (n != 2) return false;
        s->out->restart_interval = read_u16(p);
        return true;
    case APP0:
        if (n < 14 || memcmp(p, "JFIF", 5)) return true;
        s->has_jfif = true;
        return p[5] == 1;
    case APP14:
        if (n < 12 || memcmp(p, "Adobe", 5)) return true;
        s->has_adobe = true;
        s->adobe_transform = p[11];
        return true;
    default: return (marker > APP0 && marker <= APP15) || marker == COM;
    }
}

bool stk_jpeg_read_header(stk_span encoded, stk_jpeg_header *out)
{
    parser s = {.out = out};
    const uint8_t *p = encoded.data, *end = p + encoded.n;
    if (encoded.n < 4 || p[0] != 0xFF || p[1] != SOI) return false;
    memset(out->dc, 0, sizeof(out->dc));
    memset(out->ac, 0, sizeof(out->ac));
    out->restart_interval = 0;
    for (p += 2;;) {
        if (end - p < 4 || *p != 0xFF) return false;
        while (end - p > 4 && p[1] == 0xFF) /* fill bytes */
            p++;
        int marker = p[1], n = read_u16(p + 2) - 2;
        if (n < 0 || end - p < 4 + n) return false;
        p += 4;
        if (marker == SOS) {
            out->scan = (size_t)(p + n - encoded.data);
            return read_scan(&s, p, n) && check_sampling(out) && check_color(&s);
        }
        if (!read_segment(&s, marker, p, n)) return false;
        p += n;
    }
}
