/* See plan_offsets.h. */
#include "passes/plan_offsets.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Looking through buffers ends the search for a better order: by their number, so that it always ends alike. */
enum { N_PROMOTIONS = 60, MOST_WORK = 100000000 };

stk_status stk_plan_find_bound(const stk_plan_buffer *buffer, int32_t n, int32_t n_nodes, size_t *bound, int32_t *at)
{
    /* Sums wrap around and come out right, since each buffer's bytes are taken away after they were added. */
    size_t *change = calloc((size_t)n_nodes + 2, sizeof(*change)), alive = 0;
    if (!change) return stk_fail_memory((size_t)n_nodes * sizeof(*change));
    for (int32_t i = 0; i < n; i++) {
        change[buffer[i].first] += buffer[i].bytes;
        if (buffer[i].last < n_nodes) change[buffer[i].last + 1] -= buffer[i].bytes;
    }
    *bound = 0;
    if (at) *at = 0;
    for (int32_t i = 0; i <= n_nodes; i++) {
        alive += change[i];
        if (alive <= *bound) continue;
        *bound = alive;
        if (at) *at = i;
    }
    free(change);
    return STK_OK;
}

/* --- orders --- */

static int by_time(const stk_plan_buffer *x, const stk_plan_buffer *y)
{
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int32_t lifetime(const stk_plan_buffer *b)
{
    return b->last - b->first + 1;
}

static int compare_sizes(const void *a, const void *b)
{
    const stk_plan_buffer *x = *(stk_plan_buffer *const *)a, *y = *(stk_plan_buffer *const *)b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : by_time(x, y);
}

static int compare_areas(const void *a, const void *b)
{
    const stk_plan_buffer *x = *(stk_plan_buffer *const *)a, *y = *(stk_plan_buffer *const *)b;
    double p = (double)x->bytes * lifetime(x), q = (double)y->bytes * lifetime(y);
    return p != q ? (p > q ? -1 : 1) : by_time(x, y);
}

static int compare_lifetimes(const void *a, const void *b)
{
    const stk_plan_buffer *x = *(stk_plan_buffer *const *)a, *y = *(stk_plan_buffer *const *)b;
    int32_t p = lifetime(x), q = lifetime(y);
    return p != q ? (p > q ? -1 : 1) : compare_sizes(a, b);
}

static int compare_times(const void *a, const void *b)
{
    return by_time(*(stk_plan_buffer *const *)a, *(stk_plan_buffer *const *)b);
}

/* --- what has been placed, by offset --- */

enum { BLOCK = 256, STRIDE = 16 };

/* Some of them in a row. Lifetimes lie apart from the rest, so that STRIDE are asked at once for one that is alive at
 * the same time; behind the last one are such as never are. */
typedef struct placed_block {
    int32_t n, first[BLOCK], last[BLOCK];
    const stk_plan_buffer *buffer[BLOCK];
} placed_block;

static void empty_block(placed_block *block)
{
    block->n = 0;
    for (int i = 0; i < BLOCK; i++) {
        block->first[i] = INT32_MAX;
        block->last[i] = -1;
    }
}

static bool any_alive(const placed_block *block, int32_t from, const stk_plan_buffer *b)
{
    int32_t any = 0;
    for (int i = 0; i < STRIDE; i++)
        any |= (block->first[from + i] <= b->last) & (block->last[from + i] >= b->first);
    return any;
}

static void insert_into_block(placed_block *block, const stk_plan_buffer *b)
{
    int32_t at = block->n++;
    for (; at > 0 && block->buffer[at - 1]->offset > b->offset; at--) {
        block->buffer[at] = block->buffer[at - 1];
        block->first[at] = block->first[at - 1];
        block->last[at] = block->last[at - 1];
    }
    block->buffer[at] = b;
    block->first[at] = b->first;
    block->last[at] = b->last;
}

/* The upper half of a full block. */
static void move_half(placed_block *from, placed_block *to)
{
    empty_block(to);
    for (int i = BLOCK / 2; i < BLOCK; i++) {
        insert_into_block(to, from->buffer[i]);
        from->first[i] = INT32_MAX;
        from->last[i] = -1;
    }
    from->n = BLOCK / 2;
}

/* --- one packing --- */

typedef struct packer {
    stk_plan_buffer *buffer;
    int32_t n;
    stk_plan_buffer **order, **best_order;
    placed_block *blocks; /* at any place */
    placed_block **placed;
    int32_t n_placed; /* blocks */
    int32_t n_tried;  /* of the order's buffers, by the last try */
    size_t *best_offset;
    size_t peak, best_peak;
    int64_t work;
    bool tightest; /* the smallest gap that fits, not the lowest */
} packer;

static size_t find_offset(packer *p, const stk_plan_buffer *b)
{
    size_t top = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (int32_t k = 0; k < p->n_placed; k++) {
        const placed_block *block = p->placed[k];
        for (int32_t i = 0; i < block->n; i++) {
            if (i % STRIDE == 0) {
                p->work++;
                if (!any_alive(block, i, b)) {
                    i += STRIDE - 1;
                    continue;
                }
                p->work += STRIDE;
            }
            if (block->first[i] > b->last || b->first > block->last[i]) continue;
            const stk_plan_buffer *other = block->buffer[i];
            size_t end = other->offset + other->bytes, gap = other->offset > top ? other->offset - top : 0;
            if (gap >= b->bytes && gap < best_gap) {
                if (!p->tightest) return top;
                best = top;
                best_gap = gap;
            }
            if (end > top) top = end;
        }
    }
    return best != SIZE_MAX ? best : top;
}

/* Behind those of the same offset. */
static void insert_placed(packer *p, const stk_plan_buffer *b)
{
    int32_t low = 0, high = p->n_placed;
    while (high - low > 1) {
        int32_t middle = (low + high) / 2;
        if (p->placed[middle]->buffer[0]->offset <= b->offset)
            low = middle;
        else
            high = middle;
    }
    if (p->placed[low]->n == BLOCK) {
        placed_block *half = &p->blocks[p->n_placed];
        move_half(p->placed[low], half);
        memmove(p->placed + low + 2, p->placed + low + 1, (size_t)(p->n_placed - low - 1) * sizeof(*p->placed));
        p->placed[low + 1] = half;
        p->n_placed++;
        low += half->buffer[0]->offset <= b->offset;
    }
    insert_into_block(p->placed[low], b);
}

/* Places the buffers in p->order, until they reach as high as the best packing so far does, which is kept. */
static void try_order(packer *p)
{
    p->peak = 0;
    p->n_placed = 1;
    p->placed[0] = &p->blocks[0];
    empty_block(p->placed[0]);
    for (int32_t i = 0; i < p->n; i++) {
        stk_plan_buffer *b = p->order[i];
        b->offset = find_offset(p, b);
        if (b->offset + b->bytes > p->peak) p->peak = b->offset + b->bytes;
        p->n_tried = i + 1;
        if (p->peak >= p->best_peak) return;
        insert_placed(p, b);
    }
    p->best_peak = p->peak;
    memcpy(p->best_order, p->order, (size_t)p->n * sizeof(*p->order));
    for (int32_t i = 0; i < p->n; i++)
        p->best_offset[i] = p->buffer[i].offset;
}

/* Moves the buffer that reaches highest towards the front of the order, further from try to try. */
static void promote_highest(packer *p, int i_try)
{
    int32_t highest = 0;
    for (int32_t i = 1; i < p->n_tried; i++) {
        const stk_plan_buffer *a = p->order[i], *b = p->order[highest];
        if (a->offset + a->bytes > b->offset + b->bytes) highest = i;
    }
    int32_t to = i_try % 2 ? 0 : highest / 2;
    stk_plan_buffer *moved = p->order[highest];
    memmove(p->order + to + 1, p->order + to, (size_t)(highest - to) * sizeof(*p->order));
    p->order[to] = moved;
}

static void search(packer *p, size_t bound)
{
    static int (*const compare[])(const void *, const void *) = {compare_sizes, compare_areas, compare_lifetimes,
                                                                 compare_times};
    for (int k = 0; k < 8 && p->best_peak > bound && p->work < MOST_WORK; k++) {
        for (int32_t i = 0; i < p->n; i++)
            p->order[i] = &p->buffer[i];
        qsort(p->order, (size_t)p->n, sizeof(*p->order), compare[k / 2]);
        p->tightest = k % 2;
        try_order(p);
    }
    if (p->best_peak <= bound || p->work >= MOST_WORK) return;
    p->tightest = false;
    memcpy(p->order, p->best_order, (size_t)p->n * sizeof(*p->order));
    try_order(p);
    for (int i = 0; i < N_PROMOTIONS && p->best_peak > bound && p->work < MOST_WORK; i++) {
        promote_highest(p, i);
        try_order(p);
    }
}

stk_status stk_plan_pack(stk_plan_buffer *buffer, int32_t n, size_t bound, size_t *peak)
{
    size_t room = (size_t)n + 1,
           n_blocks = (size_t)n / (BLOCK / 2) + 1; /* each but the only one is at least half full */
    stk_status status = STK_OK;
    packer p = {.buffer = buffer, .n = n, .best_peak = SIZE_MAX};
    *peak = 0;
    p.order = malloc(room * sizeof(*p.order));
    p.best_order = malloc(room * sizeof(*p.best_order));
    p.blocks = malloc(n_blocks * sizeof(*p.blocks));
    p.placed = malloc(n_blocks * sizeof(*p.placed));
    p.best_offset = malloc(room * sizeof(*p.best_offset));
    if (!p.order || !p.best_order || !p.blocks || !p.placed || !p.best_offset)
        STK_TRY(stk_fail_memory(room * sizeof(*p.order)));
    search(&p, bound);
    for (int32_t i = 0; i < n; i++)
        buffer[i].offset = p.best_offset[i];
    *peak = p.best_peak;
done:
    free(p.order);
    free(p.best_order);
    free(p.blocks);
    free(p.placed);
    free(p.best_offset);
    return status;
}
