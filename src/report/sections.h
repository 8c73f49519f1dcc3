/* The parts of a report. Each appends HTML, or nothing where the run does not tell. */
#ifndef STK_REPORT_SECTIONS_H
#define STK_REPORT_SECTIONS_H

#include "base/text.h"
#include "report/run_data.h"

/* Of all runs together. */
stk_status stk_section_curves(stk_text *out, const stk_run_data *run, int n);
void stk_section_summary(stk_text *out, const stk_run_data *run, int n);
void stk_section_time(stk_text *out, const stk_run_data *run, int n);
/* Nothing of one run. */
stk_status stk_section_difference(stk_text *out, const stk_run_data *run, int n);
/* Of one run. */
void stk_section_confusion(stk_text *out, const stk_run_data *run);
void stk_section_input(stk_text *out, const stk_run_data *run);
void stk_section_memory(stk_text *out, const stk_run_data *run);
void stk_section_kernels(stk_text *out, const stk_run_data *run);
/* Says how to get a trace where there is none. */
stk_status stk_section_critical(stk_text *out, const stk_run_data *run);
void stk_section_machine(stk_text *out, const stk_run_data *run);

#endif
