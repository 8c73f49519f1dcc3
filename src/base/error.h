/* Raising and passing on errors. The public side is stoker/status.h, with stk_fail. */
#ifndef STK_BASE_ERROR_H
#define STK_BASE_ERROR_H

#include <stddef.h>

#include "stoker/status.h"

/* Makes the text of a status that a function of the user's gave: what the function set after stk_error_clear, or else
 * "WHO failed: corrupt data". A number that is no status becomes STK_INTERNAL. */
void stk_error_clear(void);
stk_status stk_fail_user(stk_status status, const char *who);

/* Puts words before the present text: "record 7 of 'x.gz': " + text. Returns status. */
stk_status stk_fail_prefix(stk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* stk_fail for a failed allocation of bytes. */
stk_status stk_fail_memory(size_t bytes);

/* The text of errno in plain words, lower-case: "no such file or directory". Borrowed until this thread's next call. */
const char *stk_errno_text(int error);

/* In a function with `stk_status status` and a label `done:` */
#define STK_TRY(expression)                                                                                            \
    do {                                                                                                               \
        status = (expression);                                                                                         \
        if (status != STK_OK) goto done;                                                                               \
    } while (0)

/* At the head of a function of the interface: what its caller must give. */
#define STK_NEED(pointer)                                                                                              \
    do {                                                                                                               \
        if (!(pointer)) return stk_fail(STK_INVALID, "'%s' is missing", #pointer);                                     \
    } while (0)

/* In a function with nothing to release. */
#define STK_RETURN_IF_ERROR(expression)                                                                                \
    do {                                                                                                               \
        stk_status status_of_expression_ = (expression);                                                               \
        if (status_of_expression_ != STK_OK) return status_of_expression_;                                             \
    } while (0)

#endif
