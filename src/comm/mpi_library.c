/* See comm/mpi_library.h. */
#include "comm/mpi_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* 0: it is not there, or no number. */
static int number_in(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

static bool is_set(const char *variable)
{
    return getenv(variable) != NULL;
}

/* A step of srun has its own count, which a batch script and a shell in an allocation do not have. PMIX_RANK is there
 * under Open MPI's mpirun, too. */
stk_mpi_launch stk_mpi_find_launch(void)
{
    bool by_pmix = is_set("PMIX_RANK");
    int n_step = is_set("SLURM_STEP_ID") ? number_in("SLURM_STEP_NUM_TASKS") : 0;
    if (number_in("OMPI_COMM_WORLD_SIZE") > 0)
        return (stk_mpi_launch){number_in("OMPI_COMM_WORLD_RANK"), number_in("OMPI_COMM_WORLD_SIZE"), true, false};
    if (number_in("PMI_SIZE") > 0) return (stk_mpi_launch){number_in("PMI_RANK"), number_in("PMI_SIZE"), true, true};
    if (n_step > 1) return (stk_mpi_launch){number_in("SLURM_PROCID"), n_step, by_pmix || is_set("PMI_RANK"), !by_pmix};
    return (stk_mpi_launch){0, 1, true, false};
}

static void *find(void *library, const char *name, bool *missing)
{
    void *p = dlsym(library, name);
    if (!p && !*missing) {
        *missing = true;
        stk_fail(STK_UNSUPPORTED, "'%s' is not in the MPI library", name);
    }
    return p;
}

static void *number(uintptr_t handle)
{
    return (void *)handle;
}

/* Handles of Open MPI are addresses of its objects. */
static void fill_open_mpi(void *library, stk_mpi *mpi, bool *missing)
{
    mpi->name = "Open MPI";
    mpi->world = find(library, "ompi_mpi_comm_world", missing);
    mpi->f32 = find(library, "ompi_mpi_float", missing);
    mpi->f64 = find(library, "ompi_mpi_double", missing);
    mpi->i32 = find(library, "ompi_mpi_int32_t", missing);
    mpi->i64 = find(library, "ompi_mpi_int64_t", missing);
    mpi->byte = find(library, "ompi_mpi_byte", missing);
    mpi->sum = find(library, "ompi_mpi_op_sum", missing);
    mpi->no_info = find(library, "ompi_mpi_info_null", missing);
    mpi->in_place = number(1);
    mpi->ignore_status = NULL;
    mpi->shared_type = 0;
    mpi->serialized = 2;
    mpi->any_source = -1;
}

static void fill_mpich(stk_mpi *mpi)
{
    mpi->name = "MPICH";
    mpi->world = number(0x44000000);
    mpi->f32 = number(0x4c00040a);
    mpi->f64 = number(0x4c00080b);
    mpi->i32 = number(0x4c000439);
    mpi->i64 = number(0x4c00083a);
    mpi->byte = number(0x4c00010d);
    mpi->sum = number(0x58000003);
    mpi->no_info = number(0x1c000000);
    mpi->in_place = number(UINTPTR_MAX);
    mpi->ignore_status = number(1);
    mpi->shared_type = 1;
    mpi->serialized = 2;
    mpi->any_source = -2;
}

static stk_status fill(void *library, stk_mpi *mpi)
{
    bool missing = false;
#define X(function, arguments) *(void **)&mpi->function = find(library, "MPI_" #function, &missing);
    STK_MPI_FUNCTION_LIST(X)
#undef X
    if (dlsym(library, "ompi_mpi_comm_world"))
        fill_open_mpi(library, mpi, &missing);
    else
        fill_mpich(mpi);
    return missing ? STK_UNSUPPORTED : STK_OK;
}

/* Parts of Open MPI look up each other's symbols, so these are global. */
static void *open_library(const char *const *names, const char **name)
{
    for (int i = 0; names[i]; i++) {
        void *library = dlopen(*name = names[i], RTLD_NOW | RTLD_GLOBAL);
        if (library) return library;
    }
    return NULL;
}

stk_status stk_mpi_load(const stk_mpi **out)
{
    static const char *const open_mpi[] = {"libmpi.so.40", "libmpi.so.80", "libmpi.so", NULL};
    static const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12", "libmpich.so", NULL};
    static stk_mpi mpi;
    const char *own = getenv("STOKER_MPI"), *const only[] = {own, NULL}, *name = "";
    *out = &mpi;
    if (mpi.name) return STK_OK;
    bool wants_mpich = stk_mpi_find_launch().by_pmi;
    void *library = open_library(own && own[0] ? only : wants_mpich ? mpich : open_mpi, &name);
    if (!library && !(own && own[0])) library = open_library(wants_mpich ? open_mpi : mpich, &name);
    if (!library)
        return stk_fail(STK_NOT_FOUND,
                        "this process was started as one of several, and there is no MPI library: cannot load '%s'; "
                        "install libopenmpi3 or libmpich12, or name the file in STOKER_MPI",
                        name);
    stk_mpi loaded = {.name = NULL};
    STK_RETURN_IF_ERROR(fill(library, &loaded));
    mpi = loaded;
    return STK_OK;
}
