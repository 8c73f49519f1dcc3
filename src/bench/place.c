#include "bench/place.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

const char *stk_bench_folder_of(const stk_bench_kept *kept, char out[STK_BENCH_PLACE])
{
    static const char name[] = "/result.json";
    size_t n = strlen(kept->path), length = sizeof(name) - 1;
    if (n > length && !strcmp(kept->path + n - length, name)) n -= length;
    while (n > 1 && kept->path[n - 1] == '/')
        n--;
    snprintf(out, STK_BENCH_PLACE, "%.*s", (int)n, kept->path);
    return out;
}

bool stk_bench_is_page(const char *path)
{
    const char *ending = strrchr(path, '.');
    return ending && ending > path && ending[-1] != '/' && (!strcmp(ending, ".html") || !strcmp(ending, ".htm"));
}

/* The folder that a file is, or will be, in; without links. False: there is none. */
static bool find_folder(const char *file, char out[PATH_MAX])
{
    char folder[STK_BENCH_PLACE];
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (!slash)
        snprintf(folder, sizeof(folder), ".");
    else
        snprintf(folder, sizeof(folder), "%.*s", slash == file ? 1 : (int)(slash - file), file);
    return realpath(folder, out) != NULL;
}

const char *stk_bench_raw_place(const stk_bench_kept *kept, const char *from, char out[STK_BENCH_PLACE])
{
    char folder[STK_BENCH_PLACE], path[STK_BENCH_PLACE], target[PATH_MAX], base[PATH_MAX];
    stk_bench_folder_of(kept, folder);
    if (!strcmp(folder, kept->path) || stk_path_join(path, sizeof(path), folder, "runs.csv") != STK_OK ||
        !stk_path_exists(path))
        snprintf(path, sizeof(path), "%s", kept->path);
    snprintf(out, STK_BENCH_PLACE, "%s", path);
    if (!realpath(path, target) || !find_folder(from, base)) return out;
    /* What both begin with, whole names only. */
    size_t n = 0, shared = 0;
    for (; base[n] && base[n] == target[n]; n++)
        if (base[n] == '/') shared = n + 1;
    if (!base[n] && target[n] == '/') shared = n + 1;
    size_t at = 0;
    const char *rest = strlen(base) < shared ? "" : base + shared;
    for (; *rest && at + 4 < STK_BENCH_PLACE; rest += strcspn(rest, "/"), rest += *rest == '/')
        at += (size_t)snprintf(out + at, STK_BENCH_PLACE - at, "../");
    snprintf(out + at, STK_BENCH_PLACE - at, "%s", target + shared);
    return out;
}

void stk_bench_put_text(stk_text *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<')
            stk_text_add(out, "&lt;");
        else if (c == '&')
            stk_text_add(out, "&amp;");
        else if (c < ' ' || c == 127)
            stk_text_add(out, " ");
        else
            stk_text_add(out, "%s%c", strchr("|[]\\`*_", c) ? "\\" : "", c);
    }
}

void stk_bench_put_cell(stk_text *out, const char *text, const char *place)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    stk_text_add(out, place ? " [" : " ");
    stk_bench_put_text(out, text);
    if (place) stk_text_add(out, "](");
    for (const char *p = place; p && *p; p++) {
        if (strchr(plain, *p))
            stk_text_add(out, "%c", *p);
        else
            stk_text_add(out, "%%%02X", (unsigned)(unsigned char)*p);
    }
    stk_text_add(out, place ? ") |" : " |");
}

void stk_bench_put_field(stk_text *out, const char *text)
{
    stk_text_add(out, "\"");
    for (; *text; text++)
        stk_text_add(out, "%s%c", *text == '"' ? "\"" : "", *text);
    stk_text_add(out, "\"");
}

void stk_bench_put_number(stk_text *out, double x)
{
    if (isfinite(x)) stk_text_add(out, "%.12g", x);
}
