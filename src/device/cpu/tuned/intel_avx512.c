/* Made by './dev tune' of intel_avx512.tsv, which has the measured times: do not edit. Rows that are not here are the
 * lists' own choice. */
#include "device/cpu/tuned/tuned.h"

/* clang-format off */
static const stk_tuned_row rows[] = {
    /* 151 calls: 0.88x of the time. */
    {STK_OP_matmul, STK_F32, "sgemm", 4, {{STK_TUNED_weights, 801, STK_TUNED_ANY}, {STK_TUNED_m, 0, 19000}, {STK_TUNED_k, 11, STK_TUNED_ANY}, {STK_TUNED_batches, 0, 1}}},
    /* 13 calls: 0.90x of the time. */
    {STK_OP_matmul, STK_F32, "onednn", 4, {{STK_TUNED_weights, 801, STK_TUNED_ANY}, {STK_TUNED_m, 0, 19000}, {STK_TUNED_k, 11, STK_TUNED_ANY}, {STK_TUNED_batches, 2, STK_TUNED_ANY}}},
    /* 20 calls: 0.95x of the time. */
    {STK_OP_matmul, STK_F32, "tiles", 2, {{STK_TUNED_weights, 801, STK_TUNED_ANY}, {STK_TUNED_m, 19001, STK_TUNED_ANY}}},
    /* 45 calls: 0.67x of the time. */
    {STK_OP_conv2d, STK_BF16, "product", 4, {{STK_TUNED_taps, 0, 8}, {STK_TUNED_stride, 0, 1}, {STK_TUNED_weights, 1401, STK_TUNED_ANY}, {STK_TUNED_channels, 21, STK_TUNED_ANY}}},
    /* 12 calls: 0.76x of the time. */
    {STK_OP_conv2d, STK_BF16, "sgemm", 2, {{STK_TUNED_taps, 0, 8}, {STK_TUNED_stride, 2, STK_TUNED_ANY}}},
    /* 5 calls: 0.81x of the time. */
    {STK_OP_conv2d, STK_BF16, "slices", 3, {{STK_TUNED_taps, 9, STK_TUNED_ANY}, {STK_TUNED_pixels, 0, 100}, {STK_TUNED_channels, 0, 20}}},
    /* 22 calls: 0.84x of the time. */
    {STK_OP_conv2d, STK_BF16, "winograd", 4, {{STK_TUNED_taps, 9, STK_TUNED_ANY}, {STK_TUNED_pixels, 0, 100}, {STK_TUNED_channels, 21, STK_TUNED_ANY}, {STK_TUNED_work, 0, 1000000000}}},
    /* 7 calls: 0.69x of the time. */
    {STK_OP_conv2d, STK_BF16, "slices", 4, {{STK_TUNED_taps, 9, STK_TUNED_ANY}, {STK_TUNED_pixels, 0, 100}, {STK_TUNED_channels, 21, STK_TUNED_ANY}, {STK_TUNED_work, 1000000001, STK_TUNED_ANY}}},
    /* 36 calls: 0.69x of the time. */
    {STK_OP_conv2d, STK_BF16, "slices", 3, {{STK_TUNED_taps, 9, STK_TUNED_ANY}, {STK_TUNED_pixels, 101, STK_TUNED_ANY}, {STK_TUNED_filters, 21, STK_TUNED_ANY}}},
    /* 20 calls: 0.70x of the time. */
    {STK_OP_conv2d_grad_data, STK_BF16, "product", 3, {{STK_TUNED_taps, 0, 8}, {STK_TUNED_rows, 0, 1200}, {STK_TUNED_weights, 3001, STK_TUNED_ANY}}},
    /* 50 calls: 0.77x of the time. */
    {STK_OP_conv2d_grad_data, STK_BF16, "sgemm", 2, {{STK_TUNED_taps, 0, 8}, {STK_TUNED_rows, 1201, STK_TUNED_ANY}}},
    /* 39 calls: 0.78x of the time. */
    {STK_OP_conv2d_grad_data, STK_BF16, "slices", 3, {{STK_TUNED_taps, 9, STK_TUNED_ANY}, {STK_TUNED_rows, 531, STK_TUNED_ANY}, {STK_TUNED_work, 0, 3000000000}}},
    /* 11 calls: 0.46x of the time. */
    {STK_OP_conv2d_grad_data, STK_BF16, "winograd", 3, {{STK_TUNED_taps, 9, STK_TUNED_ANY}, {STK_TUNED_rows, 531, STK_TUNED_ANY}, {STK_TUNED_work, 3000000001, STK_TUNED_ANY}}},
    /* 7 calls: 0.83x of the time. */
    {STK_OP_conv2d_grad_weight, STK_BF16, "direct", 2, {{STK_TUNED_weights, 0, 4300}, {STK_TUNED_pixels, 0, 40}}},
    /* 90 calls: 0.61x of the time. */
    {STK_OP_conv2d_grad_weight, STK_BF16, "direct", 3, {{STK_TUNED_weights, 4301, STK_TUNED_ANY}, {STK_TUNED_filters, 10, STK_TUNED_ANY}, {STK_TUNED_work, 0, 3600000000}}},
    /* 5 calls: 0.42x of the time. */
    {STK_OP_conv2d_grad_weight, STK_BF16, "direct", 4, {{STK_TUNED_weights, 4301, STK_TUNED_ANY}, {STK_TUNED_filters, 10, STK_TUNED_ANY}, {STK_TUNED_work, 3600000001, STK_TUNED_ANY}, {STK_TUNED_rows, 0, 8000}}},
    /* 7 calls: 0.42x of the time. */
    {STK_OP_conv2d_grad_weight, STK_BF16, "winograd", 4, {{STK_TUNED_weights, 4301, STK_TUNED_ANY}, {STK_TUNED_filters, 10, STK_TUNED_ANY}, {STK_TUNED_work, 3600000001, STK_TUNED_ANY}, {STK_TUNED_rows, 8001, STK_TUNED_ANY}}},
};
/* clang-format on */

const stk_tuned_table stk_tuned_intel_avx512 = {
    .name = "intel-avx512",
    .measured = "2026-11-27, Intel(R) Xeon(R) Processor, 2 threads, avx512 with bf16, oneDNN 2.6.3",
    .row = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
