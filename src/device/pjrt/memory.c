/* Addresses that stand for the plug-in's buffers: pjrt.h.
 *
 * A block's address is that of pages of the host's which nobody has touched: as long as buffers stand for what lies
 * there they take no memory. Bytes that come before their type is known wait in those pages, and so do parts of what a
 * buffer holds, which is rare.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "device/pjrt/pjrt.h"

pjrt_type pjrt_type_of(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F32: return PJRT_F32;
    case STK_F64: return PJRT_F64;
    case STK_BF16: return PJRT_BF16;
    case STK_F16: return PJRT_F16;
    case STK_I64: return PJRT_S64;
    case STK_I32: return PJRT_S32;
    case STK_I8: return PJRT_S8;
    case STK_U8: return PJRT_U8;
    default: return PJRT_PRED;
    }
}

/* --- contents --- */

stk_status pjrt_new_content(pjrt_device *device, pjrt_buffer *buffer, stk_tensor_desc desc, pjrt_content **out)
{
    pjrt_content *content = malloc(sizeof(*content));
    *out = content;
    if (!content) {
        pjrt_destroy_buffer(device->plugin, buffer);
        return stk_fail_memory(sizeof(*content));
    }
    *content = (pjrt_content){buffer, desc, 1};
    return STK_OK;
}

void pjrt_drop_content(pjrt_device *device, pjrt_content *content)
{
    if (!content || --content->n_users > 0) return;
    pjrt_destroy_buffer(device->plugin, content->buffer);
    free(content);
}

static stk_status from_host(pjrt_device *device, const void *data, stk_tensor_desc desc, pjrt_content **out)
{
    pjrt_from_host_args args = {
        .head = {sizeof(args), NULL},
        .client = device->plugin->client,
        .data = data,
        .type = pjrt_type_of(desc.dtype),
        .dim = desc.shape.dim,
        .n_dims = (size_t)desc.shape.rank,
        .semantics = PJRT_READ_DURING_CALL,
        .chip = device->chip,
    };
    STK_RETURN_IF_ERROR(pjrt_call(device->plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &args, "copying to the device"));
    pjrt_destroy_event(device->plugin, args.done);
    return pjrt_new_content(device, args.buffer, desc, out);
}

stk_status pjrt_to_host(pjrt_device *device, pjrt_content *content, void *dst, pjrt_event **done)
{
    int64_t minor_to_major[STK_MAX_RANK];
    int rank = content->desc.shape.rank;
    for (int i = 0; i < rank; i++)
        minor_to_major[i] = rank - 1 - i;
    pjrt_layout layout = {
        .head = {sizeof(layout), NULL},
        .tiled_head = {offsetof(pjrt_layout, type) - offsetof(pjrt_layout, tiled_head), NULL},
        .minor_to_major = minor_to_major,
        .n_dims = (size_t)rank,
    };
    pjrt_to_host_args args = {
        .head = {sizeof(args), NULL},
        .buffer = content->buffer,
        .layout = &layout,
        .dst = dst,
        .dst_bytes = stk_desc_bytes(content->desc),
    };
    STK_RETURN_IF_ERROR(pjrt_call(device->plugin, PJRT_BUFFER_TO_HOST, &args, "copying from the device"));
    *done = args.done;
    return STK_OK;
}

/* --- blocks --- */

stk_status pjrt_alloc(stk_device *base, size_t bytes, stk_memory_kind kind, void **out)
{
    pjrt_device *device = (pjrt_device *)base;
    if (device->n_blocks == device->n_block_slots) {
        int n = device->n_block_slots ? 2 * device->n_block_slots : 64;
        pjrt_block **grown = realloc(device->block, (size_t)n * sizeof(pjrt_block *));
        if (!grown) return stk_fail_memory((size_t)n * sizeof(pjrt_block *));
        device->block = grown;
        device->n_block_slots = n;
    }
    pjrt_block *block = calloc(1, sizeof(*block));
    if (!block) return stk_fail_memory(sizeof(*block));
    block->bytes = bytes ? bytes : 1;
    block->scratch = kind == STK_MEMORY_SCRATCH;
    block->address =
        mmap(NULL, block->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->address == MAP_FAILED) {
        free(block);
        return stk_fail_memory(bytes);
    }
    int at = device->n_blocks;
    for (; at > 0 && device->block[at - 1]->address > block->address; at--)
        device->block[at] = device->block[at - 1];
    device->block[at] = block;
    device->n_blocks++;
    *out = block->address;
    return STK_OK;
}

static void free_block(pjrt_device *device, pjrt_block *block)
{
    for (int i = 0; i < block->n_items; i++)
        pjrt_drop_content(device, block->item[i].content);
    munmap(block->address, block->bytes);
    free(block->item);
    free(block);
}

pjrt_block *pjrt_find_block(const pjrt_device *device, const void *address)
{
    const char *p = address;
    int low = 0, high = device->n_blocks;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (device->block[middle]->address <= p)
            low = middle + 1;
        else
            high = middle;
    }
    pjrt_block *block = low > 0 ? device->block[low - 1] : NULL;
    return block && p < block->address + block->bytes ? block : NULL;
}

void pjrt_free(stk_device *base, void *p, size_t bytes)
{
    pjrt_device *device = (pjrt_device *)base;
    (void)bytes;
    for (int i = 0; i < device->n_blocks; i++) {
        if (device->block[i]->address != p) continue;
        free_block(device, device->block[i]);
        memmove(device->block + i, device->block + i + 1, (size_t)(--device->n_blocks - i) * sizeof(pjrt_block *));
        return;
    }
}

void pjrt_free_blocks(pjrt_device *device)
{
    for (int i = 0; i < device->n_blocks; i++)
        free_block(device, device->block[i]);
    free(device->block);
}

/* --- items --- */

static bool is_exact(const pjrt_item *item, const char *address, size_t bytes)
{
    return item->address == address && item->bytes == bytes;
}

static bool overlaps(const pjrt_item *item, const char *address, size_t bytes)
{
    return item->address < address + bytes && address < item->address + item->bytes;
}

/* The item's buffer to the block's pages; waits. */
static stk_status bring_back(pjrt_device *device, pjrt_item *item)
{
    pjrt_event *done = NULL;
    STK_RETURN_IF_ERROR(pjrt_to_host(device, item->content, item->address, &done));
    pjrt_event_args await = {.head = {sizeof(await), NULL}, .event = done};
    stk_status status = done ? pjrt_call(device->plugin, PJRT_EVENT_AWAIT, &await, "copying from the device") : STK_OK;
    pjrt_destroy_event(device->plugin, done);
    pjrt_drop_content(device, item->content);
    item->content = NULL;
    return status;
}

/* Makes the block's pages right at [address, + bytes). */
static stk_status settle(pjrt_device *device, pjrt_block *block, const char *address, size_t bytes)
{
    for (int i = 0; i < block->n_items; i++) {
        pjrt_item *item = &block->item[i];
        if (item->content && overlaps(item, address, bytes)) STK_RETURN_IF_ERROR(bring_back(device, item));
    }
    return STK_OK;
}

static pjrt_item *find_item(pjrt_block *block, const char *address, size_t bytes)
{
    for (int i = 0; i < block->n_items; i++)
        if (is_exact(&block->item[i], address, bytes)) return &block->item[i];
    return NULL;
}

/* Removes what overlaps and is not just that, keeping what is left of it in the pages. */
static stk_status clear_way(pjrt_device *device, pjrt_block *block, const char *address, size_t bytes)
{
    int n = 0;
    stk_status status = STK_OK;
    for (int i = 0; i < block->n_items; i++) {
        pjrt_item item = block->item[i];
        bool in_way = overlaps(&item, address, bytes) && !is_exact(&item, address, bytes);
        bool is_inside = item.address >= address && item.address + item.bytes <= address + bytes;
        if (!in_way) {
            block->item[n++] = item;
            continue;
        }
        bool is_lost = is_inside || block->scratch || !item.content;
        if (!is_lost && status == STK_OK) status = bring_back(device, &item);
        pjrt_drop_content(device, item.content);
    }
    block->n_items = n;
    return status;
}

stk_status pjrt_put_content(pjrt_device *device, pjrt_block *block, char *address, size_t bytes, pjrt_content *content)
{
    pjrt_item *item = find_item(block, address, bytes);
    stk_status status = STK_OK;
    if (item) {
        pjrt_drop_content(device, item->content);
        item->content = content;
        return STK_OK;
    }
    STK_TRY(clear_way(device, block, address, bytes));
    if (block->n_items == block->n_slots) {
        int n = block->n_slots ? 2 * block->n_slots : 4;
        pjrt_item *grown = realloc(block->item, (size_t)n * sizeof(*grown));
        if (!grown) STK_TRY(stk_fail_memory((size_t)n * sizeof(*grown)));
        block->item = grown;
        block->n_slots = n;
    }
    block->item[block->n_items++] = (pjrt_item){address, bytes, content};
    return STK_OK;
done:
    pjrt_drop_content(device, content);
    return status;
}

stk_status pjrt_get_content(pjrt_device *device, pjrt_block *block, char *address, stk_tensor_desc desc,
                            pjrt_content **out)
{
    size_t bytes = stk_desc_bytes(desc);
    pjrt_item *item = find_item(block, address, bytes);
    if (item && item->content && item->content->desc.dtype == desc.dtype &&
        stk_shape_equal(item->content->desc.shape, desc.shape)) {
        *out = item->content;
        return STK_OK;
    }
    STK_RETURN_IF_ERROR(settle(device, block, address, bytes));
    STK_RETURN_IF_ERROR(from_host(device, address, desc, out));
    return pjrt_put_content(device, block, address, bytes, *out);
}

/* --- copies --- */

stk_status pjrt_write(pjrt_device *device, char *dst, const char *src, size_t bytes)
{
    pjrt_block *block = pjrt_find_block(device, dst);
    if (!block) return stk_fail(STK_INVALID, "a copy to what is no memory of the device");
    if (device->base.absent[0]) return STK_OK;
    for (int i = 0; i < block->n_items; i++) { /* What lies elsewhere of an item that is partly overwritten is kept. */
        pjrt_item *item = &block->item[i];
        if (!item->content || !overlaps(item, dst, bytes)) continue;
        if (item->address < dst || item->address + item->bytes > dst + bytes) {
            STK_RETURN_IF_ERROR(bring_back(device, item));
            continue;
        }
        /* Its type is known: the copy begins now, and the program finds it there. */
        pjrt_content *content;
        STK_RETURN_IF_ERROR(from_host(device, src + (item->address - dst), item->content->desc, &content));
        pjrt_drop_content(device, item->content);
        item->content = content;
    }
    const pjrt_item *whole = find_item(block, dst, bytes);
    if (!whole || !whole->content) memcpy(dst, src, bytes);
    return STK_OK;
}

stk_status pjrt_move(pjrt_device *device, char *dst, const char *src, size_t bytes)
{
    pjrt_block *from = pjrt_find_block(device, src), *to = pjrt_find_block(device, dst);
    if (!from || !to) return stk_fail(STK_INVALID, "a copy of what is no memory of the device");
    pjrt_item *item = find_item(from, src, bytes);
    if (item && item->content) {
        item->content->n_users++;
        return pjrt_put_content(device, to, dst, bytes, item->content);
    }
    STK_RETURN_IF_ERROR(settle(device, from, src, bytes));
    return pjrt_write(device, dst, src, bytes);
}

stk_status pjrt_read(pjrt_device *device, stk_queue *queue, char *dst, const char *src, size_t bytes)
{
    pjrt_block *block = pjrt_find_block(device, src);
    if (!block) return stk_fail(STK_INVALID, "a copy from what is no memory of the device");
    size_t n_covered = 0;
    for (int i = 0; i < block->n_items; i++) {
        pjrt_item *item = &block->item[i];
        if (!item->content || !overlaps(item, src, bytes)) continue;
        if (item->address < src || item->address + item->bytes > src + bytes)
            STK_RETURN_IF_ERROR(bring_back(device, item));
        else
            n_covered += item->bytes;
    }
    if (n_covered < bytes) memcpy(dst, src, bytes);
    for (int i = 0; i < block->n_items; i++) {
        pjrt_item *item = &block->item[i];
        if (!item->content || !overlaps(item, src, bytes) || item->bytes == 0) continue;
        pjrt_work work = {.content = item->content};
        STK_RETURN_IF_ERROR(pjrt_to_host(device, item->content, dst + (item->address - src), &work.event));
        item->content->n_users++;
        STK_RETURN_IF_ERROR(pjrt_add_work(queue, work));
    }
    return STK_OK;
}
