/* The node tests of ONNX's backend suite (Debian: libonnx-testdata) on the cpu device: every model that can be read
 * must give the recorded values. What cannot is counted by op. STOKER_ONNX_TESTS names another folder of them.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "engine/engine.h"
#include "onnx/model.h"

static const char standard_folder[] = "/usr/lib/python3/dist-packages/onnx/backend/test/data/node";

enum { MOST_VALUES = 16, MOST_OPS = 400, MOST_TESTS = 4096, LEAST_PASSED = 300 };

typedef struct tally {
    int n_passed, n_skipped, n_failed, n_ops;
    struct {
        char op[64];
        int n;
    } skipped[MOST_OPS];
} tally;

/* One test: its model, and what it gets and must give. */
typedef struct node_test {
    const char *folder, *name;
    stk_arena *arena;
    Onnx__ModelProto *proto;
    uint8_t *bytes;
    size_t n_bytes;
    int n_in, n_out;
    stk_onnx_tensor in[MOST_VALUES], out[MOST_VALUES];
} node_test;

static stk_status read_file(const node_test *t, const char *file, int number, uint8_t **out, size_t *n)
{
    char path[1000];
    size_t capacity = 0;
    if (number < 0)
        snprintf(path, sizeof(path), "%s/%s/%s", t->folder, t->name, file);
    else
        snprintf(path, sizeof(path), "%s/%s/test_data_set_0/%s_%d.pb", t->folder, t->name, file, number);
    *out = NULL;
    return stk_file_read(path, out, &capacity, n);
}

static stk_status read_value(node_test *t, const char *file, int number, const char *name, stk_onnx_tensor *out)
{
    uint8_t *bytes;
    size_t n;
    STK_RETURN_IF_ERROR(read_file(t, file, number, &bytes, &n));
    Onnx__TensorProto *proto = onnx__tensor_proto__unpack(NULL, n, bytes);
    stk_status status =
        proto ? stk_onnx_read_tensor(t->arena, NULL, proto, name, out) : stk_fail(STK_UNSUPPORTED, "it is no tensor");
    if (proto) onnx__tensor_proto__free_unpacked(proto, NULL);
    free(bytes);
    return status;
}

static stk_status open_test(node_test *t)
{
    STK_RETURN_IF_ERROR(read_file(t, "model.onnx", -1, &t->bytes, &t->n_bytes));
    t->proto = onnx__model_proto__unpack(NULL, t->n_bytes, t->bytes);
    if (!t->proto || !t->proto->graph) return stk_fail(STK_CORRUPT, "no model");
    const Onnx__GraphProto *graph = t->proto->graph;
    if (graph->n_input > MOST_VALUES || graph->n_output > MOST_VALUES)
        return stk_fail(STK_UNSUPPORTED, "it has too many values");
    for (size_t i = 0; i < graph->n_input + graph->n_output; i++) {
        const Onnx__ValueInfoProto *info = i < graph->n_input ? graph->input[i] : graph->output[i - graph->n_input];
        if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            return stk_fail(STK_UNSUPPORTED, "a value is no tensor");
    }
    t->n_in = (int)graph->n_input;
    t->n_out = (int)graph->n_output;
    for (int i = 0; i < t->n_in; i++)
        STK_RETURN_IF_ERROR(read_value(t, "input", i, graph->input[i]->name, &t->in[i]));
    for (int i = 0; i < t->n_out; i++)
        STK_RETURN_IF_ERROR(read_value(t, "output", i, graph->output[i]->name, &t->out[i]));
    return STK_OK;
}

static void close_test(node_test *t)
{
    if (t->proto) onnx__model_proto__free_unpacked(t->proto, NULL);
    free(t->bytes);
    stk_arena_free(t->arena);
}

/* ONNX's tolerances: 1e-3 relative, 1e-7 absolute; of 16 bits, where both sides round on the way, each may be a step
 * away from what is exact, and so they may be two apart. */
static double tolerance(stk_dtype dtype, double y)
{
    int e;
    frexp(y, &e);
    if (dtype == STK_BF16) return ldexp(2, e - 8);
    return dtype == STK_F16 ? ldexp(2, e - 11) : 1e-3 * fabs(y);
}

/* What the recorded numbers of a DFT are off by: sums in f32, where an exact 0 is recorded as a last place of the
 * largest number. Those of tools/onnx_fuzz.py are sums, too, of two peers that may differ by so much. */
static double noise_of(const char *test, const stk_onnx_tensor *want)
{
    double most = 0;
    if (!strncmp(test, "fuzz_", 5)) return 1e-6;
    if (strncmp(test, "test_dft", 8) != 0) return 0;
    for (int64_t i = 0, n = stk_shape_count(want->shape); i < n; i++)
        most = fmax(most, fabs(stk_onnx_number(want, i)));
    return ldexp(most, -22);
}

static stk_status compare(const char *test, const stk_onnx_tensor *want, stk_tensor_desc desc, const void *data)
{
    char a[STK_SHAPE_TEXT_BYTES], b[STK_SHAPE_TEXT_BYTES];
    stk_onnx_tensor got = {want->name, desc.dtype, desc.shape, data};
    if (desc.dtype != want->dtype || !stk_shape_equal(desc.shape, want->shape))
        return stk_fail(STK_INTERNAL, "'%s' is %s, and must be %s", want->name, stk_desc_text(desc, a),
                        stk_desc_text(stk_desc_make(want->dtype, want->shape), b));
    double noise = noise_of(test, want);
    for (int64_t i = 0, n = stk_shape_count(desc.shape); i < n; i++) {
        double x = stk_onnx_number(&got, i), y = stk_onnx_number(want, i);
        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-7 + noise + tolerance(desc.dtype, y)) continue;
        return stk_fail(STK_INTERNAL, "'%s': element %lld is %.9g, and must be %.9g", want->name, (long long)i, x, y);
    }
    return STK_OK;
}

static void load_weights(stk_engine *engine, const stk_onnx *model)
{
    for (int i = 0; i < stk_engine_n_variables(engine); i++) {
        stk_variable_view v = stk_engine_variable(engine, i);
        for (int k = 0; k < stk_onnx_n_weights(model); k++)
            if (!strcmp(stk_onnx_weight(model, k).name, v.name))
                memcpy(v.view.data, stk_onnx_weight(model, k).data, stk_desc_bytes(v.view.desc));
    }
}

static stk_status run_model(const node_test *t, stk_onnx *model)
{
    stk_engine *engine = NULL;
    stk_program *program;
    stk_status status = STK_OK;
    STK_TRY(stk_engine_open("cpu", NULL, 1, &engine));
    STK_TRY(stk_engine_compile(engine, stk_graph_clone(stk_onnx_graph(model), STK_ANY), NULL, &program));
    load_weights(engine, model);
    for (int i = 0; i < t->n_in; i++) {
        int number = stk_program_input(program, t->in[i].name);
        if (number >= 0) stk_program_bind(program, number, t->in[i].data);
    }
    STK_TRY(stk_program_run(program));
    for (int i = 0; i < t->n_out; i++) {
        stk_tensor_desc desc;
        const void *data = stk_program_output(program, t->out[i].name, &desc);
        /* Of nothing there is no memory. */
        if (!data && stk_shape_count(t->out[i].shape) == 0) continue;
        if (!data) STK_TRY(stk_fail(STK_INTERNAL, "'%s' is no output", t->out[i].name));
        STK_TRY(compare(t->name, &t->out[i], desc, data));
    }
done:
    stk_engine_close(engine);
    return status;
}

/* The op that the error names, or the first of the model. */
static void name_op(const node_test *t, char out[64])
{
    const char *text = stk_error_text(), *open = strstr(text, "' ("), *close = open ? strchr(open, ')') : NULL;
    bool has_node = t->proto && t->proto->graph && t->proto->graph->n_node;
    if (!strncmp(text, "node '", 6) && close && close - open - 3 < 60)
        snprintf(out, 64, "%.*s", (int)(close - open - 3), open + 3);
    else
        snprintf(out, 64, "%.60s", has_node ? t->proto->graph->node[0]->op_type : "?");
}

static void count_skipped(tally *all, const char *op)
{
    int i = 0;
    all->n_skipped++;
    while (i < all->n_ops && strcmp(all->skipped[i].op, op) != 0)
        i++;
    if (i == MOST_OPS) return;
    if (i == all->n_ops) snprintf(all->skipped[all->n_ops++].op, sizeof(all->skipped[0].op), "%s", op);
    all->skipped[i].n++;
}

static void check(tally *all, const char *folder, const char *name)
{
    node_test t = {.folder = folder, .name = name, .arena = stk_arena_new()};
    stk_onnx *model = NULL;
    char op[64];
    stk_status status = open_test(&t);
    if (status == STK_OK) {
        stk_onnx_options options = {.known = t.in, .n_known = t.n_in};
        status = stk_onnx_parse(t.bytes, t.n_bytes, &options, &model);
    }
    if (status == STK_OK) status = run_model(&t, model);
    name_op(&t, op);
    if (status == STK_OK) {
        all->n_passed++;
    } else if (status == STK_UNSUPPORTED) {
        if (getenv("STOKER_ONNX_VERBOSE")) printf("skipped %s: %s\n", name, stk_error_text());
        count_skipped(all, op);
    } else {
        printf("FAILED %s: %s: %s\n", name, stk_status_text(status), stk_error_text());
        all->n_failed++;
    }
    stk_onnx_free(model);
    close_test(&t);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    static tally all;
    static char *names[MOST_TESTS];
    const char *folder = getenv("STOKER_ONNX_TESTS") ? getenv("STOKER_ONNX_TESTS") : standard_folder;
    DIR *dir = opendir(folder);
    int n = 0;
    if (!dir) {
        printf("SKIP: there are no node tests of ONNX in '%s' (Debian: libonnx-testdata)\n", folder);
        return 77;
    }
    for (struct dirent *entry; n < MOST_TESTS && (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && (argc < 2 || !strcmp(argv[1], entry->d_name)))
            names[n++] = strdup(entry->d_name);
    closedir(dir);
    qsort(names, (size_t)n, sizeof(names[0]), by_name);
    for (int i = 0; i < n; i++) {
        check(&all, folder, names[i]);
        free(names[i]);
    }
    printf("skipped by op:");
    for (int i = 0; i < all.n_ops; i++)
        printf(" %s %d", all.skipped[i].op, all.skipped[i].n);
    printf("\nONNX node tests: %d passed, %d failed, %d skipped, of %d\n", all.n_passed, all.n_failed, all.n_skipped,
           n);
    return all.n_failed > 0 || (argc < 2 && all.n_passed < LEAST_PASSED);
}
