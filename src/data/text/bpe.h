/* Byte pair encoding of one word, over bytes. Sennrich et al. 2016, Radford et al. 2019: of all neighbours the pair
 * that was learnt first is joined, the leftmost first, until none is left. Threads: one while merges are added; then
 * any. */
#ifndef STK_DATA_TEXT_BPE_H
#define STK_DATA_TEXT_BPE_H

#include <stdatomic.h>

#include "data/text/vocab.h"

/* Words of up to N bytes need no memory. */
enum { STK_BPE_SHORT = 64, STK_BPE_WORK_PER_BYTE = 40 };

typedef struct stk_bpe_pair {
    uint64_t key; /* left << 32 | right */
    uint32_t rank, joined;
} stk_bpe_pair;

typedef struct stk_bpe {
    stk_vocab vocab;      /* the tokens as bytes */
    int32_t byte_id[256]; /* the tokens of single bytes; -1: there is none */
    int32_t unknown;      /* for bytes without a token; -1: they are left out */
    bool whole_first;     /* a word that is a token is that token, whatever the merges say ("ignore_merges") */
    stk_bpe_pair *pair;   /* a hash table; rank UINT32_MAX: free */
    size_t n_slots, n_pairs;
    atomic_uchar *is_whole; /* by id: 0 not known yet, 1 its bytes come out as this one token, 2 they do not */
} stk_bpe;

/* Room for n merges; before the first. */
stk_status stk_bpe_reserve(stk_bpe *bpe, size_t n_merges);
/* The pair that was learnt as number `rank`; of two alike the later counts. STK_INVALID for one whose parts or whole
 * are no tokens. */
stk_status stk_bpe_add(stk_bpe *bpe, stk_span left, stk_span right, uint32_t rank);
/* After all merges. */
stk_status stk_bpe_finish(stk_bpe *bpe);
/* The tokens of one word, at most one for each byte, into ids; returns how many. work: for words longer than
 * STK_BPE_SHORT, STK_BPE_WORK_PER_BYTE times their bytes, 8-aligned. */
size_t stk_bpe_encode(const stk_bpe *bpe, stk_span word, int32_t *ids, void *work);
void stk_bpe_free(stk_bpe *bpe);

#endif
