/* Launching a capture: pjrt.h. Its arguments are what lies at their addresses, and its results lie at theirs behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/pjrt/capture.h"

static stk_status bind_arguments(const stk_capture *c, size_t *n_not_donated)
{
    *n_not_donated = 0;
    for (int i = 0; i < c->n_arguments; i++) {
        pjrt_content *content;
        const pjrt_site *a = &c->argument[i];
        STK_RETURN_IF_ERROR(pjrt_get_content(c->device, a->block, a->address, a->value.desc, &content));
        c->argument_buffer[i] = content->buffer;
        if (a->i_result >= 0 && content->n_users > 1) c->not_donated[(*n_not_donated)++] = i;
    }
    return STK_OK;
}

/* Reads what the checks found, without waiting. Takes the buffer. */
static stk_status read_checks(const stk_capture *c, stk_queue *queue, pjrt_buffer *buffer)
{
    size_t n = (size_t)c->module.n_checks;
    stk_status status = STK_OK;
    pjrt_work work = {.n_checks = c->module.n_checks};
    stk_tensor_desc desc = stk_desc_make(STK_I32, STK_SHAPE(c->module.n_checks));
    STK_TRY(pjrt_new_content(c->device, buffer, desc, &work.content));
    work.ids = malloc(n * sizeof(*work.ids));
    work.check = malloc(n * sizeof(*work.check));
    if (!work.ids || !work.check) STK_TRY(stk_fail_memory(n * sizeof(*work.check)));
    memcpy(work.check, c->module.check, n * sizeof(*work.check));
    STK_TRY(pjrt_to_host(c->device, work.content, work.ids, &work.event));
    return pjrt_add_work(queue, work);
done:
    pjrt_drop_content(c->device, work.content);
    free(work.ids);
    free(work.check);
    return status;
}

/* What the program left: all buffers are taken, also on failure. */
static stk_status put_results(const stk_capture *c, stk_queue *queue)
{
    stk_status status = STK_OK;
    for (int i = 0; i < c->n_results; i++) {
        pjrt_content *content;
        const pjrt_site *r = &c->result[i];
        stk_status one = pjrt_new_content(c->device, c->result_buffer[i], r->value.desc, &content);
        if (one == STK_OK) one = pjrt_put_content(c->device, r->block, r->address, r->bytes, content);
        if (status == STK_OK) status = one;
    }
    if (c->module.n_checks) {
        stk_status one = read_checks(c, queue, c->result_buffer[c->n_results]);
        if (status == STK_OK) status = one;
    }
    return status;
}

static stk_status execute(stk_capture *c, size_t n_not_donated, pjrt_event **done)
{
    pjrt_launching own = {
        .comm = c->comm,
        .device = c->device,
        .executable = c->compiled ? c->compiled->executable : NULL,
        .text_hash = c->text_hash,
        .argument = c->argument_buffer,
        .result = c->result_buffer,
        .n_arguments = c->n_arguments,
        .not_donated = c->not_donated,
        .n_not_donated = n_not_donated,
    };
    stk_status status = pjrt_is_of_hosts(c->comm) ? pjrt_launch_part(&own)
                        : c->comm                 ? pjrt_launch_together(&own)
                                                  : pjrt_execute(&own, NULL, 1);
    *done = own.done;
    return status;
}

stk_status pjrt_launch(stk_queue *queue, const stk_capture *capture, int *i_failed)
{
    stk_capture *c = (stk_capture *)capture;
    size_t n_not_donated;
    pjrt_event *done = NULL;
    *i_failed = -1;
    if (c->device->base.absent[0])
        return stk_fail(STK_NO_DEVICE, "'%s:%s' is not here: steps can be compiled for it, and not run",
                        c->device->base.class->name, c->device->base.absent);
    if (!c->is_whole) STK_RETURN_IF_ERROR(pjrt_keep(c, NULL, 0));
    STK_RETURN_IF_ERROR(bind_arguments(c, &n_not_donated));
    STK_RETURN_IF_ERROR(execute(c, n_not_donated, &done));
    stk_status status = put_results(c, queue);
    stk_status added = pjrt_add_work(queue, (pjrt_work){.event = done});
    return status != STK_OK ? status : added;
}
