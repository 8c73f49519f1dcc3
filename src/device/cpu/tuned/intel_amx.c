/* Made by './dev tune' of intel_amx.tsv, which has the measured times: do not edit. Rows that are not here are the
 * lists' own choice. */
#include "device/cpu/tuned/tuned.h"

/* clang-format off */
static const stk_tuned_row rows[] = {
    /* 110 calls: 0.86x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", 2, {{STK_TUNED_work, 110001, 800000000}, {STK_TUNED_batches, 0, 8}}},
    /* 61 calls: 0.89x of the time. */
    {STK_OP_matmul, STK_F32, "tiles", 2, {{STK_TUNED_work, 800000001, STK_TUNED_ANY}, {STK_TUNED_m, 401, STK_TUNED_ANY}}},
    /* 22 calls: 0.94x of the time. */
    {STK_OP_conv2d, STK_F32, "product", 2, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_work, 700000001, STK_TUNED_ANY}}},
    /* 69 calls: 0.92x of the time. */
    {STK_OP_conv2d, STK_F32, "winograd4", 2, {{STK_TUNED_taps, 2, STK_TUNED_ANY}, {STK_TUNED_images, 7, STK_TUNED_ANY}}},
    /* 38 calls: 0.96x of the time. */
    {STK_OP_conv2d_grad_data, STK_F32, "onednn", 2, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_work, 0, 37400000}}},
    /* 71 calls: 0.90x of the time. */
    {STK_OP_conv2d_grad_data, STK_F32, "winograd4", 1, {{STK_TUNED_taps, 2, STK_TUNED_ANY}}},
    /* 42 calls: 0.94x of the time. */
    {STK_OP_conv2d_grad_weight, STK_F32, "onednn", 3, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_channels, 0, 300}, {STK_TUNED_rows, 0, 47000}}},
    /* 18 calls: 0.89x of the time. */
    {STK_OP_conv2d_grad_weight, STK_F32, "sgemm", 3, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_channels, 301, STK_TUNED_ANY}, {STK_TUNED_filters, 0, 400}}},
    /* 87 calls: 0.95x of the time. */
    {STK_OP_conv2d_grad_weight, STK_F32, "winograd4", 1, {{STK_TUNED_taps, 2, STK_TUNED_ANY}}},
    /* 9 calls: 0.75x of the time. */
    {STK_OP_matmul, STK_BF16, "onednn", 2, {{STK_TUNED_turned_a, 0, 0}, {STK_TUNED_weights, 0, 800}}},
    /* 30 calls: 0.82x of the time. */
    {STK_OP_matmul, STK_BF16, "tiles", 3, {{STK_TUNED_turned_a, 0, 0}, {STK_TUNED_weights, 801, STK_TUNED_ANY}, {STK_TUNED_work, 0, 16000000}}},
    /* 14 calls: 0.81x of the time. */
    {STK_OP_matmul, STK_BF16, "onednn", 3, {{STK_TUNED_turned_a, 1, STK_TUNED_ANY}, {STK_TUNED_n, 0, 120}, {STK_TUNED_m, 101, STK_TUNED_ANY}}},
    /* 26 calls: 0.67x of the time. */
    {STK_OP_conv2d, STK_BF16, "onednn", 2, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_channels, 0, 40}}},
    /* 10 calls: 0.88x of the time. */
    {STK_OP_conv2d, STK_BF16, "product", 3, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_channels, 41, STK_TUNED_ANY}, {STK_TUNED_weights, 320001, STK_TUNED_ANY}}},
    /* 26 calls: 0.75x of the time. */
    {STK_OP_conv2d, STK_BF16, "onednn", 3, {{STK_TUNED_taps, 2, STK_TUNED_ANY}, {STK_TUNED_weights, 0, 30000}, {STK_TUNED_pixels, 61, STK_TUNED_ANY}}},
    /* 12 calls: 0.82x of the time. */
    {STK_OP_conv2d_grad_data, STK_BF16, "onednn", 2, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_weights, 0, 2000}}},
    /* 14 calls: 0.91x of the time. */
    {STK_OP_conv2d_grad_data, STK_BF16, "product", 4, {{STK_TUNED_taps, 0, 1}, {STK_TUNED_weights, 2001, STK_TUNED_ANY}, {STK_TUNED_filter_grain, 0, 30}, {STK_TUNED_pixels, 0, 700}}},
};
/* clang-format on */

const stk_tuned_table stk_tuned_intel_amx = {
    .name = "intel-amx",
    .measured = "2026-11-29 and 30, Intel(R) Xeon(R) Processor, 2 threads, avx512 with bf16 and AMX, oneDNN 2.6.3",
    .row = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
