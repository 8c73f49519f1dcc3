/* Slices of a batch: slice i holds rows row[i] .. row[i] + rows - 1. All are of one size, since a program has one:
 * where they do not divide the batch, the last one goes back and `fresh` tells which of its rows are new.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/program.h"

stk_status stk_micro_make(int64_t batch, int64_t rows, stk_micro *out)
{
    *out = (stk_micro){.n = 1, .batch = batch, .rows = rows};
    if (batch == 0 || rows == batch) return STK_OK;
    if (rows < 1 || rows > batch)
        return stk_fail(STK_INVALID, "micro-batches of %lld rows do not fit a batch of %lld", (long long)rows,
                        (long long)batch);
    out->n = (batch + rows - 1) / rows;
    out->row = calloc((size_t)out->n, sizeof(*out->row));
    out->fresh = calloc((size_t)(out->n * rows), sizeof(*out->fresh));
    if (!out->row || !out->fresh) return stk_fail_memory((size_t)(out->n * rows) * sizeof(*out->fresh));
    for (int64_t i = 0; i < out->n; i++) {
        out->row[i] = i * rows + rows <= batch ? i * rows : batch - rows;
        for (int64_t k = 0; k < rows; k++)
            out->fresh[i * rows + k] = out->row[i] + k >= i * rows ? 1.0f : 0.0f;
    }
    return STK_OK;
}

void stk_micro_free(stk_micro *micro)
{
    free(micro->row);
    free(micro->fresh);
    *micro = (stk_micro){0};
}

void stk_micro_bind(stk_program *program)
{
    if (program->micro.n < 2) return;
    stk_program_bind(program, stk_program_input(program, STK_MICRO_ROW), program->micro.row);
    stk_program_bind(program, stk_program_input(program, STK_MICRO_FRESH), program->micro.fresh);
}

static const char *input_name(const stk_program *program, int32_t value)
{
    return program->graph->node[program->graph->value[value].node].name;
}

size_t stk_program_input_bytes(const stk_program *program, int32_t value)
{
    const stk_micro *micro = &program->micro;
    size_t bytes = stk_desc_bytes(program->graph->value[value].desc);
    if (micro->n < 2 || !stk_input_is_sliced(program->graph, program->graph->value[value].node)) return bytes;
    const char *name = input_name(program, value);
    if (!strcmp(name, STK_MICRO_ROW) || !strcmp(name, STK_MICRO_FRESH)) return bytes * (size_t)micro->n;
    return bytes / (size_t)micro->rows * (size_t)micro->batch;
}

size_t stk_micro_offset(const stk_program *program, int32_t value, int32_t i_micro)
{
    const stk_micro *micro = &program->micro;
    if (micro->n < 2 || !stk_input_is_sliced(program->graph, program->graph->value[value].node)) return 0;
    size_t bytes = stk_desc_bytes(program->graph->value[value].desc);
    const char *name = input_name(program, value);
    if (!strcmp(name, STK_MICRO_ROW) || !strcmp(name, STK_MICRO_FRESH)) return bytes * (size_t)i_micro;
    return bytes / (size_t)micro->rows * (size_t)micro->row[i_micro];
}
