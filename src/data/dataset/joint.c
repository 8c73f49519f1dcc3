/* Stages that work on several fields with the same draws. See stoker/data/fields.h.
 *
 * A stage is a pure function of (input, key), so each field gets a stage of its own that draws by the key of the first
 * one. Equal draws need equal sides, which the chains compare as they run.
 */
#include "stoker/data/fields.h"

#include <string.h>

#include "base/error.h"
#include "data/dataset/dataset.h"
#include "data/stage/each.h"

static stk_status check(const stk_dataset *dataset, const char *const *fields, int n, const stk_stage *stage)
{
    if (stage->status != STK_OK) return stk_fail(stage->status, "%s", stage->error);
    if (!stage->class->geometric)
        return stk_fail(STK_INVALID,
                        "stage '%s' changes values, not places: apply it to one field at a time, not to several",
                        stage->class->key.name);
    if (n < 1 || n > STK_MAX_FIELDS || !fields)
        return stk_fail(STK_INVALID, "%d fields: 1 to %d are possible", n, STK_MAX_FIELDS);
    if (dataset->n_joints == STK_MAX_JOINTS)
        return stk_fail(STK_INVALID, "stage '%s' is one too many: %d work on several fields already",
                        stage->class->key.name, STK_MAX_JOINTS);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(fields[i], fields[k])) return stk_fail(STK_INVALID, "field '%s' is there twice", fields[i]);
    return STK_OK;
}

static stk_status add_copy(stk_dataset *dataset, const char *field, const stk_stage *stage, bool is_mask, int *i_key)
{
    int i = stk_dataset_find_field(dataset, field);
    if (i < 0) return STK_NOT_FOUND;
    stk_chain *chain = &dataset->chain[i];
    if (*i_key < 0) *i_key = chain->n_stages;
    stk_stage *copy = stk_stage_new(stage->class, stage->params);
    if (is_mask && copy->status == STK_OK && stage->class->for_mask) stage->class->for_mask(copy->params);
    copy = stk_stage_for(copy, stk_chain_type(chain));
    stk_status status = copy->status == STK_OK ? stk_chain_add_joint(chain, copy, *i_key, dataset->n_joints + 1)
                                               : stk_fail(copy->status, "%s", copy->error);
    if (status != STK_OK) stk_stage_free(copy);
    return status;
}

void stk_dataset_apply_together(stk_dataset *dataset, const char *const *fields, int n_images, int n_masks,
                                stk_stage *stage)
{
    if (!dataset) {
        stk_stage_free(stage);
        return;
    }
    int n = n_images + n_masks, i_key = -1;
    if (dataset->status != STK_OK || !stage) goto done;
    stk_status status =
        n_images < 0 || n_masks < 0 ? stk_fail(STK_INVALID, "fewer than no fields") : check(dataset, fields, n, stage);
    for (int i = 0; i < n && status == STK_OK; i++)
        status = add_copy(dataset, fields[i], stage, i >= n_images, &i_key);
    if (status == STK_OK) dataset->n_joints++;
    stk_dataset_keep_error(dataset, status);
done:
    if (!stage && dataset->status == STK_OK) stk_dataset_keep_error(dataset, stk_fail(STK_INVALID, "'stage' is NULL"));
    stk_stage_free(stage);
}
