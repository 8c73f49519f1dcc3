/* A process of tests/comm/test_mpi.py, started by a launcher of MPI's: mpi_rank twice | save | keys | stuck. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/half.h"
#include "comm/comm.h"
#include "comm/store.h"

enum { TIMEOUT_MS = 60000 };

static int fail(void)
{
    fprintf(stderr, "%s\n", stk_error_text());
    return 1;
}

static float value_of(int rank, int64_t i)
{
    return (float)((i * 7919 + rank * 104729) % 1009 - 500) * (i % 3 ? 1e-3f : 1e4f);
}

static stk_status add(stk_comm *comm)
{
    float x[100];
    for (int i = 0; i < 100; i++)
        x[i] = (float)(comm->rank + i);
    stk_comm_call call = {.kind = STK_COLLECTIVE_all_reduce, .dtype = STK_F32, .n = 100, .src = x, .dst = x};
    STK_RETURN_IF_ERROR(stk_comm_run(comm, &call, TIMEOUT_MS));
    int n = comm->n_ranks;
    return x[99] == (float)(n * (n - 1) / 2 + n * 99) ? STK_OK : stk_fail(STK_INTERNAL, "the sum is %g", (double)x[99]);
}

/* Sums in a tree over the ranks, 4 at most, however many elements there are, and those of bf16, which are rounded once.
 */
static stk_status add_in_order(stk_comm *comm, int64_t n)
{
    float *x = malloc((size_t)n * sizeof(*x));
    uint16_t *narrow = malloc((size_t)n * sizeof(*narrow));
    if (!x || !narrow) return stk_fail_memory((size_t)n * sizeof(*x));
    for (int64_t i = 0; i < n; i++) {
        x[i] = value_of(comm->rank, i);
        narrow[i] = stk_f32_to_bf16(x[i]);
    }
    stk_comm_call call = {
        .kind = STK_COLLECTIVE_all_reduce, .dtype = STK_F32, .n = n, .src = x, .dst = x, .early = true};
    int64_t number[2];
    stk_status status = stk_comm_start(comm, &call, &number[0]);
    call.dtype = STK_BF16;
    call.src = call.dst = narrow;
    if (status == STK_OK) status = stk_comm_start(comm, &call, &number[1]);
    for (int i = 0; i < 2 && status == STK_OK; i++)
        status = stk_comm_wait(comm, number[i], TIMEOUT_MS);
    for (int64_t i = 0; i < n && status == STK_OK; i++) {
        float all[4] = {0}, narrow_all[4] = {0};
        for (int r = 0; r < comm->n_ranks && r < 4; r++) {
            all[r] = value_of(r, i);
            narrow_all[r] = stk_bf16_to_f32(stk_f32_to_bf16(all[r]));
        }
        float sum = (all[0] + all[1]) + (all[2] + all[3]);
        float narrow_sum = (narrow_all[0] + narrow_all[1]) + (narrow_all[2] + narrow_all[3]);
        if (x[i] != sum || narrow[i] != stk_f32_to_bf16(narrow_sum))
            status = stk_fail(STK_INTERNAL, "sum %lld of %lld is %.9g, not %.9g, or its half", (long long)i,
                              (long long)n, (double)x[i], (double)sum);
    }
    free(x);
    free(narrow);
    return status;
}

static int train_twice(void)
{
    for (int i = 0; i < 2; i++) {
        stk_comm *comm;
        if (stk_comm_open_mpi(TIMEOUT_MS, &comm) != STK_OK || !comm || add(comm) != STK_OK) return fail();
        for (int64_t n = 1; n < 1000000; n *= 97)
            if (add_in_order(comm, n) != STK_OK) return fail();
        if (comm->rank == 0 && comm->note) printf("note: %s\n", comm->note);
        if (comm->rank == 0) printf("added %d\n", i + 1);
        stk_comm_close(comm);
    }
    return 0;
}

/* The last rank fails and ends; the first one still has two seconds of work to do. */
static int fail_while_first_saves(void)
{
    stk_comm *comm;
    if (stk_comm_open_mpi(TIMEOUT_MS, &comm) != STK_OK) return fail();
    bool is_first = comm->rank == 0;
    if (comm->rank == comm->n_ranks - 1)
        stk_comm_abort(comm, "no more data");
    else if (add(comm) != STK_LOST)
        return fail();
    else if (is_first)
        printf("told: %s\n", stk_error_text());
    stk_comm_close(comm);
    if (is_first) {
        fflush(stdout);
        usleep(2000000);
        printf("saved\n");
        stk_comm *again;
        if (stk_comm_open_mpi(TIMEOUT_MS, &again) == STK_LOST) printf("again: %s\n", stk_error_text());
    }
    return 3;
}

/* --- the store of keys --- */

enum { MOST_VALUE = 300000 };

static size_t value_size(int rank, int i)
{
    return i == 3 ? MOST_VALUE : (size_t)(i * 977 + rank);
}

static char value_byte(int rank, int i, size_t k)
{
    return (char)(k * 31 + (size_t)(rank * 7 + i));
}

static stk_bytes name_key(char out[32], int rank, int i)
{
    return (stk_bytes){out, (size_t)snprintf(out, 32, "rank %d, key %d", rank, i)};
}

static stk_status put_keys(stk_store *store, int n)
{
    static char value[MOST_VALUE];
    char key[32];
    int rank = stk_store_rank(store);
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < value_size(rank, i); k++)
            value[k] = value_byte(rank, i, k);
        STK_RETURN_IF_ERROR(stk_store_put(store, name_key(key, rank, i), (stk_bytes){value, value_size(rank, i)}));
    }
    return STK_OK;
}

static stk_status get_keys(stk_store *store, int n)
{
    char key[32];
    for (int r = 0; r < stk_store_n_ranks(store); r++)
        for (int i = 0; i < n; i++) {
            void *value;
            size_t bytes;
            STK_RETURN_IF_ERROR(stk_store_get(store, name_key(key, r, i), TIMEOUT_MS, &value, &bytes));
            bool same = bytes == value_size(r, i);
            for (size_t k = 0; k < bytes && same; k++)
                same = ((char *)value)[k] == value_byte(r, i, k);
            free(value);
            if (!same) return stk_fail(STK_INTERNAL, "key %d of rank %d has another value", i, r);
        }
    return STK_OK;
}

/* Sums in between go through MPI at the same time. */
static int share_keys(bool is_stuck)
{
    enum { N_KEYS = 6 };
    stk_comm *comm;
    stk_store *store;
    void *value;
    size_t bytes;
    char key[32];
    if (stk_store_open(&store) != STK_OK || store) return 1; /* There is none before a communication. */
    if (stk_comm_open_mpi(TIMEOUT_MS, &comm) != STK_OK || stk_store_open(&store) != STK_OK || !store) return fail();
    bool is_first = comm->rank == 0;
    if (is_stuck) { /* The last rank says what it cannot do: nobody waits for its key. */
        if (comm->rank == comm->n_ranks - 1)
            stk_comm_abort(comm, "no chip");
        else if (stk_store_get(store, (stk_bytes){"chip", 4}, TIMEOUT_MS, &value, &bytes) != STK_LOST)
            return fail();
        if (is_first) printf("told: %s\n", stk_error_text());
        stk_comm_close(comm);
        return 3;
    }
    if (put_keys(store, N_KEYS) != STK_OK) return fail();
    for (int i = 0; i < 3; i++)
        if (add_in_order(comm, 20000) != STK_OK) return fail();
    if (get_keys(store, N_KEYS) != STK_OK || add(comm) != STK_OK) return fail();
    stk_status twice = stk_store_put(store, name_key(key, comm->rank, 0), (stk_bytes){"x", 1});
    if (is_first) printf("twice: %s\n", twice == STK_INVALID ? stk_error_text() : "no");
    stk_status late = stk_store_get(store, (stk_bytes){"never", 5}, 50, &value, &bytes);
    if (is_first) printf("late: %s\n", late == STK_NOT_FOUND ? stk_error_text() : "no");
    stk_comm_close(comm);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "twice";
    if (!strcmp(what, "keys") || !strcmp(what, "stuck")) return share_keys(!strcmp(what, "stuck"));
    return !strcmp(what, "save") ? fail_while_first_saves() : train_twice();
}
