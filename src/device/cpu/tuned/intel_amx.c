/* Made by './dev tune' of intel_amx.tsv, which has the measured times: do not edit. Rows that are not here are the
 * lists' own choice. */
#include "device/cpu/tuned/tuned.h"

/* clang-format off */
static const stk_tuned_row rows[] = {
    /* 7 calls: 0.82x of the time. */
    {STK_OP_matmul, STK_F32, "onednn", {{STK_TUNED_work, 60001, 190000}, {STK_TUNED_batches, 0, 3}}},
    /* 107 calls: 0.86x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", {{STK_TUNED_work, 190001, 840000000}, {STK_TUNED_batches, 0, 3}}},
    /* 8 calls: 0.85x of the time. */
    {STK_OP_matmul, STK_F32, "onednn", {{STK_TUNED_work, 0, 840000000}, {STK_TUNED_batches, 4, STK_TUNED_ANY}, {STK_TUNED_m, 51, STK_TUNED_ANY}}},
    /* 8 calls: 0.90x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", {{STK_TUNED_work, 840000001, STK_TUNED_ANY}, {STK_TUNED_m, 0, 400}}},
    /* 53 calls: 0.91x of the time. */
    {STK_OP_matmul, STK_F32, "tiles", {{STK_TUNED_work, 840000001, STK_TUNED_ANY}, {STK_TUNED_m, 401, STK_TUNED_ANY}, {STK_TUNED_n, 0, 3000}}},
    /* 6 calls: 0.79x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", {{STK_TUNED_work, 840000001, STK_TUNED_ANY}, {STK_TUNED_m, 401, STK_TUNED_ANY}, {STK_TUNED_n, 3001, STK_TUNED_ANY}}},
    /* 37 calls: 0.66x of the time. */
    {STK_OP_conv2d, STK_BF16, "onednn", {{STK_TUNED_weights, 0, 8600}, {STK_TUNED_channel_grain, 0, 60}, {STK_TUNED_channels, 0, 40}}},
    /* 10 calls: 0.94x of the time. */
    {STK_OP_conv2d, STK_BF16, "product", {{STK_TUNED_weights, 0, 8600}, {STK_TUNED_channel_grain, 0, 60}, {STK_TUNED_channels, 41, STK_TUNED_ANY}}},
    /* 8 calls: 0.95x of the time. */
    {STK_OP_conv2d, STK_BF16, "onednn", {{STK_TUNED_weights, 0, 8600}, {STK_TUNED_channel_grain, 61, STK_TUNED_ANY}, {STK_TUNED_images, 61, STK_TUNED_ANY}}},
    /* 7 calls: 0.84x of the time. */
    {STK_OP_conv2d, STK_BF16, "onednn", {{STK_TUNED_weights, 8601, STK_TUNED_ANY}, {STK_TUNED_filters, 0, 39}}},
    /* 24 calls: 0.96x of the time. */
    {STK_OP_conv2d, STK_BF16, "product", {{STK_TUNED_weights, 320001, STK_TUNED_ANY}, {STK_TUNED_filters, 40, STK_TUNED_ANY}}},
};
/* clang-format on */

const stk_tuned_table stk_tuned_intel_amx = {
    .name = "intel-amx",
    .measured = "2026-11-29, Intel(R) Xeon(R) Processor, 2 threads, avx512 with bf16 and AMX, oneDNN 2.6.3",
    .row = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
