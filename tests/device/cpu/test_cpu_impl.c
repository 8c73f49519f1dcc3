/* Lists of ways to compute an op: how one is walked, and which way a call of each op with several gets, by instruction
 * set. A choice that changes moves bits and speed of what people train, so that a line here has to change with it.
 */
#include "device/cpu/impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/call.h"
#include "device/cpu/matmul/tile_product.h"
#include "device/cpu/onednn/onednn.h"
#include "harness/harness.h"

/* --- walking --- */

static bool never(const stk_cpu_device *device, const stk_op_call *op_call)
{
    (void)device;
    (void)op_call;
    return false;
}

static bool always(const stk_cpu_device *device, const stk_op_call *op_call)
{
    return !never(device, op_call);
}

static stk_status run_nothing(const void *state, const stk_kernel_args *args)
{
    (void)state;
    (void)args;
    return STK_OK;
}

static stk_status make(const stk_cpu_device *device, const stk_op_call *op_call, stk_kernel *out)
{
    (void)device;
    (void)op_call;
    return stk_cpu_new_state(1, run_nothing, out);
}

/* Leaves traces, which the next way must not see. */
static stk_status refuse(const stk_cpu_device *device, const stk_op_call *op_call, stk_kernel *out)
{
    STK_RETURN_IF_ERROR(make(device, op_call, out));
    out->library_bytes = out->scratch_bytes = 1000;
    out->impl = "refused";
    return stk_fail(STK_UNSUPPORTED, "the library has none");
}

static stk_status break_down(const stk_cpu_device *device, const stk_op_call *op_call, stk_kernel *out)
{
    (void)device;
    (void)op_call;
    (void)out;
    return stk_fail(STK_DEVICE, "broken");
}

static stk_status walk(const stk_cpu_impl *impls, stk_kernel *out)
{
    static const stk_tensor_desc x = {STK_F32, {.rank = 0}};
    stk_tensor_desc y = x;
    stk_op_call op_call = {.op = STK_OP_unary, .n_in = 1, .n_out = 1, .in = &x, .out = &y};
    stk_device *device = call_open("baseline", 1);
    *out = (stk_kernel){0};
    stk_status status = stk_cpu_make_first((const stk_cpu_device *)device, &op_call, impls, out);
    stk_device_close(device);
    return status;
}

static void the_first_that_fits_is_taken(void **state)
{
    (void)state;
    stk_kernel kernel;
    static const stk_cpu_impl named[] = {{"a", never, make}, {"b", always, make}, {"c", always, make}, {0}};
    assert_int_equal(walk(named, &kernel), STK_OK);
    assert_string_equal(kernel.impl, "b");
    stk_kernel_free(&kernel);
    static const stk_cpu_impl own[] = {{NULL, always, make}, {0}};
    assert_int_equal(walk(own, &kernel), STK_OK);
    assert_string_equal(kernel.impl, "own baseline");
    stk_kernel_free(&kernel);
}

static void what_a_library_refuses_goes_on(void **state)
{
    (void)state;
    stk_kernel kernel;
    static const stk_cpu_impl impls[] = {{"a", always, refuse}, {NULL, always, make}, {0}};
    assert_int_equal(walk(impls, &kernel), STK_OK);
    assert_string_equal(kernel.impl, "own baseline");
    assert_int_equal(kernel.library_bytes + kernel.scratch_bytes, 0);
    stk_kernel_free(&kernel);
    static const stk_cpu_impl broken[] = {{"a", always, break_down}, {NULL, always, make}, {0}};
    assert_int_equal(walk(broken, &kernel), STK_DEVICE);
}

static void none_that_fits_is_told(void **state)
{
    (void)state;
    stk_kernel kernel;
    static const stk_cpu_impl nothing[] = {{"a", never, make}, {0}}, refused[] = {{"a", always, refuse}, {0}};
    assert_int_equal(walk(nothing, &kernel), STK_UNSUPPORTED);
    assert_string_equal(stk_error_text(), "the cpu device has no kernel for 'unary' of f32 to f32");
    assert_int_equal(walk(refused, &kernel), STK_UNSUPPORTED);
    assert_string_equal(stk_error_text(), "the library has none");
    assert_null(kernel.state);
}

/* --- choices --- */

enum { BASELINE, AVX2, AVX512, WITH_BF16, WITH_AMX, N_SETS };

/* impl: of the kernel by set, on two threads; how it starts, where it is oneDNN's, which names its own by the
 * processor. NULL: as with the set before. */
typedef struct choice {
    op_case call;
    stk_dtype main;
    const char *impl[N_SETS];
} choice;

#define WINDOW(k, s, p, d, groups_)                                                                                    \
    .window = {.kernel = {k, k},                                                                                       \
               .stride = {s, s},                                                                                       \
               .pad_low = {p, p},                                                                                      \
               .pad_high = {p, p},                                                                                     \
               .dilation = {d, d},                                                                                     \
               .groups = groups_}
#define X(...)                           REAL(-1, 1, __VA_ARGS__)
#define FORWARD(name, window, x, weight) CASE(name, conv2d, ATTRS(window), INPUTS(x, weight))
#define DATA(name, window, dy, weight, ...)                                                                            \
    CASE(name, conv2d_grad_data, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(dy, weight))
#define WEIGHT(name, window, x, dy, ...)                                                                               \
    CASE(name, conv2d_grad_weight, ATTRS(.shape = DIMS(__VA_ARGS__), window), INPUTS(x, dy))
#define MATMUL(name, ...) CASE(name, matmul, ATTRS(), INPUTS(__VA_ARGS__))
#define POOLED            X(2, 4, 4, 16)

#define OWN                                                                                                            \
    {                                                                                                                  \
        "own baseline", "own avx2", "own avx512"                                                                       \
    }
#define OWN_OR(few, ...)                                                                                               \
    {                                                                                                                  \
        "own baseline", "own avx2", few, __VA_ARGS__                                                                   \
    }
#define WINOGRAD(...)                                                                                                  \
    {                                                                                                                  \
        "own winograd baseline", "own winograd avx2", "own winograd avx512", __VA_ARGS__                               \
    }
#define ALWAYS(impl)                                                                                                   \
    {                                                                                                                  \
        impl                                                                                                           \
    }

static const choice choices[] = {
    /* Convolutions of nothing, and in f64. */
    {FORWARD("empty", WINDOW(3, 1, 1, 1, 1), X(0, 8, 8, 32), X(32, 3, 3, 32)), STK_F32, OWN},
    {FORWARD("empty", WINDOW(3, 1, 1, 1, 1), X(0, 8, 8, 32), X(32, 3, 3, 32)), STK_BF16, OWN},
    {FORWARD("empty", WINDOW(3, 1, 1, 1, 1), X(0, 8, 8, 32), X(32, 3, 3, 32)), STK_F64, OWN},
    {FORWARD("3x3", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 32), X(32, 3, 3, 32)), STK_F64, ALWAYS("plain f64")},
    /* 3x3, of many channels and of few, strided. */
    {FORWARD("3x3", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 64), X(64, 3, 3, 64)), STK_F32, WINOGRAD(NULL)},
    {FORWARD("3x3", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 64), X(64, 3, 3, 64)), STK_F16, WINOGRAD(NULL)},
    {FORWARD("3x3", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 64), X(64, 3, 3, 64)), STK_BF16, WINOGRAD("onednn ", "own amx")},
    {WEIGHT("3x3", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 64), X(8, 8, 8, 64), 64, 3, 3, 64), STK_F32, WINOGRAD(NULL)},
    {WEIGHT("3x3", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 64), X(8, 8, 8, 64), 64, 3, 3, 64), STK_BF16,
     WINOGRAD("pairs of bf16", "own amx")},
    {WEIGHT("few pixels", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 48), X(8, 8, 8, 64), 64, 3, 3, 48), STK_BF16,
     WINOGRAD(NULL, "own amx")},
    {WEIGHT("many pixels", WINDOW(3, 1, 1, 1, 1), X(8, 16, 16, 48), X(8, 16, 16, 64), 64, 3, 3, 48), STK_BF16,
     WINOGRAD("onednn ", "own amx")},
    {FORWARD("few channels", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 16), X(64, 3, 3, 16)), STK_F32, OWN_OR("onednn ", NULL)},
    {FORWARD("few channels", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 16), X(64, 3, 3, 16)), STK_F16, OWN},
    {FORWARD("strided", WINDOW(3, 2, 1, 1, 1), X(8, 8, 8, 64), X(64, 3, 3, 64)), STK_F32, OWN},
    {FORWARD("strided", WINDOW(3, 2, 1, 1, 1), X(8, 8, 8, 64), X(64, 3, 3, 64)), STK_BF16,
     OWN_OR("own avx512", "onednn ", "own amx")},
    {WEIGHT("colours", WINDOW(3, 1, 1, 1, 1), X(8, 8, 8, 3), X(8, 8, 8, 64), 64, 3, 3, 3), STK_F32, ALWAYS("onednn ")},
    /* 1x1. */
    {FORWARD("1x1", WINDOW(1, 1, 0, 1, 1), X(4, 16, 16, 256), X(128, 1, 1, 256)),
     STK_F32,
     {"own baseline", "onednn sgemm", "onednn sgemm"}},
    {FORWARD("1x1", WINDOW(1, 1, 0, 1, 1), X(4, 16, 16, 256), X(128, 1, 1, 256)),
     STK_F16,
     {"own baseline", "onednn sgemm", "onednn sgemm"}},
    {WEIGHT("1x1", WINDOW(1, 1, 0, 1, 1), X(4, 16, 16, 256), X(4, 16, 16, 128), 128, 1, 1, 256),
     STK_F32,
     {"own baseline", "onednn sgemm", "onednn sgemm"}},
    {WEIGHT("1x1", WINDOW(1, 1, 0, 1, 1), X(4, 16, 16, 256), X(4, 16, 16, 128), 128, 1, 1, 256), STK_F16, OWN},
    {WEIGHT("many weights", WINDOW(1, 1, 0, 1, 1), X(4, 16, 16, 512), X(4, 16, 16, 512), 512, 1, 1, 512), STK_F32, OWN},
    {WEIGHT("many weights", WINDOW(1, 1, 0, 1, 1), X(4, 16, 16, 400), X(4, 16, 16, 400), 400, 1, 1, 400), STK_BF16,
     OWN_OR("own avx512", "own avx512_bf16", "own amx")},
    /* Groups: of one channel each, and of several, which are oneDNN's. */
    {FORWARD("depthwise", WINDOW(3, 1, 1, 1, 32), X(2, 8, 8, 32), X(32, 3, 3, 1)),
     STK_F32,
     {"own baseline", "own avx2", "onednn "}},
    {FORWARD("depthwise", WINDOW(3, 1, 1, 1, 32), X(2, 8, 8, 32), X(32, 3, 3, 1)), STK_F16, OWN},
    {FORWARD("groups", WINDOW(3, 1, 1, 1, 4), X(2, 8, 8, 32), X(32, 3, 3, 8)), STK_F32, ALWAYS("onednn ")},
    {FORWARD("groups", WINDOW(3, 1, 1, 1, 4), X(2, 8, 8, 32), X(32, 3, 3, 8)), STK_F16, ALWAYS("onednn ")},
    {FORWARD("groups", WINDOW(3, 1, 1, 1, 4), X(2, 8, 8, 32), X(32, 3, 3, 8)), STK_F64, ALWAYS("plain f64")},
    {DATA("dilated", WINDOW(3, 2, 2, 2, 1), X(2, 5, 5, 16), X(16, 3, 3, 16), 2, 9, 9, 16), STK_F32, ALWAYS("onednn ")},
    /* Products. */
    {MATMUL("large", X(512, 512), X(512, 512)), STK_F32, ALWAYS("onednn ")},
    {MATMUL("large", X(512, 512), X(512, 512)), STK_F16, ALWAYS("onednn ")},
    {MATMUL("large", X(1024, 1024), X(1024, 1024)),
     STK_BF16,
     {"onednn sgemm", "onednn sgemm", "onednn ", "own avx512_bf16", "own amx"}},
    {MATMUL("large", X(512, 512), X(512, 512)), STK_F64, OWN},
    {MATMUL("small", X(8, 8), X(8, 8)), STK_F32, OWN},
    {MATMUL("small", X(8, 8), X(8, 8)), STK_BF16, OWN},
    {MATMUL("one row", X(1, 512), X(512, 512)), STK_F32, ALWAYS("own vector")},
    {MATMUL("one row", X(1, 512), X(512, 512)), STK_BF16, {"own vector", NULL, NULL, "onednn "}},
    {MATMUL("one column", X(64, 512), X(512, 1)), STK_BF16, {"own baseline", "own avx2", "own avx512", "onednn "}},
    {MATMUL("one row", X(1, 512), X(512, 512)), STK_F64, OWN},
    {MATMUL("many", X(64, 64, 64), X(64, 64, 64)), STK_F32, OWN},
    /* The rest, whose ways are all ours but for the loss over a vocabulary. */
    {CASE("pool", max_pool2d, ATTRS(WINDOW(2, 2, 0, 1, 1)), INPUTS(X(2, 8, 8, 16))), STK_F16, OWN},
    {CASE("pool", max_pool2d_grad, ATTRS(WINDOW(2, 2, 0, 1, 1)), INPUTS(X(2, 8, 8, 16), POOLED, POOLED)), STK_BF16,
     OWN},
    {CASE("group norm", group_norm, ATTRS(.group_norm = {.groups = 4, .eps = 1e-5}),
          INPUTS(X(2, 4, 4, 16), STATS(0, 1, 16), STATS(0, 1, 16))),
     STK_BF16, OWN},
    {CASE("overlapping", max_pool2d_grad, ATTRS(WINDOW(3, 2, 1, 1, 1)), INPUTS(X(2, 8, 8, 16), POOLED, POOLED)),
     STK_BF16, OWN},
    {CASE("attention", attention, ATTRS(.attention = {.scale = 1}),
          INPUTS(X(2, 8, 2, 16), X(2, 8, 2, 16), X(2, 8, 2, 16))),
     STK_F32, OWN},
    {CASE("attention", attention, ATTRS(.attention = {.scale = 1}),
          INPUTS(X(2, 8, 2, 16), X(2, 8, 2, 16), X(2, 8, 2, 16))),
     STK_BF16,
     {"own baseline", "own avx2", "own avx512", NULL, "own amx"}},
    {CASE("softmax", softmax, ATTRS(), INPUTS(X(8, 10))), STK_F16, OWN},
    {CASE("loss", linear_cross_entropy, ATTRS(), INPUTS(X(64, 64), X(100, 64), LABELS(64, 100))), STK_F32,
     ALWAYS("onednn sgemm")},
    {CASE("loss", linear_cross_entropy, ATTRS(), INPUTS(X(64, 64), X(100, 64), LABELS(64, 100))), STK_F16,
     ALWAYS("onednn sgemm")},
    {CASE("loss", linear_cross_entropy, ATTRS(), INPUTS(X(64, 64), X(100, 64), LABELS(64, 100))), STK_F64,
     ALWAYS("plain f64")},
};

/* What oneDNN is asked for counts as memory of the library, also where it works for a way around it. */
static int check_kernel(const choice *c, stk_device *device, const char *want)
{
    case_run run;
    stk_kernel kernel;
    assert_int_equal(case_run_describe(&c->call, c->main, &run), STK_OK);
    assert_int_equal(device->class->kernel(device, &run.call, &kernel), STK_OK);
    bool is_onednns = !strncmp(want, "onednn", 6);
    size_t n = !strcmp(want, "onednn ") ? strlen(want) : strlen(want) + 1;
    bool is_wrong = strncmp(kernel.impl, want, n) || is_onednns != (kernel.library_bytes >= STK_ONEDNN_BYTES);
    if (is_wrong)
        print_message("%s is '%s' with %zu bytes and not '%s'\n", case_text(&run), kernel.impl, kernel.library_bytes,
                      want);
    stk_kernel_free(&kernel);
    return is_wrong;
}

static void choices_stay(void **state)
{
    static const char *const isas[] = {"baseline", "avx2", "avx512"};
    int n_wrong = 0;
    (void)state;
    unsetenv("STOKER_AMX");
    setenv("STOKER_KERNELS", "default", 1); /* the lists alone, whatever processor this is */
    for (int set = 0; set < 3; set++) {
        stk_device *device = call_open(isas[set], 2);
        stk_isa isa = ((const stk_cpu_device *)device)->isa;
        if ((int)isa != set) print_message("no %s here: its choices are not compared\n", isas[set]);
        for (size_t i = 0; (int)isa == set && i < sizeof(choices) / sizeof(choices[0]); i++) {
            const char *want = NULL;
            int most = stk_isa_has_amx(isa) ? WITH_AMX : stk_isa_has_bf16(isa) ? WITH_BF16 : set;
            for (int k = 0; k <= most; k++)
                if (choices[i].impl[k]) want = choices[i].impl[k];
            /* Products in bf16 where f32 is multiplied faster. */
            if (!strcmp(want, "own avx512_bf16") && stk_tile_product_kind(isa, STK_BF16) == STK_TILES_F32)
                want = "own avx512";
            n_wrong += check_kernel(&choices[i], device, want);
        }
        stk_device_close(device);
    }
    unsetenv("STOKER_KERNELS");
    assert_int_equal(n_wrong, 0);
}

/* Where bf16 are multiplied as they are, the model of tiles does for them, and nothing has to. */
static void tiles_are_what_is_asked_for(void **state)
{
    static const char *const wanted[][2] = {{"model", "own amx model"}, {"off", "own avx512"}};
    static const op_case attention = CASE("attention", attention, ATTRS(.attention = {.scale = 1}),
                                          INPUTS(X(2, 8, 2, 16), X(2, 8, 2, 16), X(2, 8, 2, 16)));
    (void)state;
    stk_device *device = call_open("avx512", 1);
    int n_wrong = 0;
    for (int i = 0; i < 2 && stk_isa_has_bf16(((const stk_cpu_device *)device)->isa); i++) {
        setenv("STOKER_AMX", wanted[i][0], 1);
        n_wrong += check_kernel(&(choice){.call = attention, .main = STK_BF16}, device, wanted[i][1]);
    }
    unsetenv("STOKER_AMX");
    stk_device_close(device);
    assert_int_equal(n_wrong, 0);
}

/* Columns of a 4 KiB apart, and many rows of them: oneDNN packs these slowly on Intel's processors. */
static void deep_columns_are_tiles(void **state)
{
    static const struct {
        op_case call;
        const char *intels, *others;
    } cases[] = {
#define TURNED(k, m) CASE("turned", matmul, ATTRS(.matmul = {.transpose_a = 1}), INPUTS(X(k, m), X(k, 64)))
        {TURNED(1920, 1024), "own avx512", "onednn sgemm"},
        {TURNED(1856, 1024), "onednn sgemm", "onednn sgemm"},
        {TURNED(1920, 1040), "onednn sgemm", "onednn sgemm"},
#undef TURNED
    };
    (void)state;
    int n_wrong = 0;
    setenv("STOKER_KERNELS", "default", 1);
    stk_device *device = call_open("avx512", 2);
    bool has_it = ((const stk_cpu_device *)device)->isa == STK_ISA_AVX512;
    for (size_t i = 0; has_it && i < sizeof(cases) / sizeof(cases[0]); i++)
        n_wrong += check_kernel(&(choice){.call = cases[i].call, .main = STK_F32}, device,
                                stk_isa_is_of_intel() ? cases[i].intels : cases[i].others);
    stk_device_close(device);
    unsetenv("STOKER_KERNELS");
    assert_int_equal(n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_fits_is_taken), cmocka_unit_test(what_a_library_refuses_goes_on),
        cmocka_unit_test(none_that_fits_is_told),       cmocka_unit_test(choices_stay),
        cmocka_unit_test(tiles_are_what_is_asked_for),  cmocka_unit_test(deep_columns_are_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
