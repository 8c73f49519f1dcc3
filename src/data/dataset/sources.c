/* Data sets over one source each: of stoker/data/sources.h, text.h, csv.h, fields.h, video.h, volumes.h and
 * synthetic.h. */
#include <string.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "data/source/csv.h"
#include "data/source/records.h"
#include "data/source/source_list.h"
#include "data/source/text_records.h"

stk_dataset *stk_dataset_files(const char *const *paths, int n_paths, stk_labels labels, const char *labels_path)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_paths(paths, n_paths, labels, labels_path, &source);
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

stk_tokens_config stk_tokens_config_default(void)
{
    return (stk_tokens_config){.length = 1024};
}

stk_dataset *stk_dataset_tokens(const char *const *paths, int n_paths, const stk_tokens_config *config)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_tokens(paths, n_paths, config, &source);
    return stk_dataset_make(status, source);
}

stk_text_config stk_text_config_default(void)
{
    return (stk_text_config){0};
}

stk_dataset *stk_dataset_text(const char *const *paths, int n_paths, const stk_text_config *config)
{
    stk_source *source = NULL;
    stk_text_config default_value = stk_text_config_default();
    stk_status status = stk_source_open_text(paths, n_paths, config ? config : &default_value, &source);
    return stk_dataset_make(status, source);
}

stk_csv_config stk_csv_config_default(void)
{
    return (stk_csv_config){0};
}

stk_dataset *stk_dataset_csv(const char *const *paths, int n_paths, const stk_csv_config *config)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_csv(paths, n_paths, config, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_synthetic(int64_t n_samples, const stk_synthetic_field *fields, int n_fields, uint64_t seed)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_synthetic(n_samples, fields, n_fields, seed, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_pairs(const char *const *names, const char *const *folders, int n_fields)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_pairs(names, folders, n_fields, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_video(const stk_video_config *config)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_videos(config, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_volumes(const stk_volumes_config *config)
{
    stk_source *source = NULL;
    stk_status status = stk_source_open_volumes(config, &source);
    return stk_dataset_make(status, source);
}

stk_dataset *stk_dataset_parse(const char *text)
{
    static const stk_key *const kinds[] = {
#define X(kind) &stk_source_kind_##kind.key,
        STK_SOURCE_LIST(X)
#undef X
            NULL};
    static const stk_key key = {.name = "source", .type = STK_KEY_CHOICE, .kinds = kinds};
    stk_source *source = NULL;
    stk_yaml *yaml = NULL;
    stk_status status;
    if (!text) STK_TRY(stk_fail(STK_INVALID, "'text' is NULL"));
    STK_TRY(stk_yaml_parse("source", text, strlen(text), &yaml));
    STK_TRY(stk_schema_check(yaml, yaml->root, &key));
    STK_TRY(stk_source_kind_find(yaml->root->child->key)->open(yaml->root->child, &source));
done:
    stk_yaml_free(yaml);
    return stk_dataset_make(status, source);
}

const char *stk_dataset_note(const stk_dataset *dataset)
{
    if (!dataset) return "";
    return dataset->source ? dataset->source->note : "";
}
