/* A list of entries as one module: pjrt.h.
 *
 * Entries name addresses, and a module has values. So while the list is read, a table says which value lies at which
 * address. What is read and was not written before is an argument; what lies in memory that stays (variables, results)
 * at the end is a result, and so is what was asked to be kept of an arena. An argument whose address gets a result of
 * its own type gives its memory to it. Where ranks do something together, they launch it together: team.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/pjrt/lowering.h"
#include "device/pjrt/pjrt.h"

/* A value at an address. */
typedef struct live_value {
    char *address;
    size_t bytes;
    pjrt_value value;
    bool written; /* by an entry; else it is an argument */
} live_value;

/* An argument or a result. */
typedef struct site {
    pjrt_block *block;
    char *address;
    size_t bytes;
    pjrt_value value;
    int i_result; /* of an argument: the result that takes its memory; -1: none */
} site;

struct stk_capture {
    pjrt_device *device;
    pjrt_module module; /* its text while it is made, or for a chip that is not here; its checks stay */
    stk_comm *comm;     /* of the ranks that run it together, borrowed; NULL: it runs alone */
    uint64_t text_hash;
    live_value *live;
    int n_live, n_live_slots;
    site *argument, *result;
    int n_arguments, n_argument_slots, n_results;
    bool is_whole;     /* results are listed */
    pjrt_value checks; /* all of the module's, where there are any */
    pjrt_compiled *compiled;
    pjrt_buffer **argument_buffer, **result_buffer; /* one more result where there are checks */
    int64_t *not_donated;
};

/* --- which value lies where --- */

static bool overlaps(const live_value *live, const char *address, size_t bytes)
{
    return live->address < address + bytes && address < live->address + live->bytes;
}

static stk_status write_value(stk_capture *c, char *address, pjrt_value value, bool written)
{
    size_t bytes = stk_desc_bytes(value.desc);
    int n = 0;
    if (bytes == 0) return STK_OK;
    for (int i = 0; i < c->n_live; i++)
        if (!overlaps(&c->live[i], address, bytes)) c->live[n++] = c->live[i];
    c->n_live = n;
    if (c->n_live == c->n_live_slots) {
        int slots = c->n_live_slots ? 2 * c->n_live_slots : 256;
        live_value *grown = realloc(c->live, (size_t)slots * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)slots * sizeof(*grown));
        c->live = grown;
        c->n_live_slots = slots;
    }
    c->live[c->n_live++] = (live_value){address, bytes, value, written};
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

/* Whether a value is there that covers it. */
static bool find_value(stk_capture *c, char *address, stk_tensor_desc desc, pjrt_value *out)
{
    size_t bytes = stk_desc_bytes(desc);
    for (int i = c->n_live - 1; i >= 0; i--) {
        const live_value *live = &c->live[i];
        if (live->address > address || live->address + live->bytes < address + bytes) continue;
        if (live->value.desc.dtype != desc.dtype) return false;
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
    for (int i = 0; i < c->n_live; i++)
        if (overlaps(&c->live[i], address, bytes))
            return stk_fail(STK_UNSUPPORTED, "a value that was written in parts or with another type is read");
    if (c->n_arguments == c->n_argument_slots) {
        int slots = c->n_argument_slots ? 2 * c->n_argument_slots : 64;
        site *grown = realloc(c->argument, (size_t)slots * sizeof(*grown));
        if (!grown) return stk_fail_memory((size_t)slots * sizeof(*grown));
        c->argument = grown;
        c->n_argument_slots = slots;
    }
    *out = pjrt_new_value(&c->module, desc);
    c->argument[c->n_arguments++] = (site){block, address, bytes, *out, -1};
    return write_value(c, address, *out, false);
}

static stk_status read_value(stk_capture *c, char *address, stk_tensor_desc desc, pjrt_value *out)
{
    if (stk_desc_bytes(desc) == 0) {
        *out = pjrt_integer(&c->module, desc, 0);
        return STK_OK;
    }
    return find_value(c, address, desc, out) ? STK_OK : add_argument(c, address, desc, out);
}

/* --- entries --- */

/* Some inputs are there for their shapes alone. */
static bool is_read(stk_op op, int i)
{
    return op != STK_OP_rank_gather || i == 0;
}

static stk_status lower(stk_capture *c, const pjrt_kernel *kernel, int n_in, const pjrt_value *in, pjrt_value *out)
{
    if (!kernel->comm) return pjrt_find_lowering(kernel->call.op)(&c->module, &kernel->call, n_in, in, out);
    if (c->comm && c->comm != kernel->comm) return stk_fail(STK_INVALID, "a program of two groups of ranks");
    c->comm = kernel->comm;
    return pjrt_lower_ranks(&c->module, &kernel->call, c->comm->n_ranks, in, out);
}

static stk_status lower_entry(stk_capture *c, const stk_entry *entry)
{
    pjrt_value in[STK_MOST_INPUTS + 1], out[STK_MOST_OUTPUTS];
    if (!pjrt_is_own_kernel(entry->kernel))
        return stk_fail(STK_UNSUPPORTED, "a PJRT device does not work with devices of other kinds");
    const pjrt_kernel *kernel = entry->kernel->state;
    const stk_op_call *call = &kernel->call;
    int n_in = call->n_in;
    c->module.op = call->op;
    for (int i = 0; i < n_in; i++)
        if (is_read(call->op, i)) STK_RETURN_IF_ERROR(read_value(c, entry->args.in[i], call->in[i], &in[i]));
    if (call->op == STK_OP_accumulate && find_value(c, entry->args.out[0], call->out[0], &in[n_in])) n_in++;
    STK_RETURN_IF_ERROR(lower(c, kernel, n_in, in, out));
    STK_RETURN_IF_ERROR(c->module.status);
    for (int i = 0; i < call->n_out; i++)
        STK_RETURN_IF_ERROR(write_value(c, entry->args.out[i], out[i], true));
    return STK_OK;
}

stk_status pjrt_capture(stk_device *device, const stk_entry *entries, int n_entries, stk_capture **out)
{
    stk_status status = STK_OK;
    stk_capture *c = calloc(1, sizeof(*c));
    *out = NULL;
    if (!c) return stk_fail_memory(sizeof(*c));
    c->device = (pjrt_device *)device;
    for (int i = 0; i < n_entries; i++)
        STK_TRY(lower_entry(c, &entries[i]));
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
    free(c->live);
    free(c->argument);
    free(c->result);
    free(c->argument_buffer);
    free(c->result_buffer);
    free(c->not_donated);
    free(c);
}

/* --- the module as a whole --- */

static bool is_kept(const live_value *live, const pjrt_block *block, const stk_kept *kept, int n_kept)
{
    if (!block->scratch || !kept) return true;
    for (int i = 0; i < n_kept; i++)
        if (overlaps(live, kept[i].address, kept[i].bytes)) return true;
    return false;
}

static stk_status list_results(stk_capture *c, const stk_kept *kept, int n_kept)
{
    c->result = calloc((size_t)c->n_live + 1, sizeof(*c->result));
    if (!c->result) return stk_fail_memory((size_t)c->n_live * sizeof(*c->result));
    for (int i = 0; i < c->n_live; i++) {
        const live_value *live = &c->live[i];
        pjrt_block *block = live->written ? pjrt_find_block(c->device, live->address) : NULL;
        if (!live->written) continue;
        if (!block) return stk_fail(STK_INVALID, "a program writes what is no memory of the device");
        if (!is_kept(live, block, kept, n_kept)) continue;
        for (int k = 0; k < c->n_arguments; k++) {
            site *argument = &c->argument[k];
            stk_tensor_desc a = argument->value.desc, b = live->value.desc;
            if (argument->address == live->address && a.dtype == b.dtype && stk_shape_equal(a.shape, b.shape))
                argument->i_result = c->n_results;
        }
        c->result[c->n_results++] = (site){block, live->address, live->bytes, live->value, -1};
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
static void add_name(stk_text *text, name_list names, const site *s, const char *more)
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

static void add_types(stk_text *text, const site *sites, int n, const pjrt_value *last, name_list names)
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
        const site *argument = &c->argument[i];
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

stk_status pjrt_analyse(stk_capture *c, stk_compiled_program *out)
{
    stk_text text = {0};
    stk_status status = pjrt_print(c, NULL, 0, &text);
    if (status == STK_OK) status = pjrt_compile_ahead(c->device, stk_comm_n_ranks(c->comm), &text, out);
    stk_text_free(&text);
    return status;
}

stk_status pjrt_keep(stk_capture *c, const stk_kept *kept, int n_kept)
{
    stk_text text = {0};
    stk_status status = list_results(c, kept, n_kept);
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
    /* Of ranks the first one compiles, for all. */
    if (status == STK_OK && (!c->comm || c->comm->rank == 0))
        status = pjrt_get_compiled(c->device, stk_comm_n_ranks(c->comm), &text, &c->compiled);
    stk_text_free(&text);
    return status;
}

/* --- running --- */

static stk_status bind_arguments(const stk_capture *c, size_t *n_not_donated)
{
    *n_not_donated = 0;
    for (int i = 0; i < c->n_arguments; i++) {
        pjrt_content *content;
        const site *a = &c->argument[i];
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
        const site *r = &c->result[i];
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
    stk_status status = c->comm ? pjrt_launch_together(&own) : pjrt_execute(&own, NULL, 1);
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
