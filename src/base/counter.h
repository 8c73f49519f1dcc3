/* Counters with one writer and any readers: no read-modify-write on the bus is needed. */
#ifndef STK_BASE_COUNTER_H
#define STK_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic int64_t stk_counter;

static inline int64_t stk_counter_get(const stk_counter *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* By the one writer. */
static inline void stk_counter_add(stk_counter *counter, int64_t n)
{
    atomic_store_explicit(counter, stk_counter_get(counter) + n, memory_order_relaxed);
}

static inline void stk_counter_set(stk_counter *counter, int64_t n)
{
    atomic_store_explicit(counter, n, memory_order_relaxed);
}

#endif
