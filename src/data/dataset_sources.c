/* Data sets over the sources of stoker/sources.h. */
#include "data/dataset.h"
#include "data/remote/http.h"
#include "data/source/records.h"

stk_dataset *stk_dataset_files(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path)
{
    stk_source *source = NULL;
    bool is_pack = n_paths == 1 && labels != STK_LABELS_FROM_FILE && paths && paths[0] && stk_is_pack(paths[0]);
    bool is_remote = false;
    for (int i = 0; paths && i < n_paths; i++)
        is_remote = is_remote || (paths[i] && stk_is_remote(paths[i]));
    stk_status status = is_remote && !is_pack ? stk_source_open_objects(paths, n_paths, labels, labels_path, &source)
                        : is_pack             ? stk_source_open_pack(paths[0], &source)
                                              : stk_source_open_files(paths, n_paths, labels, labels_path, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_npy(const stk_npy_field *fields, int n_fields)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_npy(fields, n_fields, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_tfrecord(const char *const *paths, int n_paths, const stk_feature *features, int n_features,
                                  bool in_memory)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_tfrecord(paths, n_paths, features, n_features, in_memory, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_tar(const char *const *paths, int n_paths, const stk_tar_field *fields, int n_fields)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_tar(paths, n_paths, fields, n_fields, &source);
    return stk_dataset_make(status, source);
}

const char *stk_dataset_note(const stk_dataset *dataset)
{
    return dataset->source ? dataset->source->note : "";
}
