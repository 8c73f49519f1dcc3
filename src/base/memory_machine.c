/* How much memory there is: the machine's, and what control groups leave of it. See base/memory.h. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/memory.h"

/* Version 1's way to say "no limit" is a number near 2^63. */
#define NO_LIMIT ((size_t)1 << 60)

static size_t read_number(const char *folder, const char *name)
{
    char path[PATH_MAX], text[64] = "";
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) return SIZE_MAX;
    FILE *file = fopen(path, "re");
    if (!file) return SIZE_MAX;
    char *got = fgets(text, sizeof(text), file), *end = text;
    fclose(file);
    unsigned long long n = got ? strtoull(text, &end, 10) : 0;
    return end == text || n >= NO_LIMIT ? SIZE_MAX : (size_t)n; /* "max" is not a number */
}

/* The number after `key` in a file of such lines; 0: there is none. */
static size_t read_line(const char *path, const char *key)
{
    char line[256];
    size_t n = strlen(key), found = 0;
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, key, n) && (line[n] == ' ' || line[n] == ':')) found = strtoull(line + n + 1, NULL, 10);
    fclose(file);
    return found;
}

static size_t left_in(const char *folder, bool is_v1, bool available)
{
    char stat[PATH_MAX];
    size_t limit = read_number(folder, is_v1 ? "memory.limit_in_bytes" : "memory.max");
    if (limit == SIZE_MAX || !available) return limit;
    size_t used = read_number(folder, is_v1 ? "memory.usage_in_bytes" : "memory.current");
    if (used == SIZE_MAX) return limit;
    size_t cached = 0;
    if (snprintf(stat, sizeof(stat), "%s/memory.stat", folder) < (int)sizeof(stat))
        cached = read_line(stat, is_v1 ? "total_inactive_file" : "inactive_file");
    used = cached < used ? used - cached : 0;
    return used < limit ? limit - used : 0;
}

typedef struct least_left {
    size_t bytes;
    bool available;
} least_left;

static void take_left(void *user, const char *folder, bool is_v1)
{
    least_left *least = user;
    size_t left = left_in(folder, is_v1, least->available);
    if (left < least->bytes) least->bytes = left;
}

size_t stk_cgroup_memory(const char *groups, const char *root, bool available)
{
    least_left least = {SIZE_MAX, available};
    stk_cgroup_visit(groups, root, "memory", take_left, &least);
    return least.bytes;
}

size_t stk_machine_memory(bool available)
{
    char groups[8192];
    size_t kib = read_line("/proc/meminfo", available ? "MemAvailable" : "MemTotal");
    size_t machine = kib < SIZE_MAX / 1024 ? kib * 1024 : 0;
    stk_cgroup_read_groups(groups, sizeof(groups));
    size_t left = stk_cgroup_memory(groups, "/sys/fs/cgroup", available);
    if (left == SIZE_MAX) return machine;
    return machine == 0 || left < machine ? left : machine;
}
