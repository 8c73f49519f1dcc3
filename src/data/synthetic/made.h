/* What the generated sets share. See stoker/made.h; each set is one file beside this one. */
#ifndef STK_DATA_SYNTHETIC_MADE_H
#define STK_DATA_SYNTHETIC_MADE_H

#include "base/rng.h"
#include "base/text.h"
#include "stoker/made.h"

typedef struct stk_made {
    const char *folder; /* where to write */
    int64_t n[2];       /* samples to learn from and to test with */
    uint64_t seed;
    bool (*goes_on)(void *user); /* may be NULL */
    void *user;
    stk_text note; /* for README.txt: what can be reached */
} stk_made;

extern const char *const stk_made_part[2]; /* "train", "test" */

/* The stream of sample i of a part; of what all samples share, part 2 and i 0. */
stk_rng stk_made_rng(const stk_made *made, int part, int64_t i);
/* STK_INTERRUPTED where it is to stop; sets ask before each file and now and then. */
stk_status stk_made_ask(const stk_made *made);
/* Asks, and writes folder/name, whose folders are made where they are missing. */
stk_status stk_made_file(const stk_made *made, const char *name, const void *data, size_t n);

stk_status stk_made_shapes(stk_made *made);
stk_status stk_made_solids(stk_made *made);
stk_status stk_made_clicks(stk_made *made);
stk_status stk_made_notes(stk_made *made);
stk_status stk_made_prices(stk_made *made);

#endif
