/* Writing tensors, in one file or in shards. See stoker/files/safetensors.h. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/new_file.h"
#include "stoker/files/safetensors.h"
#include "stoker/status.h"
#include "weights/safetensors.h"

enum { PATH_BYTES = 4096 };
/* How an index begins that is written here, and a file that names its writer; others are not replaced. */
#define INDEX_BEGINS "{\n  \"metadata\": {\n    \"stoker\""
#define NAMED_BEGINS "{\"__metadata__\":{\"format\":\"pt\",\"stoker\":"

typedef struct job {
    const char *path;
    const stk_safetensors_entry_out *tensor;
    int64_t n_tensors, n_shards;
    int64_t *shard; /* [n_tensors] which one each goes to */
    const stk_safetensors_options *options;
    uint8_t *scratch; /* room for the largest tensor that is converted */
    size_t scratch_bytes;
    stk_safetensors_fetch_fn fetch; /* NULL: the entries have their data */
    void *user;
} job;

static stk_tensor_desc stored_desc(const stk_safetensors_entry_out *t)
{
    stk_tensor_desc desc = stk_desc_make(t->stored, t->shape);
    for (int i = 0; t->permutation && i < t->shape.rank; i++)
        desc.shape.dim[i] = t->shape.dim[t->permutation[i]];
    return desc;
}

static stk_status check_tensor(const stk_safetensors_entry_out *t)
{
    if (!t->name || !t->name[0] || !strcmp(t->name, "__metadata__"))
        return stk_fail(STK_INVALID, "a tensor must have a name, and not '__metadata__'");
    if ((unsigned)t->dtype >= STK_N_DTYPES || (unsigned)t->stored >= STK_N_DTYPES)
        return stk_fail(STK_INVALID, "tensor '%s': no such dtype", t->name);
    if (stk_desc_check(stk_desc_make(t->dtype, t->shape)) != STK_OK)
        return stk_fail_prefix(STK_INVALID, "tensor '%s': ", t->name);
    uint32_t seen = 0;
    for (int i = 0; t->permutation && i < t->shape.rank; i++)
        if (t->permutation[i] >= 0 && t->permutation[i] < t->shape.rank) seen |= 1u << t->permutation[i];
    if (t->permutation && seen != (1u << t->shape.rank) - 1)
        return stk_fail(STK_INVALID, "tensor '%s' has %d axes, and the new order is no order of them", t->name,
                        t->shape.rank);
    return STK_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static stk_status check_names(const job *j)
{
    stk_status status = STK_OK;
    const char **names = calloc((size_t)j->n_tensors + 1, sizeof(*names));
    if (!names) return stk_fail_memory((size_t)j->n_tensors * sizeof(*names));
    for (int64_t i = 0; i < j->n_tensors; i++)
        names[i] = j->tensor[i].name;
    qsort(names, (size_t)j->n_tensors, sizeof(*names), compare_texts);
    for (int64_t i = 1; i < j->n_tensors && status == STK_OK; i++)
        if (!strcmp(names[i - 1], names[i])) status = stk_fail(STK_INVALID, "two tensors are called '%s'", names[i]);
    free(names);
    return status;
}

/* Tensors in their order, a new shard where the next one would be too large; one that is larger alone has its own. */
static stk_status cut(job *j)
{
    size_t limit = j->options->shard_bytes > 0 ? (size_t)j->options->shard_bytes : SIZE_MAX, used = 0;
    j->shard = calloc((size_t)j->n_tensors + 1, sizeof(*j->shard));
    if (!j->shard) return stk_fail_memory((size_t)j->n_tensors * sizeof(*j->shard));
    j->n_shards = 1;
    for (int64_t i = 0; i < j->n_tensors; i++) {
        const stk_safetensors_entry_out *t = &j->tensor[i];
        size_t bytes = stk_desc_bytes(stored_desc(t));
        if (used > 0 && bytes > limit - (used < limit ? used : limit)) {
            j->n_shards++;
            used = 0;
        }
        used += bytes;
        j->shard[i] = j->n_shards - 1;
        if ((t->stored != t->dtype || t->permutation) && bytes > j->scratch_bytes) j->scratch_bytes = bytes;
    }
    j->scratch = malloc(j->scratch_bytes + 1);
    return j->scratch ? STK_OK : stk_fail_memory(j->scratch_bytes);
}

/* "dir/model.safetensors" -> "dir/model-00002-of-00003.safetensors" */
static stk_status shard_path(const job *j, int64_t i, char out[PATH_BYTES])
{
    const char *end = ".safetensors";
    size_t n = strlen(j->path), n_end = strlen(end);
    if (j->n_shards == 1) {
        n_end = (size_t)snprintf(out, PATH_BYTES, "%s", j->path);
    } else {
        if (n > n_end && !strcmp(j->path + n - n_end, end)) n -= n_end;
        n_end = (size_t)snprintf(out, PATH_BYTES, "%.*s-%05lld-of-%05lld%s", (int)n, j->path, (long long)i + 1,
                                 (long long)j->n_shards, end);
    }
    return n_end < PATH_BYTES - 32 ? STK_OK : stk_fail(STK_INVALID, "path '%.60s...' is too long", j->path);
}

static void index_path(const job *j, char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%.*s.index.json", PATH_BYTES - 32, j->path);
}

static stk_status check_place(const char *path, const char *kind, size_t at, const char *magic)
{
    STK_RETURN_IF_ERROR(stk_new_file_check_regular(path));
    return stk_new_file_check_kind(path, kind, at, magic, strlen(magic));
}

/* Before anything is written: whether all that is replaced, or removed, is of its kind. */
static stk_status check_places(const job *j)
{
    char path[PATH_BYTES];
    const char *const *about = j->options->metadata;
    bool is_named = about && about[0] && !strcmp(about[0], "stoker");
    const char *kind = is_named ? "a safetensors file of Stoker" : "a safetensors file";
    const char *begins = is_named ? NAMED_BEGINS : "{";
    STK_RETURN_IF_ERROR(check_place(j->path, kind, 8, begins));
    for (int64_t i = 0; i < j->n_shards; i++) {
        STK_RETURN_IF_ERROR(shard_path(j, i, path));
        STK_RETURN_IF_ERROR(check_place(path, kind, 8, begins));
    }
    if (j->n_shards == 1) return STK_OK;
    index_path(j, path);
    return check_place(path, "an index of safetensors files of Stoker", 0, INDEX_BEGINS);
}

static stk_status header_of(const job *j, int64_t i_shard, stk_text *out)
{
    stk_status status = STK_OK;
    size_t n = 0;
    const char **names = malloc(((size_t)j->n_tensors + 1) * sizeof(*names));
    stk_tensor_desc *descs = malloc(((size_t)j->n_tensors + 1) * sizeof(*descs));
    if (!names || !descs) STK_TRY(stk_fail_memory((size_t)j->n_tensors * sizeof(*descs)));
    for (int64_t i = 0; i < j->n_tensors; i++) {
        if (j->shard[i] != i_shard) continue;
        names[n] = j->tensor[i].name;
        descs[n++] = stored_desc(&j->tensor[i]);
    }
    STK_TRY(stk_safetensors_header(names, descs, n, j->options->metadata, out));
done:
    free(names);
    free(descs);
    return status;
}

static stk_status write_tensor(const job *j, int64_t i, int fd, const char *path)
{
    const stk_safetensors_entry_out *t = &j->tensor[i];
    const void *data = t->data;
    if (j->fetch) STK_RETURN_IF_ERROR(j->fetch(j->user, i, &data));
    if (t->stored != t->dtype || t->permutation) {
        STK_RETURN_IF_ERROR(stk_safetensors_convert(t->name, stk_safetensors_type(t->dtype), t->shape, data, t->stored,
                                                    t->permutation, j->scratch));
        data = j->scratch;
    }
    return stk_write_all(fd, path, data, stk_desc_bytes(stored_desc(t)));
}

static stk_status write_shard(const job *j, int64_t i_shard)
{
    char path[PATH_BYTES];
    stk_text header = {0};
    stk_new_file file = {.fd = -1};
    stk_status status;
    STK_TRY(shard_path(j, i_shard, path));
    STK_TRY(header_of(j, i_shard, &header));
    STK_TRY(stk_new_file_begin(&file, path));
    STK_TRY(stk_write_all(file.fd, path, header.data, header.n));
    for (int64_t i = 0; i < j->n_tensors; i++)
        if (j->shard[i] == i_shard) STK_TRY(write_tensor(j, i, file.fd, path));
    STK_TRY(stk_new_file_finish(&file, true));
done:
    stk_new_file_end(&file);
    stk_text_free(&header);
    return status;
}

static stk_status write_index(const job *j)
{
    char path[PATH_BYTES];
    char *text = NULL;
    size_t total = 0;
    stk_status status = STK_OK;
    unsigned mark = stk_json_mark();
    json_t *map = json_object(), *root;
    for (int64_t i = 0; i < j->n_tensors; i++) {
        STK_TRY(shard_path(j, j->shard[i], path));
        const char *slash = strrchr(path, '/');
        total += stk_desc_bytes(stored_desc(&j->tensor[i]));
        if (json_object_set_new(map, j->tensor[i].name, json_string(slash ? slash + 1 : path)) < 0)
            STK_TRY(stk_fail_memory(strlen(path)));
    }
    root = json_pack("{s:{s:s,s:I},s:O}", "metadata", "stoker", stk_version(), "total_size", (json_int_t)total,
                     "weight_map", map);
    STK_TRY(stk_json_print(root, mark, JSON_INDENT(2), &text));
    index_path(j, path);
    STK_TRY(stk_file_write_durably(path, text, strlen(text)));
    /* A single file would be read before the index. */
    if (unlink(j->path) < 0 && errno != ENOENT)
        STK_TRY(stk_fail(STK_IO, "cannot remove the older '%s': %s", j->path, stk_errno_text(errno)));
done:
    free(text);
    json_decref(map);
    return status;
}

stk_status stk_safetensors_write_by(const char *path, const stk_safetensors_entry_out *tensors, int64_t n_tensors,
                                    const stk_safetensors_options *options, stk_safetensors_fetch_fn fetch, void *user,
                                    int64_t *n_files)
{
    static const stk_safetensors_options none = {.metadata = NULL};
    job j = {.path = path, .tensor = tensors, .n_tensors = n_tensors, .fetch = fetch, .user = user};
    j.options = options ? options : &none;
    stk_status status = STK_OK;
    for (int64_t i = 0; i < n_tensors; i++)
        STK_TRY(check_tensor(&tensors[i]));
    STK_TRY(check_names(&j));
    STK_TRY(cut(&j));
    STK_TRY(check_places(&j));
    for (int64_t i = 0; i < j.n_shards; i++)
        STK_TRY(write_shard(&j, i));
    if (j.n_shards > 1) STK_TRY(write_index(&j));
    if (n_files) *n_files = j.n_shards;
done:
    free(j.shard);
    free(j.scratch);
    return status;
}

stk_status stk_safetensors_write(const char *path, const stk_safetensors_entry_out *tensors, int64_t n_tensors,
                                 const stk_safetensors_options *options, int64_t *n_files)
{
    STK_NEED(path);
    if (n_tensors > 0) STK_NEED(tensors);
    return stk_safetensors_write_by(path, tensors, n_tensors, options, NULL, NULL, n_files);
}
