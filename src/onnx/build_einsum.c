/* Einsum: operands are brought to distinct letters, and joined one after the other by a product of matrices over the
 * letters that nothing behind needs.
 */
#include <string.h>

#include "onnx/build_list.h"

enum { MOST_OPERANDS = 16, ELLIPSIS = 64 }; /* letters from ELLIPSIS on stand for the axes of "...", from the last */

typedef struct operand {
    stk_value x;
    uint8_t letter[STK_MAX_RANK]; /* of each axis */
    int rank;
} operand;

typedef struct equation {
    operand operand[MOST_OPERANDS], out;
    int n;
} equation;

/* --- the text --- */

static int letter_of(char c)
{
    if (c >= 'a' && c <= 'z') return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* Letters of one term, up to a comma, an arrow or the end; n_dots axes stand for "...". */
static stk_status read_term(const char **at, operand *out, int n_dots)
{
    const char *p = *at;
    out->rank = 0;
    for (; *p && *p != ',' && strncmp(p, "->", 2); p++) {
        bool dots = !strncmp(p, "...", 3);
        if (*p == ' ') continue;
        if (!dots && letter_of(*p) < 0) return stk_fail(STK_INVALID, "its equation has '%c' in it", *p);
        if (out->rank + (dots ? n_dots : 1) > STK_MAX_RANK)
            return stk_fail(STK_UNSUPPORTED, "a term of its equation has more than %d axes", STK_MAX_RANK);
        for (int i = 0; dots && i < n_dots; i++)
            out->letter[out->rank++] = (uint8_t)(ELLIPSIS + n_dots - 1 - i);
        if (!dots) out->letter[out->rank++] = (uint8_t)letter_of(*p);
        if (dots) p += 2;
    }
    *at = p;
    return STK_OK;
}

static int count_letters(const char *at)
{
    int n = 0;
    for (; *at && *at != ',' && strncmp(at, "->", 2); at++)
        n += letter_of(*at) >= 0;
    return n;
}

static bool has_dots(const char *at)
{
    for (; *at && *at != ',' && strncmp(at, "->", 2); at++)
        if (!strncmp(at, "...", 3)) return true;
    return false;
}

static bool has_letter(const operand *o, int letter)
{
    return memchr(o->letter, letter, (size_t)o->rank) != NULL;
}

/* Without an arrow: "..." first, then letters that stand once, in the order of the alphabet, capitals first. */
static void imply_output(equation *e, int most_dots)
{
    e->out.rank = 0;
    for (int i = most_dots - 1; i >= 0 && e->out.rank < STK_MAX_RANK; i--)
        e->out.letter[e->out.rank++] = (uint8_t)(ELLIPSIS + i);
    for (int i = 0; i < 52; i++) {
        int letter = (i + 26) % 52, n = 0;
        for (int k = 0; k < e->n; k++)
            for (int d = 0; d < e->operand[k].rank; d++)
                n += e->operand[k].letter[d] == letter;
        if (n == 1 && e->out.rank < STK_MAX_RANK) e->out.letter[e->out.rank++] = (uint8_t)letter;
    }
}

static stk_status read_equation(stk_build *b, const char *text, equation *e)
{
    int most_dots = 0;
    e->n = stk_onnx_n_inputs(b);
    if (e->n < 1 || e->n > MOST_OPERANDS) return stk_fail(STK_UNSUPPORTED, "it has %d inputs", e->n);
    for (int i = 0; i < e->n; i++) {
        operand *o = &e->operand[i];
        o->x = stk_onnx_input(b, i);
        STK_RETURN_IF_ERROR(stk_graph_status(b->model->graph));
        int rank = stk_value_shape(o->x).rank, n_dots = rank - count_letters(text);
        if (n_dots < 0 || (n_dots > 0 && !has_dots(text)))
            return stk_fail(STK_INVALID, "its equation does not fit its input %d of %d dimensions", i, rank);
        if (n_dots > most_dots) most_dots = n_dots;
        STK_RETURN_IF_ERROR(read_term(&text, o, n_dots));
        if (i + 1 < e->n && *text++ != ',')
            return stk_fail(STK_INVALID, "its equation has %d terms for %d inputs", i + 1, e->n);
    }
    while (*text == ' ')
        text++;
    if (!*text) {
        imply_output(e, most_dots);
        return STK_OK;
    }
    if (strncmp(text, "->", 2)) return stk_fail(STK_INVALID, "its equation has more terms than it has inputs");
    text += 2;
    STK_RETURN_IF_ERROR(read_term(&text, &e->out, most_dots));
    if (*text) return stk_fail(STK_INVALID, "its equation goes on behind its output");
    for (int d = 0; d < e->out.rank; d++) {
        bool known = false;
        for (int i = 0; i < e->n; i++)
            known |= has_letter(&e->operand[i], e->out.letter[d]);
        if (!known || memchr(e->out.letter, e->out.letter[d], (size_t)d))
            return stk_fail(STK_INVALID, "its output has a letter twice, or one that no input has");
    }
    return STK_OK;
}

/* --- operands --- */

static void remove_axis(operand *o, int axis)
{
    o->rank--;
    memmove(o->letter + axis, o->letter + axis + 1, (size_t)(o->rank - axis));
}

/* The diagonal of axes i and k. */
static stk_status take_diagonal(stk_build *b, operand *o, int i, int k)
{
    stk_shape shape = stk_value_shape(o->x), to = shape;
    int64_t n = shape.dim[i];
    int32_t order[STK_MAX_RANK], n_order = 0, *ids;
    if (n != shape.dim[k] || n < 0)
        return stk_fail(STK_INVALID, "a letter stands for axes of %lld and of %lld", (long long)n,
                        (long long)shape.dim[k]);
    for (int d = 0; d < shape.rank; d++)
        if (d != i && d != k) order[n_order++] = d;
    order[n_order++] = i;
    order[n_order++] = k;
    for (int d = 0; d < shape.rank; d++)
        to.dim[d] = shape.dim[order[d]];
    to.rank = shape.rank - 1;
    to.dim[to.rank - 1] = n * n;
    STK_RETURN_IF_ERROR(stk_onnx_new_ids(b, n, &ids));
    for (int64_t d = 0; d < n; d++)
        ids[d] = (int32_t)(d * (n + 1));
    o->x = stk_gather(stk_reshape(stk_transpose(o->x, order), to), stk_onnx_index_value(b, ids, n), to.rank - 1);
    uint8_t letter = o->letter[i];
    remove_axis(o, k);
    remove_axis(o, i);
    o->letter[o->rank++] = letter;
    return stk_graph_status(o->x.graph);
}

/* Whether anything but operand i itself has the letter: operands behind it, or the output. */
static bool is_needed(const equation *e, int first, int letter)
{
    for (int i = first; i < e->n; i++)
        if (has_letter(&e->operand[i], letter)) return true;
    return has_letter(&e->out, letter);
}

/* Each letter once; those that nothing else has are summed up. */
static stk_status settle(stk_build *b, const equation *e, operand *o, bool is_joined, int first)
{
    uint32_t axes = 0;
    for (int i = 0; i < o->rank; i++)
        for (int k = i + 1; k < o->rank; k++) {
            if (o->letter[i] != o->letter[k]) continue;
            STK_RETURN_IF_ERROR(take_diagonal(b, o, i, k));
            i = -1;
            break;
        }
    for (int d = o->rank - 1; d >= 0; d--) {
        if (is_needed(e, first, o->letter[d]) || (is_joined && has_letter(&e->operand[0], o->letter[d]))) continue;
        axes |= 1u << d;
    }
    if (axes) o->x = stk_reduce_sum(o->x, axes);
    for (int d = o->rank - 1; d >= 0; d--)
        if (axes >> d & 1) remove_axis(o, d);
    return stk_graph_status(o->x.graph);
}

static int64_t size_of(const operand *o, int letter)
{
    const uint8_t *at = memchr(o->letter, letter, (size_t)o->rank);
    return at ? stk_value_shape(o->x).dim[at - o->letter] : 1;
}

/* The operand's axes in that order of letters, those that it lacks of size 1. */
static void arrange(operand *o, const uint8_t *letters, int n)
{
    int32_t order[STK_MAX_RANK], n_order = 0;
    stk_shape to = {.rank = n};
    for (int i = 0; i < n; i++) {
        const uint8_t *at = memchr(o->letter, letters[i], (size_t)o->rank);
        to.dim[i] = size_of(o, letters[i]);
        if (at) order[n_order++] = (int32_t)(at - o->letter);
    }
    bool moves = false;
    for (int i = 0; i < n_order; i++)
        moves |= order[i] != i;
    if (moves) o->x = stk_transpose(o->x, order);
    o->x = stk_reshape(o->x, to);
    memcpy(o->letter, letters, (size_t)n);
    o->rank = n;
}

/* One axis of letters that one side has with 1 and the other with more, as "..." allows: the larger one. */
static void match_sizes(operand *o, const operand *other)
{
    stk_shape shape = stk_value_shape(o->x), to = shape;
    for (int d = 0; d < o->rank; d++)
        if (shape.dim[d] == 1 && has_letter(other, o->letter[d])) to.dim[d] = size_of(other, o->letter[d]);
    if (!stk_shape_equal(shape, to)) o->x = stk_broadcast(o->x, to);
}

/* a becomes the product of both. Letters of both that are needed later are batches; others of both are summed over. */
static stk_status join(const equation *e, operand *a, operand *o, int next)
{
    uint8_t batch[STK_MAX_RANK], left[STK_MAX_RANK], right[STK_MAX_RANK], sum[STK_MAX_RANK], order[3 * STK_MAX_RANK];
    int n_batch = 0, n_left = 0, n_right = 0, n_sum = 0, n = 0;
    match_sizes(a, o);
    match_sizes(o, a);
    for (int d = 0; d < a->rank; d++) {
        uint8_t letter = a->letter[d];
        bool needed = is_needed(e, next, letter);
        if (!has_letter(o, letter))
            left[n_left++] = letter;
        else if (needed)
            batch[n_batch++] = letter;
        else
            sum[n_sum++] = letter;
    }
    for (int d = 0; d < o->rank; d++)
        if (!has_letter(a, o->letter[d])) right[n_right++] = o->letter[d];
    if (n_batch + n_left + n_right > STK_MAX_RANK || n_batch + n_left + n_sum > STK_MAX_RANK)
        return stk_fail(STK_UNSUPPORTED, "a product of its inputs has more than %d axes", STK_MAX_RANK);
    int64_t rows = 1, columns = 1, length = 1, batches = 1;
    stk_shape to = {.rank = 0};
    for (int i = 0; i < n_batch; i++) {
        to.dim[to.rank++] = size_of(a, batch[i]);
        batches *= size_of(a, batch[i]);
    }
    for (int i = 0; i < n_left; i++) {
        to.dim[to.rank++] = size_of(a, left[i]);
        rows *= size_of(a, left[i]);
    }
    for (int i = 0; i < n_right; i++) {
        to.dim[to.rank++] = size_of(o, right[i]);
        columns *= size_of(o, right[i]);
    }
    for (int i = 0; i < n_sum; i++)
        length *= size_of(a, sum[i]);
#define ADD(list, n_list) (memcpy(order + n, list, (size_t)(n_list)), n += (n_list))
    ADD(batch, n_batch);
    ADD(left, n_left);
    ADD(sum, n_sum);
    arrange(a, order, n);
    n = 0;
    ADD(batch, n_batch);
    ADD(sum, n_sum);
    ADD(right, n_right);
    arrange(o, order, n);
    stk_value x = stk_reshape(a->x, STK_SHAPE(batches, rows, length));
    stk_value y = stk_reshape(o->x, STK_SHAPE(batches, length, columns));
    x = n_sum ? stk_matmul(x, y, false, false) : stk_mul(x, y);
    n = 0;
    ADD(batch, n_batch);
    ADD(left, n_left);
    ADD(right, n_right);
#undef ADD
    a->x = stk_reshape(x, to);
    a->rank = n;
    memcpy(a->letter, order, (size_t)n);
    return stk_graph_status(a->x.graph);
}

stk_status stk_onnx_build_Einsum(stk_build *b)
{
    const Onnx__AttributeProto *text = stk_onnx_attribute(b, "equation");
    equation e;
    if (!text || !text->s.data) return stk_fail(STK_INVALID, "it lacks the attribute 'equation'");
    char *copy = stk_arena_alloc(b->model->arena, text->s.len + 1);
    if (!copy) return stk_fail_memory(text->s.len + 1);
    memcpy(copy, text->s.data, text->s.len);
    copy[text->s.len] = 0;
    STK_RETURN_IF_ERROR(read_equation(b, copy, &e));
    for (int i = 0; i < e.n; i++)
        if (!stk_shape_known(stk_value_shape(e.operand[i].x)) && e.n > 1)
            return stk_fail(STK_UNSUPPORTED, "the size of its input %d is not known", i);
    if (e.n > 1 && !stk_dtype_is_float(stk_value_dtype(e.operand[0].x)))
        return stk_fail(STK_UNSUPPORTED, "its inputs are %s, and products of it are of floats here",
                        stk_dtype_name(stk_value_dtype(e.operand[0].x)));
    operand *a = &e.operand[0];
    STK_RETURN_IF_ERROR(settle(b, &e, a, false, 1));
    for (int i = 1; i < e.n; i++) {
        STK_RETURN_IF_ERROR(settle(b, &e, &e.operand[i], true, i + 1));
        STK_RETURN_IF_ERROR(join(&e, a, &e.operand[i], i + 1));
        STK_RETURN_IF_ERROR(settle(b, &e, a, false, i + 1));
    }
    arrange(a, e.out.letter, e.out.rank);
    return stk_onnx_output(b, 0, a->x);
}
