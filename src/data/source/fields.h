/* What the sources that name their own fields share. */
#ifndef STK_DATA_SOURCE_FIELDS_H
#define STK_DATA_SOURCE_FIELDS_H

#include "base/file.h"
#include "base/input.h"
#include "data/source/source.h"

/* Checks and copies the fields' names and types. */
stk_status stk_source_set_fields(stk_source *source, int64_t n_samples, const stk_array_field *fields, int n_fields);

/* Adds the whole paths of a folder's JPEG, PNG and WebP files, at any depth, in no order; out starts zeroed. At least
 * one. */
stk_status stk_folder_images(const char *folder, stk_names *out);

/* Reads a whole file into scratch, without a mapping: cheaper for small files. */
stk_status stk_file_read_scratch(const char *path, stk_scratch *scratch, size_t *n);
/* The same, and when the file was last written and changed. */
stk_status stk_file_read_stamped(const char *path, stk_scratch *scratch, size_t *n, stk_file_times *times);

/* Opens the file of one record, to be read piece by piece. */
stk_status stk_record_open(const char *path, stk_input *out);

/* A file's size and state (stk_input_stamp). False: it is not there. */
bool stk_file_stamp(const char *path, uint64_t *n_bytes, int64_t *stamp);
/* Has the system read a file that will be read soon, without waiting for it. */
void stk_file_fetch(const char *path);

/* Asks for the first 4 KiB of a record ahead of its use; past that the hardware has caught on. */
static inline void stk_prefetch_bytes(const void *p, size_t n)
{
    if (n > 4096) n = 4096;
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch((const char *)p + i, 0, 1);
}

#endif
