/* The own JPEG decoder against libjpeg-turbo: whole images and crops, in colour and in grey, with every instruction
 * set, with an index of its own making and with one of random bytes. What it reads itself must equal the library's
 * pixels; what it hands over, the library judges.
 *
 * Equal also where damage drives coefficients out of range, on x86 (idct.h).
 *
 * covers: data/codec/jpeg_crop.c data/codec/jpeg_crop/decoder.c data/codec/jpeg_crop/header.c
 * data/codec/jpeg_crop/huffman.c data/codec/jpeg_crop/scan.c data/codec/jpeg_crop/entropy.h
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/codec/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 256 << 10 }; /* A few bytes may ask for a large image, which is slow and finds nothing more. */

static stk_jpeg_reader *readers[2];

static void open_readers(void)
{
    setenv("STOKER_ISA", "baseline", 1);
    if (stk_jpeg_reader_open(&readers[0]) != STK_OK) abort();
    unsetenv("STOKER_ISA");
    if (stk_jpeg_reader_open(&readers[1]) != STK_OK) abort();
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

/* A rectangle out of the file's bytes, so that the fuzzer chooses it. */
static stk_rect choose(stk_span file, int64_t height, int64_t width, uint32_t salt)
{
    uint32_t hash = salt * 2654435761U;
    for (size_t i = file.n > 16 ? file.n - 16 : 0; i < file.n; i++)
        hash = (hash ^ file.data[i]) * 16777619U;
    stk_rect r = {.height = 1 + (hash & 255) % height, .width = 1 + (hash >> 8 & 255) % width};
    r.top = (int64_t)(hash >> 16 & 255) % (height - r.height + 1);
    r.left = (int64_t)(hash >> 24) % (width - r.width + 1);
    return r;
}

static void check(const uint8_t *want, int64_t width, const uint8_t *got, stk_rect r, int channels)
{
    size_t n = (size_t)(r.width * channels);
    for (int64_t y = 0; y < r.height; y++)
        if (memcmp(got + (size_t)y * n, want + (size_t)(((r.top + y) * width + r.left) * channels), n))
            fail("the pixels differ");
}

/* Every reader, the whole image and a crop; want is NULL where the library refuses the file. */
static void compare(stk_span file, int64_t height, int64_t width, int channels, stk_status status, const uint8_t *want)
{
    stk_rect whole = {0, 0, height, width};
    uint8_t *got = malloc((size_t)(height * width * channels));
    for (int i = 0; i < 2 && got; i++) {
        if (stk_jpeg_decode_crop(readers[i], file, whole, channels, got) != status) fail("the status differs");
        if (want) check(want, width, got, whole, channels);
        stk_rect part = choose(file, height, width, (uint32_t)channels);
        stk_status part_status = stk_jpeg_decode_crop(readers[i], file, part, channels, got);
        if (want && part_status != STK_OK) fail("a crop is refused");
        if (want) check(want, width, got, part, channels);
    }
    free(got);
}

static void compare_indexed(stk_span file, int64_t height, int64_t width, const uint8_t *want)
{
    int n = stk_jpeg_reader_index_size(readers[1], file, (int)(file.n % 5));
    stk_jpeg_entry *entry = n > 0 ? calloc((size_t)n, sizeof(*entry)) : NULL;
    uint8_t *got = malloc((size_t)(height * width * 3));
    stk_jpeg_index index = {entry, n, 0};
    if (file.n % 2) (void)stk_jpeg_reader_index(readers[1], file, &index);
    for (uint32_t i = 0; i < 4 && entry && got; i++) {
        stk_rect part = choose(file, height, width, i + 9);
        if (stk_jpeg_reader_begin(readers[1], file, part, 3, &index) != STK_OK ||
            stk_jpeg_reader_rows(readers[1], part.height, got, (size_t)part.width * 3) != STK_OK)
            fail("an indexed crop is refused");
        check(want, width, got, part, 3);
    }
    free(got);
    free(entry);
}

static void try_wrong_index(stk_span file, int64_t height, int64_t width)
{
    int n = stk_jpeg_reader_index_size(readers[1], file, (int)(file.n % 7));
    stk_jpeg_entry entry[64];
    uint8_t *got = malloc((size_t)(height * width * 3));
    if (n > 0 && n <= 64 && file.n >= sizeof(entry) && got) {
        memcpy(entry, file.data + file.n - sizeof(entry), sizeof(entry));
        for (int i = 0; i < n; i++)
            entry[i].offset %= (uint32_t)(2 * file.n), entry[i].bit &= 7;
        stk_jpeg_index index = {entry, n, n};
        stk_rect part = choose(file, height, width, 5);
        if (stk_jpeg_reader_begin(readers[1], file, part, 3, &index) == STK_OK)
            (void)stk_jpeg_reader_rows(readers[1], part.height, got, (size_t)part.width * 3);
    }
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_span file = {data, size};
    int64_t height, width;
    if (!readers[0]) open_readers();
    if (stk_image_format_of(file) != STK_IMAGE_JPEG || stk_image_size(file, &height, &width) != STK_OK) return 0;
    if (height * width > MOST_PIXELS) return 0;
    for (int channels = 1; channels <= 3; channels += 2) {
        uint8_t *want = malloc((size_t)(height * width * channels));
        stk_rect whole = {0, 0, height, width};
        if (!want) return 0;
        stk_status status = stk_jpeg_decode_by_library(file, height, width, &whole, channels, want);
        compare(file, height, width, channels, status, status == STK_OK ? want : NULL);
        if (status == STK_OK && channels == 3) compare_indexed(file, height, width, want);
        free(want);
    }
    try_wrong_index(file, height, width);
    return 0;
}
