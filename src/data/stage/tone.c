#include "data/stage/tone.h"

#include <stdbool.h>
#include <string.h>

#include "data/stage/simd.h"

enum { CHANNELS = 3, PERIOD = 96 /* a multiple of 1 and 3 that fills vectors */ };

STK_SIMD_CLONES
static void keep_bits(const uint8_t *src, uint8_t mask, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] & mask;
}

void stk_tone_posterize(int bits, const uint8_t *src, uint8_t *dst, int64_t n)
{
    keep_bits(src, (uint8_t)(0xFF00 >> bits), dst, n);
}

STK_SIMD_CLONES
static void invert_from(const uint8_t *src, uint8_t threshold, uint8_t *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i] >= threshold ? (uint8_t)~src[i] : src[i];
}

void stk_tone_solarize(int threshold, const uint8_t *src, uint8_t *dst, int64_t n)
{
    if (threshold <= 255)
        invert_from(src, (uint8_t)threshold, dst, n);
    else if (dst != src)
        memcpy(dst, src, (size_t)n);
}

/* --- by a table for each channel --- */

static void look_up(uint8_t table[CHANNELS][256], const uint8_t *src, uint8_t *dst, int64_t n, int channels)
{
    if (channels == 1) {
        for (int64_t i = 0; i < n; i++)
            dst[i] = table[0][src[i]];
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        dst[3 * i] = table[0][src[3 * i]];
        dst[3 * i + 1] = table[1][src[3 * i + 1]];
        dst[3 * i + 2] = table[2][src[3 * i + 2]];
    }
}

/* Of n values whose channels come in turn: value i counts for place i % PERIOD. */
STK_SIMD_CLONES
static void find_range(const uint8_t *restrict src, int64_t n, uint8_t *restrict low, uint8_t *restrict high)
{
    int64_t i = 0;
    for (; i + PERIOD <= n; i += PERIOD)
        for (int k = 0; k < PERIOD; k++) {
            uint8_t x = src[i + k];
            low[k] = low[k] < x ? low[k] : x;
            high[k] = high[k] > x ? high[k] : x;
        }
    for (int k = 0; i + k < n; k++) {
        uint8_t x = src[i + k];
        low[k] = low[k] < x ? low[k] : x;
        high[k] = high[k] > x ? high[k] : x;
    }
}

void stk_tone_autocontrast(const uint8_t *src, uint8_t *dst, int64_t n, int channels)
{
    uint8_t low[PERIOD], high[PERIOD], table[CHANNELS][256];
    memset(low, 255, sizeof(low));
    memset(high, 0, sizeof(high));
    find_range(src, n * channels, low, high);
    for (int k = channels; k < PERIOD; k++) {
        int c = k % channels;
        if (low[k] < low[c]) low[c] = low[k];
        if (high[k] > high[c]) high[c] = high[k];
    }
    for (int c = 0; c < channels; c++) {
        float from = low[c], by = (float)(high[c] - low[c]) * (1.0f / 255);
        bool is_flat = low[c] == high[c];
        for (int x = 0; x < 256; x++) {
            float y = is_flat ? (float)x : ((float)x - from) / by;
            table[c][x] = (uint8_t)(y < 0 ? 0 : y > 255 ? 255 : y);
        }
    }
    look_up(table, src, dst, n, channels);
}

static void count_values(const uint8_t *src, int64_t n, int channels, uint32_t count[CHANNELS][256])
{
    if (channels == 1) {
        for (int64_t i = 0; i < n; i++)
            count[0][src[i]]++;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        count[0][src[3 * i]]++;
        count[1][src[3 * i + 1]]++;
        count[2][src[3 * i + 2]]++;
    }
}

void stk_tone_equalize(const uint8_t *src, uint8_t *dst, int64_t n, int channels)
{
    uint32_t count[CHANNELS][256] = {0};
    uint8_t table[CHANNELS][256];
    count_values(src, n, channels, count);
    for (int c = 0; c < channels; c++) {
        int last = 255;
        while (last > 0 && !count[c][last])
            last--;
        int64_t step = (n - count[c][last]) / 255, sum = step / 2;
        for (int x = 0; x < 256; x++) {
            int64_t y = step ? sum / step : x;
            table[c][x] = (uint8_t)(y > 255 ? 255 : y);
            sum += count[c][x];
        }
    }
    look_up(table, src, dst, n, channels);
}

/* --- sharpness --- */

/* n values from the second pixel on; rows above, here and below. No sum is half way between two means. */
STK_SIMD_CLONES
static void sharpen_row(const uint8_t *restrict above, const uint8_t *restrict here, const uint8_t *restrict below,
                        int64_t n, int channels, float rest, uint8_t *restrict dst)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i - channels, right = i + channels;
        int sum = above[left] + above[i] + above[right] + here[left] + 5 * here[i] + here[right] + below[left] +
                  below[i] + below[right];
        float x = (float)here[i], mean = (float)(int)((float)sum * (1.0f / 13) + 0.5f), y = x + (mean - x) * rest;
        y = y > 0 ? y : 0;
        y = y < 255 ? y : 255;
        dst[i] = (uint8_t)(int)y;
    }
}

void stk_tone_sharpness(double amount, const uint8_t *src, uint8_t *dst, int64_t height, int64_t width, int channels)
{
    int64_t row = width * channels;
    if (height <= 2 || width <= 2) {
        memcpy(dst, src, (size_t)(height * row));
        return;
    }
    memcpy(dst, src, (size_t)row);
    memcpy(dst + (height - 1) * row, src + (height - 1) * row, (size_t)row);
    for (int64_t y = 1; y < height - 1; y++) {
        const uint8_t *here = src + y * row;
        uint8_t *to = dst + y * row;
        memcpy(to, here, (size_t)channels);
        memcpy(to + row - channels, here + row - channels, (size_t)channels);
        sharpen_row(here - row + channels, here + channels, here + row + channels, row - 2 * channels, channels,
                    (float)(1 - amount), to + channels);
    }
}
