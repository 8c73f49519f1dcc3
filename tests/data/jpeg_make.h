/* JPEG files for tests, written by libjpeg with all the settings that matter to a decoder. */
#ifndef TESTS_DATA_JPEG_MAKE_H
#define TESTS_DATA_JPEG_MAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/file.h"
#include "base/rng.h"

typedef enum jpeg_texture { TEXTURE_SMOOTH, TEXTURE_MIXED, TEXTURE_NOISE } jpeg_texture;

typedef struct jpeg_recipe {
    int height, width, channels;
    int h, v;     /* luma sampling factors; 0: 1 */
    int quality;  /* 0: 75 */
    int interval; /* restart, in MCUs; 0: none */
    int chroma_h; /* 0: 1 */
    bool optimized, progressive, separate_scans, rgb;
    jpeg_texture texture;
    uint64_t seed;
} jpeg_recipe;

static inline uint8_t jpeg_sample(const jpeg_recipe *r, int y, int x, int c)
{
    uint64_t noise = stk_mix64(r->seed * 1000003 + (uint64_t)((y * r->width + x) * 3 + c));
    int smooth = (x * (3 + c) + y * (5 - c) + (int)(r->seed % 97)) / 3;
    switch (r->texture) {
    case TEXTURE_NOISE: return noise & 256 ? 255 * (noise & 1) : noise & 255;
    case TEXTURE_MIXED: return (uint8_t)((smooth & 255) + ((x / 8 + y / 8) % 3 ? (int)(noise % 40) - 20 : 0));
    default: return (uint8_t)(abs(smooth % 510 - 255));
    }
}

static inline void jpeg_say_nothing(j_common_ptr info)
{
    (void)info;
}

/* Malloc'ed. */
static inline stk_span jpeg_make(const jpeg_recipe *r)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    info.err = jpeg_std_error(&errors);
    errors.output_message = jpeg_say_nothing;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &n);
    info.image_height = (JDIMENSION)r->height;
    info.image_width = (JDIMENSION)r->width;
    info.input_components = r->channels;
    info.in_color_space = r->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    if (r->rgb) jpeg_set_colorspace(&info, JCS_RGB);
    jpeg_set_quality(&info, r->quality ? r->quality : 75, FALSE);
    info.comp_info[0].h_samp_factor = r->h ? r->h : 1;
    info.comp_info[0].v_samp_factor = r->v ? r->v : 1;
    if (r->chroma_h) info.comp_info[1].h_samp_factor = info.comp_info[2].h_samp_factor = r->chroma_h;
    info.restart_interval = (unsigned)r->interval;
    info.optimize_coding = r->optimized;
    if (r->progressive) jpeg_simple_progression(&info);
    jpeg_scan_info scans[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (r->separate_scans) {
        info.scan_info = scans;
        info.num_scans = 3;
    }
    jpeg_start_compress(&info, TRUE);
    uint8_t *row = malloc((size_t)r->width * (size_t)r->channels);
    for (int y = 0; y < r->height; y++) {
        for (int x = 0; x < r->width; x++)
            for (int c = 0; c < r->channels; c++)
                row[x * r->channels + c] = jpeg_sample(r, y, x, c);
        jpeg_write_scanlines(&info, &row, 1);
    }
    free(row);
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return (stk_span){bytes, n};
}

/* A file of given coefficients: n x n blocks, all components alike but for chroma = luma / 2. */
typedef struct jpeg_coefs {
    int n_across, n_down, channels, h, v;
    uint16_t quant;
    bool optimized;
    int (*coef)(void *context, int i_block, int k); /* k: natural order; within 10 bits, DC 10 bits */
    void *context;
} jpeg_coefs;

static inline stk_span jpeg_make_coefs(const jpeg_coefs *r)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    unsigned quant[64];
    jvirt_barray_ptr arrays[3];
    info.err = jpeg_std_error(&errors);
    errors.output_message = jpeg_say_nothing;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &n);
    info.image_height = (JDIMENSION)(8 * r->n_down * r->v);
    info.image_width = (JDIMENSION)(8 * r->n_across * r->h);
    info.input_components = r->channels;
    info.in_color_space = r->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    for (int i = 0; i < 64; i++)
        quant[i] = r->quant;
    jpeg_add_quant_table(&info, 0, quant, 100, FALSE);
    jpeg_add_quant_table(&info, 1, quant, 100, FALSE);
    info.optimize_coding = r->optimized;
    info.comp_info[0].h_samp_factor = r->h;
    info.comp_info[0].v_samp_factor = r->v;
    for (int c = 0; c < r->channels; c++)
        arrays[c] = info.mem->request_virt_barray((j_common_ptr)&info, JPOOL_IMAGE, TRUE,
                                                  (JDIMENSION)(r->n_across * (c ? 1 : r->h)),
                                                  (JDIMENSION)(r->n_down * (c ? 1 : r->v)), (JDIMENSION)(c ? 1 : r->v));
    jpeg_write_coefficients(&info, arrays);
    for (int c = 0; c < r->channels; c++)
        for (int y = 0; y < r->n_down * (c ? 1 : r->v); y++) {
            JBLOCKARRAY row = info.mem->access_virt_barray((j_common_ptr)&info, arrays[c], (JDIMENSION)y, 1, TRUE);
            for (int x = 0; x < r->n_across * (c ? 1 : r->h); x++)
                for (int k = 0; k < 64; k++)
                    row[0][x][k] = (JCOEF)r->coef(r->context, y * 64 + x + c * 4096, k);
        }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return (stk_span){bytes, n};
}

#endif
