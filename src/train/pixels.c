/* See train/pixels.h. */
#include "train/pixels.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset/pixels.h"
#include "train/shapes.h"

/* Whether all that reads batches reads them as the device does. */
static bool may_cut(const stk_dataset *dataset)
{
    bool mixes = dataset->mixup.mixup_alpha > 0 || dataset->mixup.cutmix_alpha > 0;
    return !mixes && !dataset->cache && !dataset->n_padded && !dataset->n_joints && !stk_shapes_vary(dataset);
}

static stk_status choose_pixels(stk_trainer *trainer)
{
    const stk_graph *model = stk_model_graph(trainer->model);
    stk_pixels found = {0};
    trainer->pixels.n = 0;
    if (stk_engine_device(trainer->engine)->class->on_host || trainer->config.whiten.layer) return STK_OK;
    if (!may_cut(trainer->dataset)) return STK_OK;
    for (int i = 0; i < model->n_nodes && !trainer->pixels.n; i++) {
        const stk_node *node = &model->node[i];
        if (node->op != STK_OP_input || !stk_pixels_find(trainer->dataset, node->name, &found)) continue;
        trainer->pixels = (stk_pixel_scale){.input = node->name, .n = found.n};
        memcpy(trainer->pixels.a, found.a, sizeof(found.a));
        memcpy(trainer->pixels.b, found.b, sizeof(found.b));
    }
    return stk_trainer_cut_pixels(trainer, trainer->dataset, &trainer->fed_dataset);
}

/* A view of the data set, of which the loader makes a rank's rows of each batch. */
static stk_status cut_rows(stk_trainer *trainer)
{
    if (!trainer->comm) return STK_OK;
    if (!trainer->fed_dataset) {
        trainer->fed_dataset = malloc(sizeof(*trainer->fed_dataset));
        if (!trainer->fed_dataset) return stk_fail_memory(sizeof(*trainer->fed_dataset));
        *trainer->fed_dataset = *trainer->dataset;
    }
    trainer->fed_dataset->n_rows /= trainer->comm->n_ranks;
    trainer->fed_dataset->drop_remainder = true; /* There is none, or it is dropped. */
    return STK_OK;
}

stk_status stk_trainer_choose_fed(stk_trainer *trainer)
{
    if (trainer->fed_dataset) return STK_OK; /* It was asked before. */
    STK_RETURN_IF_ERROR(choose_pixels(trainer));
    return cut_rows(trainer);
}

const stk_dataset *stk_trainer_batches_of(const stk_trainer *trainer)
{
    return trainer->fed_dataset ? trainer->fed_dataset : trainer->dataset;
}

static bool find_same(const stk_trainer *trainer, const stk_dataset *dataset, stk_pixels *out)
{
    const stk_pixel_scale *p = &trainer->pixels;
    if (!p->n || !may_cut(dataset) || !stk_pixels_find(dataset, p->input, out) || out->n != p->n) return false;
    for (int c = 0; c < p->n; c++)
        if (out->a[c] != p->a[c] || out->b[c] != p->b[c]) return false;
    return true;
}

bool stk_trainer_takes_u8(const stk_trainer *trainer, const stk_dataset *dataset)
{
    stk_pixels pixels;
    return find_same(trainer, dataset, &pixels);
}

stk_status stk_trainer_cut_pixels(const stk_trainer *trainer, const stk_dataset *dataset, stk_dataset **out)
{
    stk_pixels pixels;
    *out = NULL;
    if (!find_same(trainer, dataset, &pixels)) return STK_OK;
    *out = stk_pixels_cut(dataset, &pixels);
    return *out ? STK_OK : stk_fail_memory(sizeof(**out));
}
