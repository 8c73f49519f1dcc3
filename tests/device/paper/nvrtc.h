/* NVIDIA's run-time compiler, loaded when it is first asked for: STOKER_NVRTC names it, else it is looked for as
 * libnvrtc.so.13, .12 and libnvrtc.so. Nothing of CUDA is needed to build this. */
#ifndef STK_TESTS_NVRTC_H
#define STK_TESTS_NVRTC_H

#include "base/text.h"

/* STK_NO_DEVICE where it cannot be loaded. */
stk_status nvrtc_load(void);
/* "NVRTC 13.0"; after nvrtc_load. */
const char *nvrtc_version(void);
/* Compiles for the chip (90: sm_90). ptx: the kernels' text; usage: what ptxas says of registers and memory. An error
 * has the compiler's first one, with file and line. */
stk_status nvrtc_build(const char *source, int arch, stk_text *ptx, stk_text *usage);

#endif
