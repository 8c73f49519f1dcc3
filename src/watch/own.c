/* See own.h. The line is written by run/metrics.c. */
#include "watch/own.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "watch/parse.h"

/* The number behind "key": ; -1 where there is none. */
static double number_of(const char *line, const char *key)
{
    char want[32], *end;
    snprintf(want, sizeof(want), "\"%s\": ", key);
    const char *at = strstr(line, want);
    if (!at) return -1;
    double x = strtod(at + strlen(want), &end);
    return end == at + strlen(want) ? -1 : x;
}

/* Without waiting for who writes a FIFO of that name; NULL where there is no regular file. */
static FILE *open_regular(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && !file) close(fd);
    return file;
}

void stk_watch_own_read_last(const char *path, char out[STK_WATCH_OWN_LINE])
{
    FILE *file = open_regular(path);
    out[0] = 0;
    if (!file) return;
    if (fseek(file, -(long)STK_WATCH_OWN_LINE + 1, SEEK_END) < 0) rewind(file);
    size_t n = fread(out, 1, STK_WATCH_OWN_LINE - 1, file);
    fclose(file);
    while (n > 0 && out[n - 1] != '\n')
        n--;
    out[n > 0 ? n - 1 : 0] = 0;
    char *start = strrchr(out, '\n');
    if (start) memmove(out, start + 1, strlen(start + 1) + 1);
}

/* By recipe.yaml next to the record, in which the run's whole recipe stands. */
static bool asks_for_f32(const char *metrics)
{
    char path[STK_WATCH_PATH], line[256];
    const char *slash = strrchr(metrics, '/');
    if (!slash) return false;
    int n = snprintf(path, sizeof(path), "%.*s/recipe.yaml", (int)(slash - metrics), metrics);
    if (n < 0 || (size_t)n >= sizeof(path)) return false;
    FILE *file = open_regular(path);
    bool found = false;
    while (file && !found && fgets(line, sizeof(line), file))
        found = !strcmp(line, "precision: f32\n");
    if (file) fclose(file);
    return found;
}

stk_status stk_watch_own_note(stk_watch_facts *facts)
{
    char line[STK_WATCH_OWN_LINE];
    const char *framework = stk_watch_facts_get(facts, "framework", 0),
               *path = stk_watch_facts_get(facts, "metrics", 0);
    if (!path || stk_watch_facts_get(facts, "metrics", 1) || !framework || strcmp(framework, "stoker")) return STK_OK;
    if (asks_for_f32(path)) STK_RETURN_IF_ERROR(stk_watch_facts_add(facts, "f32", "the recipe's precision"));
    stk_watch_own_read_last(path, line);
    double compute = number_of(line, "compute");
    if (!(compute >= 0 && compute <= 1)) return STK_OK;
    return stk_watch_facts_add(facts, "own", "%.4f %.4f %.4f %.4f", number_of(line, "input"), number_of(line, "host"),
                               number_of(line, "launch"), compute);
}

bool stk_watch_own_get(const stk_watch_facts *facts, stk_watch_own *out)
{
    const char *text = stk_watch_facts_get(facts, "own", 0);
    return text && sscanf(text, "%lf %lf %lf %lf", &out->input, &out->host, &out->launch, &out->compute) == 4;
}

void stk_watch_own_round(const stk_watch_own *own, int permille[STK_WATCH_OWN_PARTS])
{
    double part[STK_WATCH_OWN_PARTS] = {own->input, own->host, own->launch, own->compute, 0}, sum = 0;
    int left = 1000;
    for (int i = 0; i < STK_WATCH_OWN_PARTS; i++)
        sum += part[i] = part[i] > 0 ? fmin(1, part[i]) : 0; /* a recording may hold anything */
    part[STK_WATCH_OWN_PARTS - 1] = fmax(0, 1 - sum);
    for (int i = 0; i < STK_WATCH_OWN_PARTS; i++) {
        part[i] *= 1000 / fmax(1, sum);
        left -= permille[i] = (int)part[i];
    }
    /* What rounding down left goes to those that lost most. */
    for (; left > 0; left--) {
        int most = 0;
        for (int i = 1; i < STK_WATCH_OWN_PARTS; i++)
            if (part[i] - permille[i] > part[most] - permille[most]) most = i;
        permille[most]++;
    }
}
