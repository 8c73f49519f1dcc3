#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "stoker/status.h"

enum { TEXT_BYTES = 1024 };
static _Thread_local char error_text[TEXT_BYTES];

const char *stk_status_text(stk_status status)
{
    static const char *const texts[] = {
#define X(name, text) text,
        STK_STATUS_LIST(X)
#undef X
    };
    return (unsigned)status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : "unknown status";
}

const char *stk_error_text(void)
{
    return error_text;
}

/* An error's text may name what others have chosen, and addresses with secrets. */
static void settle(const char *text)
{
    char hidden[TEXT_BYTES];
    stk_printable_lines(stk_hide_secrets(text, hidden, sizeof(hidden)), error_text, sizeof(error_text));
}

stk_status stk_fail(stk_status status, const char *format, ...)
{
    char text[TEXT_BYTES]; /* The arguments may point into the old text. */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    settle(text);
    return status;
}

stk_status stk_fail_prefix(stk_status status, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0) return status;
    size_t used = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    size_t rest = strlen(error_text);
    if (rest > sizeof(text) - 1 - used) rest = sizeof(text) - 1 - used;
    memcpy(text + used, error_text, rest);
    text[used + rest] = 0;
    settle(text);
    return status;
}

void stk_error_clear(void)
{
    error_text[0] = 0;
}

stk_status stk_fail_user(stk_status status, const char *who)
{
    if ((int)status < STK_OK || status > STK_INTERNAL)
        return stk_fail(STK_INTERNAL, "%s returned %d, which is no status", who, (int)status);
    return error_text[0] ? status : stk_fail(status, "%s failed: %s", who, stk_status_text(status));
}

stk_status stk_fail_memory(size_t bytes)
{
    return stk_fail(STK_NO_MEMORY, "cannot allocate %zu bytes of memory", bytes);
}

const char *stk_errno_text(int error)
{
    static _Thread_local char text[128];
    char local[128];
    const char *source = strerror_r(error, local, sizeof(local));
    snprintf(text, sizeof(text), "%s", source);
    if (isupper((unsigned char)text[0]) && islower((unsigned char)text[1])) text[0] = (char)tolower(text[0]);
    return text;
}

const char *stk_version(void)
{
    return STK_VERSION;
}
