/* See data/inspect/undo.h. The constants of a stage are its own, so the stage is asked: two pixels, black and white,
 * run through those that change values. */
#include "data/inspect/undo.h"

#include <string.h>

#include "base/error.h"
#include "data/stage/stage_list.h"

enum { N_PROBES = 2, PLACE_BYTES = 256 }; /* room for kernels that write whole vectors */

typedef struct probe {
    stk_item item;
    _Alignas(64) unsigned char place[2][PLACE_BYTES]; /* input and output, in turn */
    int i_place;
} probe;

/* Black and white, [1,2,channels]. */
static void begin(probe *p, int channels)
{
    p->item = (stk_item){{STK_FIELD_ARRAY, stk_desc_make(STK_U8, STK_SHAPE(1, N_PROBES, channels))},
                         p->place[p->i_place],
                         (size_t)(N_PROBES * channels)};
    memset(p->item.data, 0, (size_t)channels);
    memset((unsigned char *)p->item.data + channels, 255, (size_t)channels);
}

static bool run_stage(probe *p, const stk_stage *stage)
{
    stk_item out = {.data = p->place[!p->i_place]};
    stk_scratch none = {0};
    if (stage->class->plan(stage->params, &p->item.type, &out.type) != STK_OK) return false;
    out.n_bytes = stk_desc_bytes(out.type.desc);
    if (out.n_bytes > PLACE_BYTES / 2) return false;
    if (stage->class->run(stage->params, &(stk_stage_key){0}, &p->item, &out, &none) != STK_OK) return false;
    p->i_place = !p->i_place;
    p->item = out;
    return true;
}

static float value_at(const probe *p, int i)
{
    if (p->item.type.desc.dtype == STK_U8) return ((const uint8_t *)p->item.data)[i];
    return ((const float *)p->item.data)[i];
}

void stk_undo_init(stk_undo *undo, const stk_chain *chain, int channels)
{
    probe p = {.i_place = 0};
    bool known = false;
    *undo = (stk_undo){0};
    if (channels > STK_VIEW_CHANNELS) return;
    for (int i = 0; i <= chain->n_stages; i++) {
        const stk_field_type *type = &chain->type[i];
        bool is_u8 = type->kind == STK_FIELD_ARRAY && type->desc.dtype == STK_U8;
        if (i > 0 && known && chain->stage[i - 1]->class->rescales)
            known = run_stage(&p, chain->stage[i - 1]);
        else if (known)
            known = type->kind == STK_FIELD_ARRAY && type->desc.dtype == p.item.type.desc.dtype;
        if (is_u8 && !known) {
            begin(&p, channels);
            known = true;
        }
    }
    stk_dtype last = p.item.type.desc.dtype;
    if (!known || (last != STK_U8 && last != STK_F32)) return;
    for (int c = 0; c < channels; c++) {
        undo->low[c] = value_at(&p, c);
        undo->high[c] = value_at(&p, channels + c);
        if (!(undo->high[c] > undo->low[c])) return;
    }
    undo->known = true;
}

uint8_t stk_undo_value(const stk_undo *undo, int c, float x)
{
    float v = (x - undo->low[c]) * 255 / (undo->high[c] - undo->low[c]) + 0.5f;
    return v >= 255 ? 255 : v > 0 ? (uint8_t)v : 0; /* NaN is black */
}
