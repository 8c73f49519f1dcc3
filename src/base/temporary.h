/* Names for files and folders that are not whole yet: `.stoker-tmp-HOST-TARGET-RANDOM-SUM`, in the folder of what they
 * become. SUM is a hash of the rest, which makes the name a mark: nothing else is taken for ours, and nobody guesses
 * it. Each is locked (flock) while its writer lives. What a killed one of this machine left is removed by the next
 * process that makes one in the same folder. Where a file system has no locks it stays. Threads: any.
 */
#ifndef STK_BASE_TEMPORARY_H
#define STK_BASE_TEMPORARY_H

#include <stdbool.h>

#include "stoker/status.h"

enum { STK_TEMPORARY_PATH = 4096 };

/* Makes, opens (O_EXCL, O_NOFOLLOW) and locks one for what is to become `path`, in that path's folder, which is there.
 * out  its path, whose beginning is that of `path`
 * fd   the caller closes it, which ends the lock */
stk_status stk_temporary_file(const char *path, char out[STK_TEMPORARY_PATH], int *fd);
stk_status stk_temporary_folder(const char *path, char out[STK_TEMPORARY_PATH], int *fd);
/* True where a process of this machine that lives writes one for this path. */
bool stk_temporary_is_written(const char *path);
/* True for a name (no path) that is one of ours. */
bool stk_temporary_is_name(const char *name);

#endif
