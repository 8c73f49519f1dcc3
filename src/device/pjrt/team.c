/* Ranks of one process that launch a program together: pjrt.h.
 *
 *   every rank   says where its arguments, results and its place for an error lie        (all_gather of addresses)
 *   the first    compares what they run, and gives the plug-in the arguments of all
 *   every rank   learns whether that worked, and takes its results                       (barrier)
 *
 * Ranks are threads of one process, so that addresses say all. Waits end as the communication's do.
 */
#include <stdio.h>

#include "base/error.h"
#include "device/pjrt/lowering.h"
#include "device/pjrt/pjrt.h"

stk_status pjrt_find_rank_kernel(stk_device *base, stk_comm *comm, const stk_op_call *call, stk_kernel *out)
{
    pjrt_device *device = (pjrt_device *)base;
    if (call->op == STK_OP_rank_begin || call->op == STK_OP_rank_await)
        return stk_fail(STK_UNSUPPORTED, "the PJRT device has no lowering for '%s': XLA itself chooses when sums begin",
                        stk_op_name(call->op));
    bool is_of_hosts = pjrt_is_of_hosts(comm);
    if (is_of_hosts) STK_RETURN_IF_ERROR(pjrt_check_hosts(device, comm));
    if (!is_of_hosts && !base->absent[0] && device->i_chip + comm->n_ranks - comm->rank > device->plugin->n_chips)
        return stk_fail(STK_NO_DEVICE, "%d replicas want a device each, and '%s' has %d", comm->n_ranks,
                        device->plugin->path, device->plugin->n_chips);
    STK_RETURN_IF_ERROR(pjrt_make_kernel(call, out));
    ((pjrt_kernel *)out->state)->comm = comm;
    return STK_OK;
}

/* An argument that one of them keeps, all keep. */
static stk_status join(pjrt_launching *first, pjrt_launching *const *all, int n)
{
    for (int r = 1; r < n; r++) {
        if (all[r]->text_hash != first->text_hash || all[r]->n_arguments != first->n_arguments)
            return stk_fail(STK_MISMATCH, "replicas 0 and %d have different programs", r);
        for (size_t i = 0; i < all[r]->n_not_donated; i++) {
            bool is_known = false;
            for (size_t k = 0; k < first->n_not_donated && !is_known; k++)
                is_known = first->not_donated[k] == all[r]->not_donated[i];
            if (!is_known) first->not_donated[first->n_not_donated++] = all[r]->not_donated[i];
        }
    }
    return STK_OK;
}

static void lead(pjrt_launching *first, pjrt_launching *const *all, int n)
{
    stk_status status = join(first, all, n);
    if (status == STK_OK) status = pjrt_execute(first, all, n);
    for (int r = 0; r < n; r++) {
        all[r]->status = status;
        snprintf(all[r]->error, sizeof(all[r]->error), "%s", status == STK_OK ? "" : stk_error_text());
    }
}

stk_status pjrt_launch_together(pjrt_launching *own)
{
    stk_comm *comm = own->comm;
    int64_t address = (int64_t)(intptr_t)own, addresses[STK_MOST_DEVICES];
    pjrt_launching *all[STK_MOST_DEVICES];
    if (comm->n_ranks > STK_MOST_DEVICES)
        return stk_fail(STK_UNSUPPORTED, "more than %d replicas on a PJRT device", STK_MOST_DEVICES);
    stk_comm_call gather = {
        .kind = STK_COLLECTIVE_all_gather, .dtype = STK_I64, .n = 1, .src = &address, .dst = addresses};
    stk_comm_call barrier = {.kind = STK_COLLECTIVE_barrier};
    STK_RETURN_IF_ERROR(stk_comm_run(comm, &gather, comm->timeout_ms));
    for (int r = 0; r < comm->n_ranks; r++)
        all[r] = (pjrt_launching *)(intptr_t)addresses[r]; // NOLINT(performance-no-int-to-ptr)
    if (comm->rank == 0) lead(own, all, comm->n_ranks);
    STK_RETURN_IF_ERROR(stk_comm_run(comm, &barrier, comm->timeout_ms));
    return own->status == STK_OK ? STK_OK : stk_fail(own->status, "%s", own->error);
}
