/* A file that appears whole or not at all, or replaces another one so. It is written next to its place under a name of
 * base/temporary.h, which a killed process leaves to the next one to remove. Only a regular file is replaced: no
 * folder, device or pipe. Threads: one at a time for each.
 */
#ifndef STK_BASE_NEW_FILE_H
#define STK_BASE_NEW_FILE_H

#include "base/file.h"
#include "base/temporary.h"

typedef struct stk_new_file {
    const char *path; /* borrowed; where it is to appear */
    int fd;           /* read and write; -1: none */
    char temporary[STK_TEMPORARY_PATH];
} stk_new_file;

/* True where nothing is at path, an empty regular file, or one that begins with these bytes: what a writer of such
 * files may replace although nobody named it. */
bool stk_new_file_may_replace(const char *path, const void *magic, size_t n);

/* For a file that somebody named: STK_BUSY where one is at path, is not empty and has other bytes at `at`, so that a
 * slip of the name costs nothing of another kind; STK_IO where it cannot be read. kind: for the message, as in
 * "a PNG file". What is no regular file passes: the other check is for that. */
stk_status stk_new_file_check_kind(const char *path, const char *kind, size_t at, const void *magic, size_t n);
/* STK_IO where something is there that is no regular file, as stk_new_file_begin says. */
stk_status stk_new_file_check_regular(const char *path);

stk_status stk_new_file_begin(stk_new_file *f, const char *path);
/* Gives it its name. sync: it outlives a crash of the machine. fd stays open, and the caller ends it in any case. */
stk_status stk_new_file_finish(stk_new_file *f, bool sync);
/* Removes one that is not finished, and closes. The text of an error stays. Accepts one with fd -1. */
void stk_new_file_end(stk_new_file *f);

#endif
