/* The device's memory and kernels. See awkward.h. */
#include "device/awkward/awkward.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

static const size_t SPACE_BYTES = (size_t)1 << 32; /* of addresses; memory comes as it is written */

static const stk_device_caps *chosen_caps;
static size_t told_free;

void awkward_set_caps(const stk_device_caps *caps)
{
    chosen_caps = caps;
}

void awkward_set_free(size_t bytes)
{
    told_free = bytes;
}

/* --- opening --- */

static stk_once once = STK_ONCE_INIT;
static stk_mutex shared_lock;
static stk_cond shared_changed;
static stk_status shared_status;
static awkward_clock shared_known; /* guarded by shared_lock, as is: */
static int n_queues;

int awkward_next_queue(void)
{
    stk_mutex_lock(&shared_lock);
    int i = n_queues++ % AWKWARD_MOST_QUEUES;
    stk_mutex_unlock(&shared_lock);
    return i;
}

static void make_shared(void)
{
    shared_status = stk_mutex_init(&shared_lock);
    if (shared_status == STK_OK) shared_status = stk_cond_init(&shared_changed);
}

static void close_awkward(stk_device *base)
{
    awkward_device *device = (awkward_device *)base;
    stk_device_close(device->reference);
    if (device->inside) munmap(device->inside, SPACE_BYTES);
    if (device->outside) munmap(device->outside, SPACE_BYTES);
    free(device->block);
    free(device->access);
    free(device);
}

static char *map(int fd, int protection)
{
    void *p = mmap(NULL, SPACE_BYTES, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

static stk_status open_awkward(const stk_device_config *config, stk_device **out)
{
    (void)config;
    awkward_device *device = calloc(1, sizeof(*device));
    int fd = memfd_create("awkward", MFD_CLOEXEC);
    stk_status status = STK_OK;
    if (!device || fd < 0 || ftruncate(fd, (off_t)SPACE_BYTES)) STK_TRY(stk_fail_memory(SPACE_BYTES));
    device->base = (stk_device){.class = &awkward_class, .caps = chosen_caps, .n_threads = 1};
    stk_once_run(&once, make_shared);
    STK_TRY(shared_status);
    device->lock = &shared_lock;
    device->changed = &shared_changed;
    device->known = &shared_known;
    device->inside = map(fd, PROT_READ | PROT_WRITE);
    device->outside = map(fd, PROT_NONE);
    if (!device->inside || !device->outside) STK_TRY(stk_fail_memory(SPACE_BYTES));
    STK_TRY(stk_device_open("reference", NULL, &device->reference));
    *out = &device->base;
    device = NULL;
done:
    if (fd >= 0) close(fd);
    if (device) close_awkward(&device->base);
    return status;
}

/* --- memory --- */

static size_t room_of(const awkward_device *device, int i)
{
    size_t end = i + 1 < device->n_blocks ? device->block[i + 1].offset : device->end;
    return end - device->block[i].offset;
}

static stk_status add_block(awkward_device *device, size_t bytes, int *out)
{
    size_t room = (bytes / 64 + 1) * 64;
    if (room < bytes || device->end + room > SPACE_BYTES) return stk_fail_memory(bytes);
    if (device->n_blocks == device->capacity) {
        int grown = device->capacity ? 2 * device->capacity : 64;
        awkward_block *p = realloc(device->block, (size_t)grown * sizeof(*p));
        if (!p) return stk_fail_memory((size_t)grown * sizeof(*p));
        device->block = p;
        device->capacity = grown;
    }
    *out = device->n_blocks++;
    device->block[*out] = (awkward_block){.offset = device->end};
    device->end += room;
    return STK_OK;
}

static stk_status alloc_memory(stk_device *base, size_t bytes, stk_memory_kind kind, void **out)
{
    awkward_device *device = (awkward_device *)base;
    stk_status status = STK_OK;
    int i = 0;
    stk_mutex_lock(device->lock);
    while (i < device->n_blocks && !(device->block[i].is_free && room_of(device, i) > bytes))
        i++;
    if (i == device->n_blocks) STK_TRY(add_block(device, bytes, &i));
    awkward_block *block = &device->block[i];
    block->bytes = bytes;
    block->kind = kind;
    block->is_free = false;
    memset(device->inside + block->offset, kind == STK_MEMORY_ZEROED ? 0 : AWKWARD_POISON, bytes);
    *out = device->outside + block->offset;
done:
    stk_mutex_unlock(device->lock);
    return status;
}

static int find_block(const awkward_device *device, size_t offset)
{
    int low = 0, high = device->n_blocks - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (device->block[middle].offset <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void free_memory(stk_device *base, void *p, size_t bytes)
{
    awkward_device *device = (awkward_device *)base;
    stk_mutex_lock(device->lock);
    awkward_block *block = &device->block[find_block(device, (size_t)((char *)p - device->outside))];
    if (block->offset != (size_t)((char *)p - device->outside) || block->bytes != bytes || block->is_free) abort();
    memset(device->inside + block->offset, AWKWARD_POISON, bytes);
    block->is_free = true;
    stk_mutex_unlock(device->lock);
}

bool awkward_owns(const awkward_device *device, const void *p, size_t bytes)
{
    const char *first = p;
    return first < device->outside + SPACE_BYTES && first + bytes > device->outside;
}

void *awkward_translate(awkward_device *device, const void *outside, size_t bytes)
{
    const char *p = outside;
    if (p < device->outside || p >= device->outside + SPACE_BYTES) return NULL;
    size_t offset = (size_t)(p - device->outside);
    stk_mutex_lock(device->lock);
    bool is_alive = device->n_blocks > 0;
    if (is_alive) {
        const awkward_block *block = &device->block[find_block(device, offset)];
        is_alive = !block->is_free && offset >= block->offset && offset + bytes <= block->offset + block->bytes;
    }
    stk_mutex_unlock(device->lock);
    return is_alive ? device->inside + offset : NULL;
}

void awkward_poison_arenas(awkward_device *device)
{
    stk_mutex_lock(device->lock);
    for (int i = 0; i < device->n_blocks; i++)
        if (!device->block[i].is_free && device->block[i].kind == STK_MEMORY_SCRATCH)
            memset(device->inside + device->block[i].offset, AWKWARD_POISON, device->block[i].bytes);
    stk_mutex_unlock(device->lock);
}

static stk_status alloc_host(stk_device *device, size_t bytes, void **out)
{
    (void)device;
    size_t rounded = (bytes / 64 + 1) * 64;
    *out = aligned_alloc(64, rounded);
    if (!*out) return stk_fail_memory(bytes);
    memset(*out, AWKWARD_POISON, rounded);
    return STK_OK;
}

static void free_host(stk_device *device, void *p, size_t bytes)
{
    (void)device;
    if (p) memset(p, AWKWARD_POISON, bytes);
    free(p);
}

static stk_status tell_memory(const stk_device *base, stk_device_memory *out)
{
    const awkward_device *device = (const awkward_device *)base;
    *out = (stk_device_memory){.total = SPACE_BYTES, .free = told_free ? told_free : SPACE_BYTES - device->end};
    return STK_OK;
}

static void tell_chip(const stk_device *device, stk_text *out)
{
    (void)device;
    stk_text_add(out, "none");
}

/* --- kernels --- */

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes && (const char *)b < (const char *)a + a_bytes;
}

/* An output that shares memory with an input keeps it. */
static void poison_output(const awkward_kernel *k, const stk_kernel_args *args, int i)
{
    for (int j = 0; j < k->n_in; j++)
        if (overlaps(args->out[i], k->bytes[k->n_in + i], args->in[j], k->bytes[j])) return;
    memset(args->out[i], AWKWARD_POISON, k->bytes[k->n_in + i]);
}

static stk_status run(const void *state, const stk_kernel_args *args)
{
    const awkward_kernel *k = state;
    for (int i = 0; i < k->n_out && !k->goes_on; i++)
        poison_output(k, args, i);
    if (k->inner.scratch_bytes) memset(args->scratch, AWKWARD_POISON, k->inner.scratch_bytes);
    return k->inner.run(k->inner.state, args);
}

static void release(void *state)
{
    awkward_kernel *k = state;
    if (!k) return;
    stk_kernel_free(&k->inner);
    free(k->bytes);
    free(k);
}

/* What passes must not have made where the capabilities do not say so. */
static bool is_beyond(const stk_device_caps *caps, const stk_op_call *call)
{
    bool is_norm = call->op == STK_OP_batch_norm || call->op == STK_OP_batch_norm_apply;
    bool is_sum = call->op == STK_OP_matmul || call->op == STK_OP_conv2d || call->op == STK_OP_conv2d_grad_data ||
                  call->op == STK_OP_conv3d || call->op == STK_OP_conv3d_grad_data;
    bool beyond = !stk_device_caps_has(caps, call->op);
    beyond |= is_sum && call->n_in == 3 && !caps->bias;
    beyond |= is_sum && call->attrs->activation && !caps->conv_relu;
    beyond |= is_norm && call->attrs->batch_norm.relu && !caps->norm_relu;
    beyond |= is_norm && call->n_in == 6 && !caps->norm_residual;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        stk_dtype dtype = i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype;
        beyond |= (dtype == STK_BF16 && !caps->bf16) || (dtype == STK_F16 && !caps->f16);
        beyond |= dtype == STK_U8 && !caps->u8;
    }
    return beyond;
}

static stk_status find_kernel(stk_device *base, const stk_op_call *call, stk_kernel *out)
{
    stk_device *reference = ((awkward_device *)base)->reference;
    awkward_kernel *k = calloc(1, sizeof(*k));
    stk_status status = STK_OK;
    memset(out, 0, sizeof(*out));
    if (is_beyond(base->caps, call))
        STK_TRY(stk_fail(STK_UNSUPPORTED, "the awkward device has no such kernel for '%s'", stk_op_name(call->op)));
    if (!k || !(k->bytes = calloc((size_t)(call->n_in + call->n_out) + 1, sizeof(*k->bytes))))
        STK_TRY(stk_fail_memory(sizeof(*k)));
    STK_TRY(reference->class->kernel(reference, call, &k->inner));
    k->goes_on = call->op == STK_OP_accumulate || call->op == STK_OP_carry;
    k->n_in = call->n_in;
    k->n_out = call->n_out;
    for (int i = 0; i < call->n_in; i++)
        k->bytes[i] = stk_desc_bytes(call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        k->bytes[call->n_in + i] = stk_desc_bytes(call->out[i]);
    *out = (stk_kernel){
        .run = run, .state = k, .release = release, .scratch_bytes = k->inner.scratch_bytes, .impl = "awkward"};
    memcpy(out->in_place, k->inner.in_place, sizeof(out->in_place));
    if (!base->caps->sums_in_place) memset(out->in_place, 0, sizeof(out->in_place));
    k = NULL;
done:
    release(k);
    return status;
}

static void describe(const stk_device *device, stk_text *out)
{
    (void)device;
    stk_text_add(out, "the reference device's kernels, late and out of sight");
}

const stk_device_class awkward_class = {
    .name = "awkward",
    .about = "for tests: memory of its own, work done later",
    .caps = &stk_device_caps_all,
    .open = open_awkward,
    .close = close_awkward,
    .alloc = alloc_memory,
    .free = free_memory,
    .alloc_host = alloc_host,
    .free_host = free_host,
    .kernel = find_kernel,
    .queues = &awkward_queues,
    .memory = tell_memory,
    .chip = tell_chip,
    .describe = describe,
};

void awkward_add(void)
{
    stk_device_add(&awkward_class);
}
