/* The played cuBLASLt: products of all types, transposes, batches and epilogues against sums in double, in a stream and
 * in a graph; and what it finds done wrong. */
#include "device/play/rig.h"

#include <math.h>

#include "device/gpu/cuda/cublaslt.h"

static cublaslt_symbols lt;
static cublaslt_handle library;
static cu_stream stream;

static void open_all(void)
{
    open_context();
    void *found = dlopen(PLAYED "libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    CHECK(found);
#define X(result, name, parameters) *(void **)&lt.name = dlsym(found, #name);
    CUBLASLT_SYMBOL_LIST(X)
#undef X
    CHECK(lt.cublasLtGetVersion() == 130000);
    WELL(lt.cublasLtCreate(&library));
    stream = open_stream();
}

/* --- numbers of 16 bits that are exact: small integers --- */

static size_t bytes_of(int type)
{
    return type == CUBLASLT_F32 ? 4 : 2;
}

static void put(void *at, int i, int type, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (type == CUBLASLT_F32)
        memcpy((char *)at + 4 * i, &x, 4);
    else if (type == CUBLASLT_BF16)
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
    else
        ((uint16_t *)at)[i] = x == 0 ? 0 : (uint16_t)((bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112 << 10)));
}

static float get(const void *at, int i, int type)
{
    float x;
    if (type == CUBLASLT_F32) {
        memcpy(&x, (const char *)at + 4 * i, 4);
        return x;
    }
    const uint16_t h = ((const uint16_t *)at)[i];
    const uint32_t f16 = (uint32_t)(h & 0x8000) << 16 | ((uint32_t)(h & 0x7fff) + (112 << 10)) << 13;
    const uint32_t bits = type == CUBLASLT_BF16 ? (uint32_t)h << 16 : h & 0x7fff ? f16 : 0;
    memcpy(&x, &bits, 4);
    return x;
}

/* --- one product --- */

enum { M = 5, N_COLUMNS = 7, K = 300, BATCH = 2, LD = 320, STRIDE = LD * LD };

typedef struct product {
    int type, type_d, transpose_a, transpose_b, epilogue, in_graph, tf32;
    float beta;
    char *a, *b, *c, *bias;
} product;

static float element(const char *at, int batch, int row, int column, int transpose, int type)
{
    return get(at, batch * STRIDE + (transpose ? row * LD + column : column * LD + row), type);
}

/* Ten bits of mantissa, to nearest, by arithmetic. */
static double as_multiplied(const product *p, float x)
{
    int exponent;
    const double mantissa = frexp((double)x, &exponent);
    return p->tf32 ? ldexp(round(ldexp(mantissa, 11)), exponent - 11) : (double)x;
}

static double expect(const product *p, int batch, int row, int column)
{
    double x = 0;
    for (int k = 0; k < K; k++)
        x += as_multiplied(p, element(p->a, batch, row, k, p->transpose_a, p->type)) *
             as_multiplied(p, element(p->b, batch, k, column, p->transpose_b, p->type));
    x = 0.5 * x + (double)p->beta * (double)element(p->c, batch, row, column, 0, p->type_d);
    if (p->epilogue & 4) x += (double)get(p->bias, row, p->type_d);
    if (p->epilogue & 2) x = x > 0 ? x : 0;
    if (p->epilogue & 32) x = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x;
}

static cublaslt_layout lay(int type, int rows, int columns)
{
    cublaslt_layout out;
    const int32_t batch = BATCH;
    const int64_t stride = STRIDE;
    WELL(lt.cublasLtMatrixLayoutCreate(&out, type, (uint64_t)rows, (uint64_t)columns, LD));
    WELL(lt.cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_BATCH_COUNT, &batch, sizeof(batch)));
    WELL(lt.cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_BATCH_STRIDE, &stride, sizeof(stride)));
    return out;
}

static cu_address put_there(const char *from, size_t bytes)
{
    cu_address p = take(bytes);
    WELL(cu.cuMemcpyAsync(p, of(from), bytes, stream));
    return p;
}

static char *make_matrix(int type, int scale)
{
    char *out = calloc(BATCH, STRIDE * sizeof(float));
    CHECK(out);
    for (int i = 0; i < BATCH * STRIDE; i++)
        put(out, i, type, (float)(i * 7 % 5 - 2) / (float)scale);
    return out;
}

static cublaslt_operation describe(const product *p, const cu_address *bias)
{
    cublaslt_operation o;
    WELL(lt.cublasLtMatmulDescCreate(&o, p->tf32 ? CUBLASLT_COMPUTE_TF32 : CUBLASLT_COMPUTE_F32, CUBLASLT_F32));
    WELL(lt.cublasLtMatmulDescSetAttribute(o, CUBLASLT_TRANSPOSE_A, &p->transpose_a, 4));
    WELL(lt.cublasLtMatmulDescSetAttribute(o, CUBLASLT_TRANSPOSE_B, &p->transpose_b, 4));
    WELL(lt.cublasLtMatmulDescSetAttribute(o, CUBLASLT_EPILOGUE, &p->epilogue, 4));
    WELL(lt.cublasLtMatmulDescSetAttribute(o, CUBLASLT_BIAS_POINTER, bias, 8));
    return o;
}

/* Into d, where c lies before it. */
static void multiply(const product *p, cu_address a, cu_address b, cu_address d, cu_address bias)
{
    const float alpha = 0.5f;
    const uint64_t most = 1 << 20;
    cublaslt_preference preference;
    cublaslt_result way;
    int n;
    cublaslt_operation o = describe(p, &bias);
    cublaslt_layout al = lay(p->type, p->transpose_a ? K : M, p->transpose_a ? M : K);
    cublaslt_layout bl = lay(p->type, p->transpose_b ? N_COLUMNS : K, p->transpose_b ? K : N_COLUMNS);
    cublaslt_layout dl = lay(p->type_d, M, N_COLUMNS);
    WELL(lt.cublasLtMatmulPreferenceCreate(&preference));
    WELL(lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MOST_WORKSPACE, &most, sizeof(most)));
    WELL(lt.cublasLtMatmulAlgoGetHeuristic(library, o, al, bl, dl, dl, preference, 4, &way, &n));
    CHECK(n == 1 && way.state == 0 && way.workspace_bytes > 0);
    cu_address workspace = take(way.workspace_bytes);
    cu_graph graph;
    cu_graph_exec exec;
    if (p->in_graph) WELL(cu.cuStreamBeginCapture(stream, 2));
    WELL(lt.cublasLtMatmul(library, o, &alpha, (void *)a, al, (void *)b, bl, &p->beta, (void *)d, dl, (void *)d, dl,
                           &way.way, (void *)workspace, way.workspace_bytes, stream));
    const cublaslt_layout layouts[] = {al, bl, dl};
    for (int i = 0; i < 3; i++)
        WELL(lt.cublasLtMatrixLayoutDestroy(layouts[i]));
    WELL(lt.cublasLtMatmulDescDestroy(o));
    WELL(lt.cublasLtMatmulPreferenceDestroy(preference));
    if (!p->in_graph) return;
    WELL(cu.cuStreamEndCapture(stream, &graph));
    WELL(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    WELL(cu.cuGraphLaunch(exec, stream));
}

static void check_product(product p)
{
    p.a = make_matrix(p.type, p.tf32 ? 3 : 2); /* thirds are no TF32 */
    p.b = make_matrix(p.type, p.tf32 ? 7 : 4);
    p.c = make_matrix(p.type_d, 1);
    p.bias = make_matrix(p.type_d, 8);
    const size_t bytes = BATCH * STRIDE * bytes_of(p.type), bytes_d = BATCH * STRIDE * bytes_of(p.type_d);
    char *got = malloc(bytes_d);
    CHECK(got);
    cu_address d = put_there(p.c, bytes_d);
    multiply(&p, put_there(p.a, bytes), put_there(p.b, bytes), d, put_there(p.bias, bytes_d));
    WELL(cu.cuMemcpyAsync(of(got), d, bytes_d, stream));
    const double most = p.type_d == CUBLASLT_F32 ? 1e-5 : p.type_d == CUBLASLT_F16 ? 5e-4 : 4e-3;
    for (int batch = 0; batch < BATCH; batch++)
        for (int i = 0; i < M * N_COLUMNS; i++) {
            const double want = expect(&p, batch, i % M, i / M);
            const double off = fabs((double)element(got, batch, i % M, i / M, 0, p.type_d) - want);
            if (off > most * (1 + fabs(want))) {
                fprintf(stderr, "types %d, %d, epilogue %d: %g off %g\n", p.type, p.type_d, p.epilogue, off, want);
                _exit(1);
            }
        }
    char *all[] = {p.a, p.b, p.c, p.bias, got};
    for (int i = 0; i < 5; i++)
        free(all[i]);
}

static void multiply_all(void)
{
    static const int epilogues[] = {1, 2, 4, 6, 32, 36};
    static const int types[][2] = {{CUBLASLT_F32, CUBLASLT_F32},
                                   {CUBLASLT_BF16, CUBLASLT_BF16},
                                   {CUBLASLT_F16, CUBLASLT_F16},
                                   {CUBLASLT_BF16, CUBLASLT_F32},
                                   {CUBLASLT_F16, CUBLASLT_F32}};
    open_all();
    for (int t = 0; t < 5; t++)
        for (int i = 0; i < 6; i++)
            check_product((product){.type = types[t][0],
                                    .type_d = types[t][1],
                                    .transpose_a = i & 1,
                                    .transpose_b = i >> 1 & 1,
                                    .epilogue = epilogues[i],
                                    .in_graph = i == 3 || t == 1,
                                    .beta = (float)(i % 2)});
    for (int i = 0; i < 4; i++)
        check_product((product){.type = CUBLASLT_F32,
                                .type_d = CUBLASLT_F32,
                                .transpose_a = i & 1,
                                .transpose_b = i >> 1 & 1,
                                .epilogue = 1,
                                .tf32 = 1});
    CHECK(count("products") == 34 && count("misuse") == 0);
    WELL(lt.cublasLtDestroy(library));
    WELL(cu.cuDevicePrimaryCtxRelease(0));
}

static void products_are_made(void **state)
{
    (void)state;
    expect_end(0, multiply_all, NULL);
    expect_end(0, multiply_all, "STOKER_PLAY_ORDER=7", NULL);
}

/* --- what is wrong --- */

static const product plain = {.epilogue = 1};
static const float one = 1;
static cublaslt_operation o; /* of these two tests, which close nothing: so does misuse */
static cublaslt_layout al, bl, dl;

static void describe_plain(void)
{
    open_all();
    o = describe(&plain, &(cu_address){0});
    al = lay(0, M, K);
    bl = lay(0, K, N_COLUMNS);
    dl = lay(0, M, N_COLUMNS);
}

static void load_in_strict_capture(void)
{
    describe_plain();
    WELL(cu.cuStreamBeginCapture(stream, 1));
    GIVES(13, lt.cublasLtMatmul(library, o, &one, NULL, al, NULL, bl, &one, NULL, dl, NULL, dl, NULL, NULL, 0, stream));
}

static void take_another_way(void)
{
    describe_plain();
    cublaslt_way way = {{0}};
    GIVES(7, lt.cublasLtMatmul(library, o, &one, NULL, al, NULL, bl, &one, NULL, dl, NULL, dl, &way, NULL, 0, stream));
    GIVES(7, lt.cublasLtMatmul(library, o, &one, NULL, bl, NULL, al, &one, NULL, dl, NULL, dl, &way, NULL, 0, stream));
}

static void wrong_products_are_found(void **state)
{
    (void)state;
    expect_end(MISUSED, load_in_strict_capture, NULL);
    expect_end(MISUSED, take_another_way, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_made),
        cmocka_unit_test(wrong_products_are_found),
    };
    if (lacks_pocl()) return NO_POCL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
