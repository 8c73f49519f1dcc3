/* A run's parameters for others. See stoker/files/exchange.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/graph.h"
#include "recipe/describe.h"
#include "run/export.h"
#include "run/state.h"
#include "stoker/files/exchange.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

stk_status stk_export_open(const char *folder, const stk_run_options *run_options, stk_export_source *out)
{
    char path[STK_PATH_BYTES], file[STK_PATH_BYTES];
    stk_run_options options = run_options ? *run_options : (stk_run_options){0};
    stk_text warnings = {0};
    stk_status status;
    *out = (stk_export_source){0};
    options.without_data = true; /* where the run tells what they were like */
    STK_TRY(stk_run_open_folder(folder, &options, &out->run));
    STK_TRY(stk_checkpoint_pick(folder, out->run->options.checkpoint, path, sizeof(path), &warnings));
    if (warnings.n) stk_run_warn(out->run, stk_text_get(&warnings));
    const char *step = strrchr(path, '-');
    out->step = step ? strtoll(step + 1, NULL, 10) : 0;
    out->graph = stk_model_graph((stk_model *)out->run->model);
    STK_TRY(stk_path_join(file, sizeof(file), path, "model.safetensors"));
    STK_TRY(stk_safetensors_open(file, &out->weights));
done:
    stk_text_free(&warnings);
    if (status != STK_OK) stk_export_close(out);
    return status;
}

void stk_export_close(stk_export_source *source)
{
    stk_safetensors_close(source->weights);
    stk_arena_free(source->loaded);
    stk_run_close(source->run);
    *source = (stk_export_source){0};
}

stk_status stk_export_tensor(const stk_export_source *source, const stk_node *variable, stk_safetensor *out)
{
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    stk_tensor_desc want = source->graph->value[variable->first_out].desc;
    STK_RETURN_IF_ERROR(stk_safetensors_get(source->weights, variable->name, out));
    if (out->dtype == want.dtype && stk_shape_equal(out->shape, want.shape)) return STK_OK;
    return stk_fail(STK_MISMATCH, "the checkpoint's '%s' is %s, the recipe's model has %s", variable->name,
                    stk_desc_text(stk_desc_make(out->dtype, out->shape), a), stk_desc_text(want, b));
}

stk_status stk_export_load(stk_export_source *source, const stk_node *variable, const void **out)
{
    stk_safetensor t;
    STK_RETURN_IF_ERROR(stk_export_tensor(source, variable, &t));
    if (!source->loaded && !(source->loaded = stk_arena_new())) return stk_fail_memory(t.n_bytes);
    void *data = stk_arena_alloc(source->loaded, t.n_bytes + 1);
    if (!data) return stk_fail_memory(t.n_bytes);
    *out = data;
    return stk_safetensors_read(&t, t.dtype, NULL, data);
}

/* --- safetensors --- */

typedef struct list {
    stk_arena *arena; /* names */
    stk_safetensors_entry_out *entry;
    stk_safetensor *from; /* of each entry; file NULL: a counter */
    int64_t n, n_bytes;
    int64_t step; /* what counters hold */
    void *buffer; /* the tensor that is written at present */
} list;

/* The tensor's own bytes, until the next one's are asked for. */
static stk_status load(list *l, const stk_safetensor *t, const void **out)
{
    free(l->buffer);
    *out = l->buffer = malloc(t->n_bytes + 1);
    if (!l->buffer) return stk_fail_memory(t->n_bytes);
    return stk_safetensors_read(t, t->dtype, NULL, l->buffer);
}

static stk_status fetch(void *user, int64_t i_entry, const void **out)
{
    list *l = user;
    *out = &l->step;
    return l->from[i_entry].file ? load(l, &l->from[i_entry], out) : STK_OK;
}

/* A float above f16's largest would become infinite. */
static stk_status check_range(list *l, const stk_safetensor *t, stk_dtype dtype)
{
    const void *data;
    if (dtype != STK_F16 || t->dtype != STK_F32) return STK_OK;
    STK_RETURN_IF_ERROR(load(l, t, &data));
    for (int64_t i = 0; i < stk_shape_count(t->shape); i++) {
        float x = ((const float *)data)[i];
        if (isfinite(x) && fabsf(x) >= 65520)
            return stk_fail(STK_UNSUPPORTED, "tensor '%s' holds %g, which f16 cannot; use bf16", t->name, (double)x);
    }
    return STK_OK;
}

static stk_status add(list *l, const char *name, const stk_safetensor *t, stk_dtype stored)
{
    char *copy = stk_arena_text(l->arena, name);
    if (!copy) return stk_fail_memory(strlen(name));
    l->from[l->n] = *t;
    l->entry[l->n++] = (stk_safetensors_entry_out){.name = copy,
                                                   .dtype = t->dtype,
                                                   .shape = t->shape,
                                                   .stored = stored,
                                                   .permutation = stk_weights_to_theirs(t->shape.rank)};
    l->n_bytes += stk_shape_count(t->shape) * (int64_t)stk_dtype_bytes(stored);
    return STK_OK;
}

/* PyTorch's batch norms count their steps. */
static stk_status add_counter(list *l, const char *theirs)
{
    static const char end[] = "running_var";
    char name[STK_PATH_BYTES];
    size_t n = strlen(theirs), n_end = strlen(end);
    if (n < n_end || strcmp(theirs + n - n_end, end)) return STK_OK;
    snprintf(name, sizeof(name), "%.*snum_batches_tracked", (int)(n - n_end), theirs);
    stk_safetensor counter = {.dtype = STK_I64};
    return add(l, name, &counter, STK_I64);
}

/* One of ours, or where they have several for one, each with its share of the rows. */
static stk_status add_parts(list *l, const stk_naming *naming, const stk_safetensor *t, stk_dtype stored)
{
    char theirs[STK_PATH_BYTES];
    int n = 0;
    while (stk_name_theirs(naming, t->name, n, theirs, sizeof(theirs)))
        n++;
    if (n == 0 || (n > 1 && (t->shape.rank < 1 || t->shape.dim[0] % n)))
        return stk_fail(STK_UNSUPPORTED, "the names '%s' have none for tensor '%s'; try --names pytorch", naming->name,
                        t->name);
    stk_safetensor part = *t;
    if (n > 1) part.shape.dim[0] /= n;
    part.n_bytes = t->n_bytes / (size_t)n;
    for (int i = 0; i < n; i++) {
        part.at = t->at + part.n_bytes * (size_t)i;
        stk_name_theirs(naming, t->name, i, theirs, sizeof(theirs));
        STK_RETURN_IF_ERROR(add(l, theirs, &part, stored));
        STK_RETURN_IF_ERROR(add_counter(l, theirs));
    }
    return STK_OK;
}

static stk_status list_tensors(const stk_export_source *source, const stk_naming *naming, stk_dtype dtype, list *l)
{
    const stk_graph *graph = source->graph;
    l->step = source->step;
    l->arena = stk_arena_new();
    l->entry = calloc(2 * STK_NAME_MOST_PARTS * (size_t)graph->n_nodes + 1, sizeof(*l->entry));
    l->from = calloc(2 * STK_NAME_MOST_PARTS * (size_t)graph->n_nodes + 1, sizeof(*l->from));
    if (!l->arena || !l->entry || !l->from) return stk_fail_memory((size_t)graph->n_nodes * sizeof(*l->entry));
    for (int i = 0; i < graph->n_nodes; i++) {
        stk_safetensor t;
        if (graph->node[i].op != STK_OP_variable) continue;
        STK_RETURN_IF_ERROR(stk_export_tensor(source, &graph->node[i], &t));
        STK_RETURN_IF_ERROR(check_range(l, &t, dtype));
        STK_RETURN_IF_ERROR(add_parts(l, naming, &t, t.dtype == STK_F32 ? dtype : t.dtype));
    }
    return STK_OK;
}

stk_status stk_export_path(const char *folder, const char *name, const char *out, char path[STK_EXCHANGE_TEXT])
{
    char manifest[STK_EXCHANGE_TEXT];
    if (!out) return stk_path_join(path, STK_EXCHANGE_TEXT, folder, name);
    int n = snprintf(path, STK_EXCHANGE_TEXT, "%s", out);
    if (n <= 0 || n >= STK_EXCHANGE_TEXT) return stk_fail(STK_INVALID, "the path to write to is too long");
    const char *slash = strrchr(path, '/');
    snprintf(manifest, sizeof(manifest), "%.*smanifest.json", slash ? (int)(slash + 1 - path) : 0, path);
    if (!stk_path_exists(manifest)) return STK_OK;
    return stk_fail(STK_BUSY, "'%s' would lie in a checkpoint, whose files belong together; name another file", path);
}

/* By the part whose stages are those of evaluation. */
static stk_status describe(const stk_run *run, stk_description *out)
{
    int i_part = run->test ? STK_PART_TEST : run->valid ? STK_PART_VALID : STK_PART_TRAIN;
    return stk_describe(run->recipe, i_part, run->test ? run->test : run->valid ? run->valid : run->train, out);
}

stk_status stk_run_export_safetensors(const char *folder, const char *out, const stk_run_options *run_options,
                                      const stk_export_options *options, stk_export_report *report)
{
    STK_NEED(folder);
    STK_NEED(report);
    static const stk_export_options none = {.names = NULL};
    char step[32];
    stk_export_source source = {0};
    list l = {0};
    stk_description about = {0};
    stk_status status = STK_OK;
    *report = (stk_export_report){0};
    if (!options) options = &none;
    const stk_naming *naming = options->names ? stk_naming_find(options->names) : stk_naming_at(0);
    if (!naming) STK_TRY(stk_fail(STK_INVALID, "there are no names '%s'", options->names));
    STK_TRY(stk_export_path(folder, "model.safetensors", out, report->path));
    STK_TRY(stk_export_open(folder, run_options, &source));
    STK_TRY(stk_dir_check_for(report->path));
    STK_TRY(list_tensors(&source, naming, options->dtype, &l));
    snprintf(step, sizeof(step), "%lld", (long long)source.step);
    STK_TRY(describe(source.run, &about));
    bool is_told = about.recipe.n > 0;
    const char *metadata[] = {"stoker",
                              stk_version(),
                              "run",
                              source.run->info.name,
                              "step",
                              step,
                              is_told ? STK_RECIPE_KEY : NULL,
                              stk_text_get(&about.recipe),
                              STK_DATA_KEY,
                              stk_text_get(&about.record),
                              NULL};
    stk_safetensors_options how = {.metadata = metadata, .shard_bytes = options->shard_bytes};
    STK_TRY(stk_safetensors_write_by(report->path, l.entry, l.n, &how, fetch, &l, &report->n_files));
    /* Where there are several, the index is what is opened. */
    size_t n_path = strlen(report->path);
    if (report->n_files > 1) snprintf(report->path + n_path, sizeof(report->path) - n_path, ".index.json");
    report->n_tensors = l.n;
    report->n_bytes = l.n_bytes;
    report->step = source.step;
done:
    stk_description_free(&about);
    free(l.entry);
    free(l.from);
    free(l.buffer);
    stk_arena_free(l.arena);
    stk_export_close(&source);
    return status;
}
