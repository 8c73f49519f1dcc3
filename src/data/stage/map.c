/* A stage made of a C function of the user's. See stoker/data/custom.h. It has no recipe key, and hence no line in the
 * list.
 */
#include "stoker/data/custom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/stage/stage.h"

enum { NAME_BYTES = 64 };

/* Lies in the stage itself, which outlives every use. */
typedef struct map_params {
    const struct map_stage *stage;
} map_params;

typedef struct map_stage {
    stk_stage base;        /* first, so that freeing it frees all */
    stk_stage_class class; /* with this stage's own name */
    stk_map_config config;
    char name[NAME_BYTES];
    char who[NAME_BYTES + 16]; /* "stage 'NAME'" */
} map_stage;

static stk_map_array array_of(const stk_field_type *type, void *data, size_t n_bytes)
{
    if (type->kind == STK_FIELD_ARRAY) return (stk_map_array){type->desc.dtype, type->desc.shape, data, n_bytes};
    return (stk_map_array){STK_U8, STK_SHAPE(data ? (int64_t)n_bytes : STK_ANY), data, n_bytes};
}

static stk_status find_shape(const map_stage *s, const stk_map_array *src, stk_field_type *out)
{
    stk_dtype dtype = src->dtype;
    stk_shape shape = src->shape;
    if (s->config.shape) {
        stk_error_clear();
        stk_status status = s->config.shape(s->config.user, src, &dtype, &shape);
        if (status != STK_OK) return stk_fail_user(status, "'shape'");
    }
    *out = (stk_field_type){STK_FIELD_ARRAY, stk_desc_make(dtype, shape)};
    STK_RETURN_IF_ERROR(stk_desc_check(out->desc));
    for (int i = shape.rank; i < STK_MAX_RANK; i++)
        out->desc.shape.dim[i] = 0;
    return STK_OK;
}

static stk_status plan(const void *params, const stk_field_type *in, stk_field_type *out)
{
    const map_params *p = params;
    stk_map_array src = array_of(in, NULL, 0);
    return find_shape(p->stage, &src, out);
}

static stk_status measure(const void *params, const stk_stage_key *key, const stk_item *in, stk_field_type *out)
{
    const map_params *p = params;
    stk_map_array src = array_of(&in->type, in->data, in->n_bytes);
    char text[STK_SHAPE_TEXT_BYTES];
    (void)key;
    STK_RETURN_IF_ERROR(find_shape(p->stage, &src, out));
    if (stk_shape_known(out->desc.shape)) return STK_OK;
    return stk_fail(STK_INVALID, "%s gives %s for a sample: no side may be open", p->stage->who,
                    stk_desc_text(out->desc, text));
}

static stk_status run(const void *params, const stk_stage_key *key, const stk_item *in, stk_item *out,
                      stk_scratch *scratch)
{
    const map_stage *s = ((const map_params *)params)->stage;
    stk_rng rng;
    stk_map_call call = {.src = array_of(&in->type, in->data, in->n_bytes),
                         .dst = array_of(&out->type, out->data, out->n_bytes)};
    if (s->config.scratch_bytes) {
        call.scratch = stk_scratch_get(scratch, s->config.scratch_bytes);
        if (!call.scratch) return STK_NO_MEMORY;
    }
    if (s->config.random) {
        rng = stk_rng_make(key->seed, key->epoch, key->i_sample, key->i_stage);
        call.rng = &rng;
    }
    stk_error_clear();
    stk_status status = s->config.run(s->config.user, &call);
    return status == STK_OK ? STK_OK : stk_fail_user(status, s->who);
}

stk_stage *stk_map(const stk_map_config *config)
{
    if (!config || !config->run) return stk_stage_new_failed(STK_INVALID, "map: the function 'run' is missing");
    if (!config->name || !config->name[0] || strlen(config->name) >= NAME_BYTES)
        return stk_stage_new_failed(STK_INVALID, "map: a name of 1 to %d characters is needed", NAME_BYTES - 1);
    map_stage *s = calloc(1, sizeof(*s));
    if (!s) return stk_stage_new_failed(STK_NO_MEMORY, "cannot allocate memory for a stage");
    snprintf(s->name, sizeof(s->name), "%s", config->name);
    snprintf(s->who, sizeof(s->who), "stage '%s'", s->name);
    s->config = *config;
    s->config.name = s->name;
    s->class = (stk_stage_class){.key = {.name = s->name},
                                 .params_bytes = sizeof(map_params),
                                 .plan = plan,
                                 .measure = measure,
                                 .run = run,
                                 .random = config->random,
                                 .unique = true,
                                 .in_place = config->in_place};
    s->base.class = &s->class;
    memcpy(s->base.params, &(map_params){s}, sizeof(map_params));
    return &s->base;
}
