/* Memory: pages of the host's between two that nobody may touch, which OpenCL's kernels use in place. What is new is
 * poison. Copies do what their kinds of memory say (CUDA driver API, "API synchronization behavior"). */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/play/play.h"

enum { GRAIN = 512 }; /* what blocks begin at, and what their sizes are counted in */

extern play_opencl play_cl;

static play_block *blocks; /* by address */
static size_t n_blocks, n_capacity;

/* --- blocks --- */

/* How many begin at or before it. */
static size_t count_before(address p)
{
    size_t low = 0, high = n_blocks;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].at <= p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

play_block *play_block_of(address p)
{
    size_t i = count_before(p);
    return i > 0 && p - blocks[i - 1].at <= blocks[i - 1].bytes ? &blocks[i - 1] : NULL;
}

bool play_is_on_device(address p, size_t bytes)
{
    const play_block *b = play_block_of(p);
    return b && b->taken && bytes <= b->bytes - (p - b->at);
}

static bool map_block(play_block *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded = (b->bytes + GRAIN - 1) / GRAIN * GRAIN;
    const size_t inside = (rounded + page - 1) / page * page;
    b->map_bytes = inside + 2 * page;
    b->map = mmap(NULL, b->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->map == MAP_FAILED) return false;
    char *first = (char *)b->map + page;
    if (mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) {
        munmap(b->map, b->map_bytes);
        return false;
    }
    /* Its end is where the page that faults begins. */
    b->at = (address)(uintptr_t)(first + inside - rounded);
    memset((void *)(uintptr_t)b->at, POISON, rounded);
    return true;
}

/* NULL: there is no memory for it. */
static play_block *add_block(play_block b)
{
    cl_int code = CL_SUCCESS;
    if (n_blocks == n_capacity) {
        n_capacity = n_capacity ? 2 * n_capacity : 64;
        blocks = realloc(blocks, n_capacity * sizeof(*blocks));
        if (!blocks) abort();
    }
    if (!map_block(&b)) return NULL;
    if (b.taken)
        b.memory = play_cl.clCreateBuffer(play_cl.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, b.taken,
                                          (void *)(uintptr_t)b.at, &code);
    if (code != CL_SUCCESS) {
        munmap(b.map, b.map_bytes);
        return NULL;
    }
    const size_t i = count_before(b.at);
    memmove(&blocks[i + 1], &blocks[i], (n_blocks - i) * sizeof(*blocks));
    blocks[i] = b;
    n_blocks++;
    return &blocks[i];
}

static void remove_block(play_block *b)
{
    if (b->memory) play_cl.clReleaseMemObject(b->memory);
    munmap(b->map, b->map_bytes);
    b->context->used_bytes -= b->taken;
    n_blocks--;
    memmove(b, b + 1, (n_blocks - (size_t)(b - blocks)) * sizeof(*blocks));
}

void play_free_blocks(const play_context *context)
{
    for (size_t i = n_blocks; i > 0; i--)
        if (blocks[i - 1].context == context) remove_block(&blocks[i - 1]);
}

/* --- the calls --- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    int code = play_enter(CALL_cuMemGetInfo);
    if (code) return code;
    const size_t used = play_current()->used_bytes + play_others();
    *total = play_set.memory;
    *free_bytes = used < play_set.memory ? play_set.memory - used : 0;
    return play_leave(WELL);
}

int cuMemAlloc_v2(address *out, size_t bytes)
{
    int code = play_enter(CALL_cuMemAlloc);
    if (code) return code;
    play_context *context = play_current();
    const size_t used = context->used_bytes + play_others();
    if (bytes == 0) return play_leave(INVALID_VALUE);
    if (used > play_set.memory || bytes > play_set.memory - used) return play_leave(OUT_OF_MEMORY);
    const size_t taken = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    play_block *b = add_block((play_block){.bytes = bytes, .taken = taken, .context = context});
    if (!b) return play_leave(OUT_OF_MEMORY);
    context->used_bytes += taken;
    if (context->used_bytes > play_count.most_used_bytes) play_count.most_used_bytes = context->used_bytes;
    *out = b->at;
    return play_leave(WELL);
}

/* Which waits for all work, as the driver does. */
int cuMemFree_v2(address p)
{
    int code = play_enter(CALL_cuMemFree);
    if (code) return code;
    if (p == 0) return play_leave(WELL);
    code = play_finish_all(play_current(), "cuMemFree");
    play_block *b = play_block_of(p);
    if (!b || b->at != p || !b->taken) {
        play_misuse("cuMemFree: %p is no memory that was allocated, or is free already", (void *)(uintptr_t)p);
        return play_leave(INVALID_VALUE);
    }
    remove_block(b);
    return play_leave(code);
}

int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    int code = play_enter(CALL_cuMemHostAlloc);
    if (code) return code;
    if (flags & ~7u || bytes == 0) return play_leave(INVALID_VALUE);
    const play_block *b = add_block((play_block){.bytes = bytes, .context = play_current()});
    if (!b) return play_leave(OUT_OF_MEMORY);
    *out = (void *)(uintptr_t)b->at;
    return play_leave(WELL);
}

int cuMemFreeHost(void *p)
{
    int code = play_enter(CALL_cuMemFreeHost);
    if (code) return code;
    play_block *b = play_block_of((address)(uintptr_t)p);
    if (!b || b->at != (address)(uintptr_t)p || b->taken) {
        play_misuse("cuMemFreeHost: %p is no pinned memory, or is free already", p);
        return play_leave(INVALID_VALUE);
    }
    code = play_finish_all(play_current(), "cuMemFreeHost");
    remove_block(play_block_of((address)(uintptr_t)p));
    return play_leave(code);
}

int cuMemsetD8Async(address dst, unsigned char byte, size_t n, handle stream)
{
    int code = play_enter(CALL_cuMemsetD8Async);
    if (code) return code;
    play_stream *s = play_stream_of(stream);
    if (!s) return play_leave(INVALID_HANDLE);
    if (n == 0) return play_leave(WELL);
    if (!play_is_on_device(dst, n)) return play_leave(INVALID_VALUE);
    return play_leave(play_enqueue(s, &(play_deed){.what = DO_FILL, .dst = dst, .bytes = n, .byte = byte}, false));
}

/* --- copies --- */

/* Device, pinned, or nobody's that is known, which is the host's and is not pinned. False: it ends outside. */
static bool find_place(address p, size_t bytes, const play_block **out)
{
    const play_block *b = play_block_of(p);
    if (b && p - b->at == b->bytes) b = NULL; /* the end of one is the begin of nothing */
    *out = b;
    return !b || bytes <= b->bytes - (p - b->at);
}

static void count_copy(const play_block *dst, const play_block *src, size_t bytes)
{
    const bool from_host = !src || !src->taken, to_host = !dst || !dst->taken;
    play_count.to_device += from_host && !to_host;
    play_count.to_device_bytes += from_host && !to_host ? bytes : 0;
    play_count.to_host += to_host && !from_host;
    play_count.to_host_bytes += to_host && !from_host ? bytes : 0;
    play_count.on_device += !to_host && !from_host;
    play_count.unpinned += !dst || !src;
}

/* What is not pinned is copied into a buffer of the driver's before the call returns, behind all work of the stream; or
 * it has arrived when the call returns. */
static int copy_unpinned(play_stream *s, play_deed *deed, bool from_host)
{
    int code = play_finish(s, s->n_enqueued, "cuMemcpyAsync");
    if (code) return code;
    if (from_host) {
        deed->staged = malloc(deed->bytes);
        if (!deed->staged) abort();
        memcpy(deed->staged, (const void *)(uintptr_t)deed->src, deed->bytes);
        return play_enqueue(s, deed, false);
    }
    code = play_enqueue(s, deed, false);
    return code ? code : play_finish(s, s->n_enqueued, "cuMemcpyAsync");
}

int cuMemcpyAsync(address dst, address src, size_t bytes, handle stream)
{
    int code = play_enter(CALL_cuMemcpyAsync);
    if (code) return code;
    const play_block *to, *from;
    play_stream *s = play_stream_of(stream);
    if (!s) return play_leave(INVALID_HANDLE);
    if (bytes == 0) return play_leave(WELL);
    if (!dst || !src || !find_place(dst, bytes, &to) || !find_place(src, bytes, &from))
        return play_leave(INVALID_VALUE);
    count_copy(to, from, bytes);
    play_deed deed = {.what = DO_COPY, .dst = dst, .src = src, .bytes = bytes};
    if (!s->capture && (!to || !from)) return play_leave(copy_unpinned(s, &deed, !from));
    /* Until it is there, it is not: who reads it too early sees that. */
    if (!s->capture && to && !to->taken && !play_is_read(s->context, (void *)(uintptr_t)dst, bytes))
        memset((void *)(uintptr_t)dst, POISON, bytes);
    return play_leave(play_enqueue(s, &deed, false));
}
