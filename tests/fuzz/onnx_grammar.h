/* Random ONNX models that mostly can be read: ops of src/onnx/table.c in a row, each with inputs, weights and
 * attributes that fit what is there, and now and then with some that do not. Threads: one at a time.
 */
#ifndef STK_TESTS_FUZZ_ONNX_GRAMMAR_H
#define STK_TESTS_FUZZ_ONNX_GRAMMAR_H

#include "base/arena.h"
#include "base/file.h"
#include "fuzz/draw.h"

/* The model's bytes, in the arena. */
stk_span fuzz_make_onnx(stk_arena *arena, fuzz_draw *draw);

#endif
