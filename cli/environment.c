/* Variables of the environment that are not what they can be: the library would go on without them, and nobody know. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "cli.h"

static bool is_isa(const char *text)
{
    stk_isa isa;
    return stk_isa_find(text, &isa);
}

static bool is_choice(const char *text)
{
    return !strcmp(text, "default") || !strcmp(text, "tuned") || !strcmp(text, "measured");
}

static bool is_timeout(const char *text)
{
    char *end;
    long seconds = strtol(text, &end, 10);
    return end != text && !*end && seconds >= 1 && seconds <= 3600;
}

static bool is_size(const char *text)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || end == text || text[0] < '0' || text[0] > '9') return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (!strcmp(end, units[i])) return n << 10 * i >> 10 * i == n;
    return false;
}

bool cli_check_environment(void)
{
    static const struct {
        const char *name, *form;
        bool (*is_good)(const char *text);
    } known[] = {{"STOKER_ISA", "baseline, avx2 or avx512", is_isa},
                 {"STOKER_KERNELS", "default, tuned or measured", is_choice},
                 {"STOKER_TIMEOUT", "a whole number of seconds from 1 to 3600", is_timeout},
                 {"STOKER_CACHE_LIMIT", "bytes, or a size like 500MiB or 2TiB", is_size}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *value = getenv(known[i].name);
        if (!value || !value[0] || known[i].is_good(value)) continue;
        fprintf(stderr, "stoker: the environment's %s must be %s, not '%s'\n", known[i].name, known[i].form, value);
        return false;
    }
    return true;
}
