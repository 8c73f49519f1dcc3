/* What to change next, in plain words, from a run's numbers: one table of rules. */
#ifndef STK_REPORT_ADVICE_H
#define STK_REPORT_ADVICE_H

#include "base/text.h"
#include "report/run_data.h"

/* Appends list items, the largest gain first; at least one, which may say that there is nothing. */
void stk_advice_add(stk_text *out, const stk_run_data *run);

#endif
