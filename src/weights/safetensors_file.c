/* Files of tensors: one, or shards with an index. See stoker/files/safetensors.h. */
#include "stoker/files/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_size.h"
#include "weights/safetensors.h"

/* Files kept open, at most: others are opened for each read. */
enum { PATH_BYTES = 4096, MOST_SHARDS = 100000, MOST_OPEN = 64, MOST_INDEX_BYTES = 256 << 20, PIECE_BYTES = 4 << 20 };

typedef struct shard {
    char *name; /* in its folder */
    stk_input input;
    stk_safetensors set;
} shard;

struct stk_safetensors_file {
    shard *shard;
    int64_t n_shards, n_tensors;
    stk_safetensor *entry; /* [n_tensors], of all shards */
    const stk_safetensor **by_name;
};

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && !strcmp(text + n - n_end, end);
}

/* --- what is no safetensors file --- */

static stk_status refuse_format(const char *path, const stk_input *input)
{
    uint8_t start[9];
    stk_span bytes = {start, input->n_bytes < sizeof(start) ? (size_t)input->n_bytes : sizeof(start)};
    STK_RETURN_IF_ERROR(stk_input_read(input, 0, start, bytes.n));
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

static stk_status open_shard(const char *dir, bool keep_open, shard *s)
{
    char path[PATH_BYTES];
    STK_RETURN_IF_ERROR(stk_path_join(path, sizeof(path), dir, s->name));
    STK_RETURN_IF_ERROR(stk_input_open(path, keep_open, &s->input));
    STK_RETURN_IF_ERROR(refuse_format(path, &s->input));
    stk_status status = stk_safetensors_scan(&s->input, &s->set);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "'%s': ", path);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const stk_safetensor *const *)a)->name, (*(const stk_safetensor *const *)b)->name);
}

/* The tables over all shards. */
static stk_status list_tensors(stk_safetensors_file *file)
{
    size_t n = 0, k = 0;
    for (int64_t i = 0; i < file->n_shards; i++)
        n += file->shard[i].set.n;
    file->entry = calloc(n + 1, sizeof(*file->entry));
    file->by_name = calloc(n + 1, sizeof(*file->by_name));
    if (!file->entry || !file->by_name) return stk_fail_memory(n * sizeof(*file->entry));
    for (int64_t i = 0; i < file->n_shards; i++) {
        const shard *s = &file->shard[i];
        for (size_t t = 0; t < s->set.n; t++, k++) {
            const stk_safetensors_entry *e = &s->set.entry[t];
            file->entry[k] = (stk_safetensor){e->name,
                                              e->type,
                                              e->desc.dtype,
                                              e->desc.shape,
                                              e->end - e->begin,
                                              &s->input,
                                              s->set.data_at + e->begin};
            file->by_name[k] = &file->entry[k];
        }
    }
    file->n_tensors = (int64_t)n;
    if (n == 0) return STK_OK;
    qsort(file->by_name, n, sizeof(*file->by_name), compare_names);
    for (size_t i = 1; i < n; i++)
        if (!compare_names(&file->by_name[i - 1], &file->by_name[i]))
            return stk_fail(STK_CORRUPT, "tensor '%s' is in two shards", file->by_name[i]->name);
    return STK_OK;
}

static const stk_safetensor *find(const stk_safetensors_file *file, const char *name)
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

/* seen: the shards' names so far. */
static stk_status add_shard(stk_safetensors_file *file, const char *name, json_t *seen)
{
    if (json_object_get(seen, name)) return STK_OK;
    if (!name[0] || strchr(name, '/') || !strcmp(name, "..") || !strcmp(name, "."))
        return stk_fail(STK_CORRUPT, "shard '%s' is no file name; shards lie next to their index", name);
    if (file->n_shards == MOST_SHARDS) return stk_fail(STK_CORRUPT, "more than %d shards", MOST_SHARDS);
    if (file->n_shards % 64 == 0) {
        shard *grown = realloc(file->shard, (size_t)(file->n_shards + 64) * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)(file->n_shards + 64) * sizeof(*grown));
        file->shard = grown;
    }
    file->shard[file->n_shards] = (shard){.name = strdup(name), .input.fd = -1};
    if (!file->shard[file->n_shards++].name || json_object_set_new(seen, name, json_true()) < 0)
        return stk_fail_memory(strlen(name));
    return STK_OK;
}

static stk_status read_map(stk_safetensors_file *file, json_t *map)
{
    const char *tensor;
    json_t *value, *seen = json_object();
    stk_status status = STK_OK;
    if (!seen) return stk_fail_memory(64);
    if (!json_is_object(map)) STK_TRY(stk_fail(STK_CORRUPT, "there is no object 'weight_map'"));
    json_object_foreach(map, tensor, value)
    {
        if (!json_is_string(value)) STK_TRY(stk_fail(STK_CORRUPT, "the shard of tensor '%s' is no text", tensor));
        STK_TRY(add_shard(file, json_string_value(value), seen));
    }
done:
    json_decref(seen);
    return status;
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
    STK_TRY(stk_file_load(path, &bytes));
    status = stk_json_check(bytes, MOST_INDEX_BYTES);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
    status = stk_json_parse(bytes.data, bytes.n, JSON_REJECT_DUPLICATES, &index, &error);
    if (status == STK_CORRUPT) STK_TRY(stk_fail(STK_CORRUPT, "'%s' is not JSON: %s", path, error.text));
    STK_TRY(status);
    json_t *map = json_object_get(index, "weight_map");
    status = read_map(file, map);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    for (int64_t i = 0; i < file->n_shards; i++)
        STK_TRY(open_shard(dir, file->n_shards <= MOST_OPEN, &file->shard[i]));
    status = list_tensors(file);
    if (status == STK_OK) status = compare_with_map(file, map);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
done:
    json_decref(index);
    stk_file_unload(bytes);
    return status;
}

/* --- opening and closing --- */

static stk_status open_single(stk_safetensors_file *file, const char *path)
{
    shard *s;
    file->shard = s = calloc(1, sizeof(*s));
    if (!s) return stk_fail_memory(sizeof(*s));
    file->n_shards = 1;
    s->input.fd = -1;
    if (!(s->name = strdup(path))) return stk_fail_memory(strlen(path));
    STK_RETURN_IF_ERROR(open_shard("", true, s));
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
    STK_NEED(path);
    STK_NEED(out);
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
        stk_input_close(&file->shard[i].input);
        free(file->shard[i].name);
    }
    free(file->shard);
    free(file->entry);
    free(file->by_name);
    free(file);
}

/* --- tensors --- */

int64_t stk_safetensors_count(const stk_safetensors_file *file)
{
    if (!file) return 0;
    return file->n_tensors;
}

stk_safetensor stk_safetensors_at(const stk_safetensors_file *file, int64_t i)
{
    if (!file) return (stk_safetensor){0};
    return file->entry[i];
}

bool stk_safetensors_has(const stk_safetensors_file *file, const char *name, stk_safetensor *out)
{
    if (!file) return false;
    const stk_safetensor *entry = find(file, name);
    if (entry && out) *out = *entry;
    return entry != NULL;
}

stk_status stk_safetensors_get(const stk_safetensors_file *file, const char *name, stk_safetensor *out)
{
    if (!file) return stk_fail(STK_INVALID, "there is no file");
    STK_NEED(out);
    if (stk_safetensors_has(file, name, out)) return STK_OK;
    const char **names = calloc((size_t)file->n_tensors + 1, sizeof(*names));
    for (int64_t i = 0; names && i < file->n_tensors; i++)
        names[i] = file->entry[i].name;
    const char *nearest = names ? stk_nearest_name(name, names) : NULL;
    free(names);
    if (nearest) return stk_fail(STK_NOT_FOUND, "no tensor '%s' (did you mean '%s'?)", name, nearest);
    return stk_fail(STK_NOT_FOUND, "no tensor '%s'", name);
}

const char *stk_safetensors_metadata(const stk_safetensors_file *file, const char *key)
{
    if (!file) return NULL;
    for (int64_t i = 0; i < file->n_shards; i++)
        for (size_t k = 0; k < file->shard[i].set.n_metadata; k++)
            if (!strcmp(file->shard[i].set.metadata[2 * k], key)) return file->shard[i].set.metadata[2 * k + 1];
    return NULL;
}

/* --- reading --- */

static stk_status read_bytes(const stk_safetensor *t, uint64_t at, void *dst, size_t n)
{
    const stk_input *input = t->file;
    stk_status status = stk_input_read(input, t->at + at, dst, n);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "'%s': tensor '%s': ", input->path, t->name);
}

/* That many rows of the first axis, which stays the first: a large tensor is not in memory twice. */
static stk_status read_rows(const stk_safetensor *t, int64_t n_rows, int64_t n_piece, stk_dtype dtype,
                            const int32_t *permutation, uint8_t *dst)
{
    size_t row_bytes = t->n_bytes / (size_t)n_rows;
    int64_t row_elements = stk_shape_count(t->shape) / n_rows;
    stk_status status = STK_OK;
    uint8_t *piece = malloc((size_t)n_piece * row_bytes + 1);
    if (!piece) return stk_fail_memory((size_t)n_piece * row_bytes);
    for (int64_t row = 0; row < n_rows; row += n_piece) {
        stk_shape part = t->shape;
        if (n_piece > n_rows - row) n_piece = n_rows - row;
        if (part.rank) part.dim[0] = n_piece;
        STK_TRY(read_bytes(t, (uint64_t)row * row_bytes, piece, (size_t)n_piece * row_bytes));
        STK_TRY(stk_safetensors_convert_part(t->name, t->type, part, piece, row * row_elements, dtype, permutation,
                                             dst + (size_t)(row * row_elements) * stk_dtype_bytes(dtype)));
    }
done:
    free(piece);
    return status;
}

stk_status stk_safetensors_read(const stk_safetensor *tensor, stk_dtype dtype, const int32_t *permutation, void *dst)
{
    STK_NEED(tensor);
    STK_NEED(dst);
    bool is_turned = false, keeps_first = true;
    for (int i = 0; permutation && i < tensor->shape.rank; i++) {
        is_turned |= permutation[i] != i;
        keeps_first &= i > 0 || permutation[i] == 0;
    }
    if (!is_turned && dtype == tensor->dtype && (unsigned)dtype < STK_N_DTYPES)
        return read_bytes(tensor, 0, dst, tensor->n_bytes);
    int64_t n_rows = tensor->shape.rank && tensor->n_bytes ? tensor->shape.dim[0] : 1, n_piece = n_rows;
    if (keeps_first && tensor->n_bytes > PIECE_BYTES) {
        n_piece = (int64_t)(PIECE_BYTES / (tensor->n_bytes / (size_t)n_rows));
        if (n_piece < 1) n_piece = 1;
    }
    return read_rows(tensor, n_rows, n_piece, dtype, permutation, dst);
}
