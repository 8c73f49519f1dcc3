/* Whole files: read, write durably. Errors name the path. Threads: any. */
#ifndef STK_BASE_FILE_H
#define STK_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

typedef struct stk_span {
    const uint8_t *data;
    size_t n; /* bytes */
} stk_span;

/* Reads a whole regular file into *buffer (capacity *capacity), growing it with realloc where needed. STK_CORRUPT, with
 * the byte, where it becomes shorter meanwhile. Files are never mapped: one that is cut short would end the process.
 * One that is larger than what is left of the account that the thread uses is not read: STK_NO_MEMORY, with both
 * figures. */
stk_status stk_file_read(const char *path, uint8_t **buffer, size_t *capacity, size_t *n);
/* The same for a file that should have no more than most_bytes; one that has is STK_CORRUPT and not read. */
stk_status stk_file_read_small(const char *path, size_t most_bytes, uint8_t **buffer, size_t *capacity, size_t *n);
/* What both ask before they read: whether that many bytes are no more than that, and fit into the thread's account. */
stk_status stk_file_check_size(const char *path, size_t size, size_t most_bytes);
/* The same into new memory: free with stk_file_unload; an empty file gives {NULL, 0}. */
stk_status stk_file_load(const char *path, stk_span *out);
void stk_file_unload(stk_span span);

/* Writes all of path and syncs it to disk: a file of that name is replaced whole or not at all (base/new_file.h). */
stk_status stk_file_write_durably(const char *path, const void *data, size_t n);
/* Writes n bytes to fd, all of them. path is for the message. */
stk_status stk_write_all(int fd, const char *path, const void *data, size_t n);
/* Syncs a folder, so that renames in it survive a crash. */
stk_status stk_dir_sync(const char *path);
/* mkdir -p. */
stk_status stk_dir_make(const char *path);
/* The same, which also says how many bytes of path were a folder before. What was made for something that failed then
 * can be taken back: its folders are removed as far as they are empty. The text of an error stays. After a failure
 * nothing is to be taken back. */
stk_status stk_dir_make_new(const char *path, size_t *n_there);
void stk_dir_take_back(const char *path, size_t n_there);
/* Both for the folder that a file of this path lies in. */
stk_status stk_dir_make_for(const char *path, size_t *n_there);
void stk_dir_take_back_for(const char *path, size_t n_there);
/* That folder has to be there: STK_NOT_FOUND, which names it. */
stk_status stk_dir_check_for(const char *path);
/* Renames and replaces nothing: STK_BUSY where `to` is there. */
stk_status stk_rename_new(const char *from, const char *to);
/* The same to the first of the names `to`, `to`-2, `to`-3, ... that is free: out. */
stk_status stk_rename_aside(const char *from, const char *to, char out[4096]);
/* rm -r, for what is known for ours; a path that is not there is no error. */
stk_status stk_tree_remove(const char *path);
bool stk_path_exists(const char *path);
bool stk_path_is_dir(const char *path);
/* a + '/' + b into out; b alone where it is absolute. STK_INVALID when it does not fit. */
stk_status stk_path_join(char *out, size_t out_bytes, const char *a, const char *b);

/* Names in a folder, sorted by bytes, without "." and "..". Free with stk_names_free. */
typedef struct stk_names {
    char **name;
    size_t n;
} stk_names;
stk_status stk_dir_list(const char *path, stk_names *out);
void stk_names_free(stk_names *names);

/* The folder for what can be made again: $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker. */
/* Its path, whether it is there or not. STK_NOT_FOUND where nothing says which. Threads: any. */
stk_status stk_cache_folder(char *out, size_t out_bytes);

#endif
