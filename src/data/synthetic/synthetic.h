/* What the generated sets share. See stoker/data/synthetic.h; each set is one file next to this one. */
#ifndef STK_DATA_SYNTHETIC_SYNTHETIC_H
#define STK_DATA_SYNTHETIC_SYNTHETIC_H

#include "base/rng.h"
#include "base/text.h"
#include "stoker/data/synthetic.h"

typedef struct stk_synthetic {
    const char *folder; /* where to write */
    int64_t n[2];       /* samples to learn from and to test with */
    uint64_t seed;
    bool (*goes_on)(void *user); /* may be NULL */
    void *user;
    stk_text note; /* for README.txt: what can be reached */
} stk_synthetic;

extern const char *const stk_synthetic_part[2]; /* "train", "test" */

/* The stream of sample i of a part; of what all samples share, part 2 and i 0. */
stk_rng stk_synthetic_rng(const stk_synthetic *made, int part, int64_t i);
/* STK_INTERRUPTED where it is to stop; sets ask before each file and now and then. */
stk_status stk_synthetic_ask(const stk_synthetic *made);
/* Asks, and writes folder/name, whose folders are made where they are missing. */
stk_status stk_synthetic_file(const stk_synthetic *made, const char *name, const void *data, size_t n);

stk_status stk_synthetic_shapes(stk_synthetic *made);
stk_status stk_synthetic_solids(stk_synthetic *made);
stk_status stk_synthetic_clicks(stk_synthetic *made);
stk_status stk_synthetic_notes(stk_synthetic *made);
stk_status stk_synthetic_prices(stk_synthetic *made);

#endif
