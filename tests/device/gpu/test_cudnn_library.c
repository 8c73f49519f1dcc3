/* cuDNN's real library, as far as it goes without a GPU: STOKER_REAL_CUDNN=.../nvidia/cudnn/lib/libcudnn.so.9 names it,
 * as it lies in NVIDIA's wheel, with its headers beside it; STOKER_NVRTC an NVRTC of the same CUDA. Our numbers are
 * compared with its headers', and it takes our descriptions of convolutions. From 9.11 on it knows chips by their
 * properties: it proposes engines for an H100 that is not here, and makes plans. Engines whose kernels it compiles end
 * where a driver would load them.
 */
#define DEVICE "cuda"

#include "device/gpu/cuda/convolution.h"
#include "device/gpu/expect.h"

#include <dlfcn.h>
#include <stdio.h>

#define DRIVER STK_BINARY_DIR "/tests/play/nothing/libcuda.so.1"

static const char h100[] = /* as one tells them */
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
    "\"multiProcessorCount\":132,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":6,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":85017493504,\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
    "\"l2CacheSize\":52428800,\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,"
    "\"deviceName\":\"NVIDIA H100 80GB HBM3\"}";

#define SQUARE(k, s, p)                                                                                                \
    .n_sides = 2, .taps = {k, k}, .stride = {s, s}, .dilation = {1, 1}, .pad_low = {p, p}, .pad_high = {p, p}
#define SIZES(n, c, h, o, y)                                                                                           \
    .n_images = n, .x_channels = c, .y_channels = o, .groups = 1, .x_side = {h, h}, .y_side = {y, y}

static const struct {
    const char *name;
    gpu_library_convolution what;
} convolutions[] = {
    {"7x7, strided, 8 channels", {SQUARE(7, 2, 3), SIZES(64, 8, 224, 64, 112)}},
    {"3x3", {SQUARE(3, 1, 1), SIZES(64, 64, 56, 64, 56)}},
    {"3x3, strided", {SQUARE(3, 2, 1), SIZES(64, 128, 56, 128, 28)}},
    {"1x1", {SQUARE(1, 1, 0), SIZES(64, 256, 56, 64, 56)}},
    {"1x1, strided", {SQUARE(1, 2, 0), SIZES(64, 256, 56, 512, 28)}},
    {"grouped",
     {SQUARE(3, 1, 1), .n_images = 64, .x_channels = 128, .y_channels = 128, .groups = 4, .x_side = {28, 28},
      .y_side = {28, 28}}},
    {"dilated, padded unevenly",
     {.n_sides = 2,
      .taps = {3, 2},
      .stride = {2, 1},
      .dilation = {2, 1},
      .pad_low = {1, 0},
      .pad_high = {2, 1},
      .n_images = 8,
      .x_channels = 32,
      .y_channels = 64,
      .groups = 1,
      .x_side = {30, 20},
      .y_side = {15, 20}}},
    {"3x3x3",
     {.n_sides = 3,
      .taps = {3, 3, 3},
      .stride = {1, 1, 1},
      .dilation = {1, 1, 1},
      .pad_low = {1, 1, 1},
      .pad_high = {1, 1, 1},
      .n_images = 4,
      .x_channels = 32,
      .y_channels = 32,
      .groups = 1,
      .x_side = {16, 32, 32},
      .y_side = {16, 32, 32}}},
};
enum { N_CONVOLUTIONS = sizeof(convolutions) / sizeof(convolutions[0]) };

static cuda_dnn target; /* with no handle, which would need a GPU */

/* --- numbers --- */

static char *read_header(void)
{
    char path[1024];
    const char *library = getenv("STOKER_REAL_CUDNN"), *end = strrchr(library, '/');
    uint8_t *text = NULL;
    size_t capacity = 0, n = 0;
    snprintf(path, sizeof(path), "%.*s/../include/cudnn_graph.h", end ? (int)(end - library) : 1, end ? library : ".");
    expect_ok(stk_file_read(path, &text, &capacity, &n));
    char *out = malloc(n + 1);
    assert_non_null(out);
    memcpy(out, text, n);
    out[n] = '\0';
    free(text);
    return out;
}

/* "NAME = 5", perhaps with CUDNN_DEPRECATED_ENUM between; -1: there is no such line. */
static long find_value(const char *header, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = header; (at = strstr(at, name)) != NULL; at += n) {
        const char *behind = at + n;
        if (behind[0] != ' ') continue;
        behind += strspn(behind, " ");
        if (!strncmp(behind, "CUDNN_DEPRECATED_ENUM", 21)) behind += 21 + strspn(behind + 21, " ");
        if (*behind == '=') return strtol(behind + 1, NULL, 10);
    }
    return -1;
}

static void our_numbers_are_the_headers(void **state)
{
    (void)state;
    char *header = read_header();
#define X(name, value)                                                                                                 \
    if (find_value(header, #name) != (value)) fail_msg("%s is %ld there", #name, find_value(header, #name));
    CUDNN_VALUE_LIST(X)
#undef X
    free(header);
}

/* --- descriptions --- */

static gpu_library_convolution variant(int i, int pass, stk_dtype dtype, bool has_bias, bool relu)
{
    gpu_library_convolution what = convolutions[i].what;
    what.pass = pass;
    what.dtype = (int32_t)dtype;
    what.dtype_out = (int32_t)(pass == GPU_CONVOLUTION_GRAD_WEIGHT ? STK_F32 : dtype);
    what.has_bias = has_bias;
    what.relu = relu;
    return what;
}

static const char *name_of(const gpu_library_convolution *what, int i)
{
    static char text[200];
    static const char *const passes[] = {"forward", "gradient of x", "gradient of the weight"};
    snprintf(text, sizeof(text), "%s, %s, %s%s%s", convolutions[i].name, passes[what->pass],
             stk_dtype_name((stk_dtype)what->dtype), what->has_bias ? ", bias" : "", what->relu ? ", ReLU" : "");
    return text;
}

static void expect_described(const gpu_library_convolution *what, int i)
{
    char why[512] = "";
    cuda_descriptors list = {0};
    (void)cuda_dnn_describe(&target, what, &list);
    if (list.code) cudnn.cudnnGetLastErrorString(why, sizeof(why));
    if (list.code) fail_msg("%s: %s: %s", name_of(what, i), cudnn.cudnnGetErrorString(list.code), why);
    cuda_dnn_free(&list);
}

static void it_takes_our_descriptions(void **state)
{
    static const stk_dtype dtypes[] = {STK_F32, STK_BF16, STK_F16};
    (void)state;
    for (int i = 0; i < N_CONVOLUTIONS; i++)
        for (int pass = 0; pass < 3; pass++)
            for (int k = 0; k < 3; k++)
                for (int more = 0; more < (pass == GPU_CONVOLUTION_GRAD_WEIGHT ? 1 : 4); more++) {
                    gpu_library_convolution what = variant(i, pass, dtypes[k], more & 1, more >> 1);
                    expect_described(&what, i);
                }
}

/* --- engines and plans for a chip that is not here --- */

static cuda_dnn make_chip(cuda_descriptors *list)
{
    cudnn_descriptor chip = cuda_dnn_make(list, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    cuda_dnn_set(list, chip, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, sizeof(h100), h100);
    cuda_dnn_finish(list, chip);
    return (cuda_dnn){.chip = list->code ? NULL : chip};
}

/* How many engines there are by our rules, in the first heuristic that has one. */
static int count_engines(const cuda_dnn *dnn, const gpu_library_convolution *what, bool *by_fallback)
{
    int n = 0;
    cuda_descriptors graph = {0};
    cudnn_descriptor described = cuda_dnn_describe(dnn, what, &graph);
    for (int k = 0; k < 2 && n == 0; k++) {
        cuda_descriptors list = {0};
        cudnn_descriptor config[CUDA_MOST_PROPOSED];
        n = cuda_dnn_ask(dnn, described, what, k ? CUDNN_HEUR_MODE_FALLBACK : CUDNN_HEUR_MODE_A, &list, config);
        *by_fallback = k > 0;
        cuda_dnn_free(&list);
    }
    cuda_dnn_free(&graph);
    return n;
}

/* Training's convolutions in 16 bits each have an engine, and in f32 most: what has none is named. */
static void it_proposes_engines(void **state)
{
    (void)state;
    cuda_descriptors list = {0};
    cuda_dnn dnn = make_chip(&list);
    if (!dnn.chip) skip();
    for (int i = 0; i < N_CONVOLUTIONS; i++)
        for (int pass = 0; pass < 3; pass++)
            for (int half = 0; half < 2; half++)
                for (int more = 0; more < (pass == GPU_CONVOLUTION_FORWARD ? 4 : 1); more++) {
                    bool by_fallback;
                    gpu_library_convolution what =
                        variant(i, pass, half ? STK_BF16 : STK_F32, more & 1, (more >> 1) != 0);
                    const int n = count_engines(&dnn, &what, &by_fallback);
                    if (!n || by_fallback)
                        print_message("%s: %s\n", name_of(&what, i), n ? "by the fallback" : "no engine");
                    if (half && i < 5 && more != 2) assert_true(n > 0);
                }
    cuda_dnn_free(&list);
}

/* Addresses are only numbers here. */
static void expect_placed(const gpu_library_convolution *what, const cuda_dnn_plan *plan)
{
    cuda_descriptors list = {0};
    const cuda_convolution_memory at = {.in = {(void *)0x10000, (void *)0x20000},
                                        .out = (void *)0x30000,
                                        .bias = (void *)0x40000,
                                        .scratch = (void *)0x50040};
    (void)cuda_dnn_place(what, plan, &at, &list);
    assert_int_equal(list.code, 0);
    cuda_dnn_free(&list);
}

/* With kernels that lie ready in it, plans are made, written, and read again as the same. */
static void plans_are_kept(void **state)
{
    (void)state;
    cuda_descriptors list = {0};
    cuda_dnn dnn = make_chip(&list);
    if (!dnn.chip) skip();
    for (int pass = 0; pass < 3; pass++) {
        cuda_dnn_plan plans[4], again;
        size_t n_text = 0;
        cuda_descriptors graph = {0};
        gpu_library_convolution what =
            variant(1, pass, pass == GPU_CONVOLUTION_GRAD_WEIGHT ? STK_F32 : STK_BF16, false, false);
        cudnn_descriptor described = cuda_dnn_describe(&dnn, &what, &graph);
        const int n = cuda_dnn_propose(&dnn, described, &what, 4, plans);
        assert_true(n > 0);
        char *text = cuda_dnn_write_plan(&plans[0], &n_text);
        assert_non_null(text);
        assert_true(cuda_dnn_read_plan(&dnn, text, n_text, &again));
        assert_int_equal(again.workspace_bytes, plans[0].workspace_bytes);
        free(text);
        expect_placed(&what, &again);
        cuda_dnn_free_plan(&again);
        for (int i = 0; i < n; i++)
            cuda_dnn_free_plan(&plans[i]);
        cuda_dnn_free(&graph);
    }
    cuda_dnn_free(&list);
}

/* It finds a driver and NVRTC that are open already. */
static bool open_library(const char *path)
{
    const char *compiler = getenv("STOKER_NVRTC");
    if (compiler && *compiler) (void)dlopen(compiler, RTLD_NOW | RTLD_GLOBAL);
    (void)dlopen(DRIVER, RTLD_NOW | RTLD_GLOBAL);
    void *library = dlopen(path, RTLD_NOW);
    if (!library) return false;
#define X(result, symbol, parameters)                                                                                  \
    *(void **)&cudnn.symbol = dlsym(library, #symbol);                                                                 \
    if (!cudnn.symbol) return false;
    CUDNN_SYMBOL_LIST(X)
#undef X
    printf("cuDNN %zu, for CUDA %zu\n", cudnn.cudnnGetVersion(), cudnn.cudnnGetCudartVersion());
    return true;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_numbers_are_the_headers),
        cmocka_unit_test(it_takes_our_descriptions),
        cmocka_unit_test(it_proposes_engines),
        cmocka_unit_test(plans_are_kept),
    };
    const char *path = getenv("STOKER_REAL_CUDNN");
    if (!path || !*path) {
        printf("SKIP: STOKER_REAL_CUDNN does not name a libcudnn.so.9 (pip download nvidia-cudnn-cu13)\n");
        return 77;
    }
    if (!open_library(path)) {
        printf("cannot load '%s': %s\n", path, dlerror());
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
