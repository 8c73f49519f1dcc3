/* What a path with a slip was meant to be, for messages. Threads: any. */
#ifndef STK_BASE_NEIGHBOUR_H
#define STK_BASE_NEIGHBOUR_H

#include <stdbool.h>
#include <stddef.h>

/* 'photos/test' for 'photos/tets' or 'photso/test', where the folder has a name like that. False: nothing is near, or
 * fits. */
bool stk_path_neighbour(const char *path, char *out, size_t out_bytes);
/* The same for a message: " (did you mean 'photos/test'?)", or "". Returns out. */
enum { STK_PATH_HINT = 512 };
const char *stk_path_hint(const char *path, char out[STK_PATH_HINT]);

#endif
