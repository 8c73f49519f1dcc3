/* What makers publish of their accelerators: peaks of products by precision, memory, bandwidth, power. A table, each
 * row with its source and its date; peaks are dense, without sparsity, with sums in f32, at the
 * clock that the maker counts with. Nothing is measured here; docs/accelerators.md is written from it.
 * Threads: any.
 */
#ifndef STK_BENCH_ACCELERATOR_H
#define STK_BENCH_ACCELERATOR_H

#include <jansson.h>

#include "base/text.h"

/* NaN: not published. */
typedef struct stk_accelerator {
    const char *name;
    const char *match;                /* what a chip's own name for itself has in it: "H100 PCIe" */
    int released;                     /* year */
    double f32, tf32, bf16, f16, fp8; /* TFLOP/s; f32: without tensor cores of another precision */
    double memory_gb, bandwidth_gb_s; /* 10^9 bytes */
    double tdp_w;                     /* of the chip or its card */
    const char *source, *as_of;       /* whose figures these are; when the row was written, 2026-11-27 */
    const char *address;              /* where the source is, without https:// */
} stk_accelerator;

/* Row number i; NULL past the end. */
const stk_accelerator *stk_accelerator_at(int i);
/* By what a chip calls itself ("NVIDIA H100 80GB HBM3"); NULL: not in the table. */
const stk_accelerator *stk_accelerator_find(const char *chip);
/* The peak of products in that precision ("f32", "bf16", ...) in FLOP/s; NaN: not published. */
double stk_accelerator_peak(const stk_accelerator *accelerator, const char *precision);
/* Returned: json_decref; null where accelerator is NULL. */
json_t *stk_accelerator_json(const stk_accelerator *accelerator);
/* The table in Markdown. */
void stk_accelerators_tell(stk_text *out);

#endif
