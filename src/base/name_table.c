/* See base/name_table.h. Open addressing, at most half full. */
#include "base/name_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"

typedef struct stk_name_slot {
    const char *name; /* NULL: free */
    uint64_t hash;
    int32_t number;
} stk_name_slot;

static uint64_t hash_of(const stk_name_table *table, const char *name, size_t n)
{
    return stk_mix64(stk_hash64(name, n, table->seed));
}

static void place(const stk_name_table *table, stk_name_slot entry)
{
    size_t i = (size_t)entry.hash & (table->capacity - 1);
    while (table->slot[i].name)
        i = (i + 1) & (table->capacity - 1);
    table->slot[i] = entry;
}

static stk_status grow(stk_name_table *table)
{
    stk_name_table grown = {.n = table->n, .capacity = table->capacity ? 2 * table->capacity : 64, .seed = table->seed};
    grown.slot = calloc(grown.capacity, sizeof(*grown.slot));
    if (!grown.slot) return stk_fail_memory(grown.capacity * sizeof(*grown.slot));
    if (!table->slot) grown.seed = stk_mix64((uint64_t)stk_clock_ns() ^ (uint64_t)(uintptr_t)grown.slot);
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slot[i].name) place(&grown, table->slot[i]);
    free(table->slot);
    *table = grown;
    return STK_OK;
}

stk_status stk_name_table_add(stk_name_table *table, const char *name, int32_t number)
{
    if (2 * table->n >= table->capacity) STK_RETURN_IF_ERROR(grow(table));
    place(table, (stk_name_slot){name, hash_of(table, name, strlen(name)), number});
    table->n++;
    return STK_OK;
}

static int32_t *find(const stk_name_table *table, const char *name, size_t n)
{
    if (table->n == 0) return NULL;
    uint64_t hash = hash_of(table, name, n);
    for (size_t i = (size_t)hash & (table->capacity - 1); table->slot[i].name; i = (i + 1) & (table->capacity - 1)) {
        stk_name_slot *slot = &table->slot[i];
        if (slot->hash == hash && !strncmp(slot->name, name, n) && !slot->name[n]) return &slot->number;
    }
    return NULL;
}

int32_t *stk_name_table_get(const stk_name_table *table, const char *name)
{
    return find(table, name, strlen(name));
}

int32_t stk_name_table_find(const stk_name_table *table, const char *name)
{
    return stk_name_table_find_part(table, name, strlen(name));
}

int32_t stk_name_table_find_part(const stk_name_table *table, const char *name, size_t n)
{
    const int32_t *number = find(table, name, n);
    return number ? *number : -1;
}

void stk_name_table_free(stk_name_table *table)
{
    free(table->slot);
    *table = (stk_name_table){0};
}
