#include "watch/sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void stk_watch_sample_init(stk_watch_sample *sample)
{
    memset(sample, 0, sizeof(*sample));
    memset(&sample->machine, 0xff, sizeof(sample->machine));
    sample->gpus.entry_bytes = sizeof(stk_watch_gpu);
    sample->processes.entry_bytes = sizeof(stk_watch_process);
    sample->threads.entry_bytes = sizeof(stk_watch_thread);
}

void stk_watch_sample_free(stk_watch_sample *sample)
{
    free(sample->gpus.data);
    free(sample->processes.data);
    free(sample->threads.data);
    stk_watch_sample_init(sample);
}

static int64_t *entry_at(const stk_watch_list *list, size_t i)
{
    return (int64_t *)((char *)list->data + i * list->entry_bytes);
}

/* Where id is, or would be. */
static size_t find_place(const stk_watch_list *list, int64_t id)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (*entry_at(list, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *stk_watch_list_find(const stk_watch_list *list, int64_t id)
{
    size_t i = find_place(list, id);
    return i < list->n && *entry_at(list, i) == id ? entry_at(list, i) : NULL;
}

static bool reserve(stk_watch_list *list, size_t n)
{
    if (n <= list->capacity) return true;
    size_t capacity = list->capacity ? list->capacity : 16;
    while (capacity < n)
        capacity *= 2;
    void *data = realloc(list->data, capacity * list->entry_bytes);
    if (!data) return false;
    list->data = data;
    list->capacity = capacity;
    return true;
}

void *stk_watch_list_add(stk_watch_list *list, int64_t id)
{
    size_t i = find_place(list, id);
    if (i < list->n && *entry_at(list, i) == id) return entry_at(list, i);
    if (!reserve(list, list->n + 1)) return NULL;
    int64_t *entry = entry_at(list, i);
    memmove((char *)entry + list->entry_bytes, entry, (list->n - i) * list->entry_bytes);
    list->n++;
    memset(entry, 0xff, list->entry_bytes);
    *entry = id;
    return entry;
}

void stk_watch_list_remove(stk_watch_list *list, int64_t id)
{
    size_t i = find_place(list, id);
    if (i == list->n || *entry_at(list, i) != id) return;
    list->n--;
    memmove(entry_at(list, i), entry_at(list, i + 1), (list->n - i) * list->entry_bytes);
}

stk_status stk_watch_list_copy(stk_watch_list *dst, const stk_watch_list *src)
{
    if (!reserve(dst, src->n)) return stk_fail_memory(src->n * src->entry_bytes);
    if (src->n) memcpy(dst->data, src->data, src->n * src->entry_bytes);
    dst->n = src->n;
    return STK_OK;
}

stk_status stk_watch_sample_copy(stk_watch_sample *dst, const stk_watch_sample *src)
{
    dst->time_us = src->time_us;
    dst->machine = src->machine;
    STK_RETURN_IF_ERROR(stk_watch_list_copy(&dst->gpus, &src->gpus));
    STK_RETURN_IF_ERROR(stk_watch_list_copy(&dst->processes, &src->processes));
    return stk_watch_list_copy(&dst->threads, &src->threads);
}
