/* Made by './dev tune' of intel_skylake.tsv, which has the measured times: do not edit. Rows that are not here are the
 * lists' own choice. */
#include "device/cpu/tuned/tuned.h"

/* clang-format off */
static const stk_tuned_row rows[] = {
    /* 7 calls: 0.94x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", 4, {{STK_TUNED_turned_b, 0, 0}, {STK_TUNED_batches, 0, 3}, {STK_TUNED_work, 0, 660000}, {STK_TUNED_n, 131, STK_TUNED_ANY}}},
    /* 82 calls: 0.81x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", 3, {{STK_TUNED_turned_b, 0, 0}, {STK_TUNED_batches, 0, 3}, {STK_TUNED_work, 660001, 4500000000}}},
    /* 20 calls: 0.83x of the time. */
    {STK_OP_matmul, STK_F32, "tiles", 3, {{STK_TUNED_turned_b, 0, 0}, {STK_TUNED_batches, 0, 3}, {STK_TUNED_work, 4500000001, STK_TUNED_ANY}}},
    /* 8 calls: 0.92x of the time. */
    {STK_OP_matmul, STK_F32, "onednn", 2, {{STK_TUNED_turned_b, 0, 0}, {STK_TUNED_batches, 4, STK_TUNED_ANY}}},
    /* 7 calls: 0.56x of the time. */
    {STK_OP_matmul, STK_F32, "onednn", 4, {{STK_TUNED_turned_b, 1, STK_TUNED_ANY}, {STK_TUNED_m, 0, 400}, {STK_TUNED_work, 0, 40000000}, {STK_TUNED_n, 0, 80}}},
    /* 9 calls: 0.88x of the time. */
    {STK_OP_matmul, STK_F32, "own", 3, {{STK_TUNED_turned_b, 1, STK_TUNED_ANY}, {STK_TUNED_m, 0, 400}, {STK_TUNED_work, 40000001, STK_TUNED_ANY}}},
    /* 8 calls: 0.79x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", 2, {{STK_TUNED_turned_b, 1, STK_TUNED_ANY}, {STK_TUNED_m, 401, 1200}}},
    /* 6 calls: 0.84x of the time. */
    {STK_OP_matmul, STK_F32, "tiles", 4, {{STK_TUNED_turned_b, 1, STK_TUNED_ANY}, {STK_TUNED_m, 1201, STK_TUNED_ANY}, {STK_TUNED_n, 0, 120}, {STK_TUNED_weights, 0, 7200}}},
    /* 9 calls: 0.92x of the time. */
    {STK_OP_matmul, STK_F32, "onednn", 4, {{STK_TUNED_turned_b, 1, STK_TUNED_ANY}, {STK_TUNED_m, 1201, STK_TUNED_ANY}, {STK_TUNED_n, 0, 120}, {STK_TUNED_weights, 7201, STK_TUNED_ANY}}},
    /* 16 calls: 0.88x of the time. */
    {STK_OP_matmul, STK_F32, "tiles", 4, {{STK_TUNED_turned_b, 1, STK_TUNED_ANY}, {STK_TUNED_m, 1201, STK_TUNED_ANY}, {STK_TUNED_n, 121, STK_TUNED_ANY}, {STK_TUNED_weights, 0, 580000}}},
    /* 6 calls: 0.93x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", 4, {{STK_TUNED_turned_b, 1, STK_TUNED_ANY}, {STK_TUNED_m, 1201, STK_TUNED_ANY}, {STK_TUNED_n, 121, STK_TUNED_ANY}, {STK_TUNED_weights, 580001, STK_TUNED_ANY}}},
};
/* clang-format on */

const stk_tuned_table stk_tuned_intel_skylake = {
    .name = "intel-skylake",
    .measured = "2026-11-28, Intel(R) Xeon(R) Processor @ 2.50GHz, 2 threads, avx512, oneDNN 2.6.3",
    .row = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
