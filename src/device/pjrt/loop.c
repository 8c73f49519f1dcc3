/* Micro-batches as a loop: capture.h.
 *
 *   before                                                       what the body needs and no turn changes
 *   %8, %9 = while(%4 = %1, %5 = %2) cond { .. } do { inside }   %4 counts turns, %5 is a sum, which begins with %2
 *   after                                                        what needs %9
 *
 * A list of entries holds the body once for each micro-batch, and the module once for all. What an entry of it reads is
 * of the same turn; or another part of an input in each turn, which is cut out where the turn's number says; or was
 * left by the turn before at a place that the body writes later, and then goes from turn to turn; or comes from
 * outside. What of the body is needed behind the loop goes out of it with them.
 */
#include <stdlib.h>

#include "base/error.h"
#include "device/pjrt/capture.h"

static const stk_tensor_desc number = {.dtype = STK_I32};

/* --- the body --- */

static bool has_kernels_of(const stk_entry *a, const stk_entry *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i].kernel != b[i].kernel) return false;
    return true;
}

bool pjrt_find_body(const stk_entry *entries, int n_entries, int *first, pjrt_body *out)
{
    for (int i = 0; i < n_entries; i++)
        for (int k = i + 1; k < n_entries; k++) {
            if (entries[k].kernel != entries[i].kernel) continue;
            int n = k - i, turns = 1;
            while (i + n * (turns + 1) <= n_entries && has_kernels_of(entries + i, entries + i + n * turns, n))
                turns++;
            if (turns < 2) continue;
            *first = i;
            *out = (pjrt_body){entries + i, n, turns};
            return true;
        }
    return false;
}

static char *locate_input(const pjrt_body *body, int i_turn, int i, int j)
{
    return body->entry[i_turn * body->n + i].args.in[j];
}

static bool moves(const pjrt_body *body, int i, int j)
{
    for (int t = 1; t < body->n_turns; t++)
        if (locate_input(body, t, i, j) != locate_input(body, 0, i, j)) return true;
    return false;
}

static bool is_written(const pjrt_body *body, const char *address, size_t bytes)
{
    for (int i = 0; i < body->n; i++) {
        const stk_op_call *call = &((const pjrt_kernel *)body->entry[i].kernel->state)->call;
        for (int j = 0; j < call->n_out; j++) {
            pjrt_live place = {.address = body->entry[i].args.out[j], .bytes = stk_desc_bytes(call->out[j])};
            if (pjrt_overlaps(&place, address, bytes)) return true;
        }
    }
    return false;
}

static bool writes_in_place(const pjrt_body *body, int i, int n_out)
{
    for (int t = 1; t < body->n_turns; t++)
        for (int j = 0; j < n_out; j++)
            if (body->entry[t * body->n + i].args.out[j] != body->entry[i].args.out[j]) return false;
    return true;
}

/* --- another part of an input in each turn --- */

/* All of what the turns read: turn t begins at row t * step, and goes back where not as many rows are left. */
typedef struct input_rows {
    char *address;
    stk_tensor_desc whole;
    int64_t step, n; /* rows: from turn to turn; of a turn */
} input_rows;

static bool find_rows(const pjrt_device *device, const pjrt_body *body, int i, int j, input_rows *out)
{
    stk_tensor_desc desc = ((const pjrt_kernel *)body->entry[i].kernel->state)->call.in[j];
    char *first = locate_input(body, 0, i, j), *last = locate_input(body, body->n_turns - 1, i, j);
    if (stk_shape_count(desc.shape) == 0 || last <= first) return false;
    if (pjrt_find_block(device, first) != pjrt_find_block(device, last)) return false;
    int64_t n = desc.shape.rank ? desc.shape.dim[0] : 1, row_bytes = (int64_t)stk_desc_bytes(desc) / n;
    int64_t step = locate_input(body, 1, i, j) - first, most = last - first;
    if (step % row_bytes || most % row_bytes || step * body->n_turns / row_bytes > INT32_MAX) return false;
    for (int t = 0; t < body->n_turns; t++)
        if (locate_input(body, t, i, j) - first != (t * step < most ? t * step : most)) return false;
    desc.shape.rank += desc.shape.rank == 0;
    desc.shape.dim[0] = most / row_bytes + n;
    *out = (input_rows){first, desc, step / row_bytes, n};
    return !is_written(body, first, stk_desc_bytes(desc));
}

stk_status pjrt_read_inputs(stk_capture *c, const pjrt_body *body)
{
    pjrt_value all;
    input_rows rows;
    const stk_op_call *call = NULL;
    for (int i = 0; i < body->n; i++) /* The device's own, all of them. */
        STK_RETURN_IF_ERROR(pjrt_get_call(&body->entry[i], &call));
    for (int i = 0; i < body->n; i++) {
        STK_RETURN_IF_ERROR(pjrt_get_call(&body->entry[i], &call));
        for (int j = 0; j < call->n_in; j++) {
            if (!moves(body, i, j) || !find_rows(c->device, body, i, j, &rows)) continue;
            stk_status status = pjrt_read_value(c, rows.address, rows.whole, &all);
            if (status != STK_OK && status != STK_UNSUPPORTED) return status;
        }
    }
    return STK_OK;
}

/* --- what goes from turn to turn --- */

/* Writes before the loop, and when called again, inside. */
static void step_out(stk_capture *c)
{
    stk_text inside = c->module.body;
    c->module.body = c->loop.before;
    c->loop.before = inside;
}

static stk_status read_outside(stk_capture *c, char *address, stk_tensor_desc desc, pjrt_value *out)
{
    step_out(c);
    stk_status status = pjrt_read_value(c, address, desc, out);
    step_out(c);
    return status;
}

static stk_status carry(stk_capture *c, pjrt_carried new)
{
    pjrt_loop *loop = &c->loop;
    if (loop->n_carried == loop->n_slots) {
        int slots = loop->n_slots ? 2 * loop->n_slots : 64;
        pjrt_carried *grown = realloc(loop->carried, (size_t)slots * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)slots * sizeof(*grown));
        loop->carried = grown;
        loop->n_slots = slots;
    }
    new.in = pjrt_new_value(&c->module, new.start.desc);
    new.out = pjrt_new_value(&c->module, new.start.desc);
    loop->carried[loop->n_carried++] = new;
    return STK_OK;
}

/* What the turn before left there. may_be_new: the first one may find nothing, and then begins with zeros. */
static stk_status read_carried(stk_capture *c, char *address, stk_tensor_desc desc, bool may_be_new, pjrt_value *out)
{
    pjrt_loop *loop = &c->loop;
    for (int i = 0; i < loop->n_carried; i++) {
        const pjrt_carried *carried = &loop->carried[i];
        stk_tensor_desc its = carried->in.desc;
        if (carried->address != address || its.dtype != desc.dtype || !stk_shape_equal(its.shape, desc.shape)) continue;
        *out = carried->in;
        return STK_OK;
    }
    pjrt_carried new = {.address = address};
    step_out(c);
    stk_status status = STK_OK;
    bool is_found = may_be_new && pjrt_find_value(c, &c->live, address, desc, &new.start);
    if (may_be_new && !is_found)
        new.start = pjrt_integer(&c->module, desc, 0);
    else if (!is_found)
        status = pjrt_read_value(c, address, desc, &new.start);
    step_out(c);
    if (status == STK_OK) status = carry(c, new);
    if (status == STK_OK) *out = loop->carried[loop->n_carried - 1].in;
    return status;
}

stk_status pjrt_take_out(stk_capture *c, pjrt_value *value)
{
    pjrt_loop *loop = &c->loop;
    pjrt_carried new = {.next = *value};
    for (int i = 0; i < loop->n_carried; i++)
        if (loop->carried[i].next.id == value->id) {
            *value = loop->carried[i].out;
            return STK_OK;
        }
    step_out(c);
    new.start = pjrt_integer(&c->module, value->desc, 0);
    step_out(c);
    STK_RETURN_IF_ERROR(carry(c, new));
    *value = loop->carried[loop->n_carried - 1].out;
    return STK_OK;
}

/* --- a turn --- */

/* A turn that is being written. */
typedef struct turn {
    const pjrt_body *body;
    pjrt_live_list made;
} turn;

static stk_status read_rows(stk_capture *c, const turn *t, int i, int j, stk_tensor_desc desc, pjrt_value *out)
{
    pjrt_module *m = &c->module;
    pjrt_value all;
    input_rows rows;
    if (!find_rows(c->device, t->body, i, j, &rows))
        return stk_fail(STK_UNSUPPORTED, "micro-batches read what lies in no order");
    STK_RETURN_IF_ERROR(read_outside(c, rows.address, rows.whole, &all));
    pjrt_value start = pjrt_binary(m, "multiply", c->loop.carried[0].in, pjrt_integer(m, number, rows.step));
    *out = pjrt_reshape(m, pjrt_take_rows(m, all, start, rows.n), desc.shape);
    return STK_OK;
}

/* may_be_new: see read_carried. */
static stk_status read_place(stk_capture *c, turn *t, char *address, stk_tensor_desc desc, bool may_be_new,
                             pjrt_value *out)
{
    size_t bytes = stk_desc_bytes(desc);
    if (bytes > 0 && pjrt_find_value(c, &t->made, address, desc, out)) return STK_OK;
    for (int i = 0; i < t->made.n; i++)
        if (pjrt_overlaps(&t->made.at[i], address, bytes))
            return stk_fail(STK_UNSUPPORTED, "a value that was written in parts or with another type is read");
    return is_written(t->body, address, bytes) ? read_carried(c, address, desc, may_be_new, out)
                                               : read_outside(c, address, desc, out);
}

static stk_status write_entry(stk_capture *c, turn *t, int i)
{
    pjrt_value in[STK_MOST_INPUTS + 1], out[STK_MOST_OUTPUTS];
    const stk_entry *entry = &t->body->entry[i];
    const stk_op_call *call = NULL;
    STK_RETURN_IF_ERROR(pjrt_get_call(entry, &call));
    int n_in = call->n_in;
    if (!writes_in_place(t->body, i, call->n_out))
        return stk_fail(STK_UNSUPPORTED, "micro-batches write to places of their own");
    for (int j = 0; j < n_in; j++)
        if (pjrt_is_read(call->op, j))
            STK_RETURN_IF_ERROR(moves(t->body, i, j) ? read_rows(c, t, i, j, call->in[j], &in[j])
                                                     : read_place(c, t, entry->args.in[j], call->in[j], false, &in[j]));
    if (call->op == STK_OP_accumulate)
        STK_RETURN_IF_ERROR(read_place(c, t, entry->args.out[0], call->out[0], true, &in[n_in++]));
    STK_RETURN_IF_ERROR(pjrt_lower_entry(c, entry, n_in, in, out));
    for (int j = 0; j < call->n_out; j++)
        STK_RETURN_IF_ERROR(pjrt_note(&t->made, (pjrt_live){.address = entry->args.out[j],
                                                            .bytes = stk_desc_bytes(out[j].desc),
                                                            .value = out[j],
                                                            .written = true}));
    return STK_OK;
}

/* What the next turn finds where this one found something. */
static stk_status end_turn(stk_capture *c, turn *t)
{
    pjrt_module *m = &c->module;
    pjrt_carried *count = &c->loop.carried[0];
    count->next = pjrt_binary(m, "add", count->in, pjrt_integer(m, number, 1));
    for (int i = 1; i < c->loop.n_carried; i++) {
        pjrt_carried *carried = &c->loop.carried[i];
        if (!pjrt_find_value(c, &t->made, carried->address, carried->in.desc, &carried->next))
            return stk_fail(STK_UNSUPPORTED, "a micro-batch leaves another type than it found");
    }
    return STK_OK;
}

/* The worst id of all turns. */
static stk_status carry_checks(stk_capture *c, int first)
{
    pjrt_module *m = &c->module;
    for (int i = first; i < m->n_checks; i++) {
        pjrt_carried new = {.address = NULL};
        step_out(c);
        new.start = pjrt_integer(m, m->found[i].desc, PJRT_NO_BAD_ID);
        step_out(c);
        STK_RETURN_IF_ERROR(carry(c, new));
        pjrt_carried *worst = &c->loop.carried[c->loop.n_carried - 1];
        worst->next = pjrt_binary(m, "maximum", worst->in, m->found[i]);
        m->found[i] = worst->out;
    }
    return STK_OK;
}

/* What the last turn left is there from now on. */
static stk_status leave(stk_capture *c, const turn *t)
{
    for (int i = 0; i < t->body->n; i++) {
        const stk_op_call *call = &((const pjrt_kernel *)t->body->entry[i].kernel->state)->call;
        for (int j = 0; j < call->n_out; j++)
            pjrt_forget(&c->live, t->body->entry[i].args.out[j], stk_desc_bytes(call->out[j]));
    }
    for (int i = 0; i < t->made.n; i++) {
        pjrt_live live = t->made.at[i];
        live.inside = true;
        STK_RETURN_IF_ERROR(pjrt_note(&c->live, live));
    }
    return STK_OK;
}

stk_status pjrt_lower_loop(stk_capture *c, const pjrt_body *body)
{
    stk_status status = STK_OK;
    pjrt_module *m = &c->module;
    int n_checks = m->n_checks;
    turn t = {.body = body};
    pjrt_carried count = {.start = pjrt_integer(m, number, 0)};
    step_out(c);
    STK_TRY(carry(c, count));
    for (int i = 0; i < body->n; i++)
        STK_TRY(write_entry(c, &t, i));
    STK_TRY(end_turn(c, &t));
    STK_TRY(carry_checks(c, n_checks));
    STK_TRY(leave(c, &t));
    c->loop.inside = m->body;
    m->body = (stk_text){0};
    c->body = *body;
done:
    free(t.made.at);
    if (status == STK_OK) return status;
    step_out(c); /* What stands before it may stay. */
    pjrt_free_loop(&c->loop);
    m->n_checks = n_checks;
    return status;
}

void pjrt_free_loop(pjrt_loop *loop)
{
    stk_text_free(&loop->before);
    stk_text_free(&loop->inside);
    free(loop->carried);
    *loop = (pjrt_loop){0};
}

/* --- its text --- */

static void add_types(stk_text *text, const pjrt_loop *loop)
{
    char type[PJRT_TYPE_TEXT];
    for (int i = 0; i < loop->n_carried; i++)
        stk_text_add(text, "%s%s", i ? ", " : " : ", pjrt_type_text(loop->carried[i].start.desc, type));
    stk_text_add(text, "\n");
}

void pjrt_close_loop(stk_capture *c)
{
    pjrt_module *m = &c->module;
    pjrt_loop *loop = &c->loop;
    stk_text after = m->body, inside = loop->inside;
    if (loop->n_carried == 0) return;
    m->body = loop->before;
    loop->before = loop->inside = (stk_text){0};
    for (int i = 0; i < loop->n_carried; i++)
        stk_text_add(&m->body, "%s%%%d", i ? ", " : "", loop->carried[i].out.id);
    for (int i = 0; i < loop->n_carried; i++)
        stk_text_add(&m->body, "%s%%%d = %%%d", i ? ", " : " = stablehlo.while(", loop->carried[i].in.id,
                     loop->carried[i].start.id);
    stk_text_add(&m->body, ")");
    add_types(&m->body, loop);
    stk_text_add(&m->body, "cond {\n");
    pjrt_value more = pjrt_compare(m, "LT", loop->carried[0].in, pjrt_integer(m, number, c->body.n_turns));
    stk_text_add(&m->body, "stablehlo.return %%%d : tensor<i1>\n} do {\n", more.id);
    stk_text_add_bytes(&m->body, inside.data, inside.n);
    for (int i = 0; i < loop->n_carried; i++)
        stk_text_add(&m->body, "%s%%%d", i ? ", " : "stablehlo.return ", loop->carried[i].next.id);
    add_types(&m->body, loop);
    stk_text_add(&m->body, "}\n");
    stk_text_add_bytes(&m->body, after.data, after.n);
    m->body.failed |= inside.failed || after.failed;
    stk_text_free(&inside);
    stk_text_free(&after);
    pjrt_free_loop(loop);
}
