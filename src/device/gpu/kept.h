/* What is kept on disk for the next process: files of CACHE/gpu, each with a hash of what it holds. */
#ifndef STK_DEVICE_GPU_KEPT_H
#define STK_DEVICE_GPU_KEPT_H

#include <stdbool.h>
#include <stddef.h>

/* False: there is none, or it is not whole, which is as good. bytes is the caller's to free(), and aligned. */
bool gpu_kept_read(const char *name, void **bytes, size_t *n);
/* False: it is not kept. A disk that is full or not there costs the next process some time, and nothing else. */
bool gpu_kept_write(const char *name, const void *bytes, size_t n);

#endif
