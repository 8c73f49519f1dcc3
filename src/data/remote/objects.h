/* Many objects of stores, each read as a whole: which there are, and their bytes through the cache on disk.
 *
 * Listing tells size and state (ETag) of each, so that reading one is one request, or none where the cache has it.
 * Threads: one at a time while objects are added; any number may read afterwards.
 */
#ifndef STK_DATA_REMOTE_OBJECTS_H
#define STK_DATA_REMOTE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

typedef struct stk_object {
    char *path; /* s3://BUCKET/KEY; the ETag follows its end */
    uint64_t n_bytes;
    uint64_t id[2]; /* in the cache */
} stk_object;

typedef struct stk_objects_ahead stk_objects_ahead;

/* Starts zeroed. */
typedef struct stk_objects {
    stk_object *object;
    size_t n, capacity;
    stk_objects_ahead *ahead; /* NULL: nothing is fetched in the background */
} stk_objects;

/* Adds the objects that a path in a store stands for: those that match a pattern (* ? [a-z], none of which crosses a
 * slash), all below a folder, or the one object. They come sorted by bytes. STK_NOT_FOUND: there is none. */
stk_status stk_objects_find(const char *path, stk_objects *out);
/* Adds those that match a pattern. */
stk_status stk_objects_match(const char *pattern, stk_objects *out);
/* Adds all below a folder, at any depth; none is no error. */
stk_status stk_objects_below(const char *folder, stk_objects *out);
/* Whether the path has one of * ? [. */
bool stk_objects_is_pattern(const char *path);
void stk_objects_free(stk_objects *objects);

/* Once all are there: what stk_objects_fetch takes. */
stk_status stk_objects_start(stk_objects *objects);
/* Object i will be read soon: begins to fetch it. False: enough is on its way. */
bool stk_objects_fetch(const stk_objects *objects, size_t i);
/* All bytes of object i into dst, [n_bytes]. STK_IO when it has changed since it was listed. */
stk_status stk_objects_read(const stk_objects *objects, size_t i, void *dst);

#endif
