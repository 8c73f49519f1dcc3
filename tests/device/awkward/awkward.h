/* A device that is as unlike the host as a device may be, to show what assumes host memory or work done at once:
 *
 *   memory     its addresses mean nothing to the host: reading or writing there is a fault. Memory for variables is
 *              zeroed, arenas are poison, before each run again; freed memory is poison
 *   queues     a thread each, which starts every piece of work a random little later than it could
 *   kernels    the reference device's, so that bits are comparable; what one will write is poison until then
 *   caps       what awkward_set_caps says; kernels of anything else are refused
 *   checks     copies and kernels whose addresses are not of living memory on the right side fail, and so does work
 *              of two queues on the same memory that no event orders: awkward_order.c
 *
 * "awkward:1" is another one, with memory and queues of its own. They have one lock, since queues of one wait for
 * events of another.
 * It is found by name ("awkward") after awkward_add(), in tests only: no list names it, and no library holds it.
 */
#ifndef STK_TESTS_AWKWARD_H
#define STK_TESTS_AWKWARD_H

#include "base/thread.h"
#include "device/queue.h"

extern const stk_device_class awkward_class;
/* Lets stk_device_open find the device. */
void awkward_add(void);
/* What devices that are opened from now on can do, borrowed; NULL: all. And what they tell of their memory; 0: what
 * there is. */
void awkward_set_caps(const stk_device_caps *caps);
void awkward_set_free(size_t bytes);

/* --- the inside --- */

enum { AWKWARD_POISON = 0xff }; /* no number in any float, -1 in integers */

typedef struct awkward_block {
    size_t offset, bytes;
    stk_memory_kind kind;
    bool is_free;
} awkward_block;

enum { AWKWARD_MOST_QUEUES = 64 };

/* What has been done before: of each queue the number of pieces of work. */
typedef struct awkward_clock {
    uint64_t n[AWKWARD_MOST_QUEUES];
} awkward_clock;

/* Memory that a piece of work reads or writes. */
typedef struct awkward_access {
    const char *from, *to;
    int i_queue;
    uint64_t number; /* of the work, in its queue */
    bool writes;
} awkward_access;

typedef struct awkward_device {
    stk_device base;
    stk_device *reference;
    char *outside, *inside; /* the same memory: what the device gives out, unreadable, and what its threads use */
    awkward_block *block;   /* guarded by lock, as all that follows; sorted by offset */
    int n_blocks, capacity;
    size_t end;        /* of the last block */
    stk_mutex *lock;   /* of all such devices */
    stk_cond *changed; /* work was enqueued, or done */
    stk_status failed; /* the first failure of any work */
    char error[512];
    awkward_clock *known; /* to the host, which waited for it; of all devices */
    awkward_access *access;
    int n_accesses, access_capacity;
} awkward_device;

extern const stk_queue_class awkward_queues;

/* The inside address of bytes of living memory; NULL where they are not. The lock is not held. */
void *awkward_translate(awkward_device *device, const void *outside, size_t bytes);
/* True where any of the bytes are the device's. */
bool awkward_owns(const awkward_device *device, const void *p, size_t bytes);
void awkward_poison_arenas(awkward_device *device);

/* A number for a new queue, of whichever of the devices. */
int awkward_next_queue(void);
/* One more piece of work of queue i_queue, behind what clock says: *clock is it from now on. The lock is held. */
void awkward_begin_work(awkward_device *device, int i_queue, awkward_clock *clock);
/* The work touches n bytes of the device: false where another queue does, and nothing says which one is first. The lock
 * is held. */
bool awkward_touch(awkward_device *device, int i_queue, const awkward_clock *clock, const void *p, size_t n,
                   bool writes);
void awkward_join(awkward_clock *clock, const awkward_clock *other);

/* A kernel's state: the reference device's kernel and what it reads and writes. */
typedef struct awkward_kernel {
    stk_kernel inner;
    int n_in, n_out;
    bool goes_on;  /* what the micro-batch before left in its output is read */
    size_t *bytes; /* of inputs, then outputs */
} awkward_kernel;

#endif
