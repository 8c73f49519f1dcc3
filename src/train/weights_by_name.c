/* See stoker/train/weights.h. A trainer lists its tensors itself; a session's are its engine's variables. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "optim/average.h"
#include "stoker/train/weights.h"
#include "train/session.h"
#include "train/trainer_state.h"
#include "weights/checkpoint.h"
#include "weights/checkpoint_inside.h"
#include "weights/weights.h"

/* --- the two of them as one --- */

typedef struct holder {
    stk_trainer *trainer; /* or else */
    stk_session *session;
    stk_named_tensor *tensor; /* [n], sorted by name; number: of a session's variable */
    size_t n;
    void **copy; /* [n], of a session whose device is not on the host, for files */
} holder;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const stk_named_tensor *)a)->name, ((const stk_named_tensor *)b)->name);
}

/* stk_trainer_run takes the trainer as it then is, with as many epochs as it is given. */
static stk_status open_trainer(stk_trainer *trainer, holder *out)
{
    const stk_named_tensor *all;
    size_t n_all;
    *out = (holder){.trainer = trainer};
    if (!trainer) return stk_fail(STK_INVALID, "there is no trainer");
    STK_RETURN_IF_ERROR(stk_trainer_status(trainer));
    STK_RETURN_IF_ERROR(stk_trainer_prepare(trainer, trainer->n_epochs > 0 ? trainer->n_epochs : 1));
    STK_RETURN_IF_ERROR(stk_trainer_tensors(trainer, &all, &n_all));
    out->tensor = calloc(n_all + 1, sizeof(*out->tensor));
    if (!out->tensor) return stk_fail_memory(n_all * sizeof(*out->tensor));
    for (size_t i = 0; i < n_all; i++)
        if (!stk_is_optimizer_state(all, n_all, all[i].name)) out->tensor[out->n++] = all[i];
    return STK_OK;
}

static stk_status list_variables(stk_engine *engine, holder *h)
{
    size_t n = (size_t)stk_engine_n_variables(engine);
    h->tensor = calloc(n + 1, sizeof(*h->tensor));
    if (!h->tensor) return stk_fail_memory(n * sizeof(*h->tensor));
    for (size_t i = 0; i < n; i++) {
        stk_variable_view v = stk_engine_variable(engine, (int)i);
        h->tensor[h->n++] = (stk_named_tensor){.name = v.name, .view = v.view, .number = (int64_t)i};
    }
    return STK_OK;
}

/* All content in the host's memory, before a file is written or read. */
static stk_status bring(holder *h)
{
    if (h->trainer || stk_engine_device(stk_session_engine(h->session))->class->on_host) return STK_OK;
    h->copy = calloc(h->n + 1, sizeof(*h->copy));
    if (!h->copy) return stk_fail_memory(h->n * sizeof(*h->copy));
    for (size_t i = 0; i < h->n; i++) {
        stk_named_tensor *t = &h->tensor[i];
        h->copy[i] = t->view.data = malloc(stk_desc_bytes(t->view.desc) + 1);
        if (!h->copy[i]) return stk_fail_memory(stk_desc_bytes(t->view.desc));
        STK_RETURN_IF_ERROR(stk_engine_read_variable(stk_session_engine(h->session), (int)t->number, h->copy[i]));
    }
    return STK_OK;
}

static stk_status open_session(stk_session *session, holder *out)
{
    *out = (holder){.session = session};
    if (!session) return stk_fail(STK_INVALID, "there is no session");
    STK_RETURN_IF_ERROR(stk_session_status(session));
    stk_engine *engine = stk_session_engine(session);
    STK_RETURN_IF_ERROR(stk_engine_finish(engine));
    STK_RETURN_IF_ERROR(list_variables(engine, out));
    stk_named_tensor *all = malloc((out->n + 1) * sizeof(*all));
    if (!all) return stk_fail_memory(out->n * sizeof(*all));
    size_t n_all = out->n;
    memcpy(all, out->tensor, n_all * sizeof(*all));
    out->n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (!stk_is_optimizer_state(all, n_all, all[i].name)) out->tensor[out->n++] = all[i];
    free(all);
    qsort(out->tensor, out->n, sizeof(*out->tensor), compare_names);
    return STK_OK;
}

/* What was written into the tensors is the content from now on. */
static stk_status put(holder *h)
{
    if (h->trainer) return stk_trainer_put_tensors(h->trainer);
    stk_engine *engine = stk_session_engine(h->session);
    if (stk_engine_device(engine)->class->on_host) {
        stk_engine_changed(engine);
        return STK_OK;
    }
    for (size_t i = 0; i < h->n; i++)
        STK_RETURN_IF_ERROR(stk_engine_write_variable(engine, (int)h->tensor[i].number, h->tensor[i].view.data));
    return STK_OK;
}

static stk_status close_holder(holder *h, stk_status status)
{
    for (size_t i = 0; h->copy && i < h->n; i++)
        free(h->copy[i]);
    free(h->copy);
    free(h->tensor);
    return status;
}

/* --- one weight --- */

static stk_status fail_unknown(const holder *h, const char *name)
{
    const char **names = malloc((h->n + 1) * sizeof(*names)), *nearest = NULL;
    for (size_t i = 0; names && i <= h->n; i++)
        names[i] = i < h->n ? h->tensor[i].name : NULL;
    if (names) nearest = stk_nearest_name(name, names);
    free(names);
    if (nearest) return stk_fail(STK_NOT_FOUND, "there is no weight '%s' (did you mean '%s'?)", name, nearest);
    return stk_fail(STK_NOT_FOUND, "there is no weight '%s'", name);
}

static stk_status find(const holder *h, const char *name, size_t n_bytes, const stk_named_tensor **out)
{
    char text[STK_SHAPE_TEXT_BYTES];
    if (!name) return stk_fail(STK_INVALID, "the weight has no name");
    for (size_t i = 0; i < h->n; i++) {
        const stk_named_tensor *t = &h->tensor[i];
        if (strcmp(t->name, name)) continue;
        if (n_bytes != stk_desc_bytes(t->view.desc))
            return stk_fail(STK_MISMATCH, "weight '%s' is %s of %zu bytes, and %zu are given", name,
                            stk_desc_text(t->view.desc, text), stk_desc_bytes(t->view.desc), n_bytes);
        *out = t;
        return STK_OK;
    }
    return fail_unknown(h, name);
}

static stk_status get(const holder *h, const char *name, void *dst, size_t n_bytes)
{
    const stk_named_tensor *t = NULL;
    if (!dst) return stk_fail(STK_INVALID, "there is no room for the weight");
    STK_RETURN_IF_ERROR(find(h, name, n_bytes, &t));
    if (!t->view.data) return stk_engine_read_variable(stk_session_engine(h->session), (int)t->number, dst);
    memcpy(dst, t->view.data, n_bytes);
    return STK_OK;
}

/* The weight that t is the mean of, where such are kept. */
static void set_raw(holder *h, const stk_named_tensor *t)
{
    size_t n = strlen(t->name);
    for (size_t i = 0; h->trainer && i < h->trainer->n_tensors; i++) {
        const stk_named_tensor *raw = &h->trainer->tensor[i];
        if (strncmp(raw->name, t->name, n) || strcmp(raw->name + n, STK_AVERAGE_RAW)) continue;
        memcpy(raw->view.data, t->view.data, stk_desc_bytes(t->view.desc));
    }
}

static stk_status set(holder *h, const char *name, const void *src, size_t n_bytes)
{
    const stk_named_tensor *t = NULL;
    if (!src) return stk_fail(STK_INVALID, "there is no content for the weight");
    STK_RETURN_IF_ERROR(find(h, name, n_bytes, &t));
    if (!t->view.data) return stk_engine_write_variable(stk_session_engine(h->session), (int)t->number, src);
    memcpy(t->view.data, src, n_bytes);
    set_raw(h, t);
    return put(h);
}

static stk_status tell(const holder *h, int64_t i, stk_weight_info *out)
{
    if (!out) return stk_fail(STK_INVALID, "there is no place for what is told of a weight");
    if (i < 0) return stk_fail(STK_INVALID, "there is no weight number %lld", (long long)i);
    if (i >= (int64_t)h->n) return stk_fail(STK_NO_ROW, "there are %zu weights", h->n);
    stk_tensor_desc desc = h->tensor[i].view.desc;
    *out = (stk_weight_info){h->tensor[i].name, desc.dtype, desc.shape, stk_desc_bytes(desc)};
    return STK_OK;
}

/* --- files --- */

static stk_status save(holder *h, const char *path)
{
    static const char *const metadata[] = {STK_LAYOUT_KEY, STK_LAYOUT_OURS, NULL};
    const stk_safetensors_options options = {.metadata = metadata};
    if (!path) return stk_fail(STK_INVALID, "there is no path to save weights to");
    STK_RETURN_IF_ERROR(bring(h));
    stk_safetensors_entry_out *entry = calloc(h->n + 1, sizeof(*entry));
    if (!entry) return stk_fail_memory(h->n * sizeof(*entry));
    for (size_t i = 0; i < h->n; i++) {
        const stk_named_tensor *t = &h->tensor[i];
        entry[i] = (stk_safetensors_entry_out){.name = t->name,
                                               .dtype = t->view.desc.dtype,
                                               .shape = t->view.desc.shape,
                                               .data = t->view.data,
                                               .stored = t->view.desc.dtype};
    }
    stk_status status = stk_safetensors_write(path, entry, (int64_t)h->n, &options, NULL);
    free(entry);
    return status;
}

static stk_status load(holder *h, const char *path, const char *leave)
{
    stk_safetensors_file *file;
    stk_weights_report report;
    if (!path) return stk_fail(STK_INVALID, "there is no path to load weights from");
    STK_RETURN_IF_ERROR(bring(h));
    STK_RETURN_IF_ERROR(stk_safetensors_open(path, &file));
    stk_status status = stk_weights_load(file, h->tensor, h->n, leave, NULL, &report);
    stk_safetensors_close(file);
    if (status != STK_OK) return stk_fail_prefix(status, "'%s': ", path);
    stk_weights_report_free(&report);
    for (size_t i = 0; i < h->n; i++)
        set_raw(h, &h->tensor[i]);
    return put(h);
}

/* --- the calls --- */

#define CALL(open, handle, call)                                                                                       \
    holder h;                                                                                                          \
    stk_status status = open(handle, &h);                                                                              \
    return close_holder(&h, status == STK_OK ? (call) : status)
#define CALLS(owner)                                                                                                   \
    stk_status stk_##owner##_weight(stk_##owner *owner, int64_t i, stk_weight_info *out)                               \
    {                                                                                                                  \
        CALL(open_##owner, owner, tell(&h, i, out));                                                                   \
    }                                                                                                                  \
    stk_status stk_##owner##_get_weight(stk_##owner *owner, const char *name, void *dst, size_t n_bytes)               \
    {                                                                                                                  \
        CALL(open_##owner, owner, get(&h, name, dst, n_bytes));                                                        \
    }                                                                                                                  \
    stk_status stk_##owner##_set_weight(stk_##owner *owner, const char *name, const void *src, size_t n_bytes)         \
    {                                                                                                                  \
        CALL(open_##owner, owner, set(&h, name, src, n_bytes));                                                        \
    }                                                                                                                  \
    stk_status stk_##owner##_save_weights(stk_##owner *owner, const char *path)                                        \
    {                                                                                                                  \
        CALL(open_##owner, owner, save(&h, path));                                                                     \
    }                                                                                                                  \
    stk_status stk_##owner##_load_weights(stk_##owner *owner, const char *path, const char *leave)                     \
    {                                                                                                                  \
        CALL(open_##owner, owner, load(&h, path, leave));                                                              \
    }
CALLS(trainer)
CALLS(session)

/* --- checkpoints --- */

static stk_status begin_checkpoint(stk_trainer *trainer, const char *folder)
{
    if (!trainer) return stk_fail(STK_INVALID, "there is no trainer");
    if (!folder) return stk_fail(STK_INVALID, "there is no folder for checkpoints");
    STK_RETURN_IF_ERROR(stk_trainer_status(trainer));
    STK_RETURN_IF_ERROR(stk_trainer_prepare(trainer, trainer->n_epochs > 0 ? trainer->n_epochs : 1));
    if (stk_trainer_is_settled(trainer)) return STK_OK;
    return stk_fail(STK_UNSUPPORTED,
                    "the optimiser's state is shared out among ranks; a run's folder has checkpoints of it");
}

stk_status stk_trainer_save_checkpoint(stk_trainer *trainer, const char *folder, int keep)
{
    const stk_named_tensor *tensors;
    size_t n;
    size_t n_there;
    stk_train_state state;
    stk_checkpoint_report report = {0};
    stk_checkpoint_writer *writer = NULL;
    stk_status status;
    STK_TRY(begin_checkpoint(trainer, folder));
    if (keep < 2) STK_TRY(stk_fail(STK_INVALID, "%d checkpoints are to be kept, and at least 2 must be", keep));
    STK_TRY(stk_trainer_tensors(trainer, &tensors, &n));
    STK_TRY(stk_dir_make_new(folder, &n_there));
    STK_TRY(stk_checkpoint_writer_open(folder, keep, &writer));
    stk_trainer_get_state(trainer, &state);
    STK_TRY(stk_checkpoint_save_in_place(writer, tensors, n, &state, NULL, false));
    stk_checkpoint_wait(writer, &report);
    if (report.status != STK_OK) STK_TRY(stk_fail(report.status, "%s", report.error));
done:
    stk_checkpoint_writer_close(writer);
    return status;
}

stk_status stk_trainer_load_checkpoint(stk_trainer *trainer, const char *folder)
{
    char path[4096];
    const stk_named_tensor *tensors;
    size_t n;
    stk_train_state state;
    stk_text warnings = {0};
    stk_status status;
    STK_TRY(begin_checkpoint(trainer, folder));
    STK_TRY(stk_checkpoint_find(folder, false, path, sizeof(path), &warnings));
    STK_TRY(stk_trainer_tensors(trainer, &tensors, &n));
    STK_TRY(stk_checkpoint_load(path, tensors, n, true, &state, NULL));
    STK_TRY(stk_trainer_put_tensors(trainer));
    STK_TRY(stk_trainer_set_state(trainer, &state));
    STK_TRY(stk_trainer_load_skipped(trainer, path));
done:
    stk_text_free(&warnings);
    return status;
}
