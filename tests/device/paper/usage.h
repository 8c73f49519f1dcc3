/* What a built program has to say of its kernels, out of three texts: the source for files and settings, PTX for
 * arguments, groups and instructions, and what ptxas reports for registers and memory. */
#ifndef STK_TESTS_USAGE_H
#define STK_TESTS_USAGE_H

#include "device/paper/paper.h"

/* The caller frees *out. STK_INTERNAL: a kernel is in one text and not in another. */
stk_status usage_read(const char *source, const char *ptx, const char *report, paper_kernel **out, int *n);

#endif
