/* A list of entries as one module: pjrt.h.
 *
 * Entries name addresses, and a module has values. So while the list is read, a table says which value lies at which
 * address. What is read and was not written before is an argument; what lies in memory that stays (variables, results)
 * at the end is a result, and so is what was asked to be kept of an arena. An argument whose address gets a result of
 * its own type gives its memory to it. Where ranks do something together, they launch it together: team.c, hosts.c.
 * Micro-batches are a loop where they can be one: loop.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/pjrt/capture.h"

/* --- which value lies where --- */

bool pjrt_overlaps(const pjrt_live *live, const char *address, size_t bytes)
{
    return live->address < address + bytes && address < live->address + live->bytes;
}

void pjrt_forget(pjrt_live_list *list, const char *address, size_t bytes)
{
    int n = 0;
    for (int i = 0; i < list->n; i++)
        if (!pjrt_overlaps(&list->at[i], address, bytes)) list->at[n++] = list->at[i];
    list->n = n;
}

stk_status pjrt_note(pjrt_live_list *list, pjrt_live live)
{
    if (live.bytes == 0) return STK_OK;
    pjrt_forget(list, live.address, live.bytes);
    if (list->n == list->n_slots) {
        int slots = list->n_slots ? 2 * list->n_slots : 256;
        pjrt_live *grown = realloc(list->at, (size_t)slots * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)slots * sizeof(*grown));
        list->at = grown;
        list->n_slots = slots;
    }
    list->at[list->n++] = live;
    return STK_OK;
}

/* Elements at a byte of a value, in another shape. */
static pjrt_value take_part(pjrt_module *m, pjrt_value x, size_t offset_bytes, stk_tensor_desc desc)
{
    int64_t n = stk_shape_count(x.desc.shape), step = 1;
    int64_t start = (int64_t)(offset_bytes / stk_dtype_bytes(desc.dtype)), stop = start + stk_shape_count(desc.shape);
    if (start > 0 || stop < n) x = pjrt_slice(m, pjrt_reshape(m, x, STK_SHAPE(n)), &start, &stop, &step);
    return pjrt_reshape(m, x, desc.shape);
}

bool pjrt_find_value(stk_capture *c, pjrt_live_list *list, const char *address, stk_tensor_desc desc, pjrt_value *out)
{
    size_t bytes = stk_desc_bytes(desc);
    for (int i = list->n - 1; i >= 0; i--) {
        pjrt_live *live = &list->at[i];
        if (live->address > address || live->address + live->bytes < address + bytes) continue;
        if (live->value.desc.dtype != desc.dtype) return false;
        if (live->inside && c->module.status == STK_OK) c->module.status = pjrt_take_out(c, &live->value);
        live->inside = false;
        *out = take_part(&c->module, live->value, (size_t)(address - live->address), desc);
        return true;
    }
    return false;
}

static stk_status add_argument(stk_capture *c, char *address, stk_tensor_desc desc, pjrt_value *out)
{
    size_t bytes = stk_desc_bytes(desc);
    pjrt_block *block = pjrt_find_block(c->device, address);
    if (!block) return stk_fail(STK_INVALID, "a program reads what is no memory of the device");
    for (int i = 0; i < c->live.n; i++)
        if (pjrt_overlaps(&c->live.at[i], address, bytes))
            return stk_fail(STK_UNSUPPORTED, "a value that was written in parts or with another type is read");
    if (c->n_arguments == c->n_argument_slots) {
        int slots = c->n_argument_slots ? 2 * c->n_argument_slots : 64;
        pjrt_site *grown = realloc(c->argument, (size_t)slots * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)slots * sizeof(*grown));
        c->argument = grown;
        c->n_argument_slots = slots;
    }
    *out = pjrt_new_value(&c->module, desc);
    c->argument[c->n_arguments++] = (pjrt_site){block, address, bytes, *out, -1};
    return pjrt_note(&c->live, (pjrt_live){.address = address, .bytes = bytes, .value = *out});
}

stk_status pjrt_read_value(stk_capture *c, char *address, stk_tensor_desc desc, pjrt_value *out)
{
    if (stk_desc_bytes(desc) == 0) {
        *out = pjrt_integer(&c->module, desc, 0);
        return STK_OK;
    }
    return pjrt_find_value(c, &c->live, address, desc, out) ? STK_OK : add_argument(c, address, desc, out);
}

/* --- entries --- */

bool pjrt_is_read(stk_op op, int i)
{
    return op != STK_OP_rank_gather || i == 0;
}

stk_status pjrt_get_call(const stk_entry *entry, const stk_op_call **out)
{
    if (!pjrt_is_own_kernel(entry->kernel))
        return stk_fail(STK_UNSUPPORTED, "a PJRT device does not work with devices of other kinds");
    *out = &((const pjrt_kernel *)entry->kernel->state)->call;
    return STK_OK;
}

stk_status pjrt_lower_entry(stk_capture *c, const stk_entry *entry, int n_in, const pjrt_value *in, pjrt_value *out)
{
    const pjrt_kernel *kernel = entry->kernel->state;
    c->module.op = kernel->call.op;
    if (kernel->comm) {
        if (c->comm && c->comm != kernel->comm) return stk_fail(STK_INVALID, "a program of two groups of ranks");
        c->comm = kernel->comm;
        STK_RETURN_IF_ERROR(pjrt_lower_ranks(&c->module, &kernel->call, c->comm->n_ranks, in, out));
    } else {
        STK_RETURN_IF_ERROR(pjrt_find_lowering(kernel->call.op)(&c->module, &kernel->call, n_in, in, out));
    }
    return c->module.status;
}

/* An entry that runs once. */
static stk_status run_entry(stk_capture *c, const stk_entry *entry)
{
    pjrt_value in[STK_MOST_INPUTS + 1], out[STK_MOST_OUTPUTS];
    const stk_op_call *call = NULL;
    STK_RETURN_IF_ERROR(pjrt_get_call(entry, &call));
    int n_in = call->n_in;
    for (int i = 0; i < n_in; i++)
        if (pjrt_is_read(call->op, i)) STK_RETURN_IF_ERROR(pjrt_read_value(c, entry->args.in[i], call->in[i], &in[i]));
    if (call->op == STK_OP_accumulate && c->n_entries == 1) /* Alone, in a profile: the sum lies in memory. */
        STK_RETURN_IF_ERROR(pjrt_read_value(c, entry->args.out[0], call->out[0], &in[n_in++]));
    else if (call->op == STK_OP_accumulate && pjrt_find_value(c, &c->live, entry->args.out[0], call->out[0], &in[n_in]))
        n_in++;
    STK_RETURN_IF_ERROR(pjrt_lower_entry(c, entry, n_in, in, out));
    for (int i = 0; i < call->n_out; i++)
        STK_RETURN_IF_ERROR(
            pjrt_note(&c->live, (pjrt_live){entry->args.out[i], stk_desc_bytes(out[i].desc), out[i], true, false}));
    return STK_OK;
}

static stk_status run_entries(stk_capture *c, const stk_entry *entries, int n)
{
    for (int i = 0; i < n; i++)
        STK_RETURN_IF_ERROR(run_entry(c, &entries[i]));
    return STK_OK;
}

/* XLA for the processor gives a convolution in a loop neither threads nor a library: thirty times as slow. */
static bool is_slow_in_loop(const stk_capture *c, const pjrt_body *body)
{
    if (strcmp(c->device->plugin->platform, "cpu") != 0) return false;
    for (int i = 0; i < body->n; i++)
        switch (((const pjrt_kernel *)body->entry[i].kernel->state)->call.op) {
        case STK_OP_conv2d:
        case STK_OP_conv2d_grad_data:
        case STK_OP_conv2d_grad_weight:
        case STK_OP_conv3d:
        case STK_OP_conv3d_grad_data:
        case STK_OP_conv3d_grad_weight: return true;
        default: break;
        }
    return false;
}

/* Micro-batches that are no loop stand there one by one. */
static stk_status run_body(stk_capture *c, const pjrt_body *body)
{
    STK_RETURN_IF_ERROR(pjrt_read_inputs(c, body));
    stk_status status = is_slow_in_loop(c, body) ? STK_UNSUPPORTED : pjrt_lower_loop(c, body);
    return status == STK_UNSUPPORTED ? run_entries(c, body->entry, body->n * body->n_turns) : status;
}

stk_status pjrt_capture(stk_device *device, const stk_entry *entries, int n_entries, stk_capture **out)
{
    stk_status status = STK_OK;
    pjrt_body body = {.n = 0};
    int first = n_entries, end = n_entries;
    stk_capture *c = calloc(1, sizeof(*c));
    *out = NULL;
    if (!c) return stk_fail_memory(sizeof(*c));
    c->device = (pjrt_device *)device;
    c->entry = entries;
    c->n_entries = n_entries;
    if (pjrt_find_body(entries, n_entries, &first, &body)) end = first + body.n * body.n_turns;
    STK_TRY(run_entries(c, entries, first));
    if (first < end) STK_TRY(run_body(c, &body));
    STK_TRY(run_entries(c, entries + end, n_entries - end));
    STK_TRY(stk_text_status(&c->module.body));
    *out = c;
    c = NULL;
done:
    pjrt_release(c);
    return status;
}

void pjrt_release(stk_capture *c)
{
    if (!c) return;
    if (c->compiled) c->compiled->n_users--; /* It stays for a while: executable.c. */
    pjrt_module_free(&c->module);
    pjrt_free_loop(&c->loop);
    free(c->live.at);
    free(c->argument);
    free(c->result);
    free(c->argument_buffer);
    free(c->result_buffer);
    free(c->not_donated);
    free(c);
}

/* --- the module as a whole --- */

static bool is_kept(const pjrt_live *live, const pjrt_block *block, const stk_kept *kept, int n_kept)
{
    if (!block->scratch || !kept) return true;
    for (int i = 0; i < n_kept; i++)
        if (pjrt_overlaps(live, kept[i].address, kept[i].bytes)) return true;
    return false;
}

static stk_status list_results(stk_capture *c, const stk_kept *kept, int n_kept)
{
    c->result = calloc((size_t)c->live.n + 1, sizeof(*c->result));
    if (!c->result) return stk_fail_memory((size_t)c->live.n * sizeof(*c->result));
    for (int i = 0; i < c->live.n; i++) {
        pjrt_live *live = &c->live.at[i];
        pjrt_block *block = live->written ? pjrt_find_block(c->device, live->address) : NULL;
        if (!live->written) continue;
        if (!block) return stk_fail(STK_INVALID, "a program writes what is no memory of the device");
        if (!is_kept(live, block, kept, n_kept)) continue;
        if (live->inside) STK_RETURN_IF_ERROR(pjrt_take_out(c, &live->value));
        for (int k = 0; k < c->n_arguments; k++) {
            pjrt_site *argument = &c->argument[k];
            stk_tensor_desc a = argument->value.desc, b = live->value.desc;
            if (argument->address == live->address && a.dtype == b.dtype && stk_shape_equal(a.shape, b.shape))
                argument->i_result = c->n_results;
        }
        c->result[c->n_results++] = (pjrt_site){block, live->address, live->bytes, live->value, -1};
    }
    return STK_OK;
}

/* All checks as one value. */
static pjrt_value join_checks(pjrt_module *m)
{
    char type[PJRT_TYPE_TEXT];
    if (m->n_checks == 1) return m->found[0];
    pjrt_value all = pjrt_new_value(m, stk_desc_make(STK_I32, STK_SHAPE(m->n_checks)));
    stk_text_add(&m->body, "%%%d = stablehlo.concatenate ", all.id);
    for (int i = 0; i < m->n_checks; i++)
        stk_text_add(&m->body, "%s%%%d", i ? ", " : "", m->found[i].id);
    stk_text_add(&m->body, ", dim = 0 : (");
    for (int i = 0; i < m->n_checks; i++)
        stk_text_add(&m->body, "%s%s", i ? ", " : "", pjrt_type_text(m->found[i].desc, type));
    stk_text_add(&m->body, ") -> %s\n", pjrt_type_text(all.desc, type));
    return all;
}

typedef struct name_list {
    const stk_named_place *place;
    int n;
} name_list;

/* Names are texts of MLIR, in which a few characters would need an escape. */
static void add_name(stk_text *text, name_list names, const pjrt_site *s, const char *more)
{
    const char *name = NULL;
    for (int i = 0; i < names.n && !name; i++)
        if (s->address >= names.place[i].address && s->address < names.place[i].address + names.place[i].bytes)
            name = names.place[i].name;
    if (!name && !*more) return;
    stk_text_add(text, " {%s%s", more, name && *more ? ", " : "");
    if (name) stk_text_add(text, "stoker.name = \"");
    for (const char *p = name; p && *p; p++)
        stk_text_add(text, "%c", *p == '"' || *p == '\\' || (unsigned char)*p < 0x20 ? '_' : *p);
    stk_text_add(text, name ? "\"}" : "}");
}

static void add_types(stk_text *text, const pjrt_site *sites, int n, const pjrt_value *last, name_list names)
{
    char type[PJRT_TYPE_TEXT];
    for (int i = 0; i < n; i++) {
        stk_text_add(text, "%s%s", i ? ", " : "", pjrt_type_text(sites[i].value.desc, type));
        add_name(text, names, &sites[i], "");
    }
    if (last) stk_text_add(text, "%s%s", n ? ", " : "", pjrt_type_text(last->desc, type));
}

static stk_status print_module(stk_capture *c, name_list names, stk_text *text)
{
    char type[PJRT_TYPE_TEXT], donated[64];
    pjrt_module *m = &c->module;
    const pjrt_value *last = m->n_checks ? &c->checks : NULL;
    stk_text_add(text, "module @stoker attributes {mhlo.num_replicas = %d : i32, mhlo.num_partitions = 1 : i32} {\n",
                 stk_comm_n_ranks(c->comm));
    stk_text_add(text, "func.func public @main(");
    for (int i = 0; i < c->n_arguments; i++) {
        const pjrt_site *argument = &c->argument[i];
        stk_text_add(text, "%s%%%d: %s", i ? ", " : "", argument->value.id, pjrt_type_text(argument->value.desc, type));
        snprintf(donated, sizeof(donated), "tf.aliasing_output = %d : i32", argument->i_result);
        add_name(text, names, argument, argument->i_result >= 0 ? donated : "");
    }
    stk_text_add(text, ") -> (");
    add_types(text, c->result, c->n_results, last, names);
    stk_text_add(text, ") {\n%s", stk_text_get(&m->body));
    stk_text_add(text, "return");
    for (int i = 0; i < c->n_results; i++)
        stk_text_add(text, "%s%%%d", i ? ", " : " ", c->result[i].value.id);
    if (last) stk_text_add(text, "%s%%%d", c->n_results ? ", " : " ", last->id);
    if (c->n_results || last) stk_text_add(text, " : ");
    add_types(text, c->result, c->n_results, last, (name_list){NULL, 0});
    stk_text_add(text, "\n}\n}\n");
    STK_RETURN_IF_ERROR(stk_text_status(&m->body));
    return stk_text_status(text);
}

stk_status pjrt_print(stk_capture *c, const stk_named_place *places, int n_places, stk_text *out)
{
    if (!c->is_whole || !c->device->base.absent[0])
        return stk_fail(STK_UNSUPPORTED, "a module is printed for a chip that is not here");
    return print_module(c, (name_list){places, n_places}, out);
}

/* XLA counts what stands in a loop once: all turns take more by as much as the ops' own counts say. */
static void count_turns(const stk_capture *c, stk_compiled_program *out)
{
    stk_cost once = {0}, all = {0};
    const stk_entry *second = c->body.entry + c->body.n, *end = c->body.entry + c->body.n * c->body.n_turns;
    for (const stk_entry *entry = c->entry; entry < c->entry + c->n_entries; entry++) {
        stk_cost cost = stk_op_cost(&((const pjrt_kernel *)entry->kernel->state)->call);
        all.flops += cost.flops;
        all.bytes += cost.bytes;
        if (entry >= second && entry < end) continue;
        once.flops += cost.flops;
        once.bytes += cost.bytes;
    }
    if (once.flops > 0) out->flops *= all.flops / once.flops;
    if (once.bytes > 0) out->bytes *= all.bytes / once.bytes;
}

stk_status pjrt_analyse(stk_capture *c, stk_compiled_program *out)
{
    stk_text text = {0};
    stk_status status;
    if (c->compiled) {
        status = pjrt_analyse_compiled(c->device, c->compiled, out);
        out->n_chips = stk_comm_n_ranks(c->comm);
    } else {
        status = pjrt_print(c, NULL, 0, &text);
        if (status == STK_OK) status = pjrt_compile_ahead(c->device, stk_comm_n_ranks(c->comm), &text, out);
    }
    if (status == STK_OK && c->body.n_turns > 0) count_turns(c, out);
    stk_text_free(&text);
    return status;
}

stk_status pjrt_keep(stk_capture *c, const stk_kept *kept, int n_kept)
{
    stk_text text = {0};
    stk_status status = list_results(c, kept, n_kept);
    pjrt_close_loop(c);
    if (status == STK_OK && c->module.n_checks) c->checks = join_checks(&c->module);
    c->is_whole = true;
    if (status != STK_OK || c->device->base.absent[0]) return status;
    status = print_module(c, (name_list){NULL, 0}, &text);
    stk_text_free(&c->module.body);
    c->argument_buffer = calloc((size_t)c->n_arguments + 1, sizeof(pjrt_buffer *));
    c->result_buffer = calloc((size_t)c->n_results + 1, sizeof(pjrt_buffer *));
    c->not_donated = calloc((size_t)c->n_arguments + 1, sizeof(*c->not_donated));
    if (status == STK_OK && (!c->argument_buffer || !c->result_buffer || !c->not_donated))
        status = stk_fail_memory((size_t)c->n_arguments * sizeof(pjrt_buffer *));
    if (status == STK_OK) c->text_hash = stk_hash64(text.data, text.n, 0);
    bool is_of_hosts = pjrt_is_of_hosts(c->comm);
    if (status == STK_OK && is_of_hosts) status = pjrt_agree(c->comm, c->text_hash);
    /* Of ranks in one process the first one compiles, for all. */
    if (status == STK_OK && (!c->comm || c->comm->rank == 0 || is_of_hosts))
        status = pjrt_get_compiled(c->device, c->comm, &text, &c->compiled);
    stk_text_free(&text);
    return status;
}
