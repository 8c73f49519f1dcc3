/* Generated data sets, as files: small ones of which it is known how well they can be learned, for recipes, tests and
 * first steps without a download. What is written depends on the seed and the numbers of samples alone; sample number i
 * of a part depends on (seed, part, i). Digits are in stoker/data/digits.h.
 *
 *   shapes   pictures of discs, boxes and triangles, and masks that say which is where: 48 x 48 pixels, PNG
 *   solids   volumes of 16 x 16 x 16 with a ball, a box, a rod or a shell in noise; NumPy arrays
 *   clicks   a table: who was shown what, four numbers, and whether there was a click; CSV
 *   notes    a table of eight numbers and three labels, each of which may hold or not; CSV
 *   prices   a table of six numbers and a price; CSV
 *
 * Labels of the tables are drawn from known chances, and prices have noise of a known size: README.txt in the folder
 * says what a model that knew them would reach on the test part. Threads: any; two calls for one folder: the second is
 * refused.
 */
#ifndef STOKER_DATA_SYNTHETIC_H
#define STOKER_DATA_SYNTHETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_synthetic_config {
    int64_t n_train, n_test; /* samples; 0: as many as the set has by default; at most 10,000,000 each */
    uint64_t seed;
    /* Called now and then by the calling thread; false stops: STK_INTERRUPTED, and what was written is removed. May be
     * NULL. */
    bool (*goes_on)(void *user);
    void *user;
} stk_synthetic_config;

/* Name of set number i, what it is, and how many samples it has by default; NULL past the end. about, default_value:
 * may be NULL. */
STK_API const char *stk_synthetic_name(int i, const char **about, stk_synthetic_config *default_value);

/* Writes the set into out_dir, which appears whole or not at all; one that has files already is STK_BUSY. config may be
 * NULL. */
STK_API stk_status stk_synthetic_write(const char *name, const char *out_dir, const stk_synthetic_config *config);

#ifdef __cplusplus
}
#endif
#endif
