#include "data/codec/jpeg_transcode.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/codec/jpeg_errors.h"

enum { MOST_SCANS = 500, MARKER_BYTES = 0xFFFF };

typedef struct transcoder {
    struct jpeg_decompress_struct src;
    struct jpeg_compress_struct dst;
    struct jpeg_progress_mgr progress;
    stk_jpeg_errors errors;
    bool has_src, has_dst;
    unsigned char *buffer;
    unsigned long n;
} transcoder;

/* As in codec/jpeg.c: a small file may not ask for hours of work. */
static void check_scans(j_common_ptr info)
{
    transcoder *t = (transcoder *)info; /* src comes first */
    if (t->src.input_scan_number <= MOST_SCANS) return;
    t->errors.base.msg_code = 0;
    snprintf(t->errors.text, sizeof(t->errors.text), "more than %d scans", MOST_SCANS);
    longjmp(t->errors.jump, 1);
}

/* What the library writes by itself is left out. */
static bool is_written_anyway(const transcoder *t, const struct jpeg_marker_struct *m)
{
    if (t->dst.write_JFIF_header && m->marker == JPEG_APP0 && m->data_length >= 5 && !memcmp(m->data, "JFIF", 5))
        return true;
    return t->dst.write_Adobe_marker && m->marker == JPEG_APP0 + 14 && m->data_length >= 5 &&
           !memcmp(m->data, "Adobe", 5);
}

/* Of a progressive file that ends before all its scans libjpeg smooths the blocks that it knows roughly (jdcoefct.c),
 * which it would not do to a baseline file of the same coefficients. */
static bool is_smoothed(const struct jpeg_decompress_struct *info)
{
    enum { LOOKED_AT = 10 };
    if (!info->progressive_mode || !info->coef_bits) return false;
    for (int c = 0; c < info->num_components; c++)
        for (int i = 0; i < LOOKED_AT; i++)
            if (info->coef_bits[c][i] != 0) return true;
    return false;
}

static stk_status transcode(transcoder *t, stk_span encoded)
{
    if (setjmp(t->errors.jump)) {
        /* Where the buffer lies is known to the library only, until it hands it over. */
        if (t->has_dst && t->dst.dest) t->dst.dest->term_destination(&t->dst);
        return stk_jpeg_fail(&t->errors);
    }
    jpeg_create_decompress(&t->src);
    t->has_src = true;
    t->src.progress = &t->progress;
    jpeg_mem_src(&t->src, encoded.data, (unsigned long)encoded.n);
    jpeg_save_markers(&t->src, JPEG_COM, MARKER_BYTES);
    for (int i = 0; i < 16; i++)
        jpeg_save_markers(&t->src, JPEG_APP0 + i, MARKER_BYTES);
    jpeg_read_header(&t->src, TRUE);
    jvirt_barray_ptr *coefs = jpeg_read_coefficients(&t->src);
    if (is_smoothed(&t->src)) return stk_fail(STK_UNSUPPORTED, "a progressive JPEG without all of its scans");
    t->dst.err = &t->errors.base;
    jpeg_create_compress(&t->dst);
    t->has_dst = true;
    jpeg_copy_critical_parameters(&t->src, &t->dst);
    t->dst.optimize_coding = TRUE;
    jpeg_mem_dest(&t->dst, &t->buffer, &t->n);
    jpeg_write_coefficients(&t->dst, coefs);
    for (const struct jpeg_marker_struct *m = t->src.marker_list; m; m = m->next)
        if (!is_written_anyway(t, m)) jpeg_write_marker(&t->dst, m->marker, m->data, m->data_length);
    jpeg_finish_compress(&t->dst);
    jpeg_finish_decompress(&t->src);
    return STK_OK;
}

stk_status stk_jpeg_transcode(stk_span encoded, uint8_t **out, size_t *n_bytes)
{
    *out = NULL;
    transcoder *t = calloc(1, sizeof(*t));
    if (!t) return stk_fail_memory(sizeof(*t));
    stk_jpeg_errors_init(&t->errors, &t->src.err);
    t->progress.progress_monitor = check_scans;
    stk_status status = transcode(t, encoded);
    if (t->has_dst) jpeg_destroy_compress(&t->dst);
    if (t->has_src) jpeg_destroy_decompress(&t->src);
    if (status == STK_OK) {
        *out = t->buffer;
        *n_bytes = t->n;
    } else {
        free(t->buffer);
    }
    free(t);
    return status;
}
