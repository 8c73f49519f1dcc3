/* Order as arithmetic: which record is sample n of epoch e? A pure function of (chain of operations, e, n), in constant
 * time and without a buffer, so that any thread can ask for any position and resuming costs nothing.
 *
 * Not here: reading, stages, batches. A shuffle is a keyed permutation (permutation.h); one with a window is arithmetic
 * too (window.h), with memory of its own where positions are asked for one after the other.
 * Threads: one at a time while operations are added; any number may call stk_order_map afterwards.
 */
#ifndef STK_DATA_ORDER_ORDER_H
#define STK_DATA_ORDER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "data/order/permutation.h"
#include "data/order/window.h"
#include "stoker/status.h"

enum { STK_MAX_ORDER_OPS = 32 };

typedef enum stk_order_kind {
    STK_ORDER_SHUFFLE,
    STK_ORDER_WINDOW, /* a shuffle with a window */
    STK_ORDER_SKIP,   /* take is one that skips none */
    STK_ORDER_REPEAT,
    STK_ORDER_SHARD
} stk_order_kind;

typedef struct stk_order_op {
    stk_order_kind kind;
    int64_t n_in;  /* samples before this operation */
    int64_t a, b;  /* skip: a samples; repeat: a passes; shard: every a-th from b on */
    uint64_t seed; /* of a shuffle */
    bool fixed;    /* of a shuffle: the same in every epoch */
    bool is_hint;  /* of a shard: a place for one, which does nothing itself */
    stk_permutation all;
    stk_shuffle_window window;
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
/* window 0: of everything; else as tf.data shuffles with a buffer of that size. */
stk_status stk_order_shuffle_with(stk_order *order, uint64_t seed, int64_t window, bool reshuffle);
stk_status stk_order_take(stk_order *order, int64_t n);
stk_status stk_order_skip(stk_order *order, int64_t n);
stk_status stk_order_repeat(stk_order *order, int64_t n);
stk_status stk_order_shard(stk_order *order, int64_t n_shards, int64_t i_shard);

/* The records of every n_shards-th file from file i_shard on; file_of says in which a record lies, and ascends. Like a
 * split it draws records, and comes first. */
typedef int64_t (*stk_file_of)(const void *user, int64_t i_record);
stk_status stk_order_shard_files(stk_order *order, int64_t n_files, stk_file_of file_of, const void *user,
                                 int64_t n_shards, int64_t i_shard);
/* Marks the place where a later stk_order_fill_hint shards; the operations after it are then planned again, and a take
 * gives what there is. Without a place, filling changes nothing. */
stk_status stk_order_shard_hint(stk_order *order);
stk_status stk_order_fill_hint(stk_order *order, int64_t n_shards, int64_t i_shard);
/* Whether there is a place that is still to be filled. */
bool stk_order_has_hint(const stk_order *order);
/* Adds an operation of another order again; n_out: the samples that it gave there, for a take. */
stk_status stk_order_add_again(stk_order *order, const stk_order_op *op, int64_t n_out);

/* Brings the order into a form in which only shuffles and repeats come after the choice of records; every position
 * stays what it was. STK_INVALID where the choice is not the same in every epoch. See order_fold.c. */
stk_status stk_order_fold(stk_order *order);
/* How many records a folded order meets: those of `kept`, or all. */
int64_t stk_order_n_met(const stk_order *order);
/* Keeps those records of a folded order whose answer, [stk_order_n_met], is above 0, as a filter before its shuffles
 * and repeats would. */
stk_status stk_order_keep(stk_order *order, const int32_t *answers);
/* Whether a position holds another record in another epoch. */
bool stk_order_varies(const stk_order *order);

typedef struct stk_order_place {
    int64_t i_record;
    uint64_t epoch; /* of the pass the record is met in: a repeat makes several of one epoch; for random keys */
} stk_order_place;

/* One thread's memory: makes walking through windows fast, and changes no answer. Starts zeroed. */
typedef struct stk_order_cursor {
    stk_window_cursor window[STK_MAX_ORDER_OPS];
} stk_order_cursor;
void stk_order_cursor_free(stk_order_cursor *cursor);

/* n in [0, count). Pure; cursor may be NULL. */
stk_order_place stk_order_map(const stk_order *order, stk_order_cursor *cursor, uint64_t epoch, int64_t n);

#endif
