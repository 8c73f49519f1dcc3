/* One fused group as C: a loop over the rows of the iteration space (its last axis), and in it one over the elements,
 * which the compiler makes vectors of.
 *
 *   (void *const *in, void *const *out, int64_t begin, int64_t end, draw_fn draw, const void *context)
 *   {
 *       while (begin < end) {
 *           const int64_t row = begin / 768, ...
 *           const float *p0 = (const float *)in[0] + begin;          read where it is
 *           const float *p1 = (const float *)in[1] + begin % 768;    broadcast along the rows
 *           #pragma omp simd
 *           for (int64_t i = 0; i < n; i++) {
 *               float r0 = p0[i], ...                                registers, as the program numbers them
 *               float r2; { const float a = r0, b = r1; r2 = (float)(a + b); }
 *               q0[i] = r2;
 *           }
 *           begin += n;
 *       }
 *   }
 *
 * Where the group ends in a reduction, the function makes a band of it at a time (program_reduce.h), and what is
 * reduced may lie in a buffer of one band.
 *
 * A bf16 number is a float that bf16 has: rounding is arithmetic on 32 bits, and only loads and stores are of 16. All
 * elements are read before one is written, so that outputs may lie where inputs do, as in the interpreter.
 */
#include <inttypes.h>
#include <math.h>

#include "device/cpu/codegen/codegen.h"
#include "device/cpu/element_list.h"
#include "graph/dropout.h"

/* Rows below that are not worth a loop of their own: the interpreter lays several side by side. */
enum { LEAST_ROW = 32 };

#define TEXT_OF(...)                            #__VA_ARGS__
#define TEXT(...)                               TEXT_OF(__VA_ARGS__)
#define UNARY(name, suffix, T, D, expression)   [STK_UNARY_##name][STK_SUFFIX_##suffix] = TEXT(expression),
#define BINARY(name, suffix, T, D, expression)  [STK_BINARY_##name][STK_SUFFIX_##suffix] = TEXT(expression),
#define COMPARE(name, suffix, T, D, expression) [STK_COMPARE_##name][STK_SUFFIX_##suffix] = TEXT(expression),
#define CAST(from, to, T, D, expression)        [STK_SUFFIX_##from][STK_SUFFIX_##to] = TEXT(expression),

static const char *const unary_text[STK_N_UNARY][STK_N_DTYPES] = {STK_ELEMENT_UNARY(UNARY)};
static const char *const binary_text[STK_N_BINARY][STK_N_DTYPES] = {STK_ELEMENT_BINARY(BINARY)};
static const char *const compare_text[STK_N_COMPARE][STK_N_DTYPES] = {STK_ELEMENT_COMPARE(COMPARE)};
static const char *const cast_text[STK_N_DTYPES][STK_N_DTYPES] = {STK_ELEMENT_CAST(CAST)};

/* f16 is left to the interpreter: on a CPU it is slow in any case. */
static bool is_known(stk_dtype dtype)
{
    return dtype != STK_F16;
}

static const char *memory_type(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F32: return "float";
    case STK_F64: return "double";
    case STK_BF16: return "uint16_t";
    case STK_I64: return "int64_t";
    case STK_I32: return "int32_t";
    case STK_I8: return "int8_t";
    default: return "uint8_t"; /* u8, bool */
    }
}

static const char *register_type(stk_dtype dtype)
{
    return dtype == STK_BF16 ? "float" : memory_type(dtype);
}

static stk_dtype dtype_of(const stk_element_program *p, int32_t r)
{
    return r < p->n_in ? p->in_dtype[r] : p->lowered[r - p->n_in].dtype;
}

/* bool lies in memory as u8 does. */
static stk_dtype stored(stk_dtype dtype)
{
    return dtype == STK_BOOL ? STK_U8 : dtype;
}

/* In terms of a and b; NULL: there is none. */
static const char *expression(const stk_fused_instr *instr)
{
    switch (instr->op) {
    case STK_OP_unary: return unary_text[instr->kind][instr->dtype];
    case STK_OP_binary: return binary_text[instr->kind][instr->dtype];
    case STK_OP_compare: return compare_text[instr->kind][stored(instr->src_dtype)];
    case STK_OP_cast:
        if (instr->dtype == STK_BF16) return instr->src_dtype == STK_F32 ? "bf16_round(a)" : NULL;
        if (instr->src_dtype == STK_BF16) return instr->dtype == STK_F32 ? "a" : NULL;
        return cast_text[stored(instr->src_dtype)][instr->dtype];
    default: return NULL;
    }
}

static bool can_emit_instr(const stk_fused_instr *instr)
{
    if (!is_known(instr->dtype)) return false;
    if (instr->op == STK_OP_constant) return instr->dtype != STK_F64 || isfinite(instr->value);
    if (instr->op == STK_OP_dropout) return instr->dtype == STK_F32;
    return instr->op == STK_OP_select || expression(instr);
}

bool stk_code_can_emit(const stk_element_program *p, int64_t least_elements)
{
    int n_computed = 0;
    if (p->count < least_elements || (p->rank > 1 && p->dim[p->rank - 1] < LEAST_ROW)) return false;
    for (int32_t i = 0; i < p->n_in; i++) {
        if (p->input[i].load == STK_LOAD_NONE) continue;
        int64_t stride = p->input[i].stride[p->rank - 1];
        if (!is_known(p->in_dtype[i]) || (p->count > 1 && stride != 0 && stride != 1)) return false;
    }
    for (int32_t j = 0; j < p->n_lowered; j++) {
        if (!can_emit_instr(&p->lowered[j])) return false;
        n_computed += p->lowered[j].op != STK_OP_constant;
    }
    return n_computed > 1;
}

/* --- writing --- */

/* Where the row's digits along the axes but the last stand: k0, k1, ... */
static void emit_digits(const stk_element_program *p, stk_text *out)
{
    int64_t below = 1;
    for (int axis = p->rank - 2; axis >= 0; axis--) {
        stk_text_add(out, "        const int64_t k%d = row / %" PRId64, axis, below);
        if (axis > 0) stk_text_add(out, " %% %" PRId64, p->dim[axis]);
        stk_text_add(out, ";\n");
        below *= p->dim[axis];
    }
}

static void emit_input(const stk_element_program *p, int32_t i, stk_text *out)
{
    const stk_program_input *input = &p->input[i];
    const char *type = memory_type(p->in_dtype[i]);
    if (input->load == STK_LOAD_NONE) return;
    stk_text_add(out, "        const %s *p%d = (const %s *)in[%d]", type, (int)i, type, (int)i);
    if (input->load == STK_LOAD_DENSE) {
        stk_text_add(out, " + begin;\n");
        return;
    }
    for (int axis = 0; axis < p->rank - 1; axis++)
        if (input->stride[axis]) stk_text_add(out, " + k%d * %" PRId64, axis, input->stride[axis]);
    stk_text_add(out, input->stride[p->rank - 1] ? " + begin %% %" PRId64 ";\n" : ";\n", p->dim[p->rank - 1]);
}

static bool is_constant_along_row(const stk_element_program *p, int32_t i)
{
    return p->input[i].load != STK_LOAD_DENSE && p->input[i].stride[p->rank - 1] == 0;
}

static void emit_load(const stk_element_program *p, int32_t i, stk_text *out)
{
    stk_dtype dtype = p->in_dtype[i];
    stk_text_add(out, "const %s r%d = %sp%d[%s]%s;\n", register_type(dtype), (int)i,
                 dtype == STK_BF16 ? "bf16_to_f32(" : "", (int)i, is_constant_along_row(p, i) ? "0" : "i",
                 dtype == STK_BF16 ? ")" : "");
}

static void emit_loads(const stk_element_program *p, bool along_row, const char *indent, stk_text *out)
{
    for (int32_t i = 0; i < p->n_in; i++) {
        if (p->input[i].load == STK_LOAD_NONE || is_constant_along_row(p, i) != along_row) continue;
        stk_text_add(out, "%s", indent);
        emit_load(p, i, out);
    }
}

static void emit_constant(const stk_fused_instr *instr, int r, stk_isa isa, stk_text *out)
{
    stk_dtype dtype = instr->dtype;
    uint64_t bits = stk_element_bits(isa, dtype, instr->value);
    stk_text_add(out, "    const %s r%d = ", register_type(dtype), r);
    if (dtype == STK_F64)
        stk_text_add(out, "%a", instr->value);
    else if (dtype == STK_F32 || dtype == STK_BF16)
        stk_text_add(out, "float_of((int32_t)0x%08xu)", (unsigned)(dtype == STK_BF16 ? bits << 16 : bits));
    else
        stk_text_add(out, "(%s)0x%" PRIx64 "u", memory_type(dtype), bits);
    stk_text_add(out, "; /* %g */\n", instr->value);
}

static void emit_instr(const stk_element_program *p, int32_t j, int i_dropout, stk_isa isa, stk_text *out)
{
    const stk_fused_instr *instr = &p->lowered[j];
    const int32_t *from = instr->operand;
    int r = (int)(p->n_in + j);
    const char *type = register_type(instr->dtype);
    if (instr->op == STK_OP_select) {
        stk_text_add(out, "            const %s r%d = r%d ? r%d : r%d;\n", type, r, (int)from[0], (int)from[1],
                     (int)from[2]);
        return;
    }
    if (instr->op == STK_OP_dropout) {
        stk_text_add(out, "            const float r%d = d%d[i] >= %d ? r%d * float_of(0x%08x) : 0;\n", r, i_dropout,
                     (int)stk_dropout_limit(instr->value), (int)from[0],
                     (unsigned)stk_element_bits(isa, STK_F32, 1 / (1 - instr->value)));
        return;
    }
    const char *operand = register_type(dtype_of(p, from[0]));
    stk_text_add(out, "            %s r%d; { const %s a = r%d", type, r, operand, (int)from[0]);
    if (from[1] >= 0) stk_text_add(out, ", b = r%d", (int)from[1]);
    stk_text_add(out, "; r%d = (%s)(%s); }\n", r, type, expression(instr));
}

static void emit_store(const stk_element_program *p, int o, stk_text *out)
{
    int r = (int)p->out_register[o];
    bool is_bf16 = dtype_of(p, r) == STK_BF16;
    stk_text_add(out,
                 is_bf16 ? "            q%d[i] = (uint16_t)((uint32_t)bits_of(r%d) >> 16);\n"
                         : "            q%d[i] = r%d;\n",
                 o, r);
}

/* The random bits of a piece are drawn ahead of the loop over it. */
static void emit_draws(const stk_element_program *p, stk_text *out)
{
    int n_dropouts = 0;
    for (int32_t j = 0; j < p->n_lowered; j++)
        if (p->lowered[j].op == STK_OP_dropout) {
            stk_text_add(out, "        int32_t d%d[%d];\n        draw(context, %d, begin, (int)n, d%d);\n", n_dropouts,
                         STK_DRAW_PIECE, n_dropouts, n_dropouts);
            n_dropouts++;
        }
}

static void emit_elements(const stk_element_program *p, stk_isa isa, stk_text *out)
{
    int n_dropouts = 0;
    stk_text_add(out, "#pragma omp simd\n        for (int64_t i = 0; i < n; i++) {\n");
    emit_loads(p, false, "            ", out);
    for (int32_t j = 0; j < p->n_lowered; j++) {
        if (p->lowered[j].op == STK_OP_constant) continue;
        emit_instr(p, j, n_dropouts, isa, out);
        n_dropouts += p->lowered[j].op == STK_OP_dropout;
    }
    for (int o = 0; o < p->n_out; o++)
        emit_store(p, o, out);
    stk_text_add(out, "        }\n");
}

void stk_code_emit(const stk_element_program *p, stk_isa isa, stk_text *out)
{
    int64_t columns = p->dim[p->rank - 1];
    bool drops = false;
    stk_text_add(out, "(void *const *in, void *const *out, int64_t begin, int64_t end, draw_fn draw, "
                      "const void *context)\n{\n    (void)draw;\n    (void)context;\n");
    if (p->band_output >= 0) stk_text_add(out, "    const int64_t first = begin;\n");
    for (int32_t j = 0; j < p->n_lowered; j++) {
        if (p->lowered[j].op == STK_OP_constant) emit_constant(&p->lowered[j], (int)(p->n_in + j), isa, out);
        drops |= p->lowered[j].op == STK_OP_dropout;
    }
    stk_text_add(out,
                 "    while (begin < end) {\n        const int64_t row = begin / %" PRId64
                 ", row_end = (row + 1) * %" PRId64 ";\n        int64_t n = (row_end < end ? row_end : end) - begin;\n",
                 columns, columns);
    if (drops) stk_text_add(out, "        n = n < %d ? n : %d;\n", STK_DRAW_PIECE, STK_DRAW_PIECE);
    emit_digits(p, out);
    for (int32_t i = 0; i < p->n_in; i++)
        emit_input(p, i, out);
    for (int o = 0; o < p->n_out; o++) {
        const char *type = memory_type(dtype_of(p, p->out_register[o]));
        stk_text_add(out, "        %s *q%d = (%s *)out[%d] + begin%s;\n", type, o, type, o,
                     o == p->band_output ? " - first" : "");
    }
    emit_loads(p, true, "        ", out);
    emit_draws(p, out);
    emit_elements(p, isa, out);
    stk_text_add(out, "        begin += n;\n    }\n}\n\n");
}
