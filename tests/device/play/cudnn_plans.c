/* See cudnn.h: engines, plans, running one. */
#include "device/play/cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/play/product.h"

enum { MOST_ENGINES = 64, N_BAD = 2, WORKSPACE_BYTES = 131 };

static const char plan_mark[] = "{\"played\":\"";

/* --- what is proposed --- */

/* For a ReLU alone behind f32 there is none, and for volumes none that its first heuristic knows: so that it is seen
 * what is done then. */
static int count_engines(const play_convolution *p, int mode)
{
    const char *ways = getenv("STOKER_PLAY_WAYS");
    const int n = ways ? atoi(ways) : 1;
    if (p->type == TYPE_F32 && p->relu && !p->has_bias) return 0;
    if (mode == CUDNN_HEUR_MODE_FALLBACK) return 1 + N_BAD;
    return p->n_sides == 3 ? N_BAD : n + N_BAD;
}

static int propose(const dnn_descriptor *d, int64_t n_wanted, int64_t *n, cudnn_descriptor *out)
{
    const play_convolution *p = &dnn_other(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0)->convolution;
    const int n_engines = count_engines(p, dnn_enum(d, CUDNN_ATTR_ENGINEHEUR_MODE));
    for (*n = 0; *n < n_engines && *n < n_wanted && *n < MOST_ENGINES; ++*n) {
        dnn_descriptor *config = out[*n];
        if (config->kind != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || config->is_final)
            return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: no room for a configuration");
        config->is_final = true;
        config->engine = (dnn_engine){.number = (int)*n - N_BAD, .note = -1, .convolution = *p};
        if (*n == 0) config->engine.note = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        if (*n == 1)
            config->engine.note =
                p->type == TYPE_F32 ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE : CUDNN_NUMERICAL_NOTE_WINOGRAD;
        config->engine.convolution.tf32 = config->engine.note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        if (*n >= N_BAD) config->engine.convolution.workspace_bytes = (size_t)(*n - N_BAD) * WORKSPACE_BYTES;
    }
    return 0;
}

static int give_engine(const dnn_descriptor *config, int64_t *n, cudnn_descriptor *out)
{
    dnn_descriptor *engine = *out;
    if (engine->kind != CUDNN_BACKEND_ENGINE_DESCRIPTOR || engine->is_final)
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: no room for an engine");
    engine->is_final = true;
    engine->engine = config->engine;
    *n = 1;
    return 0;
}

/* --- plans --- */

static size_t write_plan(const dnn_engine *engine, char *out, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)engine;
    const size_t needed = sizeof(plan_mark) + 2 * sizeof(*engine) + 2;
    if (!out || n < needed) return needed;
    out += sprintf(out, "%s", plan_mark);
    for (size_t i = 0; i < sizeof(*engine); i++)
        out += sprintf(out, "%02x", bytes[i]);
    strcpy(out, "\"}");
    return needed;
}

static bool read_plan(const dnn_value *text, dnn_engine *out)
{
    const char *from = text->bytes;
    unsigned char *bytes = (unsigned char *)out;
    if ((size_t)text->n != write_plan(out, NULL, 0) || from[text->n - 1] ||
        strncmp(from, plan_mark, sizeof(plan_mark) - 1) != 0)
        return false;
    from += sizeof(plan_mark) - 1;
    for (size_t i = 0; i < sizeof(*out); i++)
        if (sscanf(from + 2 * i, "%2hhx", &bytes[i]) != 1) return false;
    return true;
}

static int finish_plan(dnn_descriptor *d)
{
    const dnn_descriptor *config = dnn_other(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
    const dnn_value *text = dnn_find(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    if (!config == !text) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a plan of nothing, or of two things");
    if (text && !read_plan(text, &d->engine)) return CUDNN_STATUS_BAD_PARAM;
    if (config) d->engine = config->engine;
    if (d->engine.note >= 0 && d->engine.note != CUDNN_NUMERICAL_NOTE_TENSOR_CORE)
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: an engine is taken that does not compute what is wanted");
    return 0;
}

static cudnn_handle handle_of(const dnn_descriptor *plan)
{
    const dnn_value *v = dnn_find(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
    return v ? *(cudnn_handle *)v->bytes : NULL;
}

/* Threads may make plans at the same time, each on a handle of its own. */
int dnn_finish_plan(dnn_descriptor *d)
{
    cudnn_handle library = handle_of(d);
    if (!library) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a plan without a handle");
    if (atomic_exchange(&library->is_used, true))
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: two threads use one handle");
    const char *slow = getenv("STOKER_PLAY_SLOW_PLANS");
    if (slow) usleep((useconds_t)atoi(slow) * 1000);
    const int code = finish_plan(d);
    atomic_store(&library->is_used, false);
    return code;
}

int dnn_read(dnn_descriptor *d, int attribute, int64_t n_wanted, int64_t *n, void *out)
{
    switch (attribute) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: return propose(d, n_wanted, n, out);
    case CUDNN_ATTR_ENGINECFG_ENGINE: return give_engine(d, n, out);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *n = d->engine.note >= 0;
        if (*n) *(int *)out = d->engine.note;
        return 0;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *n = 1;
        *(int64_t *)out = (int64_t)d->engine.convolution.workspace_bytes;
        return 0;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
        *n = (int64_t)write_plan(&d->engine, out, (size_t)n_wanted);
        return 0;
    default: return -1;
    }
}

/* --- running one --- */

/* Which of x, weight, y is written. */
static int target_of(const play_convolution *p)
{
    return p->pass == PLAY_FORWARD ? 2 : p->pass == PLAY_GRAD_DATA ? 0 : 1;
}

static int take_addresses(const dnn_descriptor *memory, play_convolution *p)
{
    const dnn_value *number = dnn_find(memory, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const dnn_value *pointer = dnn_find(memory, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const int n = p->has_bias ? 4 : 3;
    if (number->n != n || pointer->n != n)
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: memory of more or fewer tensors than there are");
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            if (((const int64_t *)number->bytes)[j] == p->number[i]) p->at[i] = ((const uint64_t *)pointer->bytes)[j];
        if (!p->at[i] || p->at[i] % 16) return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a tensor without memory");
    }
    p->workspace = *(const uint64_t *)dnn_find(memory, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->bytes;
    if (p->workspace_bytes && (!p->workspace || p->workspace % 256))
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: the workspace is missing");
    return 0;
}

static int list_ranges(const play_convolution *p, play_range *out)
{
    int n = 0;
    for (int i = 0; i < (p->has_bias ? 4 : 3); i++) {
        const int type = i == target_of(p) ? p->type_out : i == 3 ? TYPE_F32 : p->type;
        out[n++] = (play_range){p->at[i], (size_t)play_convolution_count(p, i) * play_type_bytes(type)};
    }
    if (p->workspace_bytes) out[n++] = (play_range){p->workspace, p->workspace_bytes};
    return n;
}

int cudnnBackendExecute(cudnn_handle library, cudnn_descriptor plan, cudnn_descriptor memory)
{
    dnn_descriptor *d = plan, *m = memory;
    play_range range[5];
    if (!library || !d->is_final || !m->is_final)
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: what is not final is run");
    if (library != handle_of(d) || atomic_load(&library->is_used))
        return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: a plan is run on a handle that is not its own, or in use");
    play_convolution p = d->engine.convolution;
    int code = take_addresses(m, &p);
    if (code) return code;
    if (!d->is_loaded && stk_play_load_library()) return CUDNN_STATUS_EXECUTION_FAILED;
    d->is_loaded = true;
    const int n = list_ranges(&p, range), target = target_of(&p);
    for (int i = 0; i < n; i++)
        if (i != target && range[i].at < range[target].at + range[target].bytes &&
            range[target].at < range[i].at + range[i].bytes)
            return dnn_misuse(CUDNN_STATUS_BAD_PARAM, "cuDNN: what is written is read as well");
    return stk_play_enqueue(library->stream, play_convolve, &p, sizeof(p), range, n, "cudnnBackendExecute")
               ? CUDNN_STATUS_EXECUTION_FAILED
               : 0;
}
