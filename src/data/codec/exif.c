#include "data/codec/exif.h"

#include <string.h>

/* A TIFF block, in either byte order. */
typedef struct tiff {
    const uint8_t *data;
    size_t n;
    bool big;
} tiff;

/* 0 beyond the end. */
static uint32_t read_number(const tiff *t, size_t at, int n_bytes)
{
    uint32_t x = 0;
    if (at > t->n || t->n - at < (size_t)n_bytes) return 0;
    for (int i = 0; i < n_bytes; i++)
        x |= (uint32_t)t->data[at + (size_t)i] << 8 * (t->big ? n_bytes - 1 - i : i);
    return x;
}

static int orientation_of(tiff t)
{
    enum { TAG = 0x0112, SHORT = 3, ENTRY_BYTES = 12 };
    if (t.n < 8 || (memcmp(t.data, "II*\0", 4) && memcmp(t.data, "MM\0*", 4))) return 1;
    t.big = t.data[0] == 'M';
    size_t first = read_number(&t, 4, 4), n = read_number(&t, first, 2);
    for (size_t i = 0; i < n; i++) {
        size_t at = first + 2 + i * ENTRY_BYTES;
        if (at >= t.n) break;
        if (read_number(&t, at, 2) != TAG || read_number(&t, at + 2, 2) != SHORT) continue;
        uint32_t value = read_number(&t, at + 8, 2);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

int stk_exif_orientation(stk_span encoded)
{
    static const uint8_t name[6] = {'E', 'x', 'i', 'f', 0, 0};
    const uint8_t *p = encoded.data, *end = encoded.data + encoded.n;
    if (encoded.n < 4 || p[0] != 0xFF || p[1] != 0xD8) return 1;
    /* As far as the first marker that is not about the application: EXIF stands before the tables. */
    for (p += 2; end - p >= 4 && p[0] == 0xFF;) {
        size_t n = (size_t)p[2] << 8 | p[3];
        if (p[1] == 0xFF) {
            p++;
            continue;
        }
        if ((p[1] < 0xE0 || p[1] > 0xEF) && p[1] != 0xFE) break;
        if (n < 2 || (size_t)(end - p) < 2 + n) break;
        if (p[1] == 0xE1 && n >= 2 + sizeof(name) && !memcmp(p + 4, name, sizeof(name)))
            return orientation_of((tiff){.data = p + 4 + sizeof(name), .n = n - 2 - sizeof(name)});
        p += 2 + n;
    }
    return 1;
}

bool stk_exif_swaps_sides(int orientation)
{
    return orientation >= 5;
}

static inline __attribute__((always_inline)) void copy_tile(const uint8_t *src, ptrdiff_t step_y, ptrdiff_t step_x,
                                                            int64_t height, int64_t width, int channels, uint8_t *dst,
                                                            ptrdiff_t row)
{
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            memcpy(dst + y * row + x * channels, src + y * step_y + x * step_x, (size_t)channels);
}

void stk_exif_turn(int orientation, const uint8_t *src, int64_t height, int64_t width, int channels, uint8_t *dst)
{
    enum { TILE = 32 }; /* columns become rows without leaving the cache */
    static const struct {
        bool from_bottom, from_right;
    } how[9] = {[2] = {false, true}, [3] = {true, true}, [4] = {true, false},
                [6] = {true, false}, [7] = {true, true}, [8] = {false, true}};
    bool swaps = stk_exif_swaps_sides(orientation);
    ptrdiff_t pixel = channels, line = (ptrdiff_t)width * pixel;
    ptrdiff_t down = how[orientation].from_bottom ? -line : line, right = how[orientation].from_right ? -pixel : pixel;
    if (how[orientation].from_bottom) src += (height - 1) * line;
    if (how[orientation].from_right) src += (width - 1) * pixel;
    int64_t to_height = swaps ? width : height, to_width = swaps ? height : width;
    ptrdiff_t step_y = swaps ? right : down, step_x = swaps ? down : right, row = (ptrdiff_t)to_width * pixel;
    for (int64_t y = 0; y < to_height; y += TILE)
        for (int64_t x = 0; x < to_width; x += TILE) {
            int64_t h = to_height - y < TILE ? to_height - y : TILE, w = to_width - x < TILE ? to_width - x : TILE;
            const uint8_t *from = src + y * step_y + x * step_x;
            uint8_t *to = dst + y * row + x * pixel;
            if (channels == 3)
                copy_tile(from, step_y, step_x, h, w, 3, to, row);
            else
                copy_tile(from, step_y, step_x, h, w, channels, to, row);
        }
}
