/* See data/loader/mixup_batch.h and stoker/data/mixup.h. */
#include "data/loader/mixup_batch.h"

#include "base/error.h"
#include "data/stage/stage_list.h"
#include "stoker/data/mixup.h"

bool stk_mixup_wanted(const stk_dataset *dataset)
{
    return dataset->mixup.mixup_alpha > 0 || dataset->mixup.cutmix_alpha > 0;
}

static bool is_channels_first(const stk_chain *chain)
{
    return chain->n_stages > 0 && chain->stage[chain->n_stages - 1]->class == &stk_stage_layout;
}

stk_status stk_mixup_check(const stk_dataset *dataset, const stk_field_type *types)
{
    bool cuts = dataset->mixup.cutmix_alpha > 0, mixes = dataset->mixup.mixup_alpha > 0;
    const char *what = mixes ? "mixup" : "cutmix";
    char text[STK_SHAPE_TEXT_BYTES];
    int i_image = stk_dataset_find_field(dataset, "image"), i_label = stk_dataset_find_field(dataset, "label");
    if (i_image < 0 || i_label < 0) return stk_fail_prefix(STK_INVALID, "'%s' mixes images and labels: ", what);
    stk_tensor_desc image = types[i_image].desc, label = types[i_label].desc;
    bool encoded = types[i_image].kind != STK_FIELD_ARRAY;
    if (types[i_label].kind != STK_FIELD_ARRAY || label.dtype != STK_F32 || label.shape.rank != 1 ||
        label.shape.dim[0] < 1)
        return stk_fail(STK_INVALID, "'%s' needs labels f32 [n_classes], not %s: apply the stage 'one_hot' to them",
                        what, stk_desc_text(label, text));
    if (mixes && (encoded || image.dtype != STK_F32))
        return stk_fail(STK_INVALID, "'mixup' needs f32 images, not %s: normalize or scale them first",
                        encoded ? "encoded bytes" : stk_desc_text(image, text));
    if (cuts && (encoded || image.shape.rank != 3))
        return stk_fail(STK_INVALID, "'cutmix' needs images of three sides, not %s",
                        encoded ? "encoded bytes" : stk_desc_text(image, text));
    if ((dataset->pad[i_image].on && !dataset->pad[i_image].fixed) || !stk_shape_known(image.shape) ||
        !stk_shape_known(label.shape))
        return stk_fail(STK_INVALID, "'%s' needs samples of one size: they cannot be padded", what);
    for (int i = 0; cuts && i < 3; i++)
        if (image.shape.dim[i] == 0)
            return stk_fail(STK_INVALID, "'cutmix' needs images with pixels, not %s", stk_desc_text(image, text));
    return STK_OK;
}

void stk_mixup_complete(const void *user, int64_t i_batch, stk_slot *slot)
{
    const stk_work *work = user;
    const stk_dataset *dataset = work->dataset;
    int i_image = stk_dataset_find_field(dataset, "image"), i_label = stk_dataset_find_field(dataset, "label");
    int64_t i_epoch, i_in_part;
    stk_share_locate(&work->share, i_batch, &i_epoch, &i_in_part);
    stk_mixup_batch batch = {.n_rows = stk_share_count(&work->share, i_batch),
                             .image = slot->field[i_image],
                             .image_type = work->want[i_image].desc,
                             .channels_first = is_channels_first(&dataset->chain[i_image]),
                             .label = (float *)(void *)slot->field[i_label],
                             .n_classes = work->want[i_label].desc.shape.dim[0]};
    const stk_share_rows rows = stk_share_find_rows(&work->share, i_batch);
    stk_mixup_run(&dataset->mixup, work->seed, (uint64_t)i_epoch, (uint64_t)stk_share_position(&rows, 0), &batch);
}

static bool check_alpha(stk_dataset *dataset, double alpha, const char *what)
{
    if (dataset->status != STK_OK) return false;
    if (alpha > 0 && alpha <= 1000) return true;
    stk_dataset_keep_error(dataset,
                           stk_fail(STK_INVALID, "'%s': alpha %g is not above 0 and at most 1000", what, alpha));
    return false;
}

void stk_dataset_mixup(stk_dataset *dataset, double alpha)
{
    if (!dataset) return;
    if (check_alpha(dataset, alpha, "mixup")) dataset->mixup.mixup_alpha = alpha;
}

void stk_dataset_cutmix(stk_dataset *dataset, double alpha)
{
    if (!dataset) return;
    if (check_alpha(dataset, alpha, "cutmix")) dataset->mixup.cutmix_alpha = alpha;
}
