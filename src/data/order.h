/* Order as arithmetic: which record is sample n of epoch e? A pure function of (chain of operations, e, n), in constant
 * time and without a buffer, so that any thread can ask for any position and resuming costs nothing.
 *
 * Not here: reading, stages, batches. The permutation is a Feistel network over a rectangle a x b that just holds n
 * (Black & Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), with cycle walking over the few cells left.
 * Threads: one at a time while operations are added; any number may call stk_order_map afterwards.
 */
#ifndef STK_DATA_ORDER_H
#define STK_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"

enum { STK_MAX_ORDER_OPS = 32 };

typedef enum stk_order_kind {
    STK_ORDER_SHUFFLE,
    STK_ORDER_SKIP, /* take is one that skips none */
    STK_ORDER_REPEAT,
    STK_ORDER_SHARD
} stk_order_kind;

typedef struct stk_order_op {
    stk_order_kind kind;
    int64_t n_in;     /* samples before this operation */
    int64_t a, b;     /* skip: a samples; repeat: a passes; shard: every a-th from b on */
    uint64_t seed;    /* of a shuffle */
    uint32_t side[2]; /* of a shuffle: its rectangle */
    int n_rounds;     /* of a shuffle */
} stk_order_op;

typedef struct stk_order {
    int64_t n_records; /* of the source */
    int64_t count;     /* samples in an epoch */
    uint32_t *kept;    /* the records that splits left, ascending; NULL: all */
    int n_ops;
    stk_order_op op[STK_MAX_ORDER_OPS];
} stk_order;

/* Record n of every epoch is sample n. STK_INVALID for an empty source. */
stk_status stk_order_init(stk_order *order, int64_t n_records);
void stk_order_free(stk_order *order);

/* Each adds one operation after those before it, or leaves the order as it was and says what is wrong. An operation
 * that leaves no sample is refused. */
stk_status stk_order_split(stk_order *order, double share, bool keep_rest, uint64_t seed);
stk_status stk_order_shuffle(stk_order *order, uint64_t seed);
stk_status stk_order_take(stk_order *order, int64_t n);
stk_status stk_order_skip(stk_order *order, int64_t n);
stk_status stk_order_repeat(stk_order *order, int64_t n);
stk_status stk_order_shard(stk_order *order, int64_t n_shards, int64_t i_shard);

typedef struct stk_order_place {
    int64_t i_record;
    uint64_t epoch; /* of the pass the record is met in: a repeat makes several of one epoch; for random keys */
} stk_order_place;

/* n in [0, count). Pure. */
stk_order_place stk_order_map(const stk_order *order, uint64_t epoch, int64_t n);

#endif
