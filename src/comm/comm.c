/* What all kinds of communication check. */
#include "comm/comm.h"

#include "base/error.h"
#include "base/hash.h"
#include "elastic/beat.h"

const char *stk_collective_name(stk_collective kind)
{
#define X(name) #name,
    static const char *const names[] = {STK_COLLECTIVE_LIST(X)};
#undef X
    return (unsigned)kind < STK_N_COLLECTIVES ? names[kind] : "?";
}

uint64_t stk_comm_call_hash(const stk_comm_call *call)
{
    int64_t what[] = {call->kind, call->dtype, call->n, call->root, call->mean};
    return stk_hash64(what, sizeof(what), 0);
}

static bool sums(stk_collective kind)
{
    return kind == STK_COLLECTIVE_all_reduce || kind == STK_COLLECTIVE_reduce_scatter;
}

stk_status stk_comm_start(stk_comm *comm, const stk_comm_call *call, int64_t *number)
{
    bool is_float = call->dtype == STK_F32 || call->dtype == STK_F64;
    bool adds_up = is_float || call->dtype == STK_BF16 || call->dtype == STK_I32 || call->dtype == STK_I64;
    if ((unsigned)call->kind >= STK_N_COLLECTIVES || call->n < 0)
        return stk_fail(STK_INVALID, "there is no collective %d of %lld elements", (int)call->kind, (long long)call->n);
    if (call->kind == STK_COLLECTIVE_broadcast && (call->root < 0 || call->root >= comm->n_ranks))
        return stk_fail(STK_INVALID, "there is no rank %d to broadcast: there are %d", (int)call->root, comm->n_ranks);
    if (sums(call->kind) && (!adds_up || (call->mean && !is_float)))
        return stk_fail(STK_UNSUPPORTED, "no %s over ranks in %s", call->mean ? "mean" : "sum",
                        stk_dtype_name(call->dtype));
    STK_RETURN_IF_ERROR(comm->class->start(comm, call, number));
    comm->kind[*number % STK_COMM_MOST_CALLS] = call->kind;
    return STK_OK;
}

stk_status stk_comm_wait(stk_comm *comm, int64_t number, int timeout_ms)
{
    if (!comm->beat) return comm->class->wait(comm, number, timeout_ms);
    stk_collective kind = number < 0 ? STK_COLLECTIVE_barrier : comm->kind[number % STK_COMM_MOST_CALLS];
    stk_beat_enter(comm->beat, stk_collective_name(kind));
    stk_status status = comm->class->wait(comm, number, timeout_ms);
    stk_beat_leave(comm->beat);
    return status;
}

stk_status stk_comm_run(stk_comm *comm, const stk_comm_call *call, int timeout_ms)
{
    int64_t number;
    STK_RETURN_IF_ERROR(stk_comm_start(comm, call, &number));
    return stk_comm_wait(comm, number, timeout_ms);
}

void stk_comm_abort(stk_comm *comm, const char *why)
{
    if (comm) comm->class->abort(comm, why);
}

void stk_comm_close(stk_comm *comm)
{
    if (comm) comm->class->close(comm);
}

void stk_comm_set_beat(stk_comm *comm, struct stk_beat *beat)
{
    const _Atomic uint64_t *counter[2];
    comm->beat = beat;
    if (beat && comm->class->count) stk_beat_count(beat, counter, comm->class->count(comm, counter));
}
