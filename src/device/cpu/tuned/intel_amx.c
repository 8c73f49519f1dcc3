/* Made by './dev tune' of intel_amx.tsv, which has the measured times: do not edit. Rows that are not here are the
 * lists' own choice. */
#include "device/cpu/tuned/tuned.h"

/* clang-format off */
static const stk_tuned_row rows[] = {
    /* 103 calls: 0.83x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", {{STK_TUNED_k, 11, STK_TUNED_ANY}, {STK_TUNED_batches, 0, 3}, {STK_TUNED_work, 60001, STK_TUNED_ANY}}},
    /* 8 calls: 0.85x of the time. */
    {STK_OP_matmul, STK_F32, "onednn", {{STK_TUNED_k, 11, STK_TUNED_ANY}, {STK_TUNED_batches, 4, STK_TUNED_ANY}, {STK_TUNED_m, 51, STK_TUNED_ANY}}},
    /* 5 calls: 0.29x of the time. */
    {STK_OP_matmul, STK_BF16, "tiles", {{STK_TUNED_weights, 0, 26900}, {STK_TUNED_m, 0, 30}, {STK_TUNED_k, 391, STK_TUNED_ANY}}},
    /* 26 calls: 0.33x of the time. */
    {STK_OP_matmul, STK_BF16, "onednn", {{STK_TUNED_weights, 0, 26900}, {STK_TUNED_m, 31, STK_TUNED_ANY}, {STK_TUNED_n, 0, 200}}},
    /* 69 calls: 0.78x of the time. */
    {STK_OP_matmul, STK_BF16, "tiles", {{STK_TUNED_weights, 26901, STK_TUNED_ANY}, {STK_TUNED_k, 40, STK_TUNED_ANY}}},
    /* 51 calls: 0.73x of the time. */
    {STK_OP_conv2d, STK_BF16, "onednn", {{STK_TUNED_channels, 0, 39}}},
    /* 6 calls: 0.59x of the time. */
    {STK_OP_conv2d, STK_BF16, "onednn", {{STK_TUNED_channels, 40, STK_TUNED_ANY}, {STK_TUNED_filters, 0, 25}}},
    /* 9 calls: 0.76x of the time. */
    {STK_OP_conv2d_grad_data, STK_BF16, "onednn", {{STK_TUNED_weights, 0, 800}}},
};
/* clang-format on */

const stk_tuned_table stk_tuned_intel_amx = {
    .name = "intel-amx",
    .measured = "2026-11-27, Intel(R) Xeon(R) Processor, 2 threads, avx512 with bf16 and AMX, oneDNN 2.6.3",
    .row = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
