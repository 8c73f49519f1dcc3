/* See source/labels.h. */
#include "data/source/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/source/paths.h"

/* --- names of classes to numbers --- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Numbers the n texts, one for each file, by their place among the sorted different ones. */
static stk_status number_classes(char *const *text, size_t n, stk_file_labels *out)
{
    char **sorted = calloc(n ? n : 1, sizeof(*sorted));
    out->label = calloc(n ? n : 1, sizeof(*out->label));
    out->class_name = calloc(n ? n : 1, sizeof(*out->class_name));
    stk_status status = STK_OK;
    if (!sorted || !out->label || !out->class_name) STK_TRY(stk_fail_memory(n * sizeof(*sorted)));
    memcpy(sorted, text, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && !strcmp(sorted[i], sorted[i - 1])) continue;
        if (!(out->class_name[out->n_classes] = strdup(sorted[i]))) STK_TRY(stk_fail_memory(strlen(sorted[i])));
        out->n_classes++;
    }
    for (size_t i = 0; i < n; i++) {
        char **found =
            bsearch(&text[i], out->class_name, (size_t)out->n_classes, sizeof(*out->class_name), compare_names);
        out->label[i] = (int32_t)(found - out->class_name);
    }
done:
    free(sorted);
    return status;
}

stk_status stk_labels_by_folder(const stk_names *files, stk_file_labels *out)
{
    stk_names folders = {0};
    size_t capacity = 0;
    stk_status status = STK_OK;
    *out = (stk_file_labels){0};
    for (size_t i = 0; i < files->n; i++) {
        const char *slash = strrchr(files->name[i], '/'), *start = slash;
        while (start && start > files->name[i] && start[-1] != '/')
            start--;
        if (!slash || slash == start)
            STK_TRY(stk_fail(STK_INVALID, "'%s' lies in no folder that could be its label", files->name[i]));
        char *name = strndup(start, (size_t)(slash - start));
        if (!name) STK_TRY(stk_fail_memory(strlen(files->name[i])));
        status = stk_names_add(&folders, &capacity, name);
        free(name);
        STK_TRY(status);
    }
    STK_TRY(number_classes(folders.name, folders.n, out));
done:
    stk_names_free(&folders);
    return status;
}

/* --- a file of labels --- */

typedef struct line {
    char *name, *label; /* in the file's text */
    int number;         /* of the line, from 1 */
} line;

typedef struct table {
    char *text;
    line *line; /* sorted by name */
    size_t n;
} table;

static int compare_lines(const void *a, const void *b)
{
    const line *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->number - y->number;
}

static char *trim(char *text)
{
    char *end = text + strlen(text);
    while (end > text && (end[-1] == ' ' || end[-1] == '\r' || end[-1] == '\t'))
        *--end = 0;
    return text + strspn(text, " \t");
}

/* name<TAB>label, or else name,label with the last comma; commas in names are thus no trouble. */
static stk_status parse_line(char *text, int number, table *t)
{
    char *cut = strchr(text, '\t');
    if (!cut) cut = strrchr(text, ',');
    if (!*trim(text) || text[0] == '#') return STK_OK;
    if (!cut) return stk_fail(STK_CORRUPT, "line %d has no tab and no comma between name and label", number);
    *cut = 0;
    line l = {trim(text), trim(cut + 1), number};
    if (!l.name[0] || !l.label[0])
        return stk_fail(STK_CORRUPT, "line %d has no %s", number, l.name[0] ? "label" : "name");
    t->line[t->n++] = l;
    return STK_OK;
}

static stk_status check_doubles(const table *t)
{
    for (size_t i = 1; i < t->n; i++)
        if (!strcmp(t->line[i].name, t->line[i - 1].name) && strcmp(t->line[i].label, t->line[i - 1].label))
            return stk_fail(STK_CORRUPT, "lines %d and %d give '%s' two labels", t->line[i - 1].number,
                            t->line[i].number, t->line[i].name);
    return STK_OK;
}

static stk_status read_table(const char *path, table *t)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, n, n_lines = 1;
    STK_RETURN_IF_ERROR(stk_file_read(path, &bytes, &capacity, &n));
    t->text = realloc(bytes, n + 1);
    if (!t->text) {
        free(bytes);
        return stk_fail_memory(n + 1);
    }
    t->text[n] = 0;
    if (memchr(t->text, 0, n)) return stk_fail(STK_CORRUPT, "it is no text");
    for (size_t i = 0; i < n; i++)
        n_lines += t->text[i] == '\n';
    if (!(t->line = calloc(n_lines, sizeof(*t->line)))) return stk_fail_memory(n_lines * sizeof(*t->line));
    int number = 1;
    for (char *p = t->text, *next; p; p = next, number++) {
        next = strchr(p, '\n');
        if (next) *next++ = 0;
        STK_RETURN_IF_ERROR(parse_line(p, number, t));
    }
    qsort(t->line, t->n, sizeof(*t->line), compare_lines);
    return check_doubles(t);
}

/* The label of the longest end of path that the table has; NULL where it has none. */
static char *find_label(const table *t, const char *path)
{
    for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
        line wanted = {.name = (char *)(uintptr_t)p};
        size_t low = 0, high = t->n;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (strcmp(t->line[middle].name, wanted.name) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < t->n && !strcmp(t->line[low].name, p)) return t->line[low].label;
    }
    return NULL;
}

static bool parse_number(const char *text, int32_t *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    *out = (int32_t)value;
    return errno == 0 && end > text && !*end && value >= 0 && value <= INT32_MAX;
}

static stk_status set_labels(const stk_names *files, const table *t, char **text, stk_file_labels *out)
{
    bool are_numbers = true;
    int32_t number;
    for (size_t i = 0; i < files->n; i++) {
        if (!(text[i] = find_label(t, files->name[i])))
            return stk_fail(STK_NOT_FOUND, "it has no label for '%s'", files->name[i]);
        are_numbers = are_numbers && parse_number(text[i], &number);
    }
    if (!are_numbers) return number_classes(text, files->n, out);
    if (!(out->label = calloc(files->n, sizeof(*out->label)))) return stk_fail_memory(files->n * sizeof(*out->label));
    for (size_t i = 0; i < files->n; i++)
        parse_number(text[i], &out->label[i]);
    return STK_OK;
}

stk_status stk_labels_from_file(const stk_names *files, const char *path, stk_file_labels *out)
{
    table t = {0};
    stk_status status;
    char **text = calloc(files->n ? files->n : 1, sizeof(*text));
    *out = (stk_file_labels){0};
    if (!text) return stk_fail_memory(files->n * sizeof(*text));
    STK_TRY(read_table(path, &t));
    STK_TRY(set_labels(files, &t, text, out));
done:
    free(text);
    free(t.text);
    free(t.line);
    return status == STK_OK || strstr(stk_error_text(), path) ? status : stk_fail_prefix(status, "'%s': ", path);
}

void stk_labels_free(stk_file_labels *labels)
{
    for (int64_t i = 0; i < labels->n_classes; i++)
        free(labels->class_name[i]);
    free(labels->class_name);
    free(labels->label);
    *labels = (stk_file_labels){0};
}
