/* ONNX both ways, in one program: a network is written as an ONNX model, as other tools take it; then the file is
 * opened, says what it takes and gives, and is run.
 *
 *   12_run_onnx                 writes a small model, and compares its results with the network's
 *   12_run_onnx FILE [NAME=N]   runs another model on zeros; NAME=N: the size of a dimension that the model leaves
 * open, as those that stoker export writes do: N=1
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/files/onnx_session.h>
#include <stoker/nn/layers.h>
#include <stoker/nn/nn.h>

enum { BATCH = 4, MOST_INPUTS = 16 };

static void must(stk_status status)
{
    if (status == STK_OK) return;
    if (status == STK_UNSUPPORTED && strstr(stk_error_text(), "without protobuf-c")) {
        printf("SKIP: %s\n", stk_error_text());
        exit(77);
    }
    fprintf(stderr, "%s\n", stk_error_text());
    exit(1);
}

static size_t bytes_of(stk_session_value v)
{
    size_t n = stk_dtype_bytes(v.dtype);
    for (int i = 0; i < v.shape.rank; i++)
        n *= (size_t)v.shape.dim[i];
    return n;
}

static void show(const char *what, stk_session_value v)
{
    printf("%s %s [", what, v.name);
    for (int i = 0; i < v.shape.rank; i++)
        printf("%s%lld", i ? "," : "", (long long)v.shape.dim[i]);
    printf("] %s\n", stk_dtype_name(v.dtype));
}

/* Runs the model; its inputs are `data`, or zeros. Returns its first output, the session's. */
static const void *run(stk_session *session, const char *path, const stk_onnx_options *options, const void *data,
                       stk_session_value *out)
{
    stk_onnx *model;
    stk_session_value value;
    void *zeros[MOST_INPUTS] = {NULL};
    must(stk_onnx_open(path, options, &model));
    stk_session_step *step = stk_session_compile_onnx(session, model);
    must(stk_session_status(session));
    stk_onnx_free(model); /* The session has its weights. */
    for (int i = 0; i < MOST_INPUTS && stk_session_step_input(step, i, &value) == STK_OK; i++) {
        show("takes", value);
        if (!data && !(zeros[i] = calloc(1, bytes_of(value) + 1))) exit(1);
        stk_session_input(step, value.name, data ? data : zeros[i]);
    }
    must(stk_session_run(step));
    for (int i = 0; stk_session_step_output(step, i, &value) == STK_OK; i++)
        show("gives", value);
    for (int i = 0; i < MOST_INPUTS; i++)
        free(zeros[i]);
    must(stk_session_step_output(step, 0, out));
    return stk_session_output(step, out->name);
}

/* [BATCH,8,8,3] -> [BATCH,5] */
static stk_graph *make_network(int64_t batch)
{
    stk_graph *graph = stk_graph_new();
    stk_value x = stk_graph_input(graph, "image", STK_F32, STK_SHAPE(batch, 8, 8, 3));
    x = stk_relu(stk_batch_norm(stk_conv2d(x, 8, 3)));
    stk_graph_output(graph, "logits", stk_dense(stk_flatten(stk_max_pool(x, 2)), 5));
    return graph;
}

static int write_and_run(void)
{
    static float image[BATCH * 8 * 8 * 3];
    char path[] = "/tmp/stoker-example-XXXXXX.onnx";
    for (size_t i = 0; i < sizeof(image) / sizeof(*image); i++)
        image[i] = (float)(i * 37 % 101) / 101;
    stk_session *session = stk_session_new(NULL, 0, 1), *other = stk_session_new(NULL, 0, 2);
    stk_session_step *step = stk_session_compile(session, make_network(BATCH), false);
    stk_session_input(step, "image", image);
    must(stk_session_run(step));

    int fd = mkstemps(path, 5);
    if (fd < 0 || close(fd) || unlink(path)) return 1;
    stk_graph *open_graph = make_network(STK_ANY);
    must(stk_session_export_onnx(session, open_graph, path));
    stk_graph_free(open_graph);

    const stk_onnx_size size = {"N", BATCH};
    const stk_onnx_options options = {.size = &size, .n_sizes = 1};
    stk_session_value value;
    const float *ours = stk_session_output(step, "logits"), *theirs = run(other, path, &options, image, &value);
    double furthest = 0;
    for (int i = 0; i < BATCH * 5; i++)
        furthest = fmax(furthest, fabs((double)ours[i] - (double)theirs[i]));
    printf("%d numbers, at most %.1g apart\n", BATCH * 5, furthest);
    unlink(path);
    stk_session_free(session);
    stk_session_free(other);
    return !(furthest < 1e-5);
}

int main(int argc, char **argv)
{
    char name[256] = "";
    stk_onnx_size size = {name, 1};
    stk_session_value value;
    if (argc < 2) return write_and_run();
    const char *equals = argc > 2 ? strchr(argv[2], '=') : NULL;
    if (equals) {
        snprintf(name, sizeof(name), "%.*s", (int)(equals - argv[2]), argv[2]);
        size.n = strtoll(equals + 1, NULL, 10);
    }
    if (argv[1][0] == '-' || argc > 3 || (argc > 2 && !equals) || size.n < 1) {
        fprintf(stderr, "usage: 12_run_onnx [FILE [NAME=N]], like: 12_run_onnx model.onnx N=1\n");
        return 2;
    }
    const stk_onnx_options options = {.size = &size, .n_sizes = equals ? 1 : 0};
    stk_session *session = stk_session_new(NULL, 0, 1);
    run(session, argv[1], &options, NULL, &value);
    stk_session_free(session);
    return 0;
}
