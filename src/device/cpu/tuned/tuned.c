#include "device/cpu/tuned/tuned.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/amx/amx.h"
#include "device/cpu/simd/isa.h"

/* --- families --- */

const stk_tuned_table *stk_tuned_of(stk_isa isa)
{
    const char *wanted = getenv("STOKER_KERNELS");
    if (wanted && (!strcmp(wanted, "default") || !strcmp(wanted, "measured"))) return NULL;
#ifdef STK_AMX
    if (stk_amx_of(isa) == &stk_amx_silicon && stk_isa_is_of_intel()) return &stk_tuned_intel_amx;
#endif
    if (isa != STK_ISA_AVX512 || stk_amx_of(isa) || !stk_isa_is_of_intel()) return NULL;
    return stk_isa_has_bf16(isa) ? &stk_tuned_intel_avx512 : &stk_tuned_intel_skylake;
}

/* --- calls --- */

static int64_t grain_of(int64_t n)
{
    enum { MOST = 64 };
    int64_t grain = n & -n;
    return grain < MOST ? grain : MOST;
}

static void find_product(const stk_op_call *call, int64_t z[STK_TUNED_N_SIZES])
{
    stk_shape a = call->in[0].shape, b = call->in[1].shape, c = call->out[0].shape;
    bool ta = call->attrs->matmul.transpose_a;
    z[STK_TUNED_m] = c.dim[c.rank - 2];
    z[STK_TUNED_n] = c.dim[c.rank - 1];
    z[STK_TUNED_k] = a.dim[a.rank - (ta ? 2 : 1)];
    z[STK_TUNED_batches] = stk_shape_product(c, 0, c.rank - 2);
    if (b.rank == 2 && !ta) {
        z[STK_TUNED_m] *= z[STK_TUNED_batches];
        z[STK_TUNED_batches] = 1;
    }
    z[STK_TUNED_turned_a] = ta;
    z[STK_TUNED_turned_b] = call->attrs->matmul.transpose_b;
    z[STK_TUNED_weights] = z[STK_TUNED_k] * z[STK_TUNED_n];
    z[STK_TUNED_work] = z[STK_TUNED_batches] * z[STK_TUNED_m] * z[STK_TUNED_weights];
}

static void find_convolution(stk_shape x, stk_shape weight, stk_shape y, const stk_window *w,
                             int64_t z[STK_TUNED_N_SIZES])
{
    z[STK_TUNED_images] = y.dim[0];
    z[STK_TUNED_pixels] = y.dim[1] * y.dim[2];
    z[STK_TUNED_side] = y.dim[1] < y.dim[2] ? y.dim[1] : y.dim[2];
    z[STK_TUNED_rows] = y.dim[0] * z[STK_TUNED_pixels];
    z[STK_TUNED_channels] = x.dim[3];
    z[STK_TUNED_filters] = y.dim[3];
    z[STK_TUNED_taps] = weight.dim[1] * weight.dim[2];
    z[STK_TUNED_stride] = w->stride[0] > w->stride[1] ? w->stride[0] : w->stride[1];
    z[STK_TUNED_groups] = w->groups;
    z[STK_TUNED_channel_grain] = grain_of(x.dim[3]);
    z[STK_TUNED_filter_grain] = grain_of(y.dim[3]);
    z[STK_TUNED_weights] = stk_shape_count(weight);
    z[STK_TUNED_work] = z[STK_TUNED_rows] * z[STK_TUNED_weights];
}

bool stk_tuned_sizes(const stk_op_call *call, int64_t z[STK_TUNED_N_SIZES])
{
    const stk_window *w = &call->attrs->window;
    memset(z, 0, STK_TUNED_N_SIZES * sizeof(*z));
    switch (call->op) {
    case STK_OP_matmul: find_product(call, z); break;
    case STK_OP_conv2d: find_convolution(call->in[0].shape, call->in[1].shape, call->out[0].shape, w, z); break;
    case STK_OP_conv2d_grad_data:
        find_convolution(call->out[0].shape, call->in[1].shape, call->in[0].shape, w, z);
        break;
    case STK_OP_conv2d_grad_weight:
        find_convolution(call->in[0].shape, call->out[0].shape, call->in[1].shape, w, z);
        break;
    default: return false;
    }
    return z[STK_TUNED_work] > 0;
}

const char *stk_tuned_size_name(stk_tuned_size size)
{
    static const char *const names[] = {
#define X(name) #name,
        STK_TUNED_SIZE_LIST(X)
#undef X
    };
    return names[size];
}

static bool is_in(const stk_tuned_row *row, const int64_t z[STK_TUNED_N_SIZES])
{
    for (int i = 0; i < row->n_bounds; i++) {
        const stk_tuned_bound *b = &row->bound[i];
        if (z[b->size] < b->least || z[b->size] > b->most) return false;
    }
    return true;
}

const char *stk_tuned_way(const stk_tuned_table *table, const stk_op_call *call)
{
    int64_t z[STK_TUNED_N_SIZES];
    if (!table || !stk_tuned_sizes(call, z)) return NULL;
    for (int i = 0; i < table->n_rows; i++) {
        const stk_tuned_row *row = &table->row[i];
        if (row->op == call->op && row->dtype == call->in[0].dtype && is_in(row, z)) return row->way;
    }
    return NULL;
}
