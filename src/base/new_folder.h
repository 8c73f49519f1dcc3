/* A folder that appears whole or not at all. It is written next to its place under a name of base/temporary.h and
 * locked while its writer lives, so that what a killed process left is removed by the next one, never by a second one
 * at the same time, and never what anybody else put there. Files are not synced unless asked. Threads: one at a time
 * for each.
 */
#ifndef STK_BASE_NEW_FOLDER_H
#define STK_BASE_NEW_FOLDER_H

#include "base/file.h"
#include "base/temporary.h"

enum { STK_NEW_FOLDER_PATH = STK_TEMPORARY_PATH };

typedef struct stk_new_folder {
    char path[STK_NEW_FOLDER_PATH];   /* where it is to appear */
    char folder[STK_NEW_FOLDER_PATH]; /* where it is written until then */
    size_t n_there;                   /* bytes of path that were a folder before */
    int lock_fd;                      /* of folder; -1: none */
} stk_new_folder;

/* Before much is done: whether it could be begun there now. */
stk_status stk_new_folder_check(const char *path);
/* Folders on the way are made. STK_BUSY where path is there and is no empty folder, or where another process writes it.
 */
stk_status stk_new_folder_begin(stk_new_folder *f, const char *path);
/* Gives it its name. sync: its files outlive a crash of the machine. After a failure the caller still ends it. */
stk_status stk_new_folder_finish(stk_new_folder *f, bool sync);
/* Removes what was written where status tells of a failure, whose text stays, with path in the place of folder. Accepts
 * one that was not begun. */
void stk_new_folder_end(stk_new_folder *f, stk_status status);

#endif
