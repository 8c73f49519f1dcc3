/* What pages of the doctor are made of: texts of others, a head, verdicts, curves. Threads: any. */
#ifndef STK_WATCH_PAGE_H
#define STK_WATCH_PAGE_H

#include "watch/report.h"

/* A text that others have chosen, so that it is a text and no markup. */
void stk_watch_page_text(stk_text *out, const char *text);
/* All before the first <h1>. */
void stk_watch_page_begin(stk_text *out);
/* A verdict as a section; ill ones are marked. */
void stk_watch_page_verdict(const stk_watch_report *report, int i_verdict, stk_text *out);
/* Curves of n reports over the time since each was begun; [n] later_s seconds are added to it, NULL: none. Several are
 * told apart by colour, in turn; the part that was judged is tinted where there is one alone. What no report knows has
 * no curve. */
void stk_watch_page_curves(const stk_watch_report *const *report, const double *later_s, int n, stk_text *out);

enum { STK_WATCH_PAGE_COLOURS = 8 };

#endif
