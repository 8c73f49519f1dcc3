/* Signals wait while oneDNN computes. Its products point the stack pointer into the heap while they run, where a
 * signal's frame would be written over other memory (oneDNN issue 4845, in all versions up to 3.11).
 */
#ifndef STK_DEVICE_CPU_ONEDNN_HOLD_SIGNALS_H
#define STK_DEVICE_CPU_ONEDNN_HOLD_SIGNALS_H

#include <signal.h>

/* Of the calling thread; before gets those that waited already. Signals of faults come as ever: the code itself causes
 * them. */
void stk_hold_signals(sigset_t *before);
void stk_let_signals_come(const sigset_t *before);

#endif
