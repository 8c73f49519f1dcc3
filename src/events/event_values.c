/* Values of a summary, and nodes of a graph, as TensorBoard's plugins want them. See events/event_file.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "events/event_inside.h"

/* Fields of Summary, Value, SummaryMetadata and PluginData. */
enum { VALUE = 1, TAG = 1, TENSOR = 8, METADATA = 9, PLUGIN_DATA = 1, PLUGIN_NAME = 1, DATA_CLASS = 4 };
typedef enum data_class { CLASS_SCALAR = 1, CLASS_TENSOR = 2, CLASS_BLOBS = 3 } data_class;
/* Of TensorProto and TensorShapeProto. */
enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, STRING_VAL = 8, DIM = 2, DIM_SIZE = 1, UNKNOWN_RANK = 3 };
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 };
/* Of GraphDef, NodeDef and AttrValue. */
enum { NODE = 1, VERSIONS = 4, PRODUCER = 1, NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5 };
enum { MAP_KEY = 1, MAP_VALUE = 2, ATTR_LIST = 1, LIST_SHAPE = 7 };

static void add_shape(stk_text *out, int field, const int64_t *dim, int rank)
{
    size_t shape = stk_proto_begin(out, field);
    for (int i = 0; i < rank; i++) {
        size_t at = stk_proto_begin(out, DIM);
        stk_proto_add_int(out, DIM_SIZE, dim[i]);
        stk_proto_end(out, at);
    }
    if (rank < 0) stk_proto_add_int(out, UNKNOWN_RANK, 1);
    stk_proto_end(out, shape);
}

static size_t begin_value(stk_text *out, const char *tag, bool is_first, const char *plugin, data_class class)
{
    size_t value = stk_proto_begin(out, VALUE);
    stk_proto_add_text(out, TAG, tag);
    if (!is_first) return value;
    size_t metadata = stk_proto_begin(out, METADATA);
    size_t data = stk_proto_begin(out, PLUGIN_DATA);
    stk_proto_add_text(out, PLUGIN_NAME, plugin);
    stk_proto_end(out, data);
    stk_proto_add_int(out, DATA_CLASS, class);
    stk_proto_end(out, metadata);
    return value;
}

static size_t begin_tensor(stk_text *out, int dtype, const int64_t *dim, int rank)
{
    size_t tensor = stk_proto_begin(out, TENSOR);
    stk_proto_add_int(out, DTYPE, dtype);
    add_shape(out, SHAPE, dim, rank);
    return tensor;
}

static void put_little(uint8_t *out, uint64_t bits, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)(bits >> 8 * i);
}

void stk_event_add_scalar(stk_event_file *file, const char *tag, bool is_first, double x)
{
    stk_text *out = &file->record;
    float narrow = (float)x;
    uint32_t bits;
    uint8_t bytes[4];
    memcpy(&bits, &narrow, 4);
    put_little(bytes, bits, 4);
    size_t value = begin_value(out, tag, is_first, "scalars", CLASS_SCALAR);
    size_t tensor = begin_tensor(out, DT_FLOAT, NULL, 0);
    stk_proto_add_bytes(out, CONTENT, bytes, 4);
    stk_proto_end(out, tensor);
    stk_proto_end(out, value);
}

void stk_event_add_text(stk_event_file *file, const char *tag, bool is_first, const char *text)
{
    stk_text *out = &file->record;
    size_t value = begin_value(out, tag, is_first, "text", CLASS_TENSOR);
    size_t tensor = begin_tensor(out, DT_STRING, NULL, 0);
    stk_proto_add_text(out, STRING_VAL, text);
    stk_proto_end(out, tensor);
    stk_proto_end(out, value);
}

void stk_event_add_images(stk_event_file *file, const char *tag, bool is_first, const stk_event_image *image, int n,
                          int64_t height, int64_t width)
{
    stk_text *out = &file->record;
    char side[24];
    int64_t count = n + 2; /* width and height come first, as texts */
    size_t value = begin_value(out, tag, is_first, "images", CLASS_BLOBS);
    size_t tensor = begin_tensor(out, DT_STRING, &count, 1);
    snprintf(side, sizeof(side), "%" PRId64, width);
    stk_proto_add_text(out, STRING_VAL, side);
    snprintf(side, sizeof(side), "%" PRId64, height);
    stk_proto_add_text(out, STRING_VAL, side);
    for (int i = 0; i < n; i++)
        stk_proto_add_bytes(out, STRING_VAL, image[i].png, image[i].n_bytes);
    stk_proto_end(out, tensor);
    stk_proto_end(out, value);
}

/* --- histograms --- */

typedef struct buckets {
    double low, high;
    double count[STK_EVENT_BUCKETS];
} buckets;

/* False where no number is finite. */
static bool count_buckets(const float *x, size_t n, buckets *out)
{
    float low = INFINITY, high = -INFINITY;
    memset(out->count, 0, sizeof(out->count));
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) continue;
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    if (!(low <= high)) return false;
    out->low = (double)low;
    out->high = (double)high;
    double scale = high > low ? STK_EVENT_BUCKETS / (out->high - out->low) : 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) continue;
        int k = (int)(((double)x[i] - out->low) * scale);
        out->count[k < STK_EVENT_BUCKETS ? k : STK_EVENT_BUCKETS - 1]++;
    }
    return true;
}

void stk_event_add_histogram(stk_event_file *file, const char *tag, bool is_first, const float *x, size_t n)
{
    static const int64_t dim[2] = {STK_EVENT_BUCKETS, 3};
    uint8_t bytes[STK_EVENT_BUCKETS * 3 * 8];
    stk_text *out = &file->record;
    buckets b;
    if (!count_buckets(x, n, &b)) return;
    for (int i = 0; i < STK_EVENT_BUCKETS; i++) {
        double width = (b.high - b.low) / STK_EVENT_BUCKETS;
        double row[3] = {b.low + width * i, i + 1 < STK_EVENT_BUCKETS ? b.low + width * (i + 1) : b.high, b.count[i]};
        for (int k = 0; k < 3; k++) {
            uint64_t bits;
            memcpy(&bits, &row[k], 8);
            put_little(bytes + (i * 3 + k) * 8, bits, 8);
        }
    }
    size_t value = begin_value(out, tag, is_first, "histograms", CLASS_TENSOR);
    size_t tensor = begin_tensor(out, DT_DOUBLE, dim, 2);
    stk_proto_add_bytes(out, CONTENT, bytes, sizeof(bytes));
    stk_proto_end(out, tensor);
    stk_proto_end(out, value);
}

/* --- graphs --- */

static void add_output_shape(stk_text *out, const stk_event_node *node)
{
    size_t attr = stk_proto_begin(out, NODE_ATTR);
    stk_proto_add_text(out, MAP_KEY, "_output_shapes");
    size_t value = stk_proto_begin(out, MAP_VALUE), list = stk_proto_begin(out, ATTR_LIST);
    add_shape(out, LIST_SHAPE, node->shape, node->rank);
    stk_proto_end(out, list);
    stk_proto_end(out, value);
    stk_proto_end(out, attr);
}

void stk_event_add_nodes(stk_text *out, const stk_event_node *node, int n)
{
    for (int i = 0; i < n; i++) {
        size_t at = stk_proto_begin(out, NODE);
        stk_proto_add_text(out, NODE_NAME, node[i].name);
        stk_proto_add_text(out, NODE_OP, node[i].op);
        for (int j = 0; j < node[i].n_inputs; j++)
            stk_proto_add_text(out, NODE_INPUT, node[node[i].input[j]].name);
        add_output_shape(out, &node[i]);
        stk_proto_end(out, at);
    }
    size_t versions = stk_proto_begin(out, VERSIONS);
    stk_proto_add_int(out, PRODUCER, 27);
    stk_proto_end(out, versions);
}
