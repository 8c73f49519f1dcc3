/* Fused groups as machine code: opt-in, beside the interpreter, with its bits.
 *
 *   emit.c       a group's lowered program -> the text of one C function
 *   codegen.c    all groups of a program -> one source text; equal groups share a function; functions -> kernels
 *   library.c    source text -> loaded code, by way of the cache folder
 *   compiler.c   finding and running the machine's C compiler
 *
 * The expressions of the elements are those that the interpreter's loops are made of (element_list.h, element_math.h),
 * built for the same instruction set without contraction of products and sums, so that results are the same to the bit.
 * Whatever fails leaves groups to the interpreter.
 */
#ifndef STK_DEVICE_CPU_CODEGEN_H
#define STK_DEVICE_CPU_CODEGEN_H

#include "device/cpu/program.h"

/* --- emit.c --- */

/* Whether the group can be written as C and is worth it: of that many elements at least. */
bool stk_code_can_emit(const stk_element_program *program, int64_t least_elements);
/* Adds the function's parameters and body: all but its name. Needs stk_code_can_emit. */
void stk_code_emit(const stk_element_program *program, stk_isa isa, stk_text *out);

/* --- codegen.c --- */

/* The device's `codegen` (device/device.h) for groups of that many elements at least. */
stk_status stk_code_make(stk_cpu_device *device, int64_t least_elements, stk_kernel *kernels, int n_kernels,
                         stk_codegen_report *report);
/* half.h and element_math.h, in front of all generated code; ends in 0. Made by the build. */
extern const char stk_code_header[];

/* --- library.c --- */

typedef struct stk_code_library {
    struct stk_code_library *next;
    void *handle; /* of dlopen */
} stk_code_library;

/* Code of that source text: from the cache, or compiled and kept there. *compile_ns: 0 where it was there. Nothing is
 * loaded that another user could have written. Two processes may do so at once. */
stk_status stk_code_open(const char *source, const char *flags, stk_code_library **out, int64_t *compile_ns);
void stk_code_close(stk_code_library *libraries); /* all of the list; accepts NULL */

/* --- compiler.c --- */

enum { STK_COMPILER_WORDS = 16 };
typedef struct stk_compiler {
    char text[512]; /* the words of the command */
    char *word[STK_COMPILER_WORDS + 1];
    int n_words;
    stk_text version; /* what it says about itself */
} stk_compiler;

/* $CC, else cc, gcc or clang, whichever runs. STK_NOT_FOUND says what to do. */
stk_status stk_compiler_find(stk_compiler *out);
/* Makes a shared object of a C file. flags: words between single spaces. */
stk_status stk_compiler_run(const stk_compiler *compiler, const char *flags, const char *source, const char *object);
void stk_compiler_free(stk_compiler *compiler);

#endif
