#include "graph/fused.h"

#include <string.h>

static void *copy_array(stk_arena *arena, const void *src, int32_t n, size_t bytes)
{
    void *dst = stk_arena_alloc(arena, (size_t)(n + 1) * bytes);
    return dst && n ? memcpy(dst, src, (size_t)n * bytes) : dst;
}

stk_fused *stk_fused_copy(stk_arena *arena, const stk_fused *program)
{
    stk_fused *copy = stk_arena_alloc(arena, sizeof(*copy));
    if (!copy) return NULL;
    *copy = *program;
    copy->input = copy_array(arena, program->input, program->n_in, sizeof(*program->input));
    copy->instr = copy_array(arena, program->instr, program->n_instr, sizeof(*program->instr));
    copy->out = copy_array(arena, program->out, program->n_out, sizeof(*program->out));
    return copy->input && copy->instr && copy->out ? copy : NULL;
}
