/* See train/divided.h. */
#include "train/divided.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/trainer_state.h"

/* Of a call: what others than the first need as scratch memory. */
enum { CALL_BYTES = 1 << 20, DONE = -1 };

bool stk_divided_exist(const stk_trainer *trainer)
{
    return trainer->shards && trainer->comm;
}

size_t stk_divided_whole_bytes(const stk_trainer *trainer)
{
    size_t bytes = 0;
    for (size_t i = 0; i < trainer->n_tensors; i++)
        if (trainer->variable[i] >= 0) bytes += stk_desc_bytes(trainer->tensor[i].view.desc);
    return bytes;
}

static stk_status call_ranks(const stk_trainer *trainer, stk_collective kind, int64_t bytes, const void *src, void *dst)
{
    stk_comm_call call = {.kind = kind, .dtype = STK_U8, .n = bytes, .src = src, .dst = dst};
    return stk_comm_run(trainer->comm, &call, trainer->comm->timeout_ms);
}

/* --- reading --- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where the host sees this rank's part: the variable itself, or *copy, which is made of it where the device is not on
 * the host. The caller frees *copy. */
static stk_status see_part(const stk_trainer *trainer, int i_variable, char **out, char **copy)
{
    stk_variable_view variable = stk_engine_variable(trainer->engine, i_variable);
    *out = variable.view.data;
    *copy = NULL;
    if (*out) return STK_OK;
    size_t bytes = stk_desc_bytes(variable.view.desc);
    *out = *copy = malloc(bytes + 1);
    return *copy ? stk_engine_read_variable(trainer->engine, i_variable, *copy) : stk_fail_memory(bytes);
}

/* Collective: the whole of a variable into dst, NULL on all ranks but the first. */
static stk_status gather(const stk_trainer *trainer, int i_variable, char *dst)
{
    stk_variable_view variable = stk_engine_variable(trainer->engine, i_variable);
    int64_t n_ranks = trainer->comm->n_ranks, part = (int64_t)stk_desc_bytes(variable.view.desc);
    int64_t whole = (int64_t)stk_desc_bytes(stk_desc_make(variable.view.desc.dtype, variable.whole));
    int64_t most = CALL_BYTES / n_ranks / 64 * 64;
    char *all = malloc((size_t)(most * n_ranks)), *own, *copy;
    if (!all) return stk_fail_memory((size_t)(most * n_ranks));
    stk_status status = see_part(trainer, i_variable, &own, &copy);
    for (int64_t at = 0; at < part && status == STK_OK; at += most) {
        int64_t n = smaller(part - at, most);
        status = call_ranks(trainer, STK_COLLECTIVE_all_gather, n, own + at, all);
        for (int64_t r = 0; r < n_ranks && dst && status == STK_OK; r++) {
            int64_t begin = r * part + at, n_here = smaller(n, whole - begin);
            if (n_here > 0) memcpy(dst + begin, all + r * n, (size_t)n_here);
        }
    }
    free(copy);
    free(all);
    return status;
}

static stk_status say(const stk_trainer *trainer, int64_t *what)
{
    return call_ranks(trainer, STK_COLLECTIVE_broadcast, (int64_t)sizeof(*what), what, what);
}

static stk_status read_whole(void *user, int64_t i_variable, void *dst)
{
    stk_trainer *trainer = user;
    if (!trainer->shards_are_open || trainer->comm->rank > 0)
        return stk_fail(STK_UNSUPPORTED, "the optimiser's state lies on several replicas, which are not there to ask");
    STK_RETURN_IF_ERROR(say(trainer, &i_variable));
    return gather(trainer, (int)i_variable, dst);
}

stk_named_tensor stk_divided_tensor(stk_trainer *trainer, const stk_variable_view *variable, int i_variable)
{
    trainer->shard_source = (stk_tensor_source){read_whole, trainer};
    stk_tensor_desc whole = stk_desc_make(variable->view.desc.dtype, variable->whole);
    return (stk_named_tensor){
        .name = variable->name, .view = {whole, NULL}, .source = &trainer->shard_source, .number = i_variable};
}

stk_status stk_divided_open(stk_trainer *trainer)
{
    if (!stk_divided_exist(trainer)) return STK_OK;
    trainer->shards_are_open = true;
    if (trainer->comm->rank == 0) return STK_OK;
    for (int64_t what = 0;;) {
        STK_RETURN_IF_ERROR(say(trainer, &what));
        if (what == DONE) return STK_OK;
        STK_RETURN_IF_ERROR(gather(trainer, (int)what, NULL));
    }
}

stk_status stk_divided_close(stk_trainer *trainer, stk_status status)
{
    int64_t done = DONE;
    if (!trainer->shards_are_open) return status;
    trainer->shards_are_open = false;
    stk_status told = trainer->comm->rank == 0 && status == STK_OK ? say(trainer, &done) : STK_OK;
    return status == STK_OK ? told : status; /* After a failure the others are told by whoever ends the run. */
}

/* --- setting --- */

stk_status stk_trainer_make_room(stk_trainer *trainer)
{
    for (size_t i = 0; i < trainer->n_tensors; i++) {
        stk_named_tensor *tensor = &trainer->tensor[i];
        size_t bytes = stk_desc_bytes(tensor->view.desc);
        if (!tensor->source || tensor->view.data) continue;
        if (!(tensor->view.data = calloc(bytes + 1, 1))) return stk_fail_memory(bytes);
    }
    return STK_OK;
}

void stk_divided_forget(stk_trainer *trainer)
{
    for (size_t i = 0; i < trainer->n_tensors; i++) {
        if (!trainer->tensor[i].source) continue;
        free(trainer->tensor[i].view.data);
        trainer->tensor[i].view.data = NULL;
    }
}

/* One rank's room holds the whole; each takes its part. */
static stk_status deal(const stk_trainer *trainer, const stk_named_tensor *tensor)
{
    stk_variable_view variable = stk_engine_variable(trainer->engine, (int)tensor->number);
    int64_t whole = (int64_t)stk_desc_bytes(tensor->view.desc), part = (int64_t)stk_desc_bytes(variable.view.desc);
    int64_t own = part * trainer->comm->rank;
    char *piece = malloc(CALL_BYTES), *data = tensor->view.data, *mine, *copy;
    if (!piece) return stk_fail_memory(CALL_BYTES);
    stk_status status = see_part(trainer, (int)tensor->number, &mine, &copy);
    if (status == STK_OK) memset(mine, 0, (size_t)part);
    for (int64_t at = 0; at < whole && status == STK_OK; at += CALL_BYTES) {
        int64_t n = smaller(whole - at, CALL_BYTES);
        if (data) memcpy(piece, data + at, (size_t)n);
        status = call_ranks(trainer, STK_COLLECTIVE_broadcast, n, piece, piece);
        int64_t begin = own > at ? own : at, end = smaller(own + part, at + n);
        if (begin < end && status == STK_OK) memcpy(mine + (begin - own), piece + (begin - at), (size_t)(end - begin));
    }
    if (copy && status == STK_OK) status = stk_engine_write_variable(trainer->engine, (int)tensor->number, copy);
    free(copy);
    free(piece);
    return status;
}

stk_status stk_divided_deal(stk_trainer *trainer)
{
    int64_t is_given = 0;
    if (!stk_divided_exist(trainer)) return STK_OK;
    for (size_t i = 0; i < trainer->n_tensors; i++)
        is_given |= trainer->tensor[i].source && trainer->tensor[i].view.data;
    STK_RETURN_IF_ERROR(say(trainer, &is_given));
    for (size_t i = 0; i < trainer->n_tensors && is_given; i++)
        if (trainer->tensor[i].source) STK_RETURN_IF_ERROR(deal(trainer, &trainer->tensor[i]));
    stk_divided_forget(trainer);
    return STK_OK;
}
