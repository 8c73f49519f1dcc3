/* Secrets in addresses: http://USER:SECRET@HOST/PATH, a token in place of the user, and what a query gives to names
 * like token, key or X-Amz-Signature. Whatever is written or shown has STK_HIDDEN in their place. The public side is
 * stk_hide_secrets in stoker/printable.h. Threads: any.
 */
#ifndef STK_BASE_SECRET_H
#define STK_BASE_SECRET_H

#include "base/text.h"
#include "stoker/printable.h"

#define STK_HIDDEN "***"

/* Appends text, with `secret` in the place of each secret of its addresses; STK_HIDDEN hides them. With only_hidden
 * those that are hidden already are replaced, and no others. Returns how many were. */
int stk_text_add_secrets(stk_text *out, const char *text, const char *secret, bool only_hidden);

#endif
