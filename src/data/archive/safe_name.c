/* Names of members as paths that stay below a folder. See archive/archive.h. */
#include <string.h>

#include "base/error.h"
#include "data/archive/archive.h"

enum { MOST_PART = 255 };

static stk_status fail_name(const char *name, const char *why)
{
    return stk_fail(STK_CORRUPT, "its member '%.200s' %s; nothing of it is unpacked", name, why);
}

/* The part of a path from p on, without slashes. */
static stk_status check_part(const char *name, const char *p, size_t n)
{
    if (n > MOST_PART) return fail_name(name, "has too long a name");
    if (n == 2 && p[0] == '.' && p[1] == '.') return fail_name(name, "would be written outside of the folder");
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\') return fail_name(name, "has a backslash in its name");
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f) return fail_name("?", "has a control character in its name");
    }
    return STK_OK;
}

stk_status stk_archive_safe_name(const char *name, int n_strip, char out[STK_ARCHIVE_NAME])
{
    size_t n_out = 0, n_name = strlen(name);
    bool hidden = n_name > 0 && name[n_name - 1] == '/'; /* a folder */
    out[0] = 0;
    if (name[0] == '/') return fail_name(name, "would be written outside of the folder");
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "/");
        STK_RETURN_IF_ERROR(check_part(name, p, n));
        bool is_here = n == 0 || (n == 1 && p[0] == '.');
        hidden = hidden || (p[0] == '.' && !is_here) || (n == 8 && !memcmp(p, "__MACOSX", 8));
        if (!is_here && n_strip-- <= 0) {
            if (n_out + n + 2 > STK_ARCHIVE_NAME) return fail_name(name, "has too long a name");
            if (n_out) out[n_out++] = '/';
            memcpy(out + n_out, p, n);
            n_out += n;
        }
        p += n + (p[n] == '/');
    }
    out[hidden ? 0 : n_out] = 0;
    return STK_OK;
}
