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

bool stk_fused_find_matrix(stk_shape space, uint32_t axes, stk_fused_matrix *out)
{
    int64_t n_reduced = 1, n_kept = 1;
    int n_changes = 0, last = -1, first = -1;
    for (int i = 0; i < space.rank; i++) {
        int is_reduced = axes >> i & 1;
        *(is_reduced ? &n_reduced : &n_kept) *= space.dim[i];
        if (space.dim[i] == 1) continue;
        if (first < 0) first = is_reduced;
        n_changes += last >= 0 && last != is_reduced;
        last = is_reduced;
    }
    bool by_columns = n_changes == 1 && first == 1;
    *out = by_columns ? (stk_fused_matrix){n_reduced, n_kept, true} : (stk_fused_matrix){n_kept, n_reduced, false};
    return n_changes < 2;
}
