/* The names of instruction sets, and how far the environment's STOKER_ISA lets the library go. What a processor has to
 * have for each is the business of whoever brings kernels for it: those of the data plane want more than the cpu
 * device's. Threads: any, as long as none changes the environment.
 */
#ifndef STK_BASE_ISA_H
#define STK_BASE_ISA_H

#include <stdbool.h>

typedef enum stk_isa { STK_ISA_BASELINE, STK_ISA_AVX2, STK_ISA_AVX512, STK_N_ISAS } stk_isa;

/* "avx2" */
const char *stk_isa_name(stk_isa isa);
/* The one of that name; false where there is none, and *out stays. */
bool stk_isa_find(const char *name, stk_isa *out);
/* The most that STOKER_ISA allows: all where it is not set, or to something else. */
stk_isa stk_isa_allowed(void);

#endif
