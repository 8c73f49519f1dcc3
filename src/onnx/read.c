/* Bytes to messages, and the public functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/device.h"
#include "onnx/model.h"

stk_status stk_onnx_import(stk_onnx *model, const Onnx__ModelProto *proto);

/* Of memory for messages, besides twice the bytes of the file. */
enum { MOST_DEPTH = 32, WIRE_BYTES = 2, MOST_MESSAGE_BYTES = 256 << 20 };

/* A number of the wire format: 7 bits a byte. False at the end of the bytes. */
static bool read_varint(const uint8_t *data, size_t n, size_t *at, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; *at < n && shift < 64; shift += 7) {
        uint8_t byte = data[(*at)++];
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* The messages that lead to messages of their own kind: graphs inside attributes, types inside types. */
typedef enum message { MODEL, GRAPH, NODE, ATTRIBUTE, INFO, TYPE, SEQUENCE, MAP, FUNCTION } message;
static const struct {
    message from, to;
    uint32_t field;
} ways[] = {
    {MODEL, GRAPH, 7},     {MODEL, FUNCTION, 25}, {FUNCTION, NODE, 7},  {GRAPH, NODE, 1},      {GRAPH, INFO, 11},
    {GRAPH, INFO, 12},     {GRAPH, INFO, 13},     {NODE, ATTRIBUTE, 5}, {ATTRIBUTE, GRAPH, 6}, {ATTRIBUTE, GRAPH, 11},
    {ATTRIBUTE, TYPE, 14}, {ATTRIBUTE, TYPE, 15}, {INFO, TYPE, 2},      {TYPE, SEQUENCE, 4},   {TYPE, MAP, 5},
    {TYPE, SEQUENCE, 9},   {SEQUENCE, TYPE, 1},   {MAP, TYPE, 2},
};

static bool is_shallow(message kind, const uint8_t *data, size_t n, int depth);

static bool field_is_shallow(message kind, uint64_t field, const uint8_t *data, size_t n, int depth)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (ways[i].from == kind && ways[i].field == field)
            return depth > 0 && is_shallow(ways[i].to, data, n, depth - 1);
    return true;
}

/* protobuf-c goes as deep as messages are nested, on the stack. Damage is left to it. */
static bool is_shallow(message kind, const uint8_t *data, size_t n, int depth)
{
    for (size_t at = 0; at < n;) {
        uint64_t tag, value;
        if (!read_varint(data, n, &at, &tag)) return true;
        switch (tag & 7) {
        case 0:
            if (!read_varint(data, n, &at, &value)) return true;
            break;
        case 1: at += 8; break;
        case 5: at += 4; break;
        case WIRE_BYTES:
            if (!read_varint(data, n, &at, &value) || value > n - at) return true;
            if (!field_is_shallow(kind, tag >> 3, data + at, (size_t)value, depth)) return false;
            at += (size_t)value;
            break;
        default: return true;
        }
    }
    return true;
}

/* --- memory: two bytes of an empty message become two hundred of a struct --- */

typedef struct purse {
    size_t left, lacking; /* lacking: bytes that malloc did not give */
    bool spent;
} purse;

static void *take_memory(void *user, size_t n)
{
    enum { MALLOC_BYTES = 16 };
    purse *p = user;
    p->spent = p->spent || n > p->left || p->left - n < MALLOC_BYTES;
    if (p->spent) return NULL;
    p->left -= n + MALLOC_BYTES;
    void *memory = malloc(n ? n : 1);
    if (!memory) p->lacking = n ? n : 1;
    return memory;
}

static void give_memory(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static stk_status unpack(stk_span bytes, Onnx__ModelProto **out)
{
    if (!is_shallow(MODEL, bytes.data, bytes.n, MOST_DEPTH))
        return stk_fail(STK_CORRUPT, "no ONNX model: nested too deep");
    size_t most = 2 * bytes.n + MOST_MESSAGE_BYTES;
    purse p = {.left = most};
    ProtobufCAllocator allocator = {take_memory, give_memory, &p};
    *out = onnx__model_proto__unpack(&allocator, bytes.n, bytes.data);
    if (*out && (*out)->graph) return STK_OK;
    if (p.lacking) return stk_fail_memory(p.lacking);
    if (p.spent)
        return stk_fail(STK_UNSUPPORTED, "the messages in its %zu bytes would take more than %zu MiB of memory",
                        bytes.n, most >> 20);
    return stk_fail(STK_CORRUPT, "no ONNX model: the bytes make no ModelProto with a graph");
}

stk_onnx *stk_onnx_new(stk_graph *graph)
{
    static const stk_onnx_options none;
    stk_onnx *model = calloc(1, sizeof(*model));
    stk_arena *arena = stk_arena_new();
    if (model && arena) {
        *model = (stk_onnx){
            .graph = graph ? graph : stk_graph_new(), .borrows_graph = graph != NULL, .arena = arena, .options = &none};
        return model;
    }
    stk_arena_free(arena);
    free(model);
    return NULL;
}

typedef struct opening {
    const stk_onnx_options *options;
    stk_onnx **out;
} opening;

static stk_status import(const Onnx__ModelProto *proto, const char *folder, void *context)
{
    const opening *o = context;
    stk_status status = STK_OK;
    stk_onnx *model = stk_onnx_new(NULL);
    if (!model) return stk_fail_memory(sizeof(*model));
    if (o->options) model->options = o->options;
    model->folder = folder;
    STK_TRY(stk_graph_status(model->graph));
    STK_TRY(stk_onnx_import(model, proto));
    model->options = NULL;
    model->folder = NULL;
    *o->out = model;
    model = NULL;
done:
    stk_onnx_free(model);
    return status;
}

stk_status stk_onnx_read_bytes(stk_span bytes, stk_onnx_take_fn take, void *context)
{
    Onnx__ModelProto *proto = NULL;
    stk_status status = unpack(bytes, &proto);
    if (status == STK_OK) status = take(proto, NULL, context);
    if (proto) onnx__model_proto__free_unpacked(proto, NULL);
    return status;
}

stk_status stk_onnx_parse(const void *data, size_t n_bytes, const stk_onnx_options *options, stk_onnx **out)
{
    opening o = {options, out};
    return stk_onnx_read_bytes((stk_span){data, n_bytes}, import, &o);
}

stk_status stk_onnx_read_file(const char *path, stk_onnx_take_fn take, void *context)
{
    char folder[4096] = ".";
    stk_span file;
    Onnx__ModelProto *proto = NULL;
    const char *slash = strrchr(path, '/');
    if (slash && (size_t)(slash - path) + 2 > sizeof(folder))
        return stk_fail(STK_INVALID, "path '%.60s...' is too long", path);
    if (slash) snprintf(folder, sizeof(folder), "%.*s", (int)(slash == path ? 1 : slash - path), path);
    STK_RETURN_IF_ERROR(stk_file_load(path, &file));
    stk_status status = unpack(file, &proto);
    stk_file_unload(file); /* The messages have copies of all that they need. */
    if (status == STK_OK) status = take(proto, folder, context);
    if (proto) onnx__model_proto__free_unpacked(proto, NULL);
    return status == STK_OK ? STK_OK : stk_fail_prefix(status, "'%s': ", path);
}

stk_status stk_onnx_open(const char *path, const stk_onnx_options *options, stk_onnx **out)
{
    STK_NEED(path);
    STK_NEED(out);
    opening o = {options, out};
    return stk_onnx_read_file(path, import, &o);
}

void stk_onnx_free(stk_onnx *model)
{
    if (!model) return;
    stk_device_close(model->reference);
    if (!model->borrows_graph) stk_graph_free(model->graph);
    stk_arena_free(model->arena);
    stk_name_table_free(&model->by_name);
    stk_name_table_free(&model->weight_by_name);
    free(model->value);
    free(model->weight);
    free(model);
}

stk_graph *stk_onnx_graph(stk_onnx *model)
{
    if (!model) return NULL;
    return model->graph;
}

int stk_onnx_n_weights(const stk_onnx *model)
{
    if (!model) return 0;
    return model->n_weights;
}

stk_onnx_tensor stk_onnx_weight(const stk_onnx *model, int i)
{
    if (!model) return (stk_onnx_tensor){0};
    return i >= 0 && i < model->n_weights ? model->weight[i] : (stk_onnx_tensor){0};
}
