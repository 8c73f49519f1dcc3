/* What a GPU of NVIDIA's tells of itself while a run uses it, by NVIDIA's management library (NVML API reference),
 * which the driver brings: energy, memory, clocks and what holds them down. It is the whole chip's, whoever else
 * computes. Nothing here is needed to train: without the library there are no figures. Threads: one at a time.
 */
#ifndef STK_RUN_CHIP_H
#define STK_RUN_CHIP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct stk_chip {
    void *library, *device;     /* NULL: nothing is told */
    uint64_t first_mj, last_mj; /* of energy; both 0: not told */
    uint64_t most_memory_bytes; /* in use at a look, by all processes */
    int64_t n_clocks;
    double sum_mhz;
    unsigned least_mhz, most_mhz; /* most: that the chip can do */
    uint64_t slowed;              /* all reasons seen */
} stk_chip;

/* bus: where the chip is, "0000:41:00.0". path: of the library; NULL: $STOKER_NVML, else the driver's. */
void stk_chip_open(stk_chip *chip, const char *bus, const char *path);
/* Looks. Some milliseconds: not in each step. */
void stk_chip_look(stk_chip *chip);
void stk_chip_close(stk_chip *chip);
/* What was seen while n_samples were trained; NULL: nothing. Returned: json_decref. */
json_t *stk_chip_json(const stk_chip *chip, double n_samples);

#endif
