/* A temporary folder with files, removed at the end. Include after cmocka.h. Threads: one at a time. */
#ifndef TESTS_DATA_SOURCE_FILES_H
#define TESTS_DATA_SOURCE_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "data/source/source.h"

static char test_folder[64];

static inline int make_test_folder(void **state)
{
    (void)state;
    snprintf(test_folder, sizeof(test_folder), "/tmp/stoker-test-XXXXXX");
    return mkdtemp(test_folder) ? 0 : -1;
}

static inline int remove_test_folder(void **state)
{
    (void)state;
    return stk_tree_remove(test_folder) == STK_OK ? 0 : -1;
}

/* The path of name in the folder; four of them live at a time. */
static inline const char *in_folder(const char *name)
{
    static char paths[4][512];
    static int i_path;
    char *path = paths[i_path++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", test_folder, name);
    return path;
}

/* Makes the folders on the way. */
static inline const char *write_file(const char *name, const void *bytes, size_t n)
{
    const char *path = in_folder(name);
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = 0;
    assert_int_equal(stk_dir_make(folder), STK_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline void free_scratch(stk_scratch scratch[STK_MAX_FIELDS])
{
    for (int i = 0; i < STK_MAX_FIELDS; i++) {
        stk_scratch_free(&scratch[i]);
        scratch[i] = (stk_scratch){0};
    }
}

#endif
