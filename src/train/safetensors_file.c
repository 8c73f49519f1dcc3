/* Files of tensors: one, or shards with an index. See stoker/safetensors.h. */
#include "stoker/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "train/safetensors.h"

enum { PATH_BYTES = 4096, MOST_SHARDS = 100000 };

typedef struct shard {
    char *name; /* in its folder */
    stk_span bytes;
    stk_safetensors set;
} shard;

struct stk_safetensors_file {
    shard *shard;
    int64_t n_shards, n_tensors;
    const stk_safetensors_entry **entry; /* [n_tensors], of all shards */
    const stk_safetensors_entry **by_name;
};

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && !strcmp(text + n - n_end, end);
}

/* --- what is no safetensors file --- */

static stk_status refuse_format(const char *path, stk_span bytes)
{
    /* Their first bytes may also be the length of a header, which then begins with a brace. */
    if (bytes.n > 8 && bytes.data[8] == '{') return STK_OK;
    bool zip = bytes.n > 4 && !memcmp(bytes.data, "PK\3\4", 4), pickle = bytes.n > 2 && bytes.data[0] == 0x80;
    if (bytes.n >= 8 && !memcmp(bytes.data, "\x89HDF\r\n\x1a\n", 8))
        return stk_fail(STK_UNSUPPORTED, "'%s' is HDF5, as Keras writes; export the model as ONNX (tf2onnx) instead",
                        path);
    if (!zip && !(pickle && bytes.data[1] >= 2 && bytes.data[1] <= 5)) return STK_OK;
    return stk_fail(STK_UNSUPPORTED,
                    "'%s' is a PyTorch pickle, which can run any code when it is read; convert it once, with PyTorch "
                    "and safetensors installed:\n"
                    "  python3 -c 'import torch, safetensors.torch as s\n"
                    "s.save_file({k: v.contiguous() for k, v in torch.load(\"%s\", weights_only=True).items()}, "
                    "\"model.safetensors\")'",
                    path, path);
}

/* --- shards --- */

static stk_status open_shard(const char *dir, shard *s)
{
    char path[PATH_BYTES];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), dir, s->name));
    STK_RETURN_IF_ERROR(stk_file_map(path, &s->bytes));
    STK_RETURN_IF_ERROR(refuse_format(path, s->bytes));
    stk_status status = stk_safetensors_parse(s->bytes, &s->set);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "'%s': ", path);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const stk_safetensors_entry *const *)a)->name, (*(const stk_safetensors_entry *const *)b)->name);
}

/* The tables over all shards. */
static stk_status list_tensors(stk_safetensors_file *file)
{
    size_t n = 0, k = 0;
    for (int64_t i = 0; i < file->n_shards; i++)
        n += file->shard[i].set.n;
    file->entry = calloc(n + 1, sizeof(stk_safetensors_entry *));
    file->by_name = calloc(n + 1, sizeof(stk_safetensors_entry *));
    if (!file->entry || !file->by_name) return stk_fail_memory(n * sizeof(stk_safetensors_entry *));
    for (int64_t i = 0; i < file->n_shards; i++)
        for (size_t t = 0; t < file->shard[i].set.n; t++)
            file->entry[k++] = &file->shard[i].set.entry[t];
    file->n_tensors = (int64_t)n;
    if (n == 0) return STK_OK;
    memcpy(file->by_name, file->entry, n * sizeof(stk_safetensors_entry *));
    qsort(file->by_name, n, sizeof(stk_safetensors_entry *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (!compare_names(&file->by_name[i - 1], &file->by_name[i]))
            return stk_fail(STK_CORRUPT, "tensor '%s' is in two shards", file->by_name[i]->name);
    return STK_OK;
}

static const stk_safetensors_entry *find(const stk_safetensors_file *file, const char *name)
{
    int64_t low = 0, high = file->n_tensors;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = strcmp(file->by_name[middle]->name, name);
        if (order == 0) return file->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* --- the index --- */

static stk_status add_shard(stk_safetensors_file *file, const char *name, shard **out)
{
    for (int64_t i = file->n_shards - 1; i >= 0; i--) { /* neighbours are in one shard, mostly */
        *out = &file->shard[i];
        if (!strcmp((*out)->name, name)) return STK_OK;
    }
    if (!name[0] || strchr(name, '/') || !strcmp(name, "..") || !strcmp(name, "."))
        return stk_fail(STK_CORRUPT, "shard '%s' is no file name; shards lie beside their index", name);
    if (file->n_shards == MOST_SHARDS) return stk_fail(STK_CORRUPT, "more than %d shards", MOST_SHARDS);
    shard *grown = realloc(file->shard, (size_t)(file->n_shards + 1) * sizeof(*grown));
    if (!grown) return stk_fail_memory((size_t)(file->n_shards + 1) * sizeof(*grown));
    file->shard = grown;
    *out = &grown[file->n_shards];
    **out = (shard){.name = strdup(name)};
    if (!(*out)->name) return stk_fail_memory(strlen(name));
    file->n_shards++;
    return STK_OK;
}

static stk_status read_map(stk_safetensors_file *file, json_t *map)
{
    const char *tensor;
    json_t *value;
    shard *s;
    if (!json_is_object(map)) return stk_fail(STK_CORRUPT, "there is no object 'weight_map'");
    json_object_foreach(map, tensor, value)
    {
        if (!json_is_string(value)) return stk_fail(STK_CORRUPT, "the shard of tensor '%s' is no text", tensor);
        STK_RETURN_IF_ERROR(add_shard(file, json_string_value(value), &s));
    }
    return STK_OK;
}

/* Index and shards must have the same tensors, each in the same place. */
static stk_status compare_with_map(const stk_safetensors_file *file, json_t *map)
{
    for (int64_t i = 0; i < file->n_shards; i++) {
        const shard *s = &file->shard[i];
        for (size_t t = 0; t < s->set.n; t++) {
            const char *in = json_string_value(json_object_get(map, s->set.entry[t].name));
            if (!in || strcmp(in, s->name))
                return stk_fail(STK_CORRUPT, "tensor '%s' is in '%s', of which the index does not tell",
                                s->set.entry[t].name, s->name);
        }
    }
    const char *tensor;
    json_t *value;
    json_object_foreach(map, tensor, value)
    {
        if (!find(file, tensor))
            return stk_fail(STK_CORRUPT, "tensor '%s' is not in '%s', though the index says so", tensor,
                            json_string_value(value));
    }
    return STK_OK;
}

static stk_status open_index(stk_safetensors_file *file, const char *path)
{
    char dir[PATH_BYTES];
    json_error_t error;
    json_t *index = NULL;
    stk_span bytes = {0};
    stk_status status;
    STK_TRY(stk_file_map(path, &bytes));
    index = json_loadb((const char *)bytes.data, bytes.n, JSON_REJECT_DUPLICATES, &error);
    if (!index) STK_TRY(stk_fail(STK_CORRUPT, "'%s' is not JSON: %s", path, error.text));
    json_t *map = json_object_get(index, "weight_map");
    status = read_map(file, map);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    for (int64_t i = 0; i < file->n_shards; i++)
        STK_TRY(open_shard(dir, &file->shard[i]));
    status = list_tensors(file);
    if (status == STK_OK) status = compare_with_map(file, map);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
done:
    json_decref(index);
    stk_file_unmap(bytes);
    return status;
}

/* --- opening and closing --- */

static stk_status open_single(stk_safetensors_file *file, const char *path)
{
    shard *s;
    file->shard = s = calloc(1, sizeof(*s));
    if (!s || !(s->name = strdup(path))) return stk_fail_memory(strlen(path));
    file->n_shards = 1;
    STK_RETURN_IF_ERROR(open_shard("", s));
    return list_tensors(file);
}

/* The file or index that path means. */
static stk_status settle_path(const char *path, char out[PATH_BYTES])
{
    char index[PATH_BYTES];
    if (stk_path_is_dir(path))
        STK_RETURN_IF_ERROR(stk_path_join(out, PATH_BYTES, path, "model.safetensors"));
    else if (snprintf(out, PATH_BYTES, "%s", path) >= PATH_BYTES)
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", path);
    if (stk_path_exists(out)) return STK_OK;
    if (snprintf(index, sizeof(index), "%s.index.json", out) < PATH_BYTES && stk_path_exists(index)) {
        memcpy(out, index, PATH_BYTES);
        return STK_OK;
    }
    if (stk_path_is_dir(path))
        return stk_fail(STK_NOT_FOUND, "folder '%s' has no model.safetensors and no model.safetensors.index.json",
                        path);
    return STK_OK; /* opening it says what is wrong */
}

stk_status stk_safetensors_open(const char *path, stk_safetensors_file **out)
{
    char settled[PATH_BYTES];
    stk_status status;
    *out = NULL;
    STK_RETURN_IF_ERROR(settle_path(path, settled));
    stk_safetensors_file *file = calloc(1, sizeof(*file));
    if (!file) return stk_fail_memory(sizeof(*file));
    STK_TRY(ends_in(settled, ".json") ? open_index(file, settled) : open_single(file, settled));
    *out = file;
    return STK_OK;
done:
    stk_safetensors_close(file);
    return status;
}

void stk_safetensors_close(stk_safetensors_file *file)
{
    if (!file) return;
    for (int64_t i = 0; i < file->n_shards; i++) {
        stk_safetensors_free(&file->shard[i].set);
        stk_file_unmap(file->shard[i].bytes);
        free(file->shard[i].name);
    }
    free(file->shard);
    free(file->entry);
    free(file->by_name);
    free(file);
}

/* --- tensors --- */

static stk_safetensor show(const stk_safetensors_entry *e)
{
    return (stk_safetensor){e->name, e->type, e->desc.dtype, e->desc.shape, e->data, e->end - e->begin};
}

int64_t stk_safetensors_count(const stk_safetensors_file *file)
{
    return file->n_tensors;
}

stk_safetensor stk_safetensors_at(const stk_safetensors_file *file, int64_t i)
{
    return show(file->entry[i]);
}

bool stk_safetensors_has(const stk_safetensors_file *file, const char *name, stk_safetensor *out)
{
    const stk_safetensors_entry *entry = find(file, name);
    if (entry) *out = show(entry);
    return entry != NULL;
}

stk_status stk_safetensors_get(const stk_safetensors_file *file, const char *name, stk_safetensor *out)
{
    if (stk_safetensors_has(file, name, out)) return STK_OK;
    const char **names = calloc((size_t)file->n_tensors + 1, sizeof(*names));
    for (int64_t i = 0; names && i < file->n_tensors; i++)
        names[i] = file->entry[i]->name;
    const char *nearest = names ? stk_nearest_name(name, names) : NULL;
    free(names);
    if (nearest) return stk_fail(STK_NOT_FOUND, "no tensor '%s' (did you mean '%s'?)", name, nearest);
    return stk_fail(STK_NOT_FOUND, "no tensor '%s'", name);
}

const char *stk_safetensors_metadata(const stk_safetensors_file *file, const char *key)
{
    for (int64_t i = 0; i < file->n_shards; i++)
        for (size_t k = 0; k < file->shard[i].set.n_metadata; k++)
            if (!strcmp(file->shard[i].set.metadata[2 * k], key)) return file->shard[i].set.metadata[2 * k + 1];
    return NULL;
}

bool stk_safetensors_is_aligned(const stk_safetensor *tensor)
{
    return tensor->dtype < STK_N_DTYPES && (uintptr_t)tensor->data % stk_dtype_bytes(tensor->dtype) == 0;
}

stk_status stk_safetensors_read(const stk_safetensor *tensor, stk_dtype dtype, const int32_t *permutation, void *dst)
{
    return stk_safetensors_convert(tensor->name, tensor->type, tensor->shape, tensor->data, dtype, permutation, dst);
}

void stk_safetensors_forget(const stk_safetensor *tensor)
{
    stk_file_forget((stk_span){tensor->data, tensor->n_bytes});
}
