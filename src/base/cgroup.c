#include "base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void stk_cgroup_read_groups(char *out, size_t out_bytes)
{
    size_t n = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file) {
        n = fread(out, 1, out_bytes - 1, file);
        fclose(file);
    }
    out[n] = 0;
}

/* folder: PATH_MAX bytes, of which the first n_root stay. */
static void visit_path(char *folder, size_t n_root, bool is_v1, void (*visit)(void *, const char *, bool), void *user)
{
    for (;;) {
        visit(user, folder, is_v1);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < n_root) return;
        *slash = 0;
    }
}

/* True where `name` is one of a comma-separated list of n characters. */
static bool is_listed(const char *list, size_t n, const char *name)
{
    size_t n_name = strlen(name);
    for (const char *p = list; p <= list + n;) {
        const char *end = memchr(p, ',', (size_t)(list + n - p));
        if (!end) end = list + n;
        if ((size_t)(end - p) == n_name && !memcmp(p, name, n_name)) return true;
        p = end + 1;
    }
    return false;
}

void stk_cgroup_visit(const char *groups, const char *root, const char *controller,
                      void (*visit)(void *user, const char *folder, bool is_v1), void *user)
{
    /* Lines are number:controllers:path; version 2 is number 0 without controllers. */
    for (const char *line = groups; *line;) {
        char folder[PATH_MAX];
        size_t n = strcspn(line, "\n");
        const char *first = memchr(line, ':', n);
        const char *second = first ? memchr(first + 1, ':', (size_t)(line + n - first - 1)) : NULL;
        bool is_v2 = second && second == first + 1;
        if (second && (is_v2 || is_listed(first + 1, (size_t)(second - first - 1), controller))) {
            int n_root = snprintf(folder, sizeof(folder), "%s%s%s", root, is_v2 ? "" : "/", is_v2 ? "" : controller);
            int n_path = (int)(line + n - second - 1);
            if (n_root + n_path < (int)sizeof(folder)) {
                snprintf(folder + n_root, sizeof(folder) - (size_t)n_root, "%.*s", n_path, second + 1);
                visit_path(folder, (size_t)n_root, !is_v2, visit, user);
            }
        }
        line += n + (line[n] != 0);
    }
}

/* --- cores --- */

/* The first n numbers of a file; false where they are not there: "max" is not a number. */
static bool read_numbers(const char *folder, const char *name, double *out, int n)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) return false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    int n_read = 0;
    while (n_read < n && fscanf(file, "%lf", &out[n_read]) == 1)
        n_read++;
    fclose(file);
    return n_read == n;
}

static void take_quota(void *user, const char *folder, bool is_v1)
{
    double *least = user, quota[2] = {-1, -1}; /* microseconds in each period of N */
    bool found = is_v1 ? read_numbers(folder, "cpu.cfs_quota_us", quota, 1) &&
                             read_numbers(folder, "cpu.cfs_period_us", quota + 1, 1)
                       : read_numbers(folder, "cpu.max", quota, 2);
    if (found && quota[0] > 0 && quota[1] > 0 && quota[0] / quota[1] < *least) *least = quota[0] / quota[1];
}

double stk_cgroup_cores(const char *groups, const char *root)
{
    double least = 1e9;
    stk_cgroup_visit(groups, root, "cpu", take_quota, &least);
    return least;
}
