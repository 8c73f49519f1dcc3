/* A folder of the process's own, in memory where there is such a place, for targets whose parser wants files. It is
 * removed when the process ends. Threads: one.
 */
#ifndef STK_TESTS_FUZZ_FOLDER_H
#define STK_TESTS_FUZZ_FOLDER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

static char fuzz_folder_path[64];

static inline void fuzz_remove_folder(void)
{
    (void)stk_tree_remove(fuzz_folder_path);
}

static inline const char *fuzz_folder(void)
{
    if (fuzz_folder_path[0]) return fuzz_folder_path;
    snprintf(fuzz_folder_path, sizeof(fuzz_folder_path), "/dev/shm/stoker-fuzz-XXXXXX");
    if (!mkdtemp(fuzz_folder_path)) {
        snprintf(fuzz_folder_path, sizeof(fuzz_folder_path), "/tmp/stoker-fuzz-XXXXXX");
        if (!mkdtemp(fuzz_folder_path)) abort();
    }
    atexit(fuzz_remove_folder);
    return fuzz_folder_path;
}

/* FOLDER/name, again. */
static inline void fuzz_write(const char *name, stk_span bytes)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || stk_write_all(fd, path, bytes.data, bytes.n) != STK_OK) abort();
    close(fd);
}

#endif
