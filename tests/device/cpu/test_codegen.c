/* Generated code: the interpreter's bits for random groups, in place and on several threads; and the cache, which loads
 * nothing that is cut, damaged or another user's, and without which groups stay interpreted.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "device/cpu/codegen/codegen.h"
#include "device/cpu/random_program.h"

static char cache[64];

/* --- bits --- */

enum { N_PROGRAMS = 72 };

/* Runs a kernel as call_run does, in new outputs or in a copy of an input. */
static void run_kernel(const call *c, stk_device *device, const stk_kernel *kernel, int in_place, void *out[CALL_MOST])
{
    void *in[CALL_MOST], *scratch = call_alloc(kernel->scratch_bytes);
    int i_failed;
    memcpy(in, c->in, sizeof(in));
    memset(out, 0, CALL_MOST * sizeof(*out));
    for (int o = 0; o < c->n_out; o++) {
        out[o] = call_alloc(stk_desc_bytes(c->out_desc[o]));
        if (in_place < 0 || in_place / 32 != o) continue;
        memcpy(out[o], c->in[in_place % 32], stk_desc_bytes(c->out_desc[o]));
        in[in_place % 32] = out[o];
    }
    stk_entry entry = {kernel, {.in = in, .out = out, .scratch = kernel->scratch_bytes ? scratch : NULL}};
    assert_int_equal(device->class->run(device, &entry, 1, &i_failed), STK_OK);
    free(scratch);
}

static void get_kernel(const call *c, stk_device *device, stk_kernel *out)
{
    stk_tensor_desc in_desc[CALL_MOST], out_desc[CALL_MOST];
    memcpy(in_desc, c->in_desc, sizeof(in_desc));
    memcpy(out_desc, c->out_desc, sizeof(out_desc));
    stk_op_call op_call = {c->op, &c->attrs, c->n_in, c->n_out, in_desc, out_desc};
    assert_int_equal(device->class->kernel(device, &op_call, out), STK_OK);
}

/* A NaN is a NaN: which of two an addition keeps is the compiler's choice. */
static bool is_nan(stk_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case STK_F32: return isnan(((const float *)data)[i]);
    case STK_F64: return isnan(((const double *)data)[i]);
    case STK_BF16: return (((const uint16_t *)data)[i] & 0x7fff) > 0x7f80;
    default: return false;
    }
}

static bool have_same_bits(stk_tensor_desc desc, const void *a, const void *b)
{
    size_t bytes = stk_dtype_bytes(desc.dtype);
    for (int64_t i = 0; i < stk_shape_count(desc.shape); i++)
        if (memcmp((const char *)a + (size_t)i * bytes, (const char *)b + (size_t)i * bytes, bytes) &&
            !(is_nan(desc.dtype, a, i) && is_nan(desc.dtype, b, i)))
            return false;
    return true;
}

static void compare_bits(const call *c, stk_device *device, const stk_kernel *interpreted, const stk_kernel *generated,
                         int i_program)
{
    void *want[CALL_MOST], *got[CALL_MOST];
    run_kernel(c, device, interpreted, -1, want);
    for (int k = -1; k < c->n_out * 32; k++) {
        if (k >= 0 && !(generated->in_place[k / 32] >> k % 32 & 1)) continue;
        run_kernel(c, device, generated, k, got);
        for (int o = 0; o < c->n_out; o++)
            if (!have_same_bits(c->out_desc[o], got[o], want[o]))
                fail_msg("program %d, output %d has other bits%s", i_program, o, k < 0 ? "" : " in place");
        call_free_outputs(got);
    }
    call_free_outputs(want);
}

/* NaN, infinities, numbers at the end of the range and below it among the inputs. */
static void add_odd_numbers(call *c)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-41f, -3e38f, 100.0f, -100.0f};
    for (int i = 0; i < c->n_in; i++)
        for (int64_t k = 0; c->in_desc[i].dtype == STK_F32 && k < stk_shape_count(c->in_desc[i].shape); k += 7)
            ((float *)c->in[i])[k] = odd[k / 7 % 9];
}

static void check_isa(const char *isa, int n_threads, uint64_t seed, int n_programs)
{
    static maker m[N_PROGRAMS];
    stk_kernel interpreted[N_PROGRAMS] = {{0}}, generated[N_PROGRAMS] = {{0}};
    stk_codegen_report report;
    stk_device *device = call_open(isa, n_threads);
    assert_non_null(device);
    for (int i = 0; i < n_programs; i++) {
        make_program(&m[i], seed + (uint64_t)i);
        add_odd_numbers(&m[i].call);
        get_kernel(&m[i].call, device, &interpreted[i]);
        get_kernel(&m[i].call, device, &generated[i]);
    }
    if (stk_code_make((stk_cpu_device *)device, 1, generated, n_programs, &report) != STK_OK)
        fail_msg("%s", stk_error_text());
    assert_int_equal(report.n_cached, 0);
    assert_int_equal(report.n_compiled + report.n_interpreted, n_programs);
    if (report.n_compiled < n_programs / 4) fail_msg("only %d programs are generated", report.n_compiled);
    printf("%s: %d of %d programs generated, %.1f s\n", isa, report.n_compiled, n_programs,
           (double)report.compile_ns * 1e-9);
    for (int i = 0; i < n_programs; i++) {
        compare_bits(&m[i].call, device, &interpreted[i], &generated[i], i);
        stk_kernel_free(&interpreted[i]);
        stk_kernel_free(&generated[i]);
        call_free(&m[i].call);
    }
    stk_device_close(device);
}

static void random_groups_have_the_same_bits(void **state)
{
    (void)state;
    check_isa("avx2", 3, 1000, N_PROGRAMS);
    check_isa("baseline", 1, 2000, N_PROGRAMS / 3);
}

/* --- the cache --- */

#define OP(op, kind, a, b)                                                                                             \
    {                                                                                                                  \
        STK_OP_##op, kind, STK_F32, STK_F32, {a, b, -1}, 0, 0                                                          \
    }

/* z = x * y + y, rounded twice, and min(log|z| / x, y), in the same shape each time: one function. */
static stk_status generate(stk_codegen_report *report)
{
    static const stk_fused_input in[] = {{STK_F32, {1}}, {STK_F32, {1}}};
    static const stk_fused_instr instr[] = {OP(binary, STK_BINARY_mul, 0, 1), OP(binary, STK_BINARY_add, 2, 1),
                                            OP(unary, STK_UNARY_abs, 3, -1),  OP(unary, STK_UNARY_log, 4, -1),
                                            OP(binary, STK_BINARY_div, 5, 0), OP(binary, STK_BINARY_min, 6, 1)};
    static const int32_t out[] = {3, 7};
    static const stk_fused program = {.shape = {.rank = 1, .dim = {64}},
                                      .n_in = 2,
                                      .n_instr = 2,
                                      .n_out = 1,
                                      .input = in,
                                      .instr = instr,
                                      .out = out};
    stk_device *device = call_open(NULL, 1);
    stk_kernel kernel = {0}, plain = {0};
    call c = {.op = STK_OP_fused, .attrs = stk_attrs_zero()};
    c.attrs.fused.program = &program;
    call_add(&c, STK_F32, program.shape, -1, 1);
    call_add(&c, STK_F32, program.shape, -1, 1);
    call_add_out(&c, STK_F32, program.shape);
    call_add_out(&c, STK_F32, program.shape);
    assert_non_null(device);
    get_kernel(&c, device, &kernel);
    get_kernel(&c, device, &plain);
    stk_status status = stk_code_make((stk_cpu_device *)device, 1, &kernel, 1, report);
    compare_bits(&c, device, &plain, &kernel, -1);
    stk_kernel_free(&kernel);
    stk_kernel_free(&plain);
    call_free(&c);
    stk_device_close(device);
    return status;
}

static void expect_compiled(void)
{
    stk_codegen_report report;
    if (generate(&report) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(report.n_compiled, 1);
    assert_true(report.compile_ns > 0);
}

static void expect_cached(void)
{
    stk_codegen_report report;
    if (generate(&report) != STK_OK) fail_msg("%s", stk_error_text());
    assert_int_equal(report.n_cached, 1);
    assert_int_equal(report.compile_ns, 0);
}

/* Nothing is generated, and the text says why. */
static void expect_refused(const char *text)
{
    stk_codegen_report report;
    assert_int_not_equal(generate(&report), STK_OK);
    assert_int_equal(report.n_interpreted, 1);
    if (!strstr(stk_error_text(), text)) fail_msg("'%s' does not say '%s'", stk_error_text(), text);
}

static void empty_cache(void)
{
    assert_int_equal(stk_tree_remove(cache), STK_OK);
    assert_int_equal(mkdir(cache, 0755), 0);
}

static void find_object(char path[256])
{
    char folder[128];
    stk_names names;
    snprintf(folder, sizeof(folder), "%s/codegen", cache);
    assert_int_equal(stk_dir_list(folder, &names), STK_OK);
    assert_int_equal(names.n, 2); /* the source and the object, and nothing left over */
    snprintf(path, 256, "%s/%s", folder, names.name[1]);
    assert_non_null(strstr(path, ".so"));
    stk_names_free(&names);
}

static void flip_byte(const char *path, off_t at)
{
    char byte = 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void code_is_kept_and_what_is_damaged_made_anew(void **state)
{
    char path[256], moved[272];
    struct stat about;
    (void)state;
    empty_cache();
    mode_t mask = umask(0002); /* as some systems have it: it lets the group write */
    expect_compiled();
    umask(mask);
    expect_cached();
    find_object(path);
    assert_int_equal(stat(path, &about), 0);
    off_t ends[] = {0, 8, about.st_size / 2, about.st_size - 1};
    for (int i = 0; i < 4; i++) { /* in place: nothing has it loaded now */
        assert_int_equal(truncate(path, ends[i]), 0);
        expect_compiled();
        expect_cached();
    }
    flip_byte(path, about.st_size / 2);
    expect_compiled();
    flip_byte(path, about.st_size - 3);
    expect_compiled();
    /* A link may point at anything. */
    snprintf(moved, sizeof(moved), "%s.moved", path);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    expect_compiled();
    assert_int_equal(unlink(moved), 0);
    assert_int_equal(chmod(path, 0777), 0);
    expect_compiled();
    expect_cached();
    find_object(path);
}

static void nothing_of_others_is_loaded(void **state)
{
    char path[256], folder[128];
    (void)state;
    empty_cache();
    expect_compiled();
    find_object(path);
    snprintf(folder, sizeof(folder), "%s/codegen", cache);
    assert_int_equal(chmod(folder, 0777), 0);
    expect_refused("which other users may write to");
    assert_int_equal(chmod(folder, 0700), 0);
    expect_cached();
    if (geteuid() != 0) {
        printf("SKIP: files of other users, which only root can make\n");
        return;
    }
    assert_int_equal(chown(path, 12345, 12345), 0);
    expect_compiled();
    expect_cached();
    assert_int_equal(chown(folder, 12345, 12345), 0);
    expect_refused("which other users may write to");
}

static void write_file(const char *path, const char *text, int mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

static void what_cannot_be_compiled_stays_interpreted(void **state)
{
    char script[128], blocked[128], *path = getenv("PATH"), *kept = path ? strdup(path) : NULL;
    stk_names names;
    (void)state;
    empty_cache();
    setenv("CC", "/nowhere/cc", 1);
    expect_refused("cannot run the compiler '/nowhere/cc': no such file or directory; set CC");
    setenv("CC", "false", 1);
    expect_refused("'false --version' fails");
    setenv("CC", " ", 1);
    expect_refused("CC names no compiler");
    snprintf(script, sizeof(script), "%s/cc", cache);
    write_file(script,
               "#!/bin/sh\n[ $# = 1 ] && exit 0\necho 'hello'; echo 'x.c:1: error: no such thing' >&2; exit 1\n", 0755);
    setenv("CC", script, 1);
    expect_refused("x.c:1: error: no such thing");
    write_file(script, "#!/bin/sh\n[ $# = 1 ] && exit 0\nkill -9 $$\n", 0755);
    expect_refused("a signal ended it");
    write_file(script, "#!/bin/sh\nexit 0\n", 0755);
    expect_refused("the compiler made no");
    unsetenv("CC");
    setenv("PATH", "/nowhere", 1);
    expect_refused("there is no C compiler: install gcc");
    setenv("PATH", kept ? kept : "/usr/bin:/bin", 1);
    free(kept);
    /* Nothing is left over. */
    snprintf(blocked, sizeof(blocked), "%s/codegen", cache);
    assert_int_equal(stk_dir_list(blocked, &names), STK_OK);
    assert_int_equal(names.n, 0);
    stk_names_free(&names);
    /* A file where the folder would be: what a cache that cannot be written to looks like, also to root. */
    assert_int_equal(rmdir(blocked), 0);
    write_file(blocked, "", 0644);
    expect_refused("not a directory; set STOKER_CACHE to a folder of yours");
}

static void two_at_once_do_not_disturb_each_other(void **state)
{
    enum { N = 3 };
    pid_t child[N];
    int exit_status;
    char path[256];
    (void)state;
    empty_cache();
    for (int i = 0; i < N; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0) {
            stk_codegen_report report;
            _exit(generate(&report) == STK_OK && report.n_interpreted == 0 ? 0 : 1);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(waitpid(child[i], &exit_status, 0), child[i]);
        assert_int_equal(exit_status, 0);
    }
    find_object(path);
    expect_cached();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_groups_have_the_same_bits),
        cmocka_unit_test(code_is_kept_and_what_is_damaged_made_anew),
        cmocka_unit_test(nothing_of_others_is_loaded),
        cmocka_unit_test(what_cannot_be_compiled_stays_interpreted),
        cmocka_unit_test(two_at_once_do_not_disturb_each_other),
    };
    stk_compiler compiler;
    if (stk_compiler_find(&compiler) != STK_OK) {
        printf("SKIP: %s\n", stk_error_text());
        return 77;
    }
    stk_compiler_free(&compiler);
    snprintf(cache, sizeof(cache), "/tmp/stk_codegen.XXXXXX");
    if (!mkdtemp(cache)) return 1;
    setenv("STOKER_CACHE", cache, 1);
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    stk_tree_remove(cache);
    return n_failed;
}
