/* Names of files from paths and patterns. Threads: any. */
#ifndef STK_DATA_SOURCE_PATHS_H
#define STK_DATA_SOURCE_PATHS_H

#include "base/file.h"

/* True where the path has one of * ? [ and is no file of that very name. */
bool stk_path_is_pattern(const char *path);
/* The files that n paths stand for. A pattern (* ? [a-z], none of which crosses a slash) stands for the files that
 * match it, also in object stores, by name, sorted by bytes; hidden ones and our own indexes are left out. A path
 * without such signs stands for itself. A pattern that matches nothing is STK_NOT_FOUND. sort_all: the whole list by
 * name, as tf.data's list_files has it, without repetitions; otherwise in the order given. Free *out with
 * stk_names_free. */
stk_status stk_paths_expand(const char *const *paths, int n_paths, bool sort_all, stk_names *out);
/* JPEG, PNG and WebP by ending, in any case; not hidden. */
bool stk_is_image_name(const char *name);
/* Puts a copy of name at the end. *capacity starts as 0 with *names all zero. */
stk_status stk_names_add(stk_names *names, size_t *capacity, const char *name);
/* Sorts by bytes, whatever the locale. */
void stk_names_sort(stk_names *names);

#endif
