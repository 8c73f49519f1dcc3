/* A bump allocator for many small things that are freed together. Threads: one at a time. */
#ifndef STK_BASE_ARENA_H
#define STK_BASE_ARENA_H

#include <stddef.h>

typedef struct stk_arena stk_arena;

/* NULL when out of memory. */
stk_arena *stk_arena_new(void);
void stk_arena_free(stk_arena *arena);
/* Zeroed, aligned to 16 bytes; NULL when out of memory. Borrowed until stk_arena_free. */
void *stk_arena_alloc(stk_arena *arena, size_t bytes);
/* A copy of text; NULL when out of memory. */
char *stk_arena_text(stk_arena *arena, const char *text);

#endif
