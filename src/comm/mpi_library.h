/* MPI as a library that is loaded when a process runs under it: Open MPI 4 and 5, MPICH 3 and 4 and those with its
 * interface. No header of either is needed to build: handles are pointers in the one and numbers in the other, and both
 * fit into a register of their own. The facts are those of their mpi.h. MPI Forum, "MPI: A Message-Passing Interface
 * Standard", 3.1.
 */
#ifndef STK_COMM_MPI_LIBRARY_H
#define STK_COMM_MPI_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "stoker/status.h"
#include "stoker/types.h"

typedef void *stk_mpi_handle;

#define STK_MPI_FUNCTION_LIST(X)                                                                                       \
    X(Initialized, (int *flag))                                                                                        \
    X(Init_thread, (int *argc, char ***argv, int required, int *provided))                                             \
    X(Query_thread, (int *provided))                                                                                   \
    X(Get_library_version, (char *text, int *n))                                                                       \
    X(Finalize, (void))                                                                                                \
    X(Finalized, (int *flag))                                                                                          \
    X(Abort, (stk_mpi_handle comm, int code))                                                                          \
    X(Comm_rank, (stk_mpi_handle comm, int *rank))                                                                     \
    X(Comm_size, (stk_mpi_handle comm, int *size))                                                                     \
    X(Comm_dup, (stk_mpi_handle comm, stk_mpi_handle * out))                                                           \
    X(Comm_split_type, (stk_mpi_handle comm, int type, int key, stk_mpi_handle info, stk_mpi_handle *out))             \
    X(Iallreduce, (const void *src, void *dst, int n, stk_mpi_handle type, stk_mpi_handle op, stk_mpi_handle comm,     \
                   stk_mpi_handle *request))                                                                           \
    X(Iallgather, (const void *src, int n_src, stk_mpi_handle src_type, void *dst, int n_dst, stk_mpi_handle dst_type, \
                   stk_mpi_handle comm, stk_mpi_handle *request))                                                      \
    X(Ireduce_scatter_block, (const void *src, void *dst, int n, stk_mpi_handle type, stk_mpi_handle op,               \
                              stk_mpi_handle comm, stk_mpi_handle *request))                                           \
    X(Ialltoall, (const void *src, int n_src, stk_mpi_handle src_type, void *dst, int n_dst, stk_mpi_handle dst_type,  \
                  stk_mpi_handle comm, stk_mpi_handle *request))                                                       \
    X(Ibcast, (void *data, int n, stk_mpi_handle type, int root, stk_mpi_handle comm, stk_mpi_handle *request))        \
    X(Ibarrier, (stk_mpi_handle comm, stk_mpi_handle * request))                                                       \
    X(Isend,                                                                                                           \
      (const void *data, int n, stk_mpi_handle type, int to, int tag, stk_mpi_handle comm, stk_mpi_handle *request))   \
    X(Irecv,                                                                                                           \
      (void *data, int n, stk_mpi_handle type, int from, int tag, stk_mpi_handle comm, stk_mpi_handle *request))       \
    X(Cancel, (stk_mpi_handle * request))                                                                              \
    X(Test, (stk_mpi_handle * request, int *flag, void *status))

typedef struct stk_mpi {
#define X(name, arguments) int(*name) arguments;
    STK_MPI_FUNCTION_LIST(X)
#undef X
    const char *name;     /* "Open MPI" */
    stk_mpi_handle world; /* MPI_COMM_WORLD, and so on */
    stk_mpi_handle f32, f64, i32, i64, byte, sum, no_info;
    void *in_place, *ignore_status;
    int shared_type, serialized, any_source;
} stk_mpi;

/* As MPICH has it, the longest. */
enum { STK_MPI_VERSION_BYTES = 8192 };

/* What a launcher said in the environment. */
typedef struct stk_mpi_launch {
    int rank, n_ranks; /* n_ranks 1: the process was started alone */
    bool has_mpi,
        by_pmi; /* has_mpi false: srun started several, and offers them no MPI; by_pmi: PMI or PMI-2, not PMIx */
} stk_mpi_launch;

stk_mpi_launch stk_mpi_find_launch(void);
/* Loads the library that fits the launcher, or the file that STOKER_MPI names, once for the process. */
stk_status stk_mpi_load(const stk_mpi **out);

#endif
