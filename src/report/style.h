/* How pages look: colours that follow light and dark, tables, charts, and narrow screens. */
#ifndef STK_REPORT_STYLE_H
#define STK_REPORT_STYLE_H

/* For a <style> element; a constant. */
extern const char stk_report_style[];

#endif
