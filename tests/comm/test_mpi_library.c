/* What launchers say in the environment; that their libraries agree is tests/cli/test_ranks.py's and ./dev slurm's. */
#include "comm/mpi_library.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

static stk_mpi_launch launch_with(const char *const (*variable)[2])
{
    static const char *const all[] = {
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",    "PMI_RANK",     "PMI_SIZE",
        "SLURM_STEP_ID",        "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_JOB_ID"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        unsetenv(all[i]);
    for (int i = 0; variable[i][0]; i++)
        setenv(variable[i][0], variable[i][1], 1);
    return stk_mpi_find_launch();
}

static void check(const char *const (*variable)[2], int rank, int n_ranks, bool has_mpi, bool by_pmi)
{
    stk_mpi_launch launch = launch_with(variable);
    assert_int_equal(launch.n_ranks, n_ranks);
    assert_int_equal(launch.rank, rank);
    assert_int_equal(launch.has_mpi, has_mpi);
    assert_int_equal(launch.by_pmi, by_pmi);
}

typedef const char *const variables[][2];

static void test_launchers(void **state)
{
    (void)state;
    check((variables){{NULL}}, 0, 1, true, false);
    check((variables){{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}, {NULL}}, 3, 4,
          true, false);
    check((variables){{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}, {NULL}}, 1, 2, true, true);
}

static void test_slurm(void **state)
{
    (void)state;
    /* A batch script, or a shell, in an allocation of two trains alone. */
    check((variables){{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {NULL}}, 0, 1, true, false);
#define STEP {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "1"}
    check((variables){STEP, {"PMIX_RANK", "1"}, {NULL}}, 1, 2, true, false);
    check((variables){STEP, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {NULL}}, 1, 2, true, true);
    check((variables){STEP, {NULL}}, 1, 2, false, true);
    /* mpirun in a step. */
    check((variables){STEP, {"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "2"}, {NULL}}, 2, 3, true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launchers), cmocka_unit_test(test_slurm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
