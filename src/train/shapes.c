#include "train/shapes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"

/* More programs than these are worth a word. */
enum { FEW = 8 };

/* The model for samples of that length, which may be the trainer's own. */
static stk_status find_model(stk_trainer *trainer, int64_t length, stk_model **out)
{
    stk_shapes *shapes = &trainer->shapes;
    *out = trainer->model;
    if (length == shapes->own_length) return STK_OK;
    for (int i = 0; i < shapes->n_models; i++) {
        *out = shapes->model[i].model;
        if (shapes->model[i].length == length) return STK_OK;
    }
    size_t bytes = ((size_t)shapes->n_models + 1) * sizeof(*shapes->model);
    stk_model_of_length *grown = realloc(shapes->model, bytes);
    if (!grown) return stk_fail_memory(bytes);
    shapes->model = grown;
    stk_model *model = NULL;
    STK_RETURN_IF_ERROR(trainer->config.make_model(trainer->config.model_user, length, &model));
    shapes->model[shapes->n_models++] = (stk_model_of_length){length, model};
    STK_RETURN_IF_ERROR(stk_model_status(model));
    *out = model;
    return STK_OK;
}

static stk_status compile(stk_trainer *trainer, bool is_eval, int64_t rows, int64_t length, stk_bound_program *out)
{
    stk_model *own = trainer->model, *model;
    int64_t start = stk_clock_ns();
    int n_variables = stk_engine_n_variables(trainer->engine);
    STK_RETURN_IF_ERROR(find_model(trainer, length, &model));
    trainer->model = model; /* What is compiled is the trainer's model. */
    stk_status status =
        is_eval ? stk_step_compile_eval(trainer, rows, out) : stk_step_compile_train(trainer, rows, out);
    trainer->model = own;
    trainer->result.compile_s += (double)(stk_clock_ns() - start) * 1e-9;
    if (status != STK_OK && length == 0) return status; /* All batches are alike. */
    if (status != STK_OK)
        return stk_fail_prefix(status, "for batches of %lld samples of length %lld: ", (long long)rows,
                               (long long)length);
    if (trainer->prepared && stk_engine_n_variables(trainer->engine) != n_variables)
        return stk_fail(STK_INVALID, "the model for length %lld has variables that the first one has not",
                        (long long)length);
    stk_program_info info = stk_program_get_info(out->program);
    size_t planned = info.arena_bytes + info.variable_bytes + info.packed_bytes;
    stk_memory_note_program(trainer, out->program);
    if (planned > trainer->result.peak_planned_bytes) trainer->result.peak_planned_bytes = planned;
    return STK_OK;
}

static void report(stk_trainer *trainer, int n)
{
    char text[300];
    if (n != FEW + 1) return;
    snprintf(text, sizeof(text),
             "batches have had %d different shapes so far, and for each the step is compiled once (%.2f s for all); "
             "fewer of them: pad: {boundaries: [...], to_boundary: true}, or one length",
             n, trainer->result.compile_s);
    stk_train_event event = {.kind = STK_EVENT_WARNING, .text = text};
    stk_trainer_emit(trainer, &event);
}

/* The program for the shape, compiled if it is the first of its kind. */
static stk_status find(stk_trainer *trainer, bool is_eval, int64_t rows, int64_t length, stk_bound_program *out)
{
    stk_shape_list *list = is_eval ? &trainer->shapes.eval : &trainer->shapes.train;
    for (int i = 0; i < list->n; i++)
        if (list->item[i].length == length && list->item[i].bound.batch == rows) {
            *out = list->item[i].bound;
            return STK_OK;
        }
    size_t bytes = ((size_t)list->n + 1) * sizeof(*list->item);
    stk_shaped_program *grown = realloc(list->item, bytes);
    if (!grown) return stk_fail_memory(bytes);
    list->item = grown;
    STK_RETURN_IF_ERROR(compile(trainer, is_eval, rows, length, out));
    list->item[list->n++] = (stk_shaped_program){length, *out};
    if (!is_eval) report(trainer, list->n);
    trainer->result.n_shapes = trainer->shapes.train.n;
    return STK_OK;
}

/* Of the fields that the model takes; those that are open have one length. */
static stk_status ask_shape(const stk_trainer *trainer, const stk_dataset *dataset, const stk_batch *batch,
                            int64_t *rows, int64_t *length)
{
    const char *first = NULL;
    *rows = *length = 0;
    for (int i = 0; i < trainer->train.n_bindings; i++) {
        const char *field = trainer->train.binding[i].field;
        int i_field = stk_dataset_find_field(dataset, field);
        stk_shape shape;
        STK_RETURN_IF_ERROR(stk_batch_shape(batch, field, &shape));
        *rows = shape.dim[0];
        if (i_field < 0 || !stk_shapes_is_open(dataset, i_field)) continue;
        if (first && shape.dim[1] != *length)
            return stk_fail(STK_MISMATCH,
                            "fields '%s' and '%s' have lengths %lld and %lld in one batch, and must agree", first,
                            field, (long long)*length, (long long)shape.dim[1]);
        *length = shape.dim[1];
        first = field;
    }
    return STK_OK;
}

/* Of the trainer's own model: the first side of the first open field's samples. */
static int64_t find_own_length(const stk_trainer *trainer)
{
    const stk_dataset *dataset = trainer->dataset;
    for (int i = 0; i < dataset->source->n_fields; i++) {
        if (!stk_shapes_is_open(dataset, i)) continue;
        stk_value x = stk_graph_find(stk_model_graph(trainer->model), STK_OP_input, dataset->source->field[i].name);
        if (x.id >= 0 && stk_value_shape(x).rank > 1) return stk_value_shape(x).dim[1];
    }
    return 0;
}

stk_status stk_shapes_prepare(stk_trainer *trainer)
{
    int64_t rows, length;
    stk_shapes_largest(trainer->dataset, &rows, &length);
    rows /= stk_comm_n_ranks(trainer->comm);
    trainer->shapes.varies = stk_shapes_vary(trainer->dataset);
    trainer->shapes.own_length = find_own_length(trainer);
    if (!trainer->shapes.own_length) length = 0;
    trainer->most_rows = stk_dataset_batch_size(trainer->dataset);
    STK_RETURN_IF_ERROR(stk_memory_choose(trainer, rows, &trainer->choice));
    return find(trainer, false, rows, length, &trainer->train);
}

stk_status stk_shapes_pick_train(stk_trainer *trainer, const stk_batch *batch)
{
    int64_t rows, length;
    if (!trainer->shapes.varies) return STK_OK;
    STK_RETURN_IF_ERROR(ask_shape(trainer, trainer->dataset, batch, &rows, &length));
    return find(trainer, false, rows, length, &trainer->train);
}

stk_status stk_shapes_pick_eval(stk_trainer *trainer, const stk_dataset *dataset, const stk_batch *batch)
{
    int64_t rows, length;
    STK_RETURN_IF_ERROR(ask_shape(trainer, dataset, batch, &rows, &length));
    if (length == 0) length = trainer->shapes.own_length; /* All as long as the model. */
    return find(trainer, true, rows, length, &trainer->eval);
}

void stk_shapes_free(stk_shapes *shapes)
{
    for (int i = 0; i < shapes->n_models; i++)
        stk_model_free(shapes->model[i].model);
    free(shapes->model);
    free(shapes->train.item);
    free(shapes->eval.item);
    *shapes = (stk_shapes){0};
}
