/* How pages look: colours that follow light and dark, tables, charts, and narrow screens. */
#ifndef STK_REPORT_STYLE_H
#define STK_REPORT_STYLE_H

/* For a <style> element; a constant. */
extern const char stk_report_style[];
/* For a <script> element at a page's end: chart_script.js; and its SHA-256 in base64, for the page's policy. */
extern const char stk_report_script[], stk_report_script_sum[];

#endif
