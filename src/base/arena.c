#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char data[];
} chunk;

struct stk_arena {
    chunk *head;
};

/* Each is twice as large as the one before: a network has hundreds of kernels with an arena of their own, and most need
 * little. */
enum { FIRST_CHUNK_BYTES = 1 << 10, MOST_CHUNK_BYTES = 16 << 10 };

stk_arena *stk_arena_new(void)
{
    return calloc(1, sizeof(stk_arena));
}

void stk_arena_free(stk_arena *arena)
{
    if (!arena) return;
    for (chunk *c = arena->head; c;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    free(arena);
}

void *stk_arena_alloc(stk_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    chunk *c = arena->head;
    if (!c || c->size - c->used < bytes) {
        size_t size = !c ? FIRST_CHUNK_BYTES : c->size < MOST_CHUNK_BYTES / 2 ? 2 * c->size : MOST_CHUNK_BYTES;
        if (size < bytes) size = bytes;
        c = calloc(1, sizeof(*c) + size);
        if (!c) return NULL;
        c->size = size;
        c->next = arena->head;
        arena->head = c;
    }
    void *p = c->data + c->used;
    c->used += bytes;
    return p;
}

char *stk_arena_text(stk_arena *arena, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = stk_arena_alloc(arena, n);
    return copy ? memcpy(copy, text, n) : NULL;
}
