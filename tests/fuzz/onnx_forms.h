/* The ops of src/onnx/table.c as a grammar (onnx_grammar.h): what each takes and gives. Threads: any; constants. */
#ifndef STK_TESTS_FUZZ_ONNX_FORMS_H
#define STK_TESTS_FUZZ_ONNX_FORMS_H

/* Inputs, one letter each:
 *   x  a float value if there is one      v  any value                 y  a value or constant that broadcasts with x
 *   b  a truth for each element of x      w  weights of a convolution  t  weights of a transposed one
 *   c  a number for each channel of x     l  one for each of the last side      m  the right side of a product with x
 *   s  a float scalar     k  a whole scalar      n  indices      e  indices of x's rank      d  index vectors
 *   g  classes of [N,C,...]       A  axes      S  a shape      E  a shape to expand to      P  pads      R  repeats
 *   L  starts or ends     T  steps     Z  sizes of a split      V  two numbers
 * '?' before a letter: in half of all cases. Attributes by name, kinds in fuzz_onnx_attributes. */
typedef struct fuzz_onnx_form {
    const char *op, *inputs, *attributes;
    int n_out;
} fuzz_onnx_form;

extern const fuzz_onnx_form fuzz_onnx_forms[];
extern const int fuzz_n_onnx_forms;

/* kind: i: from .. from + n - 1; f: a number; s: one of words; a: an axis; A: axes; K: one for each side of a window;
 * P: two; p: a permutation; t: an element type. Ended by a name of NULL. */
typedef struct fuzz_onnx_attribute {
    const char *name;
    char kind;
    int from, n;
    const char *words;
} fuzz_onnx_attribute;

extern const fuzz_onnx_attribute fuzz_onnx_attributes[];

#endif
