/* Errors of libjpeg: they come back by longjmp, as the library wants it, and a warning (cut data, bad markers) is one.
 */
#ifndef STK_DATA_CODEC_JPEG_ERRORS_H
#define STK_DATA_CODEC_JPEG_ERRORS_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include "stoker/status.h"

typedef struct stk_jpeg_errors {
    struct jpeg_error_mgr base;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
} stk_jpeg_errors;

void stk_jpeg_errors_init(stk_jpeg_errors *errors, struct jpeg_error_mgr **err);
/* What stopped the library. A lack of memory is no fault of the file, so it must not look like a bad record. */
stk_status stk_jpeg_fail(const stk_jpeg_errors *errors);

#endif
