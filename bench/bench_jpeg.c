/* Images a second of the own JPEG decoder compared with libjpeg-turbo: whole images, and crops as random_resized_crop
 * draws them (area 0.08 to 1, ratio 3/4 to 4/3). Files lie in memory, one thread, thread CPU time; rounds alternate
 * over all modes, and each has new crops.
 *
 *     bench_jpeg FOLDER [rounds]
 *
 * libjpeg-turbo's crop is jpeg_crop_scanline and jpeg_skip_scanlines.
 */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/codec/jpeg.h"

enum { MOST_FILES = 5000, MOST_ROUNDS = 100 };

enum { DENSE_EVERY = 8 };

typedef struct photo {
    stk_span file;
    int64_t height, width;
    stk_rect crop;           /* of this round */
    stk_jpeg_index index[2]; /* one entry a row, and one every DENSE_EVERY MCUs */
} photo;

static photo photos[MOST_FILES];
static int n_photos;
static uint8_t *pixels;
static stk_jpeg_reader *reader;

/* --- libjpeg-turbo's crop --- */

typedef struct thrower {
    struct jpeg_error_mgr base;
    jmp_buf jump;
} thrower;

static void throw(j_common_ptr info)
{
    longjmp(((thrower *)info->err)->jump, 1);
}

static stk_status crop_by_library(const photo *p)
{
    struct jpeg_decompress_struct info;
    thrower errors;
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = throw;
    if (setjmp(errors.jump)) {
        jpeg_destroy_decompress(&info);
        return STK_CORRUPT;
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, p->file.data, (unsigned long)p->file.n);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    JDIMENSION left = (JDIMENSION)p->crop.left, width = (JDIMENSION)p->crop.width;
    jpeg_crop_scanline(&info, &left, &width);
    jpeg_skip_scanlines(&info, (JDIMENSION)p->crop.top);
    size_t row_bytes = (size_t)width * 3;
    for (int64_t y = 0; y < p->crop.height;) {
        JSAMPROW rows[16];
        JDIMENSION n = 0;
        for (; n < 16 && y + n < p->crop.height; n++)
            rows[n] = pixels + (size_t)(y + n) * row_bytes;
        y += jpeg_read_scanlines(&info, rows, n);
    }
    jpeg_abort_decompress(&info);
    jpeg_destroy_decompress(&info);
    return STK_OK;
}

/* --- the modes --- */

static stk_status whole_by_library(const photo *p)
{
    stk_rect rect = {0, 0, p->height, p->width};
    return stk_jpeg_decode_by_library(p->file, p->height, p->width, &rect, 3, pixels);
}

static stk_status whole(const photo *p)
{
    return stk_jpeg_decode_crop(reader, p->file, (stk_rect){0, 0, p->height, p->width}, 3, pixels);
}

static stk_status crop(const photo *p)
{
    return stk_jpeg_decode_crop(reader, p->file, p->crop, 3, pixels);
}

static stk_status crop_indexed(const photo *p)
{
    stk_jpeg_index index = p->index[0];
    STK_RETURN_IF_ERROR(stk_jpeg_reader_begin(reader, p->file, p->crop, 3, index.n ? &index : NULL));
    return stk_jpeg_reader_rows(reader, p->crop.height, pixels, (size_t)p->crop.width * 3);
}

static stk_status crop_indexed_densely(const photo *p)
{
    stk_jpeg_index index = p->index[1];
    STK_RETURN_IF_ERROR(stk_jpeg_reader_begin(reader, p->file, p->crop, 3, index.n ? &index : NULL));
    return stk_jpeg_reader_rows(reader, p->crop.height, pixels, (size_t)p->crop.width * 3);
}

typedef struct mode {
    const char *name;
    stk_status (*run)(const photo *p);
    double us[MOST_ROUNDS]; /* an image */
} mode;

static mode modes[] = {{"libjpeg-turbo, whole", whole_by_library, {0}},
                       {"libjpeg-turbo, crop", crop_by_library, {0}},
                       {"own, whole", whole, {0}},
                       {"own, crop", crop, {0}},
                       {"own, crop, indexed", crop_indexed, {0}},
                       {"own, crop, indexed densely", crop_indexed_densely, {0}}};
enum { N_MODES = sizeof(modes) / sizeof(modes[0]), CROP_BY_LIBRARY = 1 };

/* --- files and crops --- */

static stk_status load(const char *folder)
{
    stk_names names;
    size_t most = 0;
    STK_RETURN_IF_ERROR(stk_dir_list(folder, &names));
    for (size_t i = 0; i < names.n && n_photos < MOST_FILES; i++) {
        char path[4096];
        uint8_t *bytes = NULL;
        size_t capacity = 0, n;
        photo *p = &photos[n_photos];
        if (stk_path_join(path, sizeof(path), folder, names.name[i]) != STK_OK) continue;
        if (stk_file_read(path, &bytes, &capacity, &n) != STK_OK) continue;
        p->file = (stk_span){bytes, n};
        if (stk_image_format_of(p->file) != STK_IMAGE_JPEG ||
            stk_image_size(p->file, &p->height, &p->width) != STK_OK) {
            free(bytes);
            continue;
        }
        for (int k = 0; k < 2; k++) {
            stk_jpeg_index *index = &p->index[k];
            index->n = stk_jpeg_reader_index_size(reader, p->file, k ? DENSE_EVERY : 0);
            index->entry = calloc((size_t)index->n + 1, sizeof(index->entry[0]));
            if (!index->entry) return stk_fail_memory((size_t)index->n * sizeof(index->entry[0]));
            if (index->n) STK_RETURN_IF_ERROR(stk_jpeg_reader_index(reader, p->file, index));
        }
        if ((size_t)(p->height * p->width) > most) most = (size_t)(p->height * p->width);
        n_photos++;
    }
    stk_names_free(&names);
    pixels = malloc(most * 3 + 1);
    return pixels ? STK_OK : stk_fail_memory(most * 3);
}

/* As the stage random_resized_crop does it, but for its rare last resort. */
static void draw_crop(photo *p, stk_rng *rng)
{
    for (;;) {
        double area = (0.08 + 0.92 * (double)stk_rng_uniform(rng)) * (double)(p->height * p->width);
        double ratio = exp(log(0.75) + (double)stk_rng_uniform(rng) * (log(4.0 / 3) - log(0.75)));
        int64_t width = llround(sqrt(area * ratio)), height = llround(sqrt(area / ratio));
        if (width < 1 || height < 1 || width > p->width || height > p->height) continue;
        p->crop = (stk_rect){stk_rng_below(rng, (uint32_t)(p->height - height + 1)),
                             stk_rng_below(rng, (uint32_t)(p->width - width + 1)), height, width};
        return;
    }
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int n_rounds = argc > 2 ? atoi(argv[2]) : 5;
    if (argc < 2 || n_rounds < 1 || n_rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_jpeg FOLDER [rounds]\n");
        return 2;
    }
    stk_status status = stk_jpeg_reader_open(&reader);
    if (status == STK_OK) status = load(argv[1]);
    for (int r = 0; r < n_rounds && status == STK_OK; r++) {
        for (int i = 0; i < n_photos; i++) {
            stk_rng rng = stk_rng_make(1, (uint64_t)r, (uint64_t)i, 0);
            draw_crop(&photos[i], &rng);
        }
        for (int m = 0; m < N_MODES; m++) {
            double start = cpu_us();
            for (int i = 0; i < n_photos && status == STK_OK; i++)
                status = modes[m].run(&photos[i]);
            modes[m].us[r] = (cpu_us() - start) / n_photos;
        }
    }
    if (status != STK_OK || !n_photos) {
        fprintf(stderr, "%s\n", status != STK_OK ? stk_error_text() : "no JPEG files there");
        return 1;
    }
    for (int m = 0; m < N_MODES; m++)
        qsort(modes[m].us, (size_t)n_rounds, sizeof(double), compare);
    printf("%d files, %d rounds; median (fastest - slowest round)\n", n_photos, n_rounds);
    for (int m = 0; m < N_MODES; m++) {
        double us = modes[m].us[n_rounds / 2];
        printf("%-26s %7.0f images/s %8.1f us (%.1f - %.1f) %6.2fx\n", modes[m].name, 1e6 / us, us, modes[m].us[0],
               modes[m].us[n_rounds - 1], modes[CROP_BY_LIBRARY].us[n_rounds / 2] / us);
    }
    stk_jpeg_reader_close(reader);
    return 0;
}
