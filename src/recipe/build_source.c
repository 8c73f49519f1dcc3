/* A part's source from its keys. See recipe/build.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recipe/build.h"
#include "stoker/data/fields.h"
#include "stoker/data/sources.h"
#include "tensor/shape.h"

enum { MOST_FIELDS = 64, MOST_STANDARD_BYTES = 1 << 20 };

stk_status stk_build_list(const stk_yaml_node *list, const char ***out, int *n)
{
    *n = 0;
    *out = calloc((size_t)list->n_children + 1, sizeof(**out));
    if (!*out) return stk_fail_memory((size_t)list->n_children * sizeof(**out));
    for (const stk_yaml_node *child = list->child; child; child = child->next)
        (*out)[(*n)++] = child->text;
    return STK_OK;
}

static stk_status check_n_fields(const stk_yaml_node *node)
{
    if (node->n_children <= MOST_FIELDS) return STK_OK;
    return stk_yaml_fail(node, "'%s' has more than %d fields", node->key, MOST_FIELDS);
}

static stk_status build_files(const stk_yaml_node *source, stk_dataset **out)
{
    const char **paths, *labels = stk_yaml_text(source, "labels");
    int n;
    bool by_folder = stk_yaml_text(source, "by") != NULL;
    if (by_folder && labels) return stk_yaml_fail(source, "'by' and 'labels' exclude each other");
    STK_RETURN_IF_ERROR(stk_build_list(stk_yaml_get(source, "paths"), &paths, &n));
    stk_labels how = by_folder ? STK_LABELS_BY_FOLDER : labels ? STK_LABELS_FROM_FILE : STK_LABELS_NONE;
    *out = stk_dataset_files(paths, n, how, labels);
    free(paths);
    return STK_OK;
}

static stk_status build_npy(const stk_yaml_node *source, stk_dataset **out)
{
    stk_npy_field fields[MOST_FIELDS];
    int n = 0;
    STK_RETURN_IF_ERROR(check_n_fields(source));
    for (const stk_yaml_node *child = source->child; child; child = child->next)
        fields[n++] = (stk_npy_field){child->key, child->text};
    if (n == 1 && !strcmp(fields[0].name, "all")) fields[0].name = NULL;
    *out = stk_dataset_npy(fields, n);
    return STK_OK;
}

static stk_status build_pairs(const stk_yaml_node *source, stk_dataset **out)
{
    const char *names[MOST_FIELDS], *folders[MOST_FIELDS];
    int n = 0;
    STK_RETURN_IF_ERROR(check_n_fields(source));
    for (const stk_yaml_node *child = source->child; child; child = child->next, n++) {
        names[n] = child->key;
        folders[n] = child->text;
    }
    *out = stk_dataset_pairs(names, folders, n);
    return STK_OK;
}

static stk_status build_tar(const stk_yaml_node *source, stk_dataset **out)
{
    stk_tar_field fields[MOST_FIELDS];
    const stk_yaml_node *chosen = stk_yaml_get(source, "fields");
    const char **paths;
    int n_paths, n = 0;
    if (chosen) STK_RETURN_IF_ERROR(check_n_fields(chosen));
    for (const stk_yaml_node *child = chosen ? chosen->child : NULL; child; child = child->next)
        fields[n++] = (stk_tar_field){child->key, child->text};
    STK_RETURN_IF_ERROR(stk_build_list(stk_yaml_get(source, "files"), &paths, &n_paths));
    *out = stk_dataset_tar(paths, n_paths, fields, n);
    free(paths);
    return STK_OK;
}

/* --- TFRecord --- */

/* All elements of one value. The caller frees *out. */
static stk_status make_standard(const stk_yaml_node *node, stk_tensor_desc desc, void **out)
{
    size_t bytes = stk_dtype_bytes(desc.dtype);
    int64_t whole = fabs(node->real) < 0x1p62 ? (int64_t)node->real : 0, n = stk_shape_count(desc.shape);
    if (desc.dtype == STK_F16 || desc.dtype == STK_BF16)
        return stk_yaml_fail(node, "%s has no default", stk_dtype_name(desc.dtype));
    if (!stk_dtype_is_float(desc.dtype) && (double)whole != node->real)
        return stk_yaml_fail(node, "the default of %s must be a whole number", stk_dtype_name(desc.dtype));
    if (stk_desc_bytes(desc) > MOST_STANDARD_BYTES) return stk_yaml_fail(node, "so large an array has no default");
    float f32 = (float)node->real;
    int32_t i32 = (int32_t)whole;
    int8_t i8 = (int8_t)whole;
    uint8_t u8 = (uint8_t)whole;
    bool fits = desc.dtype == STK_I32    ? i32 == whole
                : desc.dtype == STK_I8   ? i8 == whole
                : desc.dtype == STK_U8   ? u8 == whole
                : desc.dtype == STK_BOOL ? whole == 0 || whole == 1
                                         : true;
    if (!fits) return stk_yaml_fail(node, "the default is outside of %s", stk_dtype_name(desc.dtype));
    const void *element = desc.dtype == STK_F32   ? (const void *)&f32
                          : desc.dtype == STK_F64 ? (const void *)&node->real
                          : desc.dtype == STK_I64 ? (const void *)&whole
                          : desc.dtype == STK_I32 ? (const void *)&i32
                          : desc.dtype == STK_I8  ? (const void *)&i8
                                                  : (const void *)&u8;
    char *p = *out = malloc(stk_desc_bytes(desc));
    if (!p) return stk_fail_memory(stk_desc_bytes(desc));
    for (int64_t i = 0; i < n; i++)
        memcpy(p + (size_t)i * bytes, element, bytes);
    return STK_OK;
}

static stk_status make_feature(const stk_yaml_node *node, stk_feature *out, void **default_value)
{
    const stk_yaml_node *shape = stk_yaml_get(node, "shape"), *given = stk_yaml_get(node, "default");
    const char *dtype = stk_yaml_text(node, "dtype");
    *out = (stk_feature){.name = node->key, .key = stk_yaml_text(node, "key"), .encoded = !strcmp(dtype, "encoded")};
    if (out->encoded) {
        if (shape && shape->child) return stk_yaml_fail(shape, "encoded bytes have no shape");
        return given ? stk_yaml_fail(given, "encoded bytes have no default") : STK_OK;
    }
    stk_dtype_from_name(dtype, &out->dtype);
    if (shape->n_children > STK_MAX_RANK)
        return stk_yaml_fail(shape, "more than %d dimensions are not possible", STK_MAX_RANK);
    for (const stk_yaml_node *side = shape->child; side; side = side->next)
        out->shape.dim[out->shape.rank++] = side->integer;
    if (stk_desc_check(stk_desc_make(out->dtype, out->shape)) != STK_OK)
        return stk_yaml_fail(shape, "so large a shape is not possible");
    if (!given) return STK_OK;
    STK_RETURN_IF_ERROR(make_standard(given, stk_desc_make(out->dtype, out->shape), default_value));
    out->default_value = *default_value;
    return STK_OK;
}

static stk_status build_tfrecord(const stk_yaml_node *source, stk_dataset **out)
{
    const stk_yaml_node *parse = stk_yaml_get(source, "parse_example");
    stk_feature features[MOST_FIELDS];
    void *default_value[MOST_FIELDS] = {NULL};
    const char **paths = NULL;
    int n_paths, n = 0;
    stk_status status;
    STK_RETURN_IF_ERROR(check_n_fields(parse));
    STK_TRY(stk_build_list(stk_yaml_get(source, "files"), &paths, &n_paths));
    for (const stk_yaml_node *child = parse->child; child; child = child->next, n++)
        STK_TRY(make_feature(child, &features[n], &default_value[n]));
    *out = stk_dataset_tfrecord(paths, n_paths, features, n, stk_yaml_get(source, "in_memory")->truth);
done:
    for (int i = 0; i < MOST_FIELDS; i++)
        free(default_value[i]);
    free(paths);
    return status;
}

stk_status stk_build_source(const stk_yaml_node *source, stk_dataset **out)
{
    const char *kind = source->key;
    *out = NULL;
    if (stk_build_is_text(kind)) return stk_build_text(source, out);
    if (!strcmp(kind, "files")) return build_files(source, out);
    if (!strcmp(kind, "pairs")) return build_pairs(source, out);
    if (!strcmp(kind, "volumes")) return stk_build_volumes(source, out);
    if (!strcmp(kind, "synthetic")) return stk_build_synthetic(source, out);
    if (!strcmp(kind, "video")) return stk_build_video(source, out);
    if (!strcmp(kind, "npy")) return build_npy(source, out);
    if (!strcmp(kind, "tfrecord")) return build_tfrecord(source, out);
    if (!strcmp(kind, "tar")) return build_tar(source, out);
    if (!strcmp(kind, "images"))
        *out = stk_dataset_images(source->text);
    else if (!strcmp(kind, "idx"))
        *out = stk_dataset_idx(stk_yaml_text(source, "images"), stk_yaml_text(source, "labels"));
    else
        return stk_yaml_fail(source, "source '%s' cannot be built", kind);
    return STK_OK;
}

void stk_build_class_labels(stk_dataset *dataset)
{
    stk_dtype dtype;
    stk_shape shape;
    if (stk_dataset_field(dataset, "label", false, &dtype, &shape) != STK_OK) return;
    bool is_number = shape.rank == 0 && !stk_dtype_is_float(dtype) && dtype != STK_I32;
    if (is_number) stk_dataset_apply_to(dataset, "label", stk_cast(STK_I32));
}
