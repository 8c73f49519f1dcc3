/* oneDNN 3.x: primitive descriptors in one call, and memory descriptors behind handles. */
#include "device/cpu/onednn/onednn_version.h"

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t stk_md_init(stk_md *md, int n_dims, const dnnl_dims_t dims, const dnnl_dim_t *strides,
                          dnnl_data_type_t type)
{
    if (!strides) return dnnl_memory_desc_create_with_tag(&md->desc, n_dims, dims, type, dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(&md->desc, n_dims, dims, type, strides);
}

stk_md_ref stk_md_get(const stk_md *md)
{
    return md->desc;
}

void stk_md_clear(stk_md *md)
{
    if (md->desc) dnnl_memory_desc_destroy(md->desc);
    md->desc = NULL;
}

bool stk_md_get_format(stk_md_ref md, stk_md_format *out)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    dnnl_dims_t *steps, *padded, *offsets, *sizes, *dims;
    dnnl_dim_t start = 0;
    *out = (stk_md_format){.n_dims = 0};
    if (dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked ||
        dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &out->n_dims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_submemory_offset_s64, &start) != dnnl_success || start ||
        dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &out->n_blocks) != dnnl_success ||
        out->n_blocks > STK_MD_BLOCKS || dnnl_memory_desc_query(md, dnnl_query_strides, &steps) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_padded_dims, &padded) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_padded_offsets, &offsets) != dnnl_success)
        return false;
    for (int i = 0; i < out->n_dims; i++) {
        if ((*offsets)[i]) return false;
        out->steps[i] = (*steps)[i];
        out->padded_dims[i] = (*padded)[i];
    }
    if (out->n_blocks && (dnnl_memory_desc_query(md, dnnl_query_inner_blks, &sizes) != dnnl_success ||
                          dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &dims) != dnnl_success))
        return false;
    for (int i = 0; i < out->n_blocks; i++) {
        out->block_size[i] = (*sizes)[i];
        out->block_dim[i] = (*dims)[i];
    }
    return true;
}

dnnl_status_t stk_dnnl_conv_pd(dnnl_engine_t engine, const stk_dnnl_conv *c, const_dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_t forward = NULL;
    *out = NULL;
    dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
        &forward, engine, dnnl_forward_training, dnnl_convolution_direct, c->x, c->read_weight, c->bias, c->y,
        c->strides, c->dilates, c->pad_low, c->pad_high, attr);
    if (status != dnnl_success) return status;
    if (c->pass == STK_CONV_FORWARD) {
        *out = forward;
        return status;
    }
    if (c->pass == STK_CONV_GRAD_DATA)
        status = dnnl_convolution_backward_data_primitive_desc_create(out, engine, dnnl_convolution_direct, c->x,
                                                                      c->weight, c->y, c->strides, c->dilates,
                                                                      c->pad_low, c->pad_high, forward, attr);
    else
        status = dnnl_convolution_backward_weights_primitive_desc_create(out, engine, dnnl_convolution_direct, c->x,
                                                                         c->weight, NULL, c->y, c->strides, c->dilates,
                                                                         c->pad_low, c->pad_high, forward, attr);
    dnnl_primitive_desc_destroy(forward);
    return status;
}

dnnl_status_t stk_dnnl_matmul_pd(dnnl_engine_t engine, stk_md_ref a, stk_md_ref b, stk_md_ref bias, stk_md_ref c,
                                 const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    *out = NULL;
    return dnnl_matmul_primitive_desc_create(out, engine, a, b, bias, c, attr);
}

dnnl_status_t stk_dnnl_add_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

#else
typedef int stk_onednn_is_not_v3;
#endif
