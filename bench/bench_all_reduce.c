/* All-reduce over processes of one host: Stoker's, which goes through memory that they share, beside MPI_Allreduce of
 * the MPI that started them, in turns.
 *
 *   mpirun -n 2 bench_all_reduce [MOST_MIB]
 *
 * A time is the slowest rank's, as a median over rounds; what is copied is the least that a rank must read and write.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/mpi_library.h"

typedef int (*all_reduce_fn)(const void *src, void *dst, int n, stk_mpi_handle type, stk_mpi_handle op,
                             stk_mpi_handle comm);

static void ok(stk_status status)
{
    if (status == STK_OK) return;
    fprintf(stderr, "%s\n", stk_error_text());
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The slowest rank's time. */
static double slowest(stk_comm *comm, double s)
{
    double all[64];
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_gather, .dtype = STK_F64, .n = 1, .src = &s, .dst = all};
    ok(stk_comm_run(comm, &call, 0));
    for (int r = 0; r < comm->n_ranks; r++)
        if (all[r] > s) s = all[r];
    return s;
}

typedef struct bench {
    stk_comm *comm;
    const stk_mpi *mpi;
    all_reduce_fn all_reduce;
    float *src, *dst;
} bench;

static double time_one(const bench *b, bool own, int64_t n, int n_calls)
{
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_F32, .n = n, .src = b->src, .dst = b->dst};
    stk_comm_call barrier = {.kind = STK_COLLECTIVE_barrier};
    ok(stk_comm_run(b->comm, &barrier, 0));
    int64_t start = stk_clock_ns();
    for (int i = 0; i < n_calls; i++) {
        if (own)
            ok(stk_comm_run(b->comm, &call, 0));
        else
            b->all_reduce(b->src, b->dst, (int)n, b->mpi->f32, b->mpi->sum, b->mpi->world);
    }
    return slowest(b->comm, (double)(stk_clock_ns() - start) * 1e-9 / n_calls);
}

int main(int argc, char **argv)
{
    enum { N_ROUNDS = 9 };
    bench b = {.comm = NULL};
    size_t most = (size_t)(argc > 1 ? atoi(argv[1]) : 256) << 20;
    ok(stk_comm_open_mpi(60000, &b.comm));
    if (!b.comm) {
        fprintf(stderr, "usage: mpirun -n N bench_all_reduce [MOST_MIB]\n");
        return 2;
    }
    ok(stk_mpi_load(&b.mpi));
    *(void **)&b.all_reduce = dlsym(RTLD_DEFAULT, "MPI_Allreduce");
    b.src = aligned_alloc(64, most);
    b.dst = aligned_alloc(64, most);
    if (!b.all_reduce || !b.src || !b.dst) return 1;
    memset(b.src, 0, most);
    memset(b.dst, 0, most);
    bool tells = b.comm->rank == 0;
    if (tells)
        printf("| bytes | %d ranks, us | %s, us | ratio | GB/s a rank |\n|---:|---:|---:|---:|---:|\n", b.comm->n_ranks,
               b.mpi->name);
    for (size_t bytes = 1024; bytes <= most; bytes *= 4) {
        double own[N_ROUNDS], other[N_ROUNDS];
        int n_calls = bytes < 1 << 20 ? (int)((4 << 20) / (bytes + 4096)) + 1 : bytes < 16 << 20 ? 4 : 1;
        for (int i = -1; i < N_ROUNDS; i++) {
            double a = time_one(&b, true, (int64_t)(bytes / 4), n_calls);
            double c = time_one(&b, false, (int64_t)(bytes / 4), n_calls);
            if (i >= 0) own[i] = a, other[i] = c;
        }
        qsort(own, N_ROUNDS, sizeof(*own), compare);
        qsort(other, N_ROUNDS, sizeof(*other), compare);
        double a = own[N_ROUNDS / 2], c = other[N_ROUNDS / 2];
        if (tells)
            printf("| %zu | %.1f | %.1f | %.2f | %.2f |\n", bytes, 1e6 * a, 1e6 * c, c / a,
                   2 * (double)bytes / a * 1e-9);
        fflush(stdout);
    }
    free(b.src);
    free(b.dst);
    stk_comm_close(b.comm);
    return 0;
}
