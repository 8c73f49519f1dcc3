/* Runs a fuzz target on every file of the given folders: the tests' stand-in for libFuzzer. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static stk_status replay_folder(const char *folder, size_t *n_files)
{
    stk_names names;
    stk_status status = stk_dir_list(folder, &names);
    if (status != STK_OK) return status;
    for (size_t i = 0; i < names.n && status == STK_OK; i++) {
        char path[4096];
        stk_span file;
        status = stk_path_join(path, sizeof(path), folder, names.name[i]);
        if (status == STK_OK) status = stk_file_load(path, &file);
        if (status != STK_OK) break;
        /* A copy of the exact size, so that the address sanitizer sees a read past its end. */
        uint8_t *copy = malloc(file.n ? file.n : 1);
        for (size_t j = 0; copy && j < file.n; j++)
            copy[j] = file.data[j];
        if (copy) LLVMFuzzerTestOneInput(copy, file.n);
        free(copy);
        stk_file_unload(file);
        ++*n_files;
    }
    stk_names_free(&names);
    return status;
}

int main(int argc, char **argv)
{
    size_t n_files = 0;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        if (!stk_path_exists(argv[i])) continue;
        if (replay_folder(argv[i], &n_files) != STK_OK) {
            fprintf(stderr, "%s\n", stk_error_text());
            return 1;
        }
    }
    printf("%zu files\n", n_files);
    return 0;
}
