/* See weights/weights.h. */
#include "weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { NAME_BYTES = 1024, MOST_PARTS = STK_NAME_MOST_PARTS };

/* What stands before all names of a file that was saved out of a wrapper. */
static const char *const wrappers[] = {"", "module.", "_orig_mod.", "model.", NULL};

static const int32_t image_theirs[] = {0, 3, 1, 2}, image_ours[] = {0, 2, 3, 1};
static const int32_t volume_theirs[] = {0, 4, 1, 2, 3}, volume_ours[] = {0, 2, 3, 4, 1};

const int32_t *stk_weights_to_theirs(int rank)
{
    return rank == 4 ? image_theirs : rank == 5 ? volume_theirs : NULL;
}

const int32_t *stk_weights_to_ours(int rank)
{
    return rank == 4 ? image_ours : rank == 5 ? volume_ours : NULL;
}

/* Which tensor of the file is which of ours. */
typedef struct plan {
    const stk_safetensors_file *file;
    const stk_named_tensor *tensors;
    size_t n;
    const char *leave;
    const stk_naming *naming;
    const char *wrapper;
    bool ours_layout;
} plan;

/* Name of part number i_part of one of ours in the file; false: there is no such part. */
static bool name_theirs(const plan *p, const char *ours, int i_part, char name[NAME_BYTES])
{
    size_t n = strlen(p->wrapper);
    memcpy(name, p->wrapper, n);
    return stk_name_theirs(p->naming, ours, i_part, name + n, NAME_BYTES - n);
}

/* The parts of one of ours, one of them but where theirs are split; 0: the file lacks one. */
static int find_theirs(const plan *p, const char *ours, stk_safetensor out[MOST_PARTS])
{
    char name[NAME_BYTES];
    int n = 0;
    for (; n < MOST_PARTS && name_theirs(p, ours, n, name); n++)
        if (!stk_safetensors_has(p->file, name, &out[n])) return 0;
    return n;
}

/* part[n] is somewhere in the name. */
static bool has_part(const char *name, const char *part, size_t n)
{
    for (const char *at = name; n > 0 && strlen(at) >= n; at++)
        if (!strncmp(at, part, n)) return true;
    return false;
}

/* True where the name holds one of the parts. */
static bool is_left(const plan *p, const char *name)
{
    for (const char *part = p->leave; part && *part;) {
        size_t n = strcspn(part, ",");
        if (has_part(name, part, n)) return true;
        part += n + (part[n] == ',');
    }
    return false;
}

/* Each part of `leave` is in a name of the network. */
static stk_status check_leave(const plan *p)
{
    for (const char *part = p->leave; part && *part;) {
        size_t n = strcspn(part, ",");
        bool is_found = n == 0;
        for (size_t i = 0; i < p->n && !is_found; i++)
            is_found = has_part(p->tensors[i].name, part, n);
        if (!is_found)
            return stk_fail(STK_NOT_FOUND, "no parameter has '%.*s' in its name, which is to be left as it is", (int)n,
                            part);
        part += n + (part[n] == ',');
    }
    return STK_OK;
}

static size_t count_found(const plan *p)
{
    stk_safetensor parts[MOST_PARTS];
    size_t n_found = 0;
    for (size_t i = 0; i < p->n; i++)
        n_found += find_theirs(p, p->tensors[i].name, parts) > 0;
    return n_found;
}

static stk_status choose_naming(plan *p, const char *names)
{
    size_t best = 0;
    plan chosen = *p;
    const stk_naming *only = names ? stk_naming_find(names) : NULL;
    if (names && !only) {
        const char *known[16] = {NULL};
        for (int i = 0; i < 15 && stk_naming_at(i); i++)
            known[i] = stk_naming_at(i)->name;
        const char *nearest = stk_nearest_name(names, known);
        return stk_fail(STK_INVALID, "there are no names '%s'%s%s%s", names, nearest ? " (did you mean '" : "",
                        nearest ? nearest : "", nearest ? "'?)" : "");
    }
    chosen.naming = only ? only : stk_naming_at(0);
    chosen.wrapper = "";
    for (int i = 0; stk_naming_at(i); i++) {
        for (int w = 0; wrappers[w]; w++) {
            if (only && stk_naming_at(i) != only) continue;
            p->naming = stk_naming_at(i);
            p->wrapper = wrappers[w];
            size_t n_found = count_found(p);
            if (n_found > best) {
                best = n_found;
                chosen = *p;
            }
        }
    }
    *p = chosen;
    return STK_OK;
}

/* --- shapes --- */

static stk_shape permute(stk_shape shape, const int32_t *permutation)
{
    stk_shape out = shape;
    for (int i = 0; permutation && i < shape.rank; i++)
        out.dim[i] = shape.dim[permutation[i]];
    return out;
}

static stk_shape without_ones(stk_shape shape)
{
    stk_shape out = {0};
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] != 1) out.dim[out.rank++] = shape.dim[i];
    return out;
}

/* One of our tensors, or rows of it: where theirs has several tensors for one of ours, each is as many of its rows. */
typedef struct rows {
    const stk_named_tensor *of;
    stk_shape shape;
    void *data;
} rows;

static stk_status cut_rows(const stk_named_tensor *ours, int i, int n, rows *out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    stk_shape shape = ours->view.desc.shape;
    *out = (rows){ours, shape, ours->view.data};
    if (n == 1) return STK_OK;
    if (shape.rank < 1 || shape.dim[0] % n)
        return stk_fail(STK_MISMATCH, "the file has %d tensors for the model's '%s', which is %s and not divisible so",
                        n, ours->name, stk_shape_text(shape, text));
    out->shape.dim[0] /= n;
    out->data = (char *)out->data + stk_desc_bytes(stk_desc_make(ours->view.desc.dtype, out->shape)) * (size_t)i;
    return STK_OK;
}

/* The order of axes for reading theirs; STK_MISMATCH where it is another tensor. */
static stk_status settle_layout(const plan *p, const rows *ours, const stk_safetensor *theirs, const int32_t **out)
{
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    stk_shape want = ours->shape;
    const int32_t *turn = stk_weights_to_ours(theirs->shape.rank);
    *out = NULL;
    if (turn && !p->ours_layout && stk_shape_equal(permute(theirs->shape, turn), want)) {
        *out = turn;
        return STK_OK;
    }
    if (stk_shape_equal(theirs->shape, want)) return STK_OK;
    if (want.rank < 4 && theirs->shape.rank < 4 && stk_shape_equal(without_ones(theirs->shape), without_ones(want)))
        return STK_OK;
    return stk_fail(STK_MISMATCH, "tensor '%s' is %s in the file, and %sthe model's '%s' is %s", theirs->name,
                    stk_shape_text(theirs->shape, a),
                    want.rank && want.dim[0] < ours->of->view.desc.shape.dim[0] ? "its part of " : "", ours->of->name,
                    stk_shape_text(permute(want, p->ours_layout ? NULL : stk_weights_to_theirs(want.rank)), b));
}

/* --- reading --- */

static stk_status report_missing(const plan *p)
{
    enum { MOST_NAMED = 5 };
    stk_safetensor parts[MOST_PARTS];
    stk_text list = {0};
    int64_t n_missing = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (is_left(p, p->tensors[i].name) || find_theirs(p, p->tensors[i].name, parts)) continue;
        if (n_missing++ < MOST_NAMED) stk_text_add(&list, "%s'%s'", list.n ? ", " : "", p->tensors[i].name);
    }
    stk_status status = STK_OK;
    if (n_missing == (int64_t)p->n)
        status = stk_fail(STK_MISMATCH, "none of the model's %zu tensors is in it; its first is '%s', the model's '%s'",
                          p->n, stk_safetensors_count(p->file) ? stk_safetensors_at(p->file, 0).name : "none",
                          p->tensors[0].name);
    else if (n_missing)
        status = stk_fail(STK_MISMATCH, "it lacks %lld of the model's tensors: %s%s", (long long)n_missing,
                          stk_text_get(&list), n_missing > MOST_NAMED ? ", ..." : "");
    stk_text_free(&list);
    return status;
}

static void mark_used(const plan *p, const stk_safetensor *theirs, bool *used)
{
    for (int64_t t = 0; t < stk_safetensors_count(p->file); t++)
        if (stk_safetensors_at(p->file, t).name == theirs->name) used[t] = true;
}

/* Checks (used is not NULL, and marked) or copies. */
static stk_status load_one(const plan *p, const stk_named_tensor *ours, bool *used)
{
    stk_safetensor theirs[MOST_PARTS];
    int n = find_theirs(p, ours->name, theirs);
    if (!n) return stk_fail(STK_INTERNAL, "'%s' went away", ours->name);
    for (int i = 0; i < n; i++) {
        const int32_t *permutation;
        rows part;
        STK_RETURN_IF_ERROR(cut_rows(ours, i, n, &part));
        STK_RETURN_IF_ERROR(settle_layout(p, &part, &theirs[i], &permutation));
        if (used) {
            mark_used(p, &theirs[i], used);
            continue;
        }
        STK_RETURN_IF_ERROR(stk_safetensors_read(&theirs[i], ours->view.desc.dtype, permutation, part.data));
    }
    return STK_OK;
}

static stk_status check(const plan *p, bool *used, stk_weights_report *report)
{
    for (size_t i = 0; i < p->n; i++) {
        const stk_named_tensor *ours = &p->tensors[i];
        if (is_left(p, ours->name)) {
            stk_text_add(&report->left, "%s%s", report->left.n ? ", " : "", ours->name);
            report->n_left++;
            continue;
        }
        STK_RETURN_IF_ERROR(load_one(p, ours, used));
        report->n_loaded++;
    }
    return STK_OK;
}

static stk_status copy(const plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!is_left(p, p->tensors[i].name)) STK_RETURN_IF_ERROR(load_one(p, &p->tensors[i], NULL));
    return STK_OK;
}

static void list_unused(const plan *p, const bool *used, stk_weights_report *report)
{
    char ours[NAME_BYTES];
    for (int64_t t = 0; t < stk_safetensors_count(p->file); t++) {
        const char *name = stk_safetensors_at(p->file, t).name;
        size_t n = strlen(p->wrapper);
        if (used[t]) continue;
        if (stk_name_is_extra(name)) {
            report->n_extra++;
            continue;
        }
        /* A head that is left out was not taken on purpose. */
        if (!strncmp(name, p->wrapper, n) && stk_name_ours(p->naming, name + n, ours, sizeof(ours)) && is_left(p, ours))
            continue;
        stk_text_add(&report->unused, "%s%s", report->unused.n ? ", " : "", name);
        report->n_unused++;
    }
}

stk_status stk_weights_load(const stk_safetensors_file *file, const stk_named_tensor *tensors, size_t n,
                            const char *leave, const char *names, stk_weights_report *report)
{
    const char *layout = stk_safetensors_metadata(file, STK_LAYOUT_KEY);
    plan p = {.file = file, .tensors = tensors, .n = n, .leave = leave};
    stk_status status;
    *report = (stk_weights_report){0};
    p.ours_layout = layout && !strcmp(layout, STK_LAYOUT_OURS);
    bool *used = calloc((size_t)stk_safetensors_count(file) + 1, sizeof(*used));
    if (!used) STK_TRY(stk_fail_memory((size_t)stk_safetensors_count(file)));
    STK_TRY(check_leave(&p));
    STK_TRY(choose_naming(&p, names));
    report->naming = p.naming;
    STK_TRY(report_missing(&p));
    STK_TRY(check(&p, used, report));
    list_unused(&p, used, report);
    STK_TRY(stk_text_status(&report->left));
    STK_TRY(stk_text_status(&report->unused));
    STK_TRY(copy(&p));
done:
    free(used);
    if (status != STK_OK) stk_weights_report_free(report);
    return status;
}

void stk_weights_report_free(stk_weights_report *report)
{
    stk_text_free(&report->left);
    stk_text_free(&report->unused);
}
