/* Plans and runs one stage outside of a data set. Include after cmocka.h. */
#ifndef TESTS_DATA_STAGE_RUN_STAGE_H
#define TESTS_DATA_STAGE_RUN_STAGE_H

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/stage_list.h"

static inline stk_field_type array_type(stk_dtype dtype, stk_shape shape)
{
    return (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(dtype, shape)};
}

/* dst has exactly as many bytes as the plan says. */
static inline stk_status try_stage(const stk_stage *stage, stk_field_type type, const void *src, uint64_t i_sample,
                                   void *dst)
{
    stk_scratch scratch = {0};
    stk_item in = {.type = type, .data = (void *)(uintptr_t)src, .n_bytes = stk_desc_bytes(type.desc)};
    stk_item out = {.data = dst};
    stk_stage_key key = {.seed = 5, .epoch = 1, .i_sample = i_sample, .i_stage = 2};
    assert_int_equal(stage->status, STK_OK);
    stk_status status = stage->class->plan(stage->params, &type, &out.type);
    if (status != STK_OK) return status;
    out.n_bytes = stk_desc_bytes(out.type.desc);
    status = stage->class->run(stage->params, &key, &in, &out, &scratch);
    stk_scratch_free(&scratch);
    return status;
}

/* The stage is freed. */
static inline void run_stage(stk_stage *stage, stk_field_type type, const void *src, void *dst)
{
    assert_int_equal(try_stage(stage, type, src, 7, dst), STK_OK);
    stk_stage_free(stage);
}

/* Takes stage; its plan must refuse type with this text. */
static inline void refuse_plan(stk_stage *stage, stk_field_type type, const char *text)
{
    stk_field_type out;
    assert_int_equal(stage->status, STK_OK);
    assert_int_equal(stage->class->plan(stage->params, &type, &out), STK_INVALID);
    assert_string_equal(stk_error_text(), text);
    stk_stage_free(stage);
}

/* Takes stage; its constructor must have failed with this text. */
static inline void refuse_stage(stk_stage *stage, stk_status status, const char *text)
{
    assert_int_equal(stage->status, status);
    assert_string_equal(stage->error, text);
    stk_stage_free(stage);
}

#endif
