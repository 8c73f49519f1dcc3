/* A folder that appears whole or not at all. It is written as PATH.tmp, which is locked while its writer lives, so that
 * what a killed process left there is cleared by the next one, and never by a second one at the same time. Files are
 * not synced unless asked. Threads: one at a time for each.
 */
#ifndef STK_BASE_NEW_FOLDER_H
#define STK_BASE_NEW_FOLDER_H

#include "base/file.h"

enum { STK_NEW_FOLDER_PATH = 4096 };

typedef struct stk_new_folder {
    char path[STK_NEW_FOLDER_PATH];   /* where it is to appear */
    char folder[STK_NEW_FOLDER_PATH]; /* where it is written until then */
    int lock_fd;                      /* of folder; -1: none */
} stk_new_folder;

/* STK_BUSY where path is there and is no empty folder, or where another process writes it. */
stk_status stk_new_folder_begin(stk_new_folder *f, const char *path);
/* Gives it its name. sync: its files outlive a crash of the machine. After a failure the caller still ends it. */
stk_status stk_new_folder_finish(stk_new_folder *f, bool sync);
/* Removes what was written where status tells of a failure, whose text stays. Accepts one that was not begun. */
void stk_new_folder_end(stk_new_folder *f, stk_status status);

#endif
