/* The own JPEG decoder against libjpeg-turbo's decoding of the whole file: equal to the bit, or handed over to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "data/codec/jpeg.h"
#include "data/jpeg_make.h"

static const char *const isas[] = {"baseline", "best"};
enum { N_ISAS = 2 };
static stk_jpeg_reader *readers[N_ISAS];

static int open_readers(void **state)
{
    (void)state;
    for (int i = 0; i < N_ISAS; i++) {
        setenv("STOKER_ISA", isas[i], 1);
        if (stk_jpeg_reader_open(&readers[i]) != STK_OK) return 1;
    }
    unsetenv("STOKER_ISA");
    return 0;
}

static int close_readers(void **state)
{
    (void)state;
    for (int i = 0; i < N_ISAS; i++)
        stk_jpeg_reader_close(readers[i]);
    return 0;
}

/* A file with the library's pixels. */
typedef struct decoded {
    stk_span file;
    int64_t height, width;
    stk_status status;
    uint8_t *pixels[4]; /* by channels: 1 and 3 */
} decoded;

static decoded decode(stk_span file)
{
    decoded d = {.file = file};
    d.status = stk_jpeg_size(file, &d.height, &d.width);
    stk_rect whole = {0, 0, d.height, d.width};
    for (int channels = 1; channels <= 3 && d.status == STK_OK; channels += 2) {
        d.pixels[channels] = malloc((size_t)(d.height * d.width * channels));
        assert_non_null(d.pixels[channels]);
        d.status = stk_jpeg_decode_by_library(file, d.height, d.width, &whole, channels, d.pixels[channels]);
    }
    return d;
}

static void free_decoded(decoded *d)
{
    free(d->pixels[1]);
    free(d->pixels[3]);
}

static void check_pixels(const decoded *d, stk_rect rect, int channels, const uint8_t *pixels)
{
    size_t n = (size_t)(rect.width * channels);
    for (int64_t y = 0; y < rect.height; y++) {
        const uint8_t *want = d->pixels[channels] + (size_t)(((rect.top + y) * d->width + rect.left) * channels);
        if (!memcmp(pixels + (size_t)y * n, want, n)) continue;
        size_t x = 0;
        while (pixels[(size_t)y * n + x] == want[x])
            x++;
        fail_msg("%lld x %lld x %d at (%lld, %lld) of %lld x %lld: row %lld differs from column %zu on: %d, not %d",
                 (long long)rect.height, (long long)rect.width, channels, (long long)rect.top, (long long)rect.left,
                 (long long)d->height, (long long)d->width, (long long)y, x / (size_t)channels,
                 pixels[(size_t)y * n + x], want[x]);
    }
}

/* With every reader; own: it must not fall back. */
static void check_rect(const decoded *d, stk_rect rect, int channels, bool own)
{
    size_t n = (size_t)(rect.height * rect.width * channels);
    uint8_t *pixels = malloc(n + 16);
    assert_non_null(pixels);
    for (int i = 0; i < N_ISAS; i++) {
        memset(pixels, 0xA5, n + 16);
        assert_int_equal(stk_jpeg_decode_crop(readers[i], d->file, rect, channels, pixels), STK_OK);
        if (stk_jpeg_reader_fell_back(readers[i]) == own)
            fail_msg("%s: %lld x %lld %s", isas[i], (long long)d->height, (long long)d->width,
                     own ? "went to the library" : "was not refused");
        check_pixels(d, rect, channels, pixels);
        for (int k = 0; k < 16; k++)
            assert_int_equal(pixels[n + (size_t)k], 0xA5);
    }
    free(pixels);
}

static int64_t draw(stk_rng *rng, int64_t below)
{
    return stk_rng_below(rng, (uint32_t)below);
}

static stk_rect draw_rect(stk_rng *rng, const decoded *d)
{
    stk_rect r = {.height = 1 + draw(rng, d->height), .width = 1 + draw(rng, d->width)};
    r.top = draw(rng, d->height - r.height + 1);
    r.left = draw(rng, d->width - r.width + 1);
    return r;
}

static void check_file(stk_span file, stk_rng *rng, int n_rects, bool own)
{
    decoded d = decode(file);
    assert_int_equal(d.status, STK_OK);
    for (int channels = 1; channels <= 3; channels += 2) {
        check_rect(&d, (stk_rect){0, 0, d.height, d.width}, channels, own);
        for (int i = 0; i < n_rects; i++)
            check_rect(&d, draw_rect(rng, &d), channels, own);
    }
    free_decoded(&d);
}

static void check_made(const jpeg_recipe *recipe, stk_rng *rng, int n_rects, bool own)
{
    stk_span file = jpeg_make(recipe);
    check_file(file, rng, n_rects, own);
    free((void *)(uintptr_t)file.data);
}

static void made_files_are_equal(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(1, 2, 3, 4);
    static const int factors[4][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
    static const int intervals[] = {0, 0, 0, 1, 3, 7};
    for (int i = 0; i < 1500; i++) {
        jpeg_recipe r = {.channels = draw(&rng, 5) ? 3 : 1, .seed = (uint64_t)i};
        const int *f = factors[draw(&rng, 4)];
        r.height = 1 + (int)draw(&rng, 90);
        r.width = 1 + (int)draw(&rng, 90);
        r.h = f[0];
        r.v = f[1];
        r.quality = 1 + (int)draw(&rng, 100);
        r.interval = intervals[draw(&rng, 6)];
        r.optimized = draw(&rng, 2);
        r.texture = (jpeg_texture)draw(&rng, 3);
        check_made(&r, &rng, 4, r.channels == 1 || r.h == 1 || r.width > 4);
    }
}

/* --- the file's structure --- */

static uint8_t *edit(stk_span file)
{
    return (uint8_t *)(uintptr_t)file.data;
}

static void release(stk_span file)
{
    free(edit(file));
}

/* Where the i-th segment with this marker starts (at its FF). */
static size_t find_marker(stk_span file, int marker, int i)
{
    size_t at = 2;
    for (;;) {
        int here = file.data[at + 1];
        if (here == marker && i-- == 0) return at;
        if (here == 0xDA) fail_msg("no marker %02X", (unsigned)marker);
        at += 2 + ((size_t)file.data[at + 2] << 8 | file.data[at + 3]);
    }
}

/* A copy with bytes [at, at + n_old) replaced; exactly as long as its bytes, for the address sanitizer. */
static stk_span splice(stk_span file, size_t at, size_t n_old, const void *bytes, size_t n)
{
    uint8_t *copy = malloc(file.n - n_old + n);
    assert_non_null(copy);
    memcpy(copy, file.data, at);
    if (n) memcpy(copy + at, bytes, n);
    memcpy(copy + at + n, file.data + at + n_old, file.n - at - n_old);
    return (stk_span){copy, file.n - n_old + n};
}

/* Whatever the library says of the whole file, status or pixels, we say. Returns whether our decoder read it. */
static bool check_same(stk_span file)
{
    decoded d = decode(file);
    bool own = true;
    stk_rect whole = {0, 0, d.height, d.width};
    for (int i = 0; i < N_ISAS && d.pixels[1]; i++) {
        int channels = d.pixels[3] ? 3 : 1;
        uint8_t *pixels = malloc((size_t)(d.height * d.width * channels));
        assert_non_null(pixels);
        assert_int_equal(stk_jpeg_decode_crop(readers[i], file, whole, channels, pixels), d.status);
        if (d.status == STK_OK) check_pixels(&d, whole, channels, pixels);
        own = own && !stk_jpeg_reader_fell_back(readers[i]);
        free(pixels);
    }
    free_decoded(&d);
    return own;
}

static stk_span make_plain(int height, int width, int channels)
{
    return jpeg_make(&(jpeg_recipe){.height = height, .width = width, .channels = channels, .texture = TEXTURE_MIXED});
}

/* --- what is not for us --- */

static void other_kinds_go_to_the_library(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(5, 0, 0, 0);
    jpeg_recipe r = {.height = 40, .width = 50, .channels = 3, .texture = TEXTURE_MIXED};
    jpeg_recipe kinds[8] = {r, r, r, r, r, r, r, r};
    kinds[0].progressive = true;
    kinds[1].separate_scans = true;
    kinds[2].rgb = true;
    kinds[3].h = 4;
    kinds[4].v = 4;
    kinds[5].h = kinds[5].chroma_h = 2;
    kinds[6].h = kinds[6].v = 2;
    kinds[6].width = 4; /* chroma of two columns is not interpolated */
    kinds[7].h = 2;
    kinds[7].width = 3;
    for (int i = 0; i < 8; i++)
        check_made(&kinds[i], &rng, 3, false);
}

static void a_lone_component_has_one_block_an_mcu(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(6, 0, 0, 0);
    for (int h = 1; h <= 4; h++)
        check_made(&(jpeg_recipe){.height = 37, .width = 45, .channels = 1, .h = h, .v = 5 - h}, &rng, 3, true);
}

static void headers_are_checked(void **state)
{
    (void)state;
    stk_span file = make_plain(20, 20, 3);
    size_t frame = find_marker(file, 0xC0, 0), scan = find_marker(file, 0xDA, 0), jfif = find_marker(file, 0xE0, 0);
    struct {
        size_t at;
        uint8_t value;
        bool own;
    } cases[] = {
        {frame + 1, 0xC1, true},  /* extended sequential of 8 bits is the same */
        {frame + 1, 0xC2, false}, /* progressive */
        {frame + 1, 0xC3, false}, /* lossless */
        {frame + 1, 0xC9, false}, /* arithmetic */
        {frame + 4, 12, false},   /* bits */
        {frame + 6, 0, false},    /* height 0: DNL */
        {frame + 9, 2, false},    /* components */
        {frame + 12, 3, false},   /* a table that is not there */
        {frame + 13, 1, false},   /* two components of one name */
        {scan + 5, 2, false},     /* another order */
        {scan + 6, 0x02, false},  /* a table that is not there */
        {scan + 6, 0x40, false},  /* and one that cannot be */
        {scan + 12, 62, false},   /* a part of the coefficients */
        {jfif + 9, 2, false},     /* a version that the library warns of */
        {jfif + 4, 'X', true},    /* not JFIF: the names say YCbCr */
    };
    assert_true(check_same(file));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_span copy = splice(file, cases[i].at, 1, &cases[i].value, 1);
        if (cases[i].at == frame + 6) edit(copy)[frame + 5] = 0;
        if (check_same(copy) != cases[i].own) fail_msg("case %zu", i);
        release(copy);
    }
    release(file);
}

static void color_spaces_are_told_apart(void **state)
{
    (void)state;
    stk_span file = make_plain(20, 20, 3), other;
    static const uint8_t adobe[] = {0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 1};
    size_t jfif = find_marker(file, 0xE0, 0);
    for (int transform = 0; transform < 3; transform++) {
        other = splice(file, jfif, 18, adobe, sizeof(adobe)); /* in place of JFIF */
        edit(other)[jfif + 15] = (uint8_t)transform;
        assert_int_equal(check_same(other), transform == 1);
        release(other);
    }
    other = splice(file, jfif, 18, NULL, 0);
    size_t frame = find_marker(other, 0xC0, 0), scan = find_marker(other, 0xDA, 0);
    for (int i = 0; i < 3; i++)
        edit(other)[frame + 10 + 3 * (size_t)i] = edit(other)[scan + 5 + 2 * (size_t)i] = (uint8_t) "RGB"[i];
    assert_false(check_same(other));
    edit(other)[frame + 10] = edit(other)[scan + 5] = 77;
    assert_true(check_same(other));
    release(other);
    release(file);
}

static void huffman_tables_are_checked(void **state)
{
    (void)state;
    stk_span file = make_plain(40, 40, 3), copy;
    size_t dc = find_marker(file, 0xC4, 0), ac = find_marker(file, 0xC4, 1);
    struct {
        size_t at;
        uint8_t value;
    } cases[] = {
        {dc + 5, 3},    /* more codes of one bit than there are */
        {ac + 5, 2},    /* all ones */
        {ac + 20, 255}, /* runs out of the segment */
        {dc + 4, 0x04}, /* number */
        {dc + 4, 0x03}, /* then number 0 is missing; the library has one of its own */
        {dc + 21, 12},  /* a DC value of 12 bits */
        {dc + 21, 16},  /* and of 16 */
        {dc + 3, 32},   /* the segment's length */
        {ac + 4, 0x00}, /* an AC table in the place of the DC table */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        copy = splice(file, cases[i].at, 1, &cases[i].value, 1);
        if (check_same(copy)) fail_msg("case %zu", i);
        release(copy);
    }
    release(file);
}

/* Runs of end-of-block exist in progressive files only; the library takes them as one. */
static void end_of_block_runs_are_one(void **state)
{
    (void)state;
    stk_span file = make_plain(40, 40, 3);
    size_t ac = find_marker(file, 0xC4, 1), i = 0;
    while (file.data[ac + 21 + i] != 0)
        i++;
    for (int run = 1; run < 15; run++) {
        uint8_t symbol = (uint8_t)(run << 4);
        stk_span copy = splice(file, ac + 21 + i, 1, &symbol, 1);
        assert_true(check_same(copy));
        release(copy);
    }
    release(file);
}

static void wide_quantisation_tables_are_read(void **state)
{
    (void)state;
    jpeg_recipe r = {.height = 40, .width = 40, .channels = 3, .quality = 1, .texture = TEXTURE_MIXED};
    stk_span file = jpeg_make(&r);
    assert_int_equal(file.data[find_marker(file, 0xDB, 0) + 4], 0x10);
    assert_true(check_same(file));
    release(file);
}

/* --- the scan --- */

static void fill_bytes_are_skipped(void **state)
{
    (void)state;
    jpeg_recipe r = {.height = 40, .width = 50, .channels = 3, .interval = 3, .texture = TEXTURE_NOISE};
    stk_span file = jpeg_make(&r), copy = splice(file, 0, 0, NULL, 0);
    for (size_t at = copy.n - 2; at > 0; at--) {
        int marker = copy.data[at] == 0xFF ? copy.data[at + 1] : 0;
        if (marker == 0xD9 || (marker >= 0xD0 && marker <= 0xD7)) {
            stk_span longer = splice(copy, at, 0, "\xFF\xFF\xFF", 1 + at % 3);
            release(copy);
            copy = longer;
        }
    }
    assert_true(copy.n > file.n + 10);
    assert_true(check_same(copy));
    release(copy);
    copy = splice(file, find_marker(file, 0xDA, 0), 0, "\xFF\xFF", 2);
    assert_true(check_same(copy));
    release(copy);
    /* FF FF 00 in the data: the library reads an FF byte, we leave it to that. */
    for (size_t at = find_marker(file, 0xDA, 0) + 14; at < file.n - 2; at++)
        if (file.data[at] == 0xFF && file.data[at + 1] == 0) {
            copy = splice(file, at, 0, "\xFF", 1);
            assert_false(check_same(copy));
            release(copy);
            break;
        }
    release(file);
}

static void restarts_are_checked(void **state)
{
    (void)state;
    jpeg_recipe r = {.height = 40, .width = 50, .channels = 3, .interval = 3, .texture = TEXTURE_NOISE};
    stk_span file = jpeg_make(&r), copy;
    size_t scan = find_marker(file, 0xDA, 0), second = 0;
    for (size_t at = scan + 14; !second; at++)
        if (file.data[at] == 0xFF && file.data[at + 1] == 0xD1) second = at;
    assert_true(check_same(file));
    copy = splice(file, second + 1, 1, "\xD2", 1); /* out of order */
    assert_false(check_same(copy));
    release(copy);
    copy = splice(file, second, 2, NULL, 0); /* not there */
    assert_false(check_same(copy));
    release(copy);
    copy = splice(file, second - 20, 20, NULL, 0); /* its segment is too short */
    assert_false(check_same(copy));
    release(copy);
    copy = splice(file, second, 0, "abc", 3); /* or too long */
    assert_false(check_same(copy));
    release(copy);
    copy = splice(file, file.n - 2, 0, "abc", 3); /* the last one */
    assert_false(check_same(copy));
    release(copy);
    copy = splice(file, file.n - 2, 2, "\xFF\xD8", 2); /* another marker at the end */
    assert_false(check_same(copy));
    release(copy);
    release(file);
}

static int full_block(void *context, int i_block, int k)
{
    uint64_t x = stk_mix64((uint64_t)(i_block * 64 + k) + *(uint64_t *)context);
    if (k == 0) return (int)(x % 200) - 100;
    if (k == 63) return 1 - 2 * (int)(x & 1);
    return x & 256 ? (int)(x & 3) - 1 : 0; /* short codes, so that entries reach over the block's end */
}

static int last_only(void *context, int i_block, int k)
{
    (void)context;
    return k == 63 ? 1 : k == 62 && i_block % 3 == 0 ? -1 : 0;
}

static int longest_codes(void *context, int i_block, int k)
{
    (void)context;
    return (i_block + k) % 3 ? 1023 : k ? -1023 : -1000; /* as many bits as a block can have */
}

static void blocks_without_end_symbol(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(7, 0, 0, 0);
    int (*const kinds[])(void *, int, int) = {full_block, last_only, longest_codes};
    for (uint64_t seed = 0; seed < 60; seed++) {
        jpeg_coefs c = {.n_across = 7, .n_down = 5, .channels = seed & 1 ? 3 : 1, .quant = 2, .context = &seed};
        c.h = seed & 4 ? 2 : 1;
        c.v = seed & 8 ? 2 : 1;
        c.optimized = seed & 2;
        c.coef = kinds[seed % 3];
        if (c.coef == longest_codes) c.quant = 1;
        stk_span file = jpeg_make_coefs(&c);
        check_file(file, &rng, 6, true);
        release(file);
    }
}

static int wild(void *context, int i_block, int k)
{
    uint64_t x = stk_mix64((uint64_t)(i_block * 64 + k) * 7919 + *(uint64_t *)context),
             dense = *(uint64_t *)context % 5;
    if (dense && stk_mix64(x) % (dense * dense * dense)) return 0;
    return (int)(x % 2047) - 1023;
}

/* No encoder writes such files, but damage makes them. Like libjpeg-turbo's code for x86. */
static void overflow_is_that_of_the_library(void **state)
{
    (void)state;
#ifdef __x86_64__
    static const uint16_t quants[] = {1, 8, 33, 255, 1024, 32767, 65535};
    stk_rng rng = stk_rng_make(8, 0, 0, 0);
    for (uint64_t seed = 0; seed < 200; seed++) {
        jpeg_coefs c = {.n_across = 5, .n_down = 4, .channels = 3, .h = 1, .v = 1, .coef = wild, .context = &seed};
        c.quant = quants[seed % 7];
        stk_span file = jpeg_make_coefs(&c);
        check_file(file, &rng, 1, true);
        release(file);
    }
#endif
}

/* --- damage --- */

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        jpeg_recipe r = {.height = 33, .width = 41, .channels = channels, .interval = 4, .h = 2, .v = 2};
        stk_span file = jpeg_make(&r);
        for (size_t n = 2; n < file.n; n++) {
            stk_span cut = splice(file, n, file.n - n, NULL, 0);
            assert_false(check_same(cut) && n > find_marker(file, 0xDA, 0));
            release(cut);
        }
        release(file);
    }
}

static void damage_gives_what_the_library_gives(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(9, 0, 0, 0);
    int n_own = 0, n_unseen = 0;
    for (int i = 0; i < 12; i++) {
        jpeg_recipe r = {.height = 30 + i, .width = 40 - i, .channels = i % 4 ? 3 : 1, .interval = i % 3 ? 0 : 5};
        r.h = 1 + (i & 1);
        r.v = 1 + (i >> 1 & 1);
        r.texture = (jpeg_texture)(i % 3);
        r.optimized = i & 1;
        stk_span file = jpeg_make(&r);
        for (size_t at = 2; at < file.n; at++) {
            stk_span copy = splice(file, 0, 0, NULL, 0);
            edit(copy)[at] ^= (uint8_t)(1 + stk_rng_below(&rng, 255));
            decoded d = {0};
            if (stk_jpeg_size(copy, &d.height, &d.width) != STK_OK || d.height * d.width > 100000) {
                release(copy);
                continue;
            }
            n_own += check_same(copy);
            d = decode(copy);
            stk_rect rect = {0, 0, 1, 1};
            uint8_t *pixels = NULL;
            if (d.pixels[1]) rect = draw_rect(&rng, &d), pixels = malloc((size_t)(rect.height * rect.width * 3));
            for (int k = 0; k < N_ISAS && pixels; k++) {
                stk_status status = stk_jpeg_decode_crop(readers[k], copy, rect, 3, pixels);
                if (d.status == STK_OK) {
                    assert_int_equal(status, STK_OK);
                    check_pixels(&d, rect, 3, pixels);
                } else if (status == STK_OK)
                    n_unseen++; /* below or right of the rectangle */
            }
            free(pixels);
            free_decoded(&d);
            release(copy);
        }
        release(file);
    }
    print_message("%d damaged files read, damage unseen in %d crops\n", n_own, n_unseen);
    assert_true(n_own > 100);
}

static void damage_below_a_crop_goes_unseen(void **state)
{
    (void)state;
    stk_span file = make_plain(80, 80, 3), cut = splice(file, file.n - 60, 60, NULL, 0);
    decoded d = decode(file);
    uint8_t pixels[80 * 80 * 3];
    stk_rect top = {4, 4, 30, 40}, bottom = {50, 4, 30, 40};
    for (int i = 0; i < N_ISAS; i++) {
        assert_int_equal(stk_jpeg_decode_crop(readers[i], cut, top, 3, pixels), STK_OK);
        assert_false(stk_jpeg_reader_fell_back(readers[i]));
        check_pixels(&d, top, 3, pixels);
        assert_int_equal(stk_jpeg_decode_crop(readers[i], cut, bottom, 3, pixels), STK_CORRUPT);
        assert_string_equal(stk_error_text(), "truncated JPEG");
    }
    free_decoded(&d);
    release(cut);
    release(file);
}

/* --- rows, rectangles, index --- */

static void rows_come_in_parts(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(10, 0, 0, 0);
    for (int i = 0; i < 200; i++) {
        jpeg_recipe r = {.height = 90, .width = 70, .channels = 3, .h = 1 + (i & 1), .v = 1 + (i >> 1 & 1)};
        r.progressive = i % 8 == 7;
        r.texture = TEXTURE_MIXED;
        stk_span file = jpeg_make(&r);
        decoded d = decode(file);
        stk_rect rect = draw_rect(&rng, &d);
        uint8_t pixels[90 * 90 * 3];
        stk_jpeg_reader *reader = readers[i % N_ISAS];
        assert_int_equal(stk_jpeg_reader_begin(reader, file, rect, 3, NULL), STK_OK);
        for (int64_t y = 0; y < rect.height;) {
            int64_t n = 1 + draw(&rng, rect.height - y);
            assert_int_equal(stk_jpeg_reader_rows(reader, n, pixels + y * rect.width * 3, (size_t)rect.width * 3),
                             STK_OK);
            y += n;
        }
        check_pixels(&d, rect, 3, pixels);
        assert_int_equal(stk_jpeg_reader_rows(reader, 1, pixels, 300), STK_INVALID);
        free_decoded(&d);
        release(file);
    }
}

/* The rows so far are the library's, too, so that the reader can go on with its. */
static void damage_between_rows(void **state)
{
    (void)state;
    jpeg_recipe r = {.height = 120, .width = 64, .channels = 3, .interval = 8, .texture = TEXTURE_MIXED};
    stk_span file = jpeg_make(&r);
    size_t late = 0;
    for (size_t at = find_marker(file, 0xDA, 0) + 14; at < file.n; at++)
        if (file.data[at] == 0xFF && file.data[at + 1] == 0xD5) late = at;
    stk_span copy = splice(file, late + 2, 0, "\xFF", 1); /* FF before stuffed or plain data: damage or not */
    stk_span fill = splice(file, late, 0, "\xFF\xFF\xFF", 3);
    stk_span cut = splice(file, late, file.n - late, NULL, 0);
    stk_rect rect = {0, 3, 120, 50};
    uint8_t pixels[120 * 50 * 3];
    for (int i = 0; i < N_ISAS; i++) {
        assert_int_equal(stk_jpeg_reader_begin(readers[i], cut, rect, 3, NULL), STK_OK);
        assert_int_equal(stk_jpeg_reader_rows(readers[i], 20, pixels, 150), STK_OK);
        assert_int_equal(stk_jpeg_reader_rows(readers[i], 100, pixels, 150), STK_CORRUPT);
        assert_int_equal(stk_jpeg_reader_begin(readers[i], fill, rect, 3, NULL), STK_OK);
        assert_int_equal(stk_jpeg_reader_rows(readers[i], 120, pixels, 150), STK_OK);
    }
    (void)check_same(copy);
    release(copy);
    release(fill);
    release(cut);
    /* A file that both read, ours not to its end: a marker within the data that the library resyncs at or warns of. */
    stk_span weird = (stk_span){0};
    for (size_t at = late; at < file.n - 2 && !weird.n; at++)
        if (file.data[at] == 0xFF && file.data[at + 1] == 0) weird = splice(file, at, 0, "\xFF", 1);
    if (weird.n) {
        decoded d = decode(weird);
        assert_int_equal(d.status, STK_OK);
        for (int i = 0; i < N_ISAS; i++) {
            assert_int_equal(stk_jpeg_reader_begin(readers[i], weird, rect, 3, NULL), STK_OK);
            for (int y = 0; y < 120; y += 10)
                assert_int_equal(stk_jpeg_reader_rows(readers[i], 10, pixels + y * 150, 150), STK_OK);
            assert_true(stk_jpeg_reader_fell_back(readers[i]));
            check_pixels(&d, rect, 3, pixels);
        }
        free_decoded(&d);
        release(weird);
    }
    release(file);
}

static void rectangles_must_lie_inside(void **state)
{
    (void)state;
    stk_span file = make_plain(20, 30, 3);
    uint8_t pixels[20 * 30 * 3];
    stk_rect bad[] = {{0, 0, 21, 1},  {0, 0, 1, 31},        {20, 0, 1, 1},       {0, 30, 1, 1},
                      {-1, 0, 2, 2},  {0, -1, 2, 2},        {0, 0, 0, 5},        {0, 0, 5, 0},
                      {0, 0, -1, -1}, {INT64_MAX, 0, 2, 2}, {0, 0, 2, INT64_MAX}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(stk_jpeg_decode_crop(readers[1], file, bad[i], 3, pixels), STK_INVALID);
        assert_int_equal(stk_jpeg_reader_begin(readers[1], file, bad[i], 3, NULL), STK_INVALID);
        assert_non_null(strstr(stk_error_text(), "is not inside an image of 20 x 30"));
    }
    release(file);
}

static void check_with_index(const decoded *d, stk_jpeg_reader *reader, stk_rect rect, stk_jpeg_index *index)
{
    uint8_t pixels[90 * 90 * 3];
    assert_int_equal(stk_jpeg_reader_begin(reader, d->file, rect, 3, index), STK_OK);
    assert_int_equal(stk_jpeg_reader_rows(reader, rect.height, pixels, (size_t)rect.width * 3), STK_OK);
    assert_false(stk_jpeg_reader_fell_back(reader));
    check_pixels(d, rect, 3, pixels);
}

enum { MOST_ENTRIES = 12 * 12 };

static void the_index_changes_no_pixel(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(11, 0, 0, 0);
    for (int i = 0; i < 200; i++) {
        jpeg_recipe r = {
            .height = 1 + (int)draw(&rng, 90), .width = 5 + (int)draw(&rng, 85), .channels = i % 5 ? 3 : 1};
        static const int intervals[] = {0, 0, 1, 3, 6};
        r.interval = intervals[draw(&rng, 5)];
        r.h = 1 + (int)draw(&rng, 2);
        r.v = 1 + (int)draw(&rng, 2);
        r.texture = (jpeg_texture)draw(&rng, 3);
        r.quality = 100 - (int)draw(&rng, 60);
        stk_span file = jpeg_make(&r);
        decoded d = decode(file);
        stk_jpeg_entry whole[MOST_ENTRIES], grown[MOST_ENTRIES];
        stk_jpeg_reader *reader = readers[i % N_ISAS];
        int down = r.channels == 3 ? 8 * r.v : 8, across = r.channels == 3 ? 8 * r.h : 8;
        int every = i % 3 ? (int)draw(&rng, 13) : 0, n_across = (r.width + across - 1) / across;
        int n = stk_jpeg_reader_index_size(reader, file, every);
        assert_int_equal(n, (r.height + down - 1) / down * (every ? (n_across + every - 1) / every : 1));
        stk_jpeg_index all = {whole, n, 0}, some = {grown, n, 0};
        assert_int_equal(stk_jpeg_reader_index(reader, file, &all), STK_OK);
        assert_int_equal(all.n_known, n);
        for (int k = 0; k < 6; k++) {
            stk_rect rect = draw_rect(&rng, &d);
            check_with_index(&d, reader, rect, &all);
            check_with_index(&d, reader, rect, &some); /* grows with what it passes */
        }
        check_with_index(&d, reader, (stk_rect){0, 0, d.height, d.width}, &some);
        /* Reading pixels notes where rows start; what lies between takes parsing. */
        if (every) assert_int_equal(stk_jpeg_reader_index(reader, file, &some), STK_OK);
        assert_int_equal(some.n_known, n);
        assert_memory_equal(whole, grown, (size_t)n * sizeof(whole[0]));
        free_decoded(&d);
        release(file);
    }
}

static void a_wrong_index_does_no_harm(void **state)
{
    (void)state;
    stk_rng rng = stk_rng_make(12, 0, 0, 0);
    jpeg_recipe r = {.height = 90, .width = 80, .channels = 3, .interval = 0, .texture = TEXTURE_NOISE};
    for (int i = 0; i < 400; i++) {
        r.interval = i % 7;
        stk_span made = jpeg_make(&r), file = splice(made, 0, 0, NULL, 0);
        stk_jpeg_entry entries[MOST_ENTRIES];
        int n = stk_jpeg_reader_index_size(readers[0], file, i % 11);
        for (int k = 0; k < n; k++) {
            entries[k] = (stk_jpeg_entry){.offset = stk_rng_below(&rng, (uint32_t)file.n + 9)};
            entries[k].bit = (uint16_t)stk_rng_below(&rng, 9);
            entries[k].dc[0] = (int16_t)stk_rng_below(&rng, 65536);
        }
        stk_jpeg_index index = {entries, n, n};
        uint8_t pixels[90 * 80 * 3];
        stk_rect rect = {40, 10, 50, 60};
        if (stk_jpeg_reader_begin(readers[i % N_ISAS], file, rect, 3, &index) == STK_OK)
            (void)stk_jpeg_reader_rows(readers[i % N_ISAS], rect.height, pixels, 180);
        release(file);
        release(made);
    }
}

static void no_index_for_other_files(void **state)
{
    (void)state;
    stk_span file = jpeg_make(&(jpeg_recipe){.height = 20, .width = 20, .channels = 3, .progressive = true});
    stk_span baseline = make_plain(40, 40, 3), cut = splice(baseline, baseline.n - 5, 5, NULL, 0);
    stk_jpeg_entry entries[5];
    stk_jpeg_index index = {entries, 5, 0};
    assert_int_equal(stk_jpeg_reader_index_size(readers[0], file, 0), 0);
    assert_int_equal(stk_jpeg_reader_index(readers[0], file, &index), STK_CORRUPT);
    assert_int_equal(stk_jpeg_reader_index(readers[0], cut, &index), STK_CORRUPT);
    release(file);
    release(baseline);
    release(cut);
}

/* --- photographs --- */

static void photographs_are_equal(void **state)
{
    (void)state;
    const char *folder = getenv("STOKER_PHOTOS") ? getenv("STOKER_PHOTOS") : STK_SOURCE_DIR "/../shared/data/photos";
    stk_rng rng = stk_rng_make(16, 0, 0, 0);
    stk_names names;
    int n = 0, n_own = 0;
    if (!stk_path_is_dir(folder)) {
        print_message("SKIP: no photographs at %s (set STOKER_PHOTOS)\n", folder);
        skip();
    }
    assert_int_equal(stk_dir_list(folder, &names), STK_OK);
    for (size_t i = 0; i < names.n; i++) {
        char path[4096];
        stk_span file;
        assert_int_equal(stk_path_join(path, sizeof(path), folder, names.name[i]), STK_OK);
        if (stk_file_load(path, &file) != STK_OK) continue;
        if (stk_image_format_of(file) != STK_IMAGE_JPEG) {
            stk_file_unload(file);
            continue;
        }
        decoded d = decode(file);
        assert_int_equal(d.status, STK_OK);
        size_t bytes = (size_t)(d.height * d.width * 3);
        uint8_t *pixels = malloc(bytes);
        for (int k = 0; k < 5; k++) {
            stk_rect rect = k ? draw_rect(&rng, &d) : (stk_rect){0, 0, d.height, d.width};
            int channels = k == 3 ? 1 : 3;
            stk_jpeg_reader *reader = readers[k == 4 ? 0 : 1];
            assert_int_equal(stk_jpeg_decode_crop(reader, file, rect, channels, pixels), STK_OK);
            check_pixels(&d, rect, channels, pixels);
            n_own += !stk_jpeg_reader_fell_back(reader);
        }
        n++;
        free(pixels);
        free_decoded(&d);
        stk_file_unload(file);
    }
    stk_names_free(&names);
    print_message("%d photographs, %d of %d decodings without the library\n", n, n_own, 5 * n);
    assert_true(2 * n_own > 5 * n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_files_are_equal),
        cmocka_unit_test(other_kinds_go_to_the_library),
        cmocka_unit_test(a_lone_component_has_one_block_an_mcu),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(color_spaces_are_told_apart),
        cmocka_unit_test(huffman_tables_are_checked),
        cmocka_unit_test(end_of_block_runs_are_one),
        cmocka_unit_test(wide_quantisation_tables_are_read),
        cmocka_unit_test(fill_bytes_are_skipped),
        cmocka_unit_test(restarts_are_checked),
        cmocka_unit_test(blocks_without_end_symbol),
        cmocka_unit_test(overflow_is_that_of_the_library),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(damage_gives_what_the_library_gives),
        cmocka_unit_test(damage_below_a_crop_goes_unseen),
        cmocka_unit_test(rows_come_in_parts),
        cmocka_unit_test(damage_between_rows),
        cmocka_unit_test(rectangles_must_lie_inside),
        cmocka_unit_test(the_index_changes_no_pixel),
        cmocka_unit_test(a_wrong_index_does_no_harm),
        cmocka_unit_test(no_index_for_other_files),
        cmocka_unit_test(photographs_are_equal),
    };
    return cmocka_run_group_tests(tests, open_readers, close_readers);
}
