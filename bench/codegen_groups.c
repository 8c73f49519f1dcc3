/* See codegen_groups.h. The functions of one element are those of the interpreter. */
#include "codegen_groups.h"

#include "device/cpu/element_draw.h"
#include "device/cpu/element_math.h"

void codegen_gelu(const codegen_args *args)
{
    const float *bias = args->in[1];
    for (int64_t row = args->begin; row < args->end; row++) {
        const float *x = (const float *)args->in[0] + row * args->n_columns;
        float *sum = (float *)args->out[0] + row * args->n_columns, *y = (float *)args->out[1] + row * args->n_columns;
#pragma omp simd
        for (int64_t i = 0; i < args->n_columns; i++) {
            float s = x[i] + bias[i];
            sum[i] = s;
            y[i] = s * 0.5f * (erf_f32(s * 0.70710678f) + 1.0f);
        }
    }
}

static inline float rounded(float x)
{
    return bf16_to_f32(bf16_from_f32(x));
}

/* Rounded after each instruction, as the interpreter does. */
void codegen_gelu_bf16(const codegen_args *args)
{
    const uint16_t *bias = args->in[1];
    float half = 0.5f, root = rounded(0.70710678f);
    for (int64_t row = args->begin; row < args->end; row++) {
        const uint16_t *x = (const uint16_t *)args->in[0] + row * args->n_columns;
        uint16_t *sum = (uint16_t *)args->out[0] + row * args->n_columns;
        uint16_t *y = (uint16_t *)args->out[1] + row * args->n_columns;
#pragma omp simd
        for (int64_t i = 0; i < args->n_columns; i++) {
            uint16_t bits = bf16_from_f32(bf16_to_f32(x[i]) + bf16_to_f32(bias[i]));
            float s = bf16_to_f32(bits), share = rounded(rounded(erf_f32(rounded(s * root))) + 1.0f);
            sum[i] = bits;
            y[i] = bf16_from_f32(rounded(s * half) * share);
        }
    }
}

void codegen_gelu_grad(const codegen_args *args)
{
    for (int64_t row = args->begin; row < args->end; row++) {
        const float *x = (const float *)args->in[0] + row * args->n_columns;
        const float *dy = (const float *)args->in[1] + row * args->n_columns;
        float *y = (float *)args->out[0] + row * args->n_columns, *dx = (float *)args->out[1] + row * args->n_columns;
#pragma omp simd
        for (int64_t i = 0; i < args->n_columns; i++) {
            float share = (erf_f32(x[i] * 0.70710678f) + 1.0f) * 0.5f;
            float density = exp_f32(-(x[i] * x[i] * 0.5f)) * 0.39894228f;
            y[i] = x[i] * share;
            dx[i] = dy[i] * (share + x[i] * density);
        }
    }
}

void codegen_dropout(const codegen_args *args)
{
    const float *bias = args->in[1];
    int64_t n = args->n_columns, seed = *(const int64_t *)args->in[3], sample = *(const int64_t *)args->in[4];
    stk_dropout_args drop = {stk_dropout_key(seed, CODEGEN_STREAM), sample, CODEGEN_SAMPLE_ROWS * n, CODEGEN_RATE};
    int32_t drawn[PIECE], limit = stk_dropout_limit(CODEGEN_RATE);
    float scale = (float)(1 / (1 - CODEGEN_RATE));
    for (int64_t row = args->begin; row < args->end; row++)
        for (int64_t from = 0; from < n; from += PIECE) {
            int n_here = n - from < PIECE ? (int)(n - from) : PIECE;
            const float *x = (const float *)args->in[0] + row * n + from, *b = bias + from;
            const float *residual = (const float *)args->in[2] + row * n + from;
            float *y = (float *)args->out[0] + row * n + from;
            draw(&drop, row * n + from, n_here, drawn);
#pragma omp simd
            for (int i = 0; i < n_here; i++) {
                float kept = (x[i] + b[i]) * scale;
                y[i] = (drawn[i] >= limit ? kept : 0) + residual[i];
            }
        }
}

void codegen_add_relu(const codegen_args *args)
{
    const float *x = args->in[0], *residual = args->in[1];
    float *y = args->out[0];
#pragma omp simd
    for (int64_t i = args->begin * args->n_columns; i < args->end * args->n_columns; i++) {
        float sum = x[i] + residual[i];
        y[i] = sum < 0 ? 0 : sum;
    }
}

void codegen_norm_relu(const codegen_args *args)
{
    const float *scale = args->in[1], *shift = args->in[2];
    for (int64_t row = args->begin; row < args->end; row++) {
        const float *x = (const float *)args->in[0] + row * args->n_columns;
        const float *residual = (const float *)args->in[3] + row * args->n_columns;
        float *y = (float *)args->out[0] + row * args->n_columns;
#pragma omp simd
        for (int64_t i = 0; i < args->n_columns; i++) {
            float sum = x[i] * scale[i] + shift[i] + residual[i];
            y[i] = sum < 0 ? 0 : sum;
        }
    }
}
