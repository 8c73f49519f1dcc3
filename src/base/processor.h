/* What Linux says of the processor in /proc/cpuinfo, which each architecture writes in its own way.
 *
 * Threads: any number at once.
 */
#ifndef STK_BASE_PROCESSOR_H
#define STK_BASE_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

enum { STK_PROCESSOR_NAME = 128 };

/* The name in a cpuinfo's text, cut to `size` bytes with its end; false, and an empty name: it has none.
 *
 *   x86      its "model name"
 *   ARM      "CPU implementer" and "CPU part", the fields of MIDR_EL1 (Arm ARM, D17.2.100), by their name where it is
 *            known, else as two numbers
 *   RISC-V   "uarch", else "isa"
 */
bool stk_processor_name_in(const char *cpuinfo, char *out, size_t size);

/* The same of this machine. */
bool stk_processor_name(char *out, size_t size);

/* Whether a word stands among the processor's features ("flags", "Features" or "isa") in a cpuinfo's text. */
bool stk_processor_has_in(const char *cpuinfo, const char *feature);

#endif
