#include "base/processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Main ID register's fields, as util-linux and the makers' manuals list them. */
static const struct {
    unsigned implementer, part;
    const char *name;
} arm_parts[] = {
    {0x41, 0xd03, "ARM Cortex-A53"},
    {0x41, 0xd07, "ARM Cortex-A57"},
    {0x41, 0xd08, "ARM Cortex-A72"},
    {0x41, 0xd0b, "ARM Cortex-A76"},
    {0x41, 0xd0c, "ARM Neoverse N1"}, /* Graviton 2, Ampere Altra */
    {0x41, 0xd40, "ARM Neoverse V1"}, /* Graviton 3 */
    {0x41, 0xd41, "ARM Cortex-A78"},
    {0x41, 0xd42, "ARM Cortex-A78AE"}, /* Jetson Orin */
    {0x41, 0xd49, "ARM Neoverse N2"},
    {0x41, 0xd4f, "ARM Neoverse V2"}, /* Grace, Graviton 4 */
    {0x41, 0xd83, "ARM Neoverse V3AE"},
    {0x41, 0xd84, "ARM Neoverse V3"},
    {0x41, 0xd8e, "ARM Neoverse N3"},
    {0x46, 0x001, "Fujitsu A64FX"},
    {0x48, 0xd01, "HiSilicon Kunpeng 920"},
    {0x4e, 0x004, "NVIDIA Carmel"},
    {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1a"},
};

/* The text after the colon of the first line with this key, up to the line's end; NULL: there is none. */
static const char *find_line(const char *text, const char *key, size_t *n)
{
    size_t n_key = strlen(key);
    while (text) {
        const char *next = strchr(text, '\n'), *end = next ? next : text + strlen(text);
        const char *colon = strncmp(text, key, n_key) ? NULL : text + n_key + strspn(text + n_key, " \t");
        if (colon && *colon == ':') {
            colon += 1 + strspn(colon + 1, " \t");
            if (colon > end) colon = end;
            while (end > colon && strchr(" \t\r", end[-1]))
                end--;
            *n = (size_t)(end - colon);
            return colon;
        }
        text = next ? next + 1 : NULL;
    }
    return NULL;
}

static bool find_number(const char *text, const char *key, unsigned *out)
{
    size_t n;
    const char *at = find_line(text, key, &n);
    if (!at || n == 0) return false;
    *out = (unsigned)strtoul(at, NULL, 0);
    return true;
}

static bool name_arm(const char *text, char *out, size_t size)
{
    unsigned implementer, part;
    if (!find_number(text, "CPU implementer", &implementer) || !find_number(text, "CPU part", &part)) return false;
    for (size_t i = 0; i < sizeof(arm_parts) / sizeof(arm_parts[0]); i++) {
        if (arm_parts[i].implementer != implementer || arm_parts[i].part != part) continue;
        snprintf(out, size, "%s", arm_parts[i].name);
        return true;
    }
    snprintf(out, size, "ARM, implementer 0x%02x, part 0x%03x", implementer, part);
    return true;
}

bool stk_processor_name_in(const char *cpuinfo, char *out, size_t size)
{
    static const char *const keys[] = {"model name", "uarch", "isa"};
    size_t n = 0;
    if (size > 0) out[0] = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *at = find_line(cpuinfo, keys[i], &n);
        if (at && n > 0) {
            snprintf(out, size, "%.*s", (int)n, at);
            return true;
        }
        if (i == 0 && name_arm(cpuinfo, out, size)) return true;
    }
    return false;
}

bool stk_processor_name(char *out, size_t size)
{
    enum { FIRST_CORE = 16 * 1024 }; /* the first core's lines are enough */
    if (size > 0) out[0] = 0;
    char *text = malloc(FIRST_CORE);
    FILE *file = text ? fopen("/proc/cpuinfo", "re") : NULL;
    size_t n = file ? fread(text, 1, FIRST_CORE - 1, file) : 0;
    bool found = false;
    if (n > 0) {
        text[n] = 0;
        found = stk_processor_name_in(text, out, size);
    }
    if (file) fclose(file);
    free(text);
    return found;
}

bool stk_processor_has_in(const char *cpuinfo, const char *feature)
{
    static const char *const keys[] = {"flags", "Features"};
    size_t n = 0, n_feature = strlen(feature);
    const char *at = NULL;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !at; i++)
        at = find_line(cpuinfo, keys[i], &n);
    for (size_t i = 0; at && i + n_feature <= n; i++) {
        bool begins = i == 0 || at[i - 1] == ' ', ends = i + n_feature == n || at[i + n_feature] == ' ';
        if (begins && ends && !strncmp(at + i, feature, n_feature)) return true;
    }
    return false;
}
