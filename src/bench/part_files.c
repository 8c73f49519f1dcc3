/* JPEG decoding, and storage by pattern: bench/part.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "bench/part.h"
#include "data/codec/image.h"
#include "stoker/rng.h"

/* --- JPEG --- */

typedef struct picture {
    stk_span encoded;
    uint8_t *pixels;
} picture;

static stk_status decode_picture(void *user, double *amount)
{
    picture *p = user;
    *amount = 1;
    return stk_image_decode(p->encoded, 3, p->pixels);
}

/* Slopes, waves and grain, so that it takes as many bytes as a photo: some 0.25 for each pixel at quality 90. */
static void paint(uint8_t *pixels, int64_t height, int64_t width)
{
    stk_rng rng = stk_rng_make(1, 0, 0, 0);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < 3; c++) {
                double wave =
                    sin((double)(x + 40 * c) / 23) * cos((double)y / 31) * 50 + sin((double)(x * y) / 9000) * 30;
                double grain = ((double)stk_rng_uniform(&rng) - 0.5) * 12, level = 128 + wave + grain;
                pixels[(y * width + x) * 3 + c] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
            }
}

static stk_status run_jpeg(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure)
{
    int64_t size[2];
    picture p = {0};
    uint8_t *encoded = NULL;
    size_t n_bytes = 0;
    stk_status status = STK_OK;
    if (n != 1) return stk_fail(STK_INVALID, "jpeg takes HxW");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[0], 2, size));
    if (!stk_image_can_be(size[0], size[1])) return stk_fail(STK_INVALID, "no image can be of '%s'", argument[0]);
    p.pixels = malloc((size_t)(size[0] * size[1] * 3));
    if (!p.pixels) return stk_fail_memory((size_t)(size[0] * size[1] * 3));
    paint(p.pixels, size[0], size[1]);
    STK_TRY(stk_jpeg_encode(p.pixels, size[0], size[1], 3, 90, &encoded, &n_bytes));
    p.encoded = (stk_span){encoded, n_bytes};
    STK_TRY(stk_bench_part_repeat(setting->seconds, decode_picture, &p, figure));
done:
    free(p.pixels);
    free(encoded);
    return status;
}

/* --- storage --- */

enum { BLOCK = 1 << 20, SMALL = 4096 };

static double mb_per_s(int64_t bytes, int64_t begin_ns)
{
    return (double)bytes * 1e-6 / ((double)(stk_clock_ns() - begin_ns) * 1e-9);
}

static stk_status fail_file(const char *what, const char *path)
{
    return stk_fail(STK_IO, "cannot %s '%s': %s", what, path, stk_errno_text(errno));
}

/* All of it, on the disk at the end. */
static stk_status write_blocks(int fd, const char *path, int64_t bytes, uint8_t *block, double *figure)
{
    int64_t begin = stk_clock_ns();
    for (int64_t at = 0; at < bytes; at += BLOCK)
        STK_RETURN_IF_ERROR(stk_write_all(fd, path, block, BLOCK));
    if (fsync(fd) != 0) return fail_file("sync", path);
    *figure = mb_per_s(bytes, begin);
    return STK_OK;
}

/* From the disk, since the file is dropped from memory before. random: pieces of 4 KiB, each once, in an order drawn.
 */
static stk_status read_blocks(int fd, const char *path, int64_t bytes, bool random, uint8_t *block, double *figure)
{
    int64_t piece = random ? SMALL : BLOCK, n = bytes / piece, done = 0;
    if (random && n > 4000) n = 4000;
    if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) return fail_file("drop from memory", path);
    if (random) (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    stk_rng rng = stk_rng_make(1, 0, 0, 1);
    int64_t begin = stk_clock_ns();
    for (int64_t i = 0; i < n; i++) {
        int64_t at = random ? (int64_t)stk_rng_below(&rng, (uint32_t)(bytes / piece)) * piece : i * piece;
        ssize_t got = pread(fd, block, (size_t)piece, (off_t)at);
        if (got <= 0) return fail_file("read", path);
        done += got;
    }
    *figure = mb_per_s(done, begin);
    return STK_OK;
}

static stk_status use_file(int fd, const char *path, const char *pattern, int64_t mib, double *figure)
{
    int64_t bytes = mib * BLOCK;
    stk_status status = STK_OK;
    uint8_t *block = malloc(BLOCK);
    if (!block) return stk_fail_memory(BLOCK);
    stk_rng rng = stk_rng_make(1, 0, 0, 0);
    for (int i = 0; i < BLOCK; i += 4) {
        uint32_t word = stk_rng_u32(&rng);
        memcpy(block + i, &word, 4);
    }
    *figure = 0;
    STK_TRY(write_blocks(fd, path, bytes, block, figure));
    if (strcmp(pattern, "write")) STK_TRY(read_blocks(fd, path, bytes, !strcmp(pattern, "random"), block, figure));
done:
    free(block);
    return status;
}

static stk_status run_storage(const stk_bench_part_setting *setting, int n, const char *const *argument, double *figure)
{
    int64_t mib;
    char path[4096];
    if (n != 2 || (strcmp(argument[0], "write") && strcmp(argument[0], "read") && strcmp(argument[0], "random")))
        return stk_fail(STK_INVALID, "storage takes write, read or random, and a size in MiB");
    STK_RETURN_IF_ERROR(stk_bench_part_sizes(argument[1], 1, &mib));
    snprintf(path, sizeof(path), "%s/stoker-bench-XXXXXX", setting->folder ? setting->folder : ".");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) return fail_file("make", path);
    unlink(path); /* It goes when it is closed, whatever happens. */
    stk_status status = use_file(fd, path, argument[0], mib, figure);
    close(fd);
    return status;
}

const stk_bench_part stk_bench_part_jpeg = {"jpeg", "HxW", "decoding of a JPEG by one thread", "images/s", run_jpeg};
const stk_bench_part stk_bench_part_storage = {
    "storage", "write|read|random MIB",
    "a file of so many MiB written and synced, or read from the disk in a row or in pieces of 4 KiB", "MB/s",
    run_storage};
