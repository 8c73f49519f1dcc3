/* Finding and reading checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/input.h"
#include "weights/checkpoint.h"
#include "weights/checkpoint_inside.h"
#include "weights/checkpoint_state.h"
#include "weights/safetensors.h"

bool stk_is_optimizer_state(const stk_named_tensor *tensors, size_t n, const char *name)
{
    if (!strcmp(name, STK_METRIC_SUMS)) return true;
    static const char *const endings[] = {".velocity", ".m", ".v", ".raw"};
    for (int e = 0; e < 4; e++) {
        size_t length = strlen(name), ending = strlen(endings[e]);
        if (length <= ending || strcmp(name + length - ending, endings[e])) continue;
        for (size_t i = 0; i < n; i++)
            if (strlen(tensors[i].name) == length - ending && !strncmp(tensors[i].name, name, length - ending))
                return true;
    }
    return false;
}

static bool parse_step(const char *name, int64_t *out)
{
    char *end;
    if (strncmp(name, "step-", 5) || name[5] < '0' || name[5] > '9') return false;
    *out = strtoll(name + 5, &end, 10);
    return *end == 0;
}

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int stk_checkpoint_list(const char *run_dir, int64_t *steps, int most)
{
    stk_names names;
    int64_t *all = NULL;
    int n = 0;
    if (stk_dir_list(run_dir, &names) != STK_OK) return 0;
    all = malloc((names.n + 1) * sizeof(*all));
    for (size_t i = 0; all && i < names.n; i++)
        n += parse_step(names.name[i], &all[n]);
    if (all && n < (int)names.n && stk_checkpoint_renamed(run_dir, &all[n])) n++;
    if (all) qsort(all, (size_t)n, sizeof(*all), compare_steps);
    int from = n > most ? n - most : 0;
    for (int i = from; i < n; i++)
        steps[i - from] = all[i];
    free(all);
    stk_names_free(&names);
    return n - from;
}

int64_t stk_checkpoint_best_step(const char *run_dir)
{
    char path[4096], text[64] = "";
    int64_t step = -1;
    if (stk_path_join(path, sizeof(path), run_dir, "best") != STK_OK) return -1;
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    if (fscanf(f, "%63s", text) != 1 || !parse_step(text, &step)) step = -1;
    fclose(f);
    return step;
}

/* --- one checkpoint --- */

/* Some of the file at a time. */
static stk_status check_sum(const stk_input *file, uint64_t expected)
{
    enum { PIECE = 4 << 20 };
    stk_hash64_parts hash = stk_hash64_begin(0);
    stk_status status = STK_OK;
    uint8_t *piece = malloc(PIECE);
    if (!piece) return stk_fail_memory(PIECE);
    for (uint64_t at = 0; at < file->n_bytes; at += PIECE) {
        size_t n = file->n_bytes - at < PIECE ? (size_t)(file->n_bytes - at) : PIECE;
        status = stk_input_read(file, at, piece, n);
        if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", file->path));
        stk_hash64_add(&hash, piece, n);
    }
    if (stk_hash64_end(&hash) != expected)
        status = stk_fail(STK_CORRUPT, "'%s' is damaged: its checksum is wrong", file->path);
done:
    free(piece);
    return status;
}

static void close_parts(stk_input *part)
{
    for (int i = 0; i < STK_MANIFEST_FILES; i++)
        stk_input_close(&part[i]);
}

/* Opens all files and compares them with the manifest. On failure nothing stays open. */
static stk_status open_parts(const char *dir, stk_input *part)
{
    stk_manifest_file files[STK_MANIFEST_FILES];
    stk_span manifest = {0};
    char path[4096] = "";
    stk_status status;
    for (int i = 0; i < STK_MANIFEST_FILES; i++) {
        part[i] = (stk_input){.fd = -1};
        files[i] = (stk_manifest_file){.name = stk_manifest_names[i]};
    }
    STK_TRY(stk_path_join(path, sizeof(path), dir, "manifest.json"));
    STK_TRY(stk_file_load(path, &manifest));
    status = stk_manifest_from_json(manifest, files);
    if (status != STK_OK) STK_TRY(stk_fail_prefix(status, "'%s': ", path));
    for (int i = 0; i < STK_MANIFEST_FILES; i++) {
        STK_TRY(stk_path_join(path, sizeof(path), dir, files[i].name));
        STK_TRY(stk_input_open(path, true, &part[i]));
        if (part[i].n_bytes != files[i].n_bytes)
            STK_TRY(stk_fail(STK_CORRUPT, "'%s' has %llu bytes, its manifest says %llu", path,
                             (unsigned long long)part[i].n_bytes, (unsigned long long)files[i].n_bytes));
        STK_TRY(check_sum(&part[i], files[i].hash));
    }
done:
    stk_file_unload(manifest);
    if (status != STK_OK) close_parts(part);
    return status;
}

/* state.json of the open parts. */
static stk_status read_state(const stk_input *part, stk_train_state *state, char **recipe)
{
    const stk_input *file = &part[STK_MANIFEST_FILES - 1];
    uint8_t *bytes = malloc((size_t)file->n_bytes + 1);
    if (!bytes) return stk_fail_memory((size_t)file->n_bytes);
    stk_status status = stk_input_read(file, 0, bytes, (size_t)file->n_bytes);
    if (status == STK_OK) status = stk_state_from_json((stk_span){bytes, (size_t)file->n_bytes}, state, recipe);
    free(bytes);
    return status;
}

stk_status stk_checkpoint_load_skipped(const char *path, stk_skipped *into)
{
    char name[4096];
    stk_span text;
    STK_RETURN_IF_ERROR(stk_path_join(name, sizeof(name), path, stk_manifest_names[STK_MANIFEST_FILES - 1]));
    STK_RETURN_IF_ERROR(stk_file_load(name, &text));
    stk_status status = stk_skipped_from_json(text, into);
    stk_file_unload(text);
    return status == STK_OK ? status : stk_fail_prefix(status, "'%s': ", name);
}

stk_status stk_checkpoint_check(const char *dir)
{
    stk_input part[STK_MANIFEST_FILES];
    STK_RETURN_IF_ERROR(open_parts(dir, part));
    close_parts(part);
    return STK_OK;
}

stk_status stk_checkpoint_find(const char *run_dir, bool best, char *path, size_t path_bytes, stk_text *warnings)
{
    int64_t steps[1024], best_step = best ? stk_checkpoint_best_step(run_dir) : -1;
    int n = stk_checkpoint_list(run_dir, steps, 1023);
    stk_text newest = {0};                      /* why that one is passed over */
    if (best_step >= 0) steps[n++] = best_step; /* Tried first. */
    for (int i = n - 1; i >= 0; i--) {
        stk_status status = stk_checkpoint_path(run_dir, steps[i], path, path_bytes);
        if (status != STK_OK || stk_checkpoint_check(path) == STK_OK) {
            stk_text_free(&newest);
            return status;
        }
        if (!newest.n) stk_text_add(&newest, "%s", stk_error_text());
        if (warnings)
            stk_text_add(warnings, "%scheckpoint '%s' is passed over: %s", warnings->n ? "\n" : "", path,
                         stk_error_text());
    }
    if (!newest.n) return stk_fail(STK_NOT_FOUND, "no checkpoint in '%s'", run_dir);
    stk_status status = stk_fail(STK_CORRUPT, "no checkpoint in '%s' is whole: %s", run_dir, stk_text_get(&newest));
    stk_text_free(&newest);
    return status;
}

/* Whether the best checkpoint is there to be named. */
static bool has_best(const char *run_dir)
{
    char name[64], path[4096];
    snprintf(name, sizeof(name), "step-%lld", (long long)stk_checkpoint_best_step(run_dir));
    return stk_path_join(path, sizeof(path), run_dir, name) == STK_OK && stk_path_is_dir(path);
}

/* "there are last, and the steps 100, 200"; the last ones, where there are many. */
static stk_status fail_step(const char *run_dir, const char *which)
{
    enum { MOST = 20 };
    int64_t steps[MOST];
    stk_text there = {0};
    int n = stk_checkpoint_list(run_dir, steps, MOST);
    for (int i = 0; i < n; i++)
        stk_text_add(&there, "%s%lld", i ? ", " : "", (long long)steps[i]);
    stk_status status =
        n ? stk_fail(STK_NOT_FOUND, "no checkpoint '%.40s' in '%s': there are %slast, and the step%s %s", which,
                     run_dir, has_best(run_dir) ? "best, " : "", n == 1 ? "" : "s", stk_text_get(&there))
          : stk_fail(STK_NOT_FOUND, "no checkpoint '%.40s' in '%s', nor any other", which, run_dir);
    stk_text_free(&there);
    return status;
}

stk_status stk_checkpoint_pick(const char *run_dir, const char *which, char *path, size_t path_bytes,
                               stk_text *warnings)
{
    char name[64];
    int64_t step;
    if (!which || !strcmp(which, "last")) return stk_checkpoint_find(run_dir, !which, path, path_bytes, warnings);
    snprintf(name, sizeof(name), "step-%.40s", which);
    if (!strcmp(which, "best")) {
        step = stk_checkpoint_best_step(run_dir);
        if (step < 0)
            return stk_fail(STK_NOT_FOUND,
                            "'%s' has no best checkpoint: nothing was validated; name another, or 'last'", run_dir);
    } else if (!parse_step(name, &step)) {
        return fail_step(run_dir, which);
    }
    STK_RETURN_IF_ERROR(stk_checkpoint_path(run_dir, step, path, path_bytes));
    return stk_path_is_dir(path) ? stk_checkpoint_check(path) : fail_step(run_dir, which);
}

/* The entry for a tensor, with the same type. */
static stk_status find_entry(const stk_safetensors *set, const stk_named_tensor *tensor,
                             const stk_safetensors_entry **out)
{
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    const stk_safetensors_entry *entry = stk_safetensors_find(set, tensor->name);
    if (!entry) return stk_fail(STK_MISMATCH, "tensor '%s' is missing", tensor->name);
    if (entry->desc.dtype != tensor->view.desc.dtype || !stk_shape_equal(entry->desc.shape, tensor->view.desc.shape))
        return stk_fail(STK_MISMATCH, "tensor '%s' is %s, the model has %s", tensor->name,
                        stk_desc_text(entry->desc, a), stk_desc_text(tensor->view.desc, b));
    *out = entry;
    return STK_OK;
}

/* Checks (copy false) or copies the tensors of one file. */
static stk_status read_tensors(const stk_input *file, const stk_safetensors *set, const stk_named_tensor *tensors,
                               size_t n, bool optimizer, bool copy)
{
    size_t n_used = 0;
    for (size_t i = 0; i < n; i++) {
        const stk_safetensors_entry *entry;
        if (stk_is_optimizer_state(tensors, n, tensors[i].name) != optimizer) continue;
        STK_RETURN_IF_ERROR(find_entry(set, &tensors[i], &entry));
        if (copy && tensors[i].view.data) /* What a source has is not wanted here. */
            STK_RETURN_IF_ERROR(
                stk_input_read(file, set->data_at + entry->begin, tensors[i].view.data, stk_desc_bytes(entry->desc)));
        n_used++;
    }
    for (size_t i = 0; n_used < set->n && i < set->n; i++) {
        size_t j = 0;
        while (j < n && strcmp(tensors[j].name, set->entry[i].name))
            j++;
        if (j == n) return stk_fail(STK_MISMATCH, "tensor '%s' is not part of the model", set->entry[i].name);
    }
    return STK_OK;
}

stk_status stk_checkpoint_load(const char *path, const stk_named_tensor *tensors, size_t n_tensors, bool optimizer,
                               stk_train_state *state, char **recipe)
{
    stk_input part[STK_MANIFEST_FILES];
    stk_safetensors set[2] = {{0}};
    stk_train_state loaded;
    char *text = NULL;
    int n_sets = optimizer ? 2 : 1;
    stk_status status = open_parts(path, part);
    if (status != STK_OK) return status;
    int i = 0;
    for (; i < n_sets; i++) {
        STK_TRY(stk_safetensors_scan(&part[i], &set[i]));
        if (i == 0 || set[i].n > 0) STK_TRY(read_tensors(&part[i], &set[i], tensors, n_tensors, i == 1, false));
    }
    i = STK_MANIFEST_FILES - 1;
    STK_TRY(read_state(part, &loaded, &text));
    /* An imported run has no optimiser's state yet: it begins as that of a new run. */
    bool begins = optimizer && set[1].n == 0 && loaded.step == 0;
    i = 1;
    if (optimizer && set[1].n == 0 && !begins)
        STK_TRY(read_tensors(&part[1], &set[1], tensors, n_tensors, true, false));
    if (begins) n_sets = 1;
    for (i = 0; i < n_sets; i++)
        STK_TRY(read_tensors(&part[i], &set[i], tensors, n_tensors, i == 1, true));
    if (state) *state = loaded;
    if (recipe) {
        *recipe = text;
        text = NULL;
    }
done:
    if (status != STK_OK) (void)stk_fail_prefix(status, "'%s/%s': ", path, stk_manifest_names[i]);
    free(text);
    stk_safetensors_free(&set[0]);
    stk_safetensors_free(&set[1]);
    close_parts(part);
    return status;
}
