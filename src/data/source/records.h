/* Opening the sources of stoker/data/sources.h: arrays of NumPy, lists of files, and records inside of larger files;
 * and those of fields.h, video.h, volumes.h and synthetic.h. */
#ifndef STK_DATA_SOURCE_RECORDS_H
#define STK_DATA_SOURCE_RECORDS_H

#include "data/source/source.h"
#include "stoker/data/fields.h"
#include "stoker/data/random.h"
#include "stoker/data/sources.h"
#include "stoker/data/video.h"
#include "stoker/data/volumes.h"

/* Arrays up to this size are read into memory. */
#define STK_IN_MEMORY_BYTES ((uint64_t)256 << 20)

stk_status stk_source_open_files(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path,
                                 stk_source **out);
/* The same where the paths are addresses, and a folder with one sub-folder a class in an object store. */
stk_status stk_source_open_objects(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path,
                                   stk_source **out);
stk_status stk_source_open_object_folder(const char *folder, stk_source **out);
/* Which of them the folder is: one of files, a pack, or an address. */
stk_status stk_source_open_image_folder(const char *folder, stk_source **out);
/* Which of them the paths are: files, a pack, or addresses. */
stk_status stk_source_open_paths(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path,
                                 stk_source **out);
stk_status stk_source_open_npy(const stk_npy_field *fields, int n_fields, stk_source **out);
stk_status stk_source_open_tfrecord(const char *const *paths, int n_paths, const stk_feature *features, int n_features,
                                    bool in_memory, stk_source **out);
stk_status stk_source_open_tar(const char *const *paths, int n_paths, const stk_tar_field *fields, int n_fields,
                               stk_source **out);

stk_status stk_source_open_pairs(const char *const *names, const char *const *folders, int n_fields, stk_source **out);
stk_status stk_source_open_videos(const stk_video_config *config, stk_source **out);
stk_status stk_source_open_volumes(const stk_volumes_config *config, stk_source **out);
stk_status stk_source_open_synthetic(int64_t n_samples, const stk_synthetic_field *fields, int n_fields, uint64_t seed,
                                     stk_source **out);

/* A folder that stoker pack has made. */
bool stk_is_pack(const char *folder);
stk_status stk_source_open_pack(const char *folder, stk_source **out);

#endif
