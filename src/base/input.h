/* A file that is read at any place, without a mapping: what is missing is an error and never a signal.
 *
 * Threads: any number may read at once.
 */
#ifndef STK_BASE_INPUT_H
#define STK_BASE_INPUT_H

#include <stdbool.h>

#include "base/file.h"

/* Files of another kind than the system's: how they are read and closed. read: as stk_input_read, whose bounds are
 * checked already; any number of threads at once. */
typedef struct stk_input_backend {
    stk_status (*read)(void *self, uint64_t at, void *dst, size_t n);
    void (*close)(void *self);
    bool (*fetch)(void *self, uint64_t at, size_t n); /* as stk_input_fetch */
} stk_input_backend;

typedef struct stk_input {
    char *path; /* owned, for messages; NULL for memory */
    uint64_t n_bytes;
    int64_t mtime_ns, ctime_ns;       /* of the content, and of any change; ctime 0: not told */
    int fd;                           /* -1: the file is opened for each read, or this is memory */
    const uint8_t *memory;            /* borrowed; NULL: a file */
    const stk_input_backend *backend; /* NULL: one of those above */
    void *backend_self;
} stk_input;

/* A regular file. keep_open: its descriptor is kept; otherwise each read opens the file again, which takes a few
 * microseconds more and no descriptor. */
stk_status stk_input_open(const char *path, bool keep_open, stk_input *out);
/* Stands for the state that a file is in, together with its size: what was made of it is good only while this stays. A
 * file's time can be set to any time, but not that of its last change of any kind. */
int64_t stk_time_stamp(int64_t mtime_ns, int64_t ctime_ns);
int64_t stk_input_stamp(const stk_input *input);
/* Bytes in memory, borrowed as long as the input is used. Needs no closing. */
stk_input stk_input_of_memory(stk_span bytes);
/* Exactly n bytes from byte `at` on. STK_CORRUPT where the file ends before. */
stk_status stk_input_read(const stk_input *input, uint64_t at, void *dst, size_t n);
/* These bytes will be read soon: begins to bring them closer, and waits for nothing. False: enough is on its way, ask
 * later. */
bool stk_input_fetch(const stk_input *input, uint64_t at, size_t n);
/* Accepts one that is all zero, or closed already. */
void stk_input_close(stk_input *input);

#endif
