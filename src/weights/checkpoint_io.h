/* The system calls that saving makes, each of which a test can make fail. Errors name the path. */
#ifndef STK_WEIGHTS_CHECKPOINT_IO_H
#define STK_WEIGHTS_CHECKPOINT_IO_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

/* Asked before each call ("open", "write", "fsync", "close", "rename", "mkdir"): an errno to fail with, or 0. NULL:
 * never. For tests only; set while no save is under way. */
extern int (*stk_checkpoint_fault)(const char *call, const char *path);

typedef struct stk_out_file {
    int fd;
    const char *path; /* borrowed */
    uint64_t n_bytes;
} stk_out_file;

stk_status stk_out_open(const char *path, stk_out_file *out);
stk_status stk_out_write(stk_out_file *file, const void *data, size_t n);
/* Syncs and closes. */
stk_status stk_out_finish(stk_out_file *file);
/* Closes after a failure; nothing is promised about the content. */
void stk_out_abandon(stk_out_file *file);
stk_status stk_io_mkdir(const char *path);
stk_status stk_io_rename(const char *from, const char *to);
stk_status stk_io_sync_dir(const char *path);

#endif
