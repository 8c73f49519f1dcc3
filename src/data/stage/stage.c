/* Making and freeing stages. */
#include "data/stage/stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/stage_list.h"

/* What constructors return when there is no memory for a stage: stk_dataset_apply reports it. */
static stk_stage no_memory_stage = {.status = STK_NO_MEMORY, .error = "cannot allocate memory for a stage"};

stk_stage *stk_stage_new(const stk_stage_class *class, const void *params)
{
    stk_stage *stage = calloc(1, sizeof(*stage));
    if (!stage) return &no_memory_stage;
    if (class->params_bytes > sizeof(stage->params)) {
        stage->status = STK_INTERNAL;
        snprintf(stage->error, sizeof(stage->error), "stage '%s' has too many parameters", class->key.name);
        return stage;
    }
    stage->class = class;
    if (class->params_bytes) memcpy(stage->params, params, class->params_bytes);
    return stage;
}

stk_stage *stk_stage_new_failed(stk_status status, const char *format, ...)
{
    stk_stage *stage = calloc(1, sizeof(*stage));
    if (!stage) return &no_memory_stage;
    va_list args;
    va_start(args, format);
    vsnprintf(stage->error, sizeof(stage->error), format, args);
    va_end(args);
    stage->status = status;
    return stage;
}

void stk_stage_free(stk_stage *stage)
{
    if (!stage || stage == &no_memory_stage) return;
    if (stage->class && stage->class->close) stage->class->close(stage->params);
    free(stage);
}

const stk_stage_class *stk_stage_find(const char *name)
{
    static const stk_stage_class *const all[] = {
#define X(stage) &stk_stage_##stage,
        STK_STAGE_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(all[i]->key.name, name)) return all[i];
    return NULL;
}

stk_stage *stk_stage_parse(const char *text)
{
    static const stk_key *const kinds[] = {
#define X(stage) &stk_stage_##stage.key,
        STK_STAGE_LIST(X)
#undef X
            NULL};
    static const stk_key key = {.name = "stage", .type = STK_KEY_CHOICE, .kinds = kinds};
    stk_yaml *yaml = NULL;
    stk_stage *stage = NULL;
    stk_status status;
    if (!text) STK_TRY(stk_fail(STK_INVALID, "'text' is NULL"));
    STK_TRY(stk_yaml_parse("stage", text, strlen(text), &yaml));
    STK_TRY(stk_schema_check(yaml, yaml->root, &key));
    STK_TRY(stk_stage_find(yaml->root->child->key)->build(yaml->root->child, &stage));
done:
    stk_yaml_free(yaml);
    return status == STK_OK ? stage : stk_stage_new_failed(status, "%s", stk_error_text());
}

stk_status stk_stage_needs_image(const stk_field_type *in, bool u8_only)
{
    char text[STK_SHAPE_TEXT_BYTES];
    const stk_tensor_desc *desc = &in->desc;
    const char *wanted = u8_only ? "u8" : "u8 or f32";
    if (in->kind == STK_FIELD_ENCODED)
        return stk_fail(STK_INVALID, "needs %s images [H,W,C], not encoded bytes", wanted);
    if (desc->shape.rank == 3 && (desc->dtype == STK_U8 || (!u8_only && desc->dtype == STK_F32))) {
        /* No stage has to think of images without pixels. */
        for (int i = 0; i < 3; i++)
            if (desc->shape.dim[i] == 0)
                return stk_fail(STK_INVALID, "needs images with pixels, not %s", stk_desc_text(*desc, text));
        return STK_OK;
    }
    return stk_fail(STK_INVALID, "needs %s images [H,W,C], not %s", wanted, stk_desc_text(*desc, text));
}

stk_status stk_stage_needs_colors(const stk_field_type *in)
{
    char text[STK_SHAPE_TEXT_BYTES];
    STK_RETURN_IF_ERROR(stk_stage_needs_image(in, true));
    if (in->desc.shape.dim[2] == 1 || in->desc.shape.dim[2] == 3) return STK_OK;
    return stk_fail(STK_INVALID, "needs images of 1 or 3 channels, not %s", stk_desc_text(in->desc, text));
}
