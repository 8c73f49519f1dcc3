/* See events/json_text.h. */
#include "events/json_text.h"

#include <math.h>

#include "base/printable.h"

void stk_json_add_text(stk_text *out, const char *text)
{
    stk_text_add_bytes(out, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int n = stk_character_bytes(p);
        if (n == 0) {
            stk_text_add_bytes(out, "?", 1);
            n = 1;
        } else if (*p == '"' || *p == '\\') {
            stk_text_add(out, "\\%c", *p);
        } else if (stk_is_unprintable(p, n)) {
            stk_text_add(out, "\\u%04x", stk_character_code(p, n));
        } else {
            stk_text_add_bytes(out, p, (size_t)n);
        }
        p += n;
    }
    stk_text_add_bytes(out, "\"", 1);
}

void stk_json_add_number(stk_text *out, double x, int digits)
{
    if (isfinite(x))
        stk_text_add(out, "%.*g", digits, x);
    else
        stk_text_add(out, "null");
}
