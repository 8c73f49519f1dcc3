/* See data/loader/masked.h. */
#include "data/loader/masked.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/text/tokenizer.h"
#include "stoker/data/masked.h"

enum { RNG_STAGE = (1 << 20) + 1 /* no chain has that many stages, and mixup has the one before */ };

void stk_masked_run(const stk_masked *m, stk_rng rng, int32_t *tokens, int32_t *targets, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t token = tokens[i];
        bool stays = token < 0 || token >= m->vocabulary || m->stays[token];
        targets[i] = STK_NO_TARGET;
        if (stays || stk_rng_u32(&rng) >= m->share * 0x1p32) continue;
        uint32_t tenth = stk_rng_below(&rng, 10);
        targets[i] = token;
        if (tenth < 8)
            tokens[i] = m->mask;
        else if (tenth == 8)
            tokens[i] = (int32_t)stk_rng_below(&rng, (uint32_t)m->vocabulary);
    }
}

stk_status stk_masked_check(const stk_dataset *dataset, const stk_field_type *types)
{
    static const char *const names[] = {"tokens", "targets"};
    stk_shape shape[2];
    char text[STK_SHAPE_TEXT_BYTES];
    for (int k = 0; k < 2; k++) {
        int i = stk_dataset_find_field(dataset, names[k]);
        if (i < 0)
            return stk_fail_prefix(STK_INVALID, "'masked' works on tokens and targets, as the source 'tokens' has: ");
        shape[k] = types[i].desc.shape;
        bool padded = dataset->pad[i].on && !dataset->pad[i].fixed;
        if (types[i].kind != STK_FIELD_ARRAY || types[i].desc.dtype != STK_I32 || shape[k].rank != 1 ||
            !stk_shape_known(shape[k]) || padded)
            return stk_fail(STK_INVALID, "'masked' needs '%s' i32 [length], all of one length, not %s", names[k],
                            padded ? "padded" : stk_desc_text(types[i].desc, text));
    }
    if (stk_shape_equal(shape[0], shape[1])) return STK_OK;
    return stk_fail(STK_INVALID, "'masked' needs as many targets as tokens: there are %lld and %lld",
                    (long long)shape[1].dim[0], (long long)shape[0].dim[0]);
}

void stk_masked_complete(const void *user, int64_t i_batch, stk_slot *slot)
{
    const stk_work *work = user;
    const stk_dataset *dataset = work->dataset;
    int i_tokens = stk_dataset_find_field(dataset, "tokens"), i_targets = stk_dataset_find_field(dataset, "targets");
    int64_t i_epoch, i_in_part, n = work->want[i_tokens].desc.shape.dim[0];
    stk_share_locate(&work->share, i_batch, &i_epoch, &i_in_part);
    const stk_share_rows rows = stk_share_find_rows(&work->share, i_batch);
    int32_t *tokens = (int32_t *)(void *)slot->field[i_tokens], *targets = (int32_t *)(void *)slot->field[i_targets];
    for (int64_t row = 0; row < stk_share_count(&work->share, i_batch); row++)
        stk_masked_run(dataset->masked,
                       stk_rng_make(work->seed, (uint64_t)i_epoch, (uint64_t)stk_share_position(&rows, row), RNG_STAGE),
                       tokens + row * n, targets + row * n, n);
}

void stk_dataset_mask_tokens(stk_dataset *dataset, const stk_tokenizer *tokenizer, double share)
{
    if (!dataset) return;
    if (dataset->status != STK_OK) return;
    int64_t n = stk_tokenizer_vocabulary(tokenizer);
    int32_t mask = stk_tokenizer_find(tokenizer, "[MASK]");
    if (mask < 0) mask = stk_tokenizer_find(tokenizer, "<mask>");
    stk_status status = STK_OK;
    if (!(share > 0 && share < 1))
        status = stk_fail(STK_INVALID, "'masked': a share of %g is not between 0 and 1", share);
    else if (mask < 0)
        status = stk_fail(STK_INVALID, "'masked': the tokenizer has no token [MASK] or <mask>; train one with it: "
                                       "stoker tokenizer train --special '[MASK]'");
    stk_masked *m = status == STK_OK ? calloc(1, sizeof(*m) + (size_t)n) : NULL;
    if (status == STK_OK && !m) status = stk_fail_memory((size_t)n);
    if (stk_dataset_keep_error(dataset, status) != STK_OK) return;
    m->share = share;
    m->mask = mask;
    m->vocabulary = n;
    for (int64_t id = 0; id < n; id++)
        m->stays[id] = stk_tokenizer_is_special(tokenizer, id);
    free(dataset->masked);
    dataset->masked = m;
}
