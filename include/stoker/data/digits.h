/* A generated data set of handwritten-like digits: light strokes on a dark ground, one folder a class, as
 * stk_dataset_images reads them. It downloads nothing. Picture number i depends on (seed, i) alone.
 */
#ifndef STOKER_DATA_DIGITS_H
#define STOKER_DATA_DIGITS_H

#include "stoker/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_digits_config {
    int64_t n_train, n_test; /* pictures, classes balanced: number i shows digit i mod 10; at most 10,000,000 each */
    uint64_t seed;
    int size;      /* pixels of a side, 16 to 512 */
    int quality;   /* of the JPEG files, 1 to 100 */
    int n_threads; /* 0: as many as cores. The files are the same for any number */
} stk_digits_config;

/* 60,000 and 10,000 pictures of 28 x 28 pixels, quality 90. */
STK_API stk_digits_config stk_digits_config_default(void);

/* Called on the calling thread, some times a second, and once at the end with done == total. False stops:
 * STK_INTERRUPTED, and what was written is removed. */
typedef bool (*stk_digits_progress_fn)(void *user, int64_t done, int64_t total);

/* Writes out_dir/train/DIGIT/NUMBER.jpg and out_dir/test/DIGIT/NUMBER.jpg, grey. The folder appears whole, by a rename,
 * or not at all. An out_dir that has files already is refused with STK_BUSY. config and progress may be NULL.
 * Threads: any; two calls for one out_dir: the second is refused. */
STK_API stk_status stk_digits_generate(const char *out_dir, const stk_digits_config *config,
                                       stk_digits_progress_fn progress, void *user);

#ifdef __cplusplus
}
#endif
#endif
