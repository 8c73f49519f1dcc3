/* What was called how often; and misuse: what a program may not do, whatever the driver says to it. A process that did
 * so ends with 86. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/play/play.h"

enum { MOST_TEXTS = 8, EXIT_CODE = 86 };

play_counts play_count;

static char texts[MOST_TEXTS][256];

#define X(name, symbol, since, needs, parameters) #name,
static const char *const call_names[] = {PLAY_API(X)};
#undef X

#define COUNT(name)                                                                                                    \
    {                                                                                                                  \
#name, &play_count.name                                                                                        \
    }
static const struct {
    const char *name;
    const unsigned long long *value;
} others[] = {
    COUNT(kernels),   COUNT(products), COUNT(graph_work),    COUNT(to_device), COUNT(to_device_bytes), COUNT(to_host),
    COUNT(on_device), COUNT(unpinned), COUNT(to_host_bytes), COUNT(misuse),    COUNT(most_used_bytes),
};
enum { N_OTHERS = sizeof(others) / sizeof(others[0]) };

void play_misuse(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (play_count.misuse < MOST_TEXTS) vsnprintf(texts[play_count.misuse], sizeof(texts[0]), format, list);
    va_end(list);
    play_count.misuse++;
}

long long stk_play_count(const char *name)
{
    for (int i = 0; i < N_CALLS; i++)
        if (!strcmp(call_names[i], name)) return (long long)play_count.calls[i];
    for (int i = 0; i < N_OTHERS; i++)
        if (!strcmp(others[i].name, name)) return (long long)*others[i].value;
    return -1;
}

static void write_counts(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "{");
    for (int i = 0; i < N_CALLS; i++)
        fprintf(file, "\"%s\": %llu, ", call_names[i], play_count.calls[i]);
    for (int i = 0; i < N_OTHERS; i++)
        fprintf(file, "\"%s\": %llu%s", others[i].name, *others[i].value, i + 1 < N_OTHERS ? ", " : "}\n");
    fclose(file);
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("STOKER_PLAY_COUNTS"), *what = getenv("STOKER_PLAY_MISUSE");
    if (path && *path) write_counts(path);
    if (play_count.misuse == 0 || (what && !strcmp(what, "count"))) return;
    fflush(NULL);
    for (unsigned i = 0; i < play_count.misuse && i < MOST_TEXTS; i++)
        fprintf(stderr, "played GPU: misuse: %s\n", texts[i]);
    fprintf(stderr, "played GPU: %llu times misused\n", play_count.misuse);
    _exit(EXIT_CODE);
}
