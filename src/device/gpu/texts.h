/* The sources of kernels (kernels/), embedded at build time. */
#ifndef STK_DEVICE_GPU_TEXTS_H
#define STK_DEVICE_GPU_TEXTS_H

typedef struct gpu_text {
    const char *name, *text;
} gpu_text;

extern const gpu_text gpu_texts[]; /* a name of NULL ends it */
/* NULL: there is none of that name. */
const char *gpu_text_of(const char *name);

#endif
