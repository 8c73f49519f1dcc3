/* Lists of hosts, and the commands that start ranks with each launcher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "elastic/launch.h"

static const char *words_of(const stk_launch *launch, stk_launcher launcher)
{
    static const char *word[STK_LAUNCH_MOST_ARGS];
    static stk_launch_texts texts;
    static char text[1000];
    text[0] = 0;
    if (stk_launch_command(launch, launcher, 4, &texts, word) != STK_OK) return stk_error_text();
    for (int i = 0; word[i]; i++) {
        strcat(text, i ? " " : "");
        strcat(text, word[i]);
    }
    return text;
}

static void test_hosts(void **state)
{
    static const struct {
        const char *text;
        int n, per_host;
    } rows[] = {{"a", 1, 1},   {"a,b", 2, 1},  {"a:2,b:2", 4, 2},    {"a:2,b", 3, 0},      {"node-1.x_y:16", 16, 16},
                {"", 0, 0},    {"a,", 0, 0},   {",a", 0, 0},         {"a:0", 0, 0},        {"a:-1", 0, 0},
                {"a:x", 0, 0}, {"a:", 0, 0},   {"-oX=y", 0, 0},      {"a b", 0, 0},        {"a:2:3", 0, 0},
                {"a;b", 0, 0}, {"a:+2", 0, 0}, {"a:99999999", 0, 0}, {"a:1048576,b", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int per_host = 0, n = stk_launch_count_hosts(rows[i].text, &per_host);
        assert_int_equal(n, rows[i].n);
        if (n) assert_int_equal(per_host, rows[i].per_host);
    }
}

static void test_commands(void **state)
{
    static const char *const names[] = {"A", "B"};
    char *const argv[] = {"train", "x.yaml", NULL};
    stk_launch l = {.program = "/s", .argv = argv, .name = names, .n_env = 2, .n_ranks = 3};
    (void)state;
    unsetenv("SLURM_MPI_TYPE");
    assert_string_equal(words_of(&l, STK_LAUNCHER_OPEN_MPI), "mpirun -n 3 -x A -x B /s train x.yaml");
    l.more = "--resume";
    assert_string_equal(words_of(&l, STK_LAUNCHER_MPICH), "mpirun -n 3 /s train x.yaml --resume");
    assert_string_equal(words_of(&l, STK_LAUNCHER_SRUN),
                        "srun -n 3 --kill-on-bad-exit=0 --mpi=pmix /s train x.yaml --resume");
    setenv("SLURM_MPI_TYPE", "pmi2", 1);
    assert_string_equal(words_of(&l, STK_LAUNCHER_SRUN), "srun -n 3 --kill-on-bad-exit=0 /s train x.yaml --resume");
    l.more = NULL;
    l.n_ranks = 5;
    assert_string_equal(words_of(&l, STK_LAUNCHER_OPEN_MPI), "mpirun -n 5 --oversubscribe -x A -x B /s train x.yaml");
    l.hosts = "a:2,b:2";
    assert_string_equal(words_of(&l, STK_LAUNCHER_OPEN_MPI),
                        "mpirun -n 5 --host a:2,b:2 --bind-to none -x A -x B /s train x.yaml");
    assert_string_equal(words_of(&l, STK_LAUNCHER_MPICH), "mpirun -n 5 -hosts a:2,b:2 /s train x.yaml");
    assert_string_equal(words_of(&l, STK_LAUNCHER_SRUN),
                        "srun -n 5 --kill-on-bad-exit=0 -w a,b --ntasks-per-node=2 /s train x.yaml");
    l.hosts = "a:2,b";
    assert_string_equal(words_of(&l, STK_LAUNCHER_SRUN),
                        "srun wants as many ranks on each host, like a:2,b:2, and not 'a:2,b'");
    l.hosts = "a:2,,b";
    assert_string_equal(words_of(&l, STK_LAUNCHER_SRUN), "'a:2,,b' is no list of hosts, like a:2,b:2");
}

static void test_too_many_arguments(void **state)
{
    char **argv = calloc(STK_LAUNCH_MOST_ARGS + 1, sizeof(*argv));
    (void)state;
    assert_non_null(argv);
    for (int i = 0; i < STK_LAUNCH_MOST_ARGS; i++)
        argv[i] = "x";
    stk_launch l = {.program = "/s", .argv = argv, .n_ranks = 1};
    assert_string_equal(words_of(&l, STK_LAUNCHER_MPICH), "too many arguments");
    free(argv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hosts), cmocka_unit_test(test_commands),
                                       cmocka_unit_test(test_too_many_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
