/* Texts and numbers in JSON, appended. Bytes that are not UTF-8 become question marks. */
#ifndef STK_EVENTS_JSON_TEXT_H
#define STK_EVENTS_JSON_TEXT_H

#include "base/text.h"

/* In quotes. */
void stk_json_add_text(stk_text *out, const char *text);
/* With `digits` significant digits; null where it is not finite. */
void stk_json_add_number(stk_text *out, double x, int digits);

#endif
