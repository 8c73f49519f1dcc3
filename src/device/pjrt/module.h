/* The text of a StableHLO module, written value by value: what lowerings are made of.
 *
 * A value is a number, of which the text is "%12", with its type. Each function adds one operation and gives its
 * result. What cannot be written (no memory, a refusal) is kept in the module as its first failure, and what follows
 * adds nothing that counts: only the end is asked. StableHLO's specification: openxla.org/stablehlo/spec.
 * Threads: one at a time.
 */
#ifndef STK_DEVICE_PJRT_MODULE_H
#define STK_DEVICE_PJRT_MODULE_H

#include "base/text.h"
#include "graph/op.h"

typedef struct pjrt_value {
    int32_t id;
    stk_tensor_desc desc;
} pjrt_value;

/* Ids that must be in [0, limit): the module tells the largest that was not. */
typedef struct pjrt_check {
    int64_t limit;
    stk_op op;
} pjrt_check;

enum { PJRT_NO_BAD_ID = INT32_MIN };

typedef struct pjrt_module {
    stk_text body;
    int32_t n_values;
    stk_op op; /* whose lowering writes */
    pjrt_check *check;
    pjrt_value *found; /* [n_checks]: i32 [1], the largest bad id, or PJRT_NO_BAD_ID */
    int n_checks;
    stk_status status;
} pjrt_module;

void pjrt_module_free(pjrt_module *m);

/* "tensor<2x3xf32>". Returns out. */
enum { PJRT_TYPE_TEXT = 224 };
const char *pjrt_type_text(stk_tensor_desc desc, char out[PJRT_TYPE_TEXT]);
/* A new number for a value of that type, which the caller defines. */
pjrt_value pjrt_new_value(pjrt_module *m, stk_tensor_desc desc);
/* "[1, 2, 3]" of n numbers. Returns out. */
enum { PJRT_LIST_TEXT = 256 };
const char *pjrt_list_text(const int64_t *x, int n, char out[PJRT_LIST_TEXT]);

/* All elements are that number. Infinities are right for floats alone. */
pjrt_value pjrt_constant(pjrt_module *m, stk_tensor_desc desc, double x);
pjrt_value pjrt_integer(pjrt_module *m, stk_tensor_desc desc, int64_t x);
/* An operation of StableHLO's by name, all types equal: "add", "exponential". */
pjrt_value pjrt_unary(pjrt_module *m, const char *name, pjrt_value x);
pjrt_value pjrt_binary(pjrt_module *m, const char *name, pjrt_value a, pjrt_value b);
/* direction: "EQ", "NE", "LT", "LE", "GT", "GE". */
pjrt_value pjrt_compare(pjrt_module *m, const char *direction, pjrt_value a, pjrt_value b);
pjrt_value pjrt_select(pjrt_module *m, pjrt_value condition, pjrt_value a, pjrt_value b);
/* As XLA converts, or nothing where the dtype is that already. */
pjrt_value pjrt_convert(pjrt_module *m, pjrt_value x, stk_dtype dtype);
pjrt_value pjrt_reshape(pjrt_module *m, pjrt_value x, stk_shape shape);
/* Axis i of x becomes axis axes[i] of the result. */
pjrt_value pjrt_broadcast(pjrt_module *m, pjrt_value x, const int64_t *axes, stk_shape shape);
pjrt_value pjrt_transpose(pjrt_module *m, pjrt_value x, const int64_t *permutation);
pjrt_value pjrt_slice(pjrt_module *m, pjrt_value x, const int64_t *start, const int64_t *stop, const int64_t *step);
/* n rows of x, which has one axis or more, from row `start` on, an integer []; from an earlier one where not as many
 * are left. */
pjrt_value pjrt_take_rows(pjrt_module *m, pjrt_value x, pjrt_value start, int64_t n);
pjrt_value pjrt_reverse(pjrt_module *m, pjrt_value x, const int64_t *axes, int n_axes);
pjrt_value pjrt_iota(pjrt_module *m, stk_tensor_desc desc, int axis);
/* Over axes, as bits, beginning with a scalar; name: the operation, "add". */
pjrt_value pjrt_reduce(pjrt_module *m, const char *name, pjrt_value x, pjrt_value init, uint32_t axes);
/* Has the module say which of ids (i32) is not in [0, limit). */
void pjrt_check_ids(pjrt_module *m, pjrt_value ids, int64_t limit);

#endif
