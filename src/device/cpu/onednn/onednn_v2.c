/* oneDNN 2.x: operation descriptors, and memory descriptors that are plain structs. */
#include "device/cpu/onednn/onednn_version.h"

#if DNNL_VERSION_MAJOR < 3

#include <string.h>

dnnl_status_t stk_md_init(stk_md *md, int n_dims, const dnnl_dims_t dims, const dnnl_dim_t *strides,
                          dnnl_data_type_t type)
{
    if (!strides) return dnnl_memory_desc_init_by_tag(&md->desc, n_dims, dims, type, dnnl_format_tag_any);
    return dnnl_memory_desc_init_by_strides(&md->desc, n_dims, dims, type, strides);
}

stk_md_ref stk_md_get(const stk_md *md)
{
    return &md->desc;
}

void stk_md_clear(stk_md *md)
{
    memset(md, 0, sizeof(*md));
}

bool stk_md_get_format(stk_md_ref md, stk_md_format *out)
{
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    if (md->format_kind != dnnl_blocked || md->offset0 || md->extra.flags || b->inner_nblks > STK_MD_BLOCKS)
        return false;
    *out = (stk_md_format){.n_dims = md->ndims, .n_blocks = b->inner_nblks};
    for (int i = 0; i < md->ndims; i++) {
        if (md->padded_offsets[i]) return false;
        out->steps[i] = b->strides[i];
        out->padded_dims[i] = md->padded_dims[i];
    }
    for (int i = 0; i < b->inner_nblks; i++) {
        out->block_size[i] = b->inner_blks[i];
        out->block_dim[i] = b->inner_idxs[i];
    }
    return true;
}

static dnnl_status_t describe_forward(const stk_dnnl_conv *c, dnnl_convolution_desc_t *out)
{
    return dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, dnnl_convolution_direct, c->x,
                                                      c->read_weight, c->bias, c->y, c->strides, c->dilates, c->pad_low,
                                                      c->pad_high);
}

static dnnl_status_t describe_pass(const stk_dnnl_conv *c, dnnl_convolution_desc_t *out)
{
    switch (c->pass) {
    case STK_CONV_GRAD_DATA:
        return dnnl_dilated_convolution_backward_data_desc_init(out, dnnl_convolution_direct, c->x, c->weight, c->y,
                                                                c->strides, c->dilates, c->pad_low, c->pad_high);
    case STK_CONV_GRAD_WEIGHT:
        return dnnl_dilated_convolution_backward_weights_desc_init(
            out, dnnl_convolution_direct, c->x, c->weight, NULL, c->y, c->strides, c->dilates, c->pad_low, c->pad_high);
    default: return describe_forward(c, out);
    }
}

/* These kernels of 2.x read their mask of pixels beyond its end while they are made, and the making of one was seen to
 * crash; 3.x walks the mask in another way. */
static bool reads_past_mask(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return !strncmp(name, "brgconv:", 8) && strstr(name, "amx");
}

/* The next of oneDNN's ways, best first, that is safe; *pd goes. */
static dnnl_status_t replace_unsafe(const dnnl_convolution_desc_t *desc, const_dnnl_primitive_attr_t attr,
                                    dnnl_engine_t engine, const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_desc_iterator_t at;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&at, desc, attr, engine, hint);
    if (status != dnnl_success) return status;
    do {
        dnnl_primitive_desc_destroy(*pd);
        *pd = NULL;
        status = dnnl_primitive_desc_iterator_next(at);
        if (status == dnnl_iterator_ends) status = dnnl_unimplemented;
        if (status == dnnl_success && !(*pd = dnnl_primitive_desc_iterator_fetch(at))) status = dnnl_out_of_memory;
    } while (status == dnnl_success && reads_past_mask(*pd));
    dnnl_primitive_desc_iterator_destroy(at);
    return status;
}

dnnl_status_t stk_dnnl_conv_pd(dnnl_engine_t engine, const stk_dnnl_conv *conv, const_dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status = dnnl_success;
    *out = NULL;
    if (conv->pass != STK_CONV_FORWARD) {
        status = describe_forward(conv, &desc);
        if (status == dnnl_success) status = dnnl_primitive_desc_create(&hint, &desc, attr, engine, NULL);
    }
    if (status == dnnl_success) status = describe_pass(conv, &desc);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(out, &desc, attr, engine, hint);
    if (status == dnnl_success && reads_past_mask(*out)) status = replace_unsafe(&desc, attr, engine, hint, out);
    if (hint) dnnl_primitive_desc_destroy(hint);
    return status;
}

dnnl_status_t stk_dnnl_matmul_pd(dnnl_engine_t engine, stk_md_ref a, stk_md_ref b, stk_md_ref bias, stk_md_ref c,
                                 const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    dnnl_matmul_desc_t desc;
    *out = NULL;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, a, b, bias, c);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &desc, attr, engine, NULL) : status;
}

dnnl_status_t stk_dnnl_add_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f);
}

#else
typedef int stk_onednn_is_not_v2;
#endif
