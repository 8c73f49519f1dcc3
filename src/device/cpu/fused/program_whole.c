/* Parts of a group that have one loop (element_gelu.h): GELU and its gradient, which would be 8 to 25 instructions,
 * each of which is a loop over memory and, in bf16, rounds. In f32 the loop has the bits of the instructions one by
 * one.
 */
#include "device/cpu/fused/program_build.h"

#include <math.h>

#include "base/error.h"

/* A pattern: instructions in order, the last one gives the result. Operands are earlier nodes, or: */
enum { X = -1, DY = -2 };

typedef struct pattern_node {
    stk_op op;
    int32_t kind, a, b;
    double value; /* of a constant */
} pattern_node;

#define NUMBER(value)                                                                                                  \
    {                                                                                                                  \
        STK_OP_constant, 0, 0, 0, value                                                                                \
    }
#define UNARY(name, a)                                                                                                 \
    {                                                                                                                  \
        STK_OP_unary, STK_UNARY_##name, a, 0, 0                                                                        \
    }
#define ADD(a, b)                                                                                                      \
    {                                                                                                                  \
        STK_OP_binary, STK_BINARY_add, a, b, 0                                                                         \
    }
#define MUL(a, b)                                                                                                      \
    {                                                                                                                  \
        STK_OP_binary, STK_BINARY_mul, a, b, 0                                                                         \
    }

/* As nn/activation.c writes them and autodiff derives them, nodes numbered from 0. */
#define GELU_SHARE NUMBER(0.70710678118654752), MUL(X, 0), UNARY(erf, 1), NUMBER(1), ADD(2, 3), NUMBER(0.5), MUL(4, 5)
#define GELU_TANH_SHARE                                                                                                \
    UNARY(square, X), NUMBER(0.035677408136300125), MUL(0, 1), NUMBER(0.79788456080286536), ADD(2, 3), MUL(X, 4),      \
        UNARY(tanh, 5), NUMBER(1), ADD(6, 7), NUMBER(0.5), MUL(8, 9)

static const pattern_node gelu[] = {GELU_SHARE, MUL(X, 6)};
static const pattern_node gelu_grad[] = {
    GELU_SHARE,
    MUL(DY, 6), /* 7 */
    MUL(DY, X), /* 8: from here on, dy x times the normal density */
    MUL(8, 5),  /* 9 */
    NUMBER(1.12837916709551257),
    MUL(9, 10),       /* 11 */
    UNARY(square, 1), /* 12 */
    UNARY(neg, 12),   /* 13 */
    UNARY(exp, 13),   /* 14 */
    MUL(11, 14),      /* 15 */
    MUL(15, 0),       /* 16 */
    ADD(7, 16),
};
static const pattern_node gelu_tanh[] = {GELU_TANH_SHARE, MUL(X, 10)};
static const pattern_node gelu_tanh_grad[] = {
    GELU_TANH_SHARE,  MUL(DY, 10), /* 11 */
    MUL(DY, X),                    /* 12: from here on, what goes through tanh */
    MUL(12, 9),                    /* 13 */
    UNARY(square, 6),              /* 14 */
    UNARY(neg, 14),                /* 15 */
    ADD(15, 7),                    /* 16 */
    MUL(13, 16),                   /* 17 */
    MUL(17, 4),                    /* 18 */
    MUL(17, X),                    /* 19 */
    ADD(11, 18),                   /* 20 */
    MUL(19, 1),                    /* 21 */
    NUMBER(2),                     /* 22 */
    MUL(X, 22),                    /* 23 */
    MUL(21, 23),                   /* 24 */
    ADD(20, 24),
};

#define PATTERN(kind, name, dtype) [STK_WHOLE_##kind] = {name, (int32_t)(sizeof(name) / sizeof(*(name))), dtype}
static const struct {
    const pattern_node *node;
    int32_t n;
    stk_dtype dtype;
} patterns[STK_N_WHOLE] = {
    PATTERN(gelu, gelu, STK_BF16),
    PATTERN(gelu_grad, gelu_grad, STK_BF16),
    PATTERN(gelu_tanh, gelu_tanh, STK_BF16),
    PATTERN(gelu_tanh_grad, gelu_tanh_grad, STK_BF16),
    PATTERN(gelu_f32, gelu, STK_F32),
    PATTERN(gelu_f32_grad, gelu_grad, STK_F32),
    PATTERN(gelu_tanh_f32, gelu_tanh, STK_F32),
    PATTERN(gelu_tanh_f32_grad, gelu_tanh_grad, STK_F32),
};

static stk_dtype dtype_of(const stk_fused *g, int32_t r)
{
    return r < g->n_in ? g->input[r].dtype : g->instr[r - g->n_in].dtype;
}

/* Whether register r is what the pattern's node says, x and dy being those that were found before. Of a product one
 * operand is a number or was found before in all patterns, so that no choice needs to be taken back later. */
static bool match(const stk_fused *g, const pattern_node *pattern, stk_dtype dtype, int32_t at, int32_t r,
                  int32_t found[2])
{
    if (dtype_of(g, r) != dtype) return false;
    if (at < 0) {
        int32_t *leaf = &found[-1 - at];
        if (*leaf < 0) *leaf = r;
        return *leaf == r;
    }
    const pattern_node *node = &pattern[at];
    if (r < g->n_in) return false;
    const stk_fused_instr *instr = &g->instr[r - g->n_in];
    if (instr->op != node->op) return false;
    if (node->op == STK_OP_constant)
        return dtype == STK_F32 ? (float)instr->value == (float)node->value : fabs(instr->value - node->value) < 1e-6;
    if (instr->kind != node->kind) return false;
    if (node->op == STK_OP_unary) return match(g, pattern, dtype, node->a, instr->operand[0], found);
    int32_t before[2] = {found[0], found[1]};
    for (int swap = 0; swap < 2; swap++) {
        found[0] = before[0];
        found[1] = before[1];
        if (match(g, pattern, dtype, node->a, instr->operand[swap], found) &&
            match(g, pattern, dtype, node->b, instr->operand[!swap], found))
            return true;
    }
    return false;
}

/* What is read behind r, or behind the part that ends there, is needed as well. */
static void mark(stk_fused_program_builder *b, int32_t j)
{
    const stk_fused *g = b->group;
    if (!b->is_needed[j]) return;
    const int32_t *operand = b->part[j].kind >= 0 ? b->part[j].operand : g->instr[j].operand;
    for (int i = 0; i < 3; i++)
        if (operand[i] >= g->n_in) b->is_needed[operand[i] - g->n_in] = true;
}

static bool is_grad(int32_t kind)
{
    return kind % 2 == 1;
}

/* Parts that need the same of x: a function and its gradient, which a backward pass makes together. */
static void find_shares(stk_fused_program_builder *b)
{
    for (int32_t j = 0; j < b->group->n_instr; j++)
        for (int32_t k = 0; k < j; k++) {
            stk_fused_program_part *p = &b->part[j], *q = &b->part[k];
            if (!b->is_needed[j] || !b->is_needed[k] || p->kind < 0 || q->kind < 0) continue;
            bool are_related = p->kind - is_grad(p->kind) == q->kind - is_grad(q->kind);
            if (are_related && p->operand[0] == q->operand[0]) p->shares = q->shares = true;
        }
}

stk_status stk_fused_program_find_parts(stk_fused_program_builder *b)
{
    const stk_fused *g = b->group;
    size_t n = (size_t)g->n_instr + 1;
    b->part = stk_arena_alloc(b->arena, n * sizeof(*b->part));
    b->is_needed = stk_arena_alloc(b->arena, n * sizeof(*b->is_needed));
    if (!b->part || !b->is_needed) return stk_fail_memory(n * sizeof(*b->part));
    bool has_parts = false;
    for (int32_t j = 0; j < g->n_instr; j++) {
        b->part[j].kind = -1;
        for (int kind = 0; kind < STK_N_WHOLE; kind++) {
            int32_t found[2] = {-1, -1};
            stk_dtype dtype = patterns[kind].dtype;
            if (!match(g, patterns[kind].node, dtype, patterns[kind].n - 1, g->n_in + j, found)) continue;
            b->part[j] = (stk_fused_program_part){kind, {found[0], found[1], -1}, false};
            has_parts = true;
        }
    }
    for (int32_t j = 0; j < g->n_instr; j++)
        b->is_needed[j] = !has_parts;
    for (int32_t o = 0; o < g->n_out && has_parts; o++)
        if (g->out[o] >= g->n_in) b->is_needed[g->out[o] - g->n_in] = true;
    for (int32_t j = g->n_instr - 1; j >= 0 && has_parts; j--)
        mark(b, j);
    find_shares(b);
    return STK_OK;
}

static stk_fused_instr step_of(stk_fused_program_part part, stk_whole_step step)
{
    stk_dtype dtype = patterns[part.kind].dtype;
    stk_fused_instr instr = {.op = STK_OP_fused, .dtype = dtype, .src_dtype = dtype};
    instr.kind = part.kind * STK_N_WHOLE_STEPS + (int32_t)step;
    for (int i = 0; i < 3; i++)
        instr.operand[i] = part.operand[i];
    return instr;
}

/* The register of what the parts of x have in common. */
static int32_t find_share(stk_fused_program_builder *b, int32_t kind, int32_t x)
{
    stk_fused_instr share = step_of((stk_fused_program_part){.kind = kind, .operand = {x, -1, -1}}, STK_WHOLE_SHARE);
    bool is_there = b->share[x] >= 0 && b->instr[b->share[x] - b->n_in].kind == share.kind;
    share.dtype = STK_F32;
    share.src_dtype = stk_fused_program_dtype(b, x);
    if (!is_there) b->share[x] = stk_fused_program_emit(b, share);
    return b->share[x];
}

int32_t stk_fused_program_lower_part(stk_fused_program_builder *b, stk_fused_program_part part)
{
    int n = is_grad(part.kind) ? 2 : 1;
    bool is_wide = false;
    for (int i = 0; i < n; i++)
        is_wide |= stk_fused_program_dtype(b, part.operand[i]) == STK_F32;
    stk_fused_instr instr = step_of(part, part.shares ? STK_WHOLE_REST : STK_WHOLE_ALONE);
    if (is_wide) instr.src_dtype = STK_F32;
    for (int i = 0; i < n && is_wide; i++)
        instr.operand[i] = stk_fused_program_widen(b, instr.operand[i]);
    if (part.shares) instr.operand[n] = find_share(b, part.kind - is_grad(part.kind), part.operand[0]);
    return stk_fused_program_emit(b, instr);
}
