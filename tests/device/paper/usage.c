/* See usage.h. */
#include "device/paper/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct kernel_list {
    paper_kernel *kernel;
    int n;
} kernel_list;

static paper_kernel *find(const kernel_list *list, const char *name, size_t n)
{
    for (int i = 0; i < list->n; i++)
        if (strlen(list->kernel[i].name) == n && !memcmp(list->kernel[i].name, name, n)) return &list->kernel[i];
    return NULL;
}

/* --- the source: SUFFIX, settings, #line --- */

/* "#define T bf16\n#define ONE\n" becomes "T bf16, ONE". */
static void copy_settings(const char *from, const char *end, char *out, size_t n)
{
    static const char define[] = "#define ";
    size_t used = 0;
    out[0] = '\0';
    while (from < end && used + 1 < n) {
        const char *line = strncmp(from, define, sizeof(define) - 1) ? from : from + sizeof(define) - 1;
        int length = (int)strcspn(line, "\n");
        if (strncmp(line, "index_t int", 11))
            used += (size_t)snprintf(out + used, n - used, "%s%.*s", used ? ", " : "", length, line);
        from = line + length + 1;
    }
}

static void name_source(const char *source, paper_kernel *kernel)
{
    char wanted[64];
    const char *key = strrchr(kernel->name, '_');
    snprintf(wanted, sizeof(wanted), "#define SUFFIX %.32s\n", key ? key : "");
    const char *settings = strstr(source, wanted);
    const char *line = settings ? strstr(settings, "#line 1 \"") : NULL;
    if (!line) return;
    copy_settings(settings + strlen(wanted), line, kernel->settings, sizeof(kernel->settings));
    line += strlen("#line 1 \"");
    snprintf(kernel->file, sizeof(kernel->file), "%.*s", (int)strcspn(line, "\""), line);
}

/* --- PTX --- */

static int count(const char *from, const char *end, const char *word)
{
    int n = 0;
    for (const char *p = from; (p = strstr(p, word)) && p < end; p += strlen(word))
        n++;
    return n;
}

/* ".u64 name", ".align 4 .b8 name[16]", of which p is behind ".param". */
static uint16_t bytes_of(const char *p)
{
    size_t n = strcspn(p, ",\n)");
    unsigned count_of = 1, bits = 0;
    const char *bracket = memchr(p, '[', n);
    if (bracket) count_of = (unsigned)strtoul(bracket + 1, NULL, 10);
    for (const char *dot = p; dot < p + n; dot++)
        if (*dot == '.' && strchr("ubfs", dot[1]) && dot[2] >= '1' && dot[2] <= '9')
            bits = (unsigned)strtoul(dot + 2, NULL, 10);
    return (uint16_t)(bits / 8 * count_of);
}

static void read_arguments(const char *from, const char *end, paper_kernel *kernel)
{
    for (const char *p = from; (p = strstr(p, ".param ")) && p < end;) {
        p += strlen(".param ");
        if (kernel->n_arguments < GPU_MOST_ARGUMENTS) kernel->argument_bytes[kernel->n_arguments] = bytes_of(p);
        kernel->n_arguments++;
    }
}

static void read_group(const char *from, const char *end, paper_kernel *kernel)
{
    const char *p = strstr(from, ".maxntid ");
    if (!p || p > end) return;
    int n[3] = {1, 1, 1};
    sscanf(p, ".maxntid %d, %d, %d", &n[0], &n[1], &n[2]);
    kernel->group = n[0] * n[1] * n[2];
}

static stk_status add_kernel(kernel_list *list, const char *name, size_t n_name, const char *end)
{
    paper_kernel *grown = realloc(list->kernel, ((size_t)list->n + 1) * sizeof(*grown));
    if (!grown) return stk_fail_memory(((size_t)list->n + 1) * sizeof(*grown));
    list->kernel = grown;
    paper_kernel *kernel = &grown[list->n++];
    *kernel = (paper_kernel){.registers = -1};
    snprintf(kernel->name, sizeof(kernel->name), "%.*s", (int)n_name, name);
    const char *body = strstr(name, "\n{"), *behind_arguments = strstr(name, "\n)");
    if (!body || body > end) return stk_fail(STK_INTERNAL, "kernel '%s' has no body in PTX", kernel->name);
    if (behind_arguments && behind_arguments < body) read_arguments(name, behind_arguments, kernel);
    read_group(name, body, kernel);
    kernel->n_wgmma = count(body, end, "wgmma.mma_async");
    kernel->n_mma = count(body, end, "mma.sync");
    kernel->n_fma = count(body, end, "fma.rn.f32");
    return STK_OK;
}

static stk_status read_ptx(const char *ptx, kernel_list *list)
{
    static const char entry[] = ".entry ";
    for (const char *p = ptx; (p = strstr(p, entry));) {
        p += sizeof(entry) - 1;
        const char *end = strstr(p, "\n}");
        if (!end) return stk_fail(STK_INTERNAL, "PTX ends in a kernel");
        STK_RETURN_IF_ERROR(add_kernel(list, p, strcspn(p, "(\n "), end));
        p = end;
    }
    return STK_OK;
}

/* --- ptxas --- */

/* The number before a word in a line, "16 registers"; 0: the line does not have it. */
static int number_before(const char *line, size_t n, const char *word)
{
    const char *p = line;
    while ((p = strstr(p, word)) && p < line + n) {
        const char *digit = p;
        while (digit > line && digit[-1] >= '0' && digit[-1] <= '9')
            digit--;
        if (digit < p) return atoi(digit);
        p += strlen(word);
    }
    return 0;
}

/* Lines of an entry: its name, what it has on the stack, what it uses. Functions that are not entries are not kept. */
static void read_report(const char *report, const kernel_list *list)
{
    static const char compiling[] = "Compiling entry function '", properties[] = "Function properties for ";
    paper_kernel *entry = NULL, *stack = NULL;
    for (const char *line = report; *line;) {
        size_t n = strcspn(line, "\n");
        const char *p;
        if ((p = strstr(line, compiling)) && p < line + n) {
            p += sizeof(compiling) - 1;
            stack = entry = find(list, p, strcspn(p, "'"));
        } else if ((p = strstr(line, properties)) && p < line + n) {
            p += sizeof(properties) - 1;
            stack = find(list, p, strcspn(p, " \n"));
        } else if (stack && (p = strstr(line, " bytes stack frame")) && p < line + n) {
            stack->stack_bytes = number_before(line, n, " bytes stack frame");
            stack->spill_store_bytes = number_before(line, n, " bytes spill stores");
            stack->spill_load_bytes = number_before(line, n, " bytes spill loads");
        } else if (entry && (p = strstr(line, " registers")) && p < line + n) {
            entry->registers = number_before(line, n, " registers");
            entry->shared_bytes = number_before(line, n, " bytes smem");
        }
        line += n + (line[n] == '\n');
    }
}

stk_status usage_read(const char *source, const char *ptx, const char *report, paper_kernel **out, int *n)
{
    kernel_list list = {0};
    stk_status status = STK_OK;
    STK_TRY(read_ptx(ptx, &list));
    read_report(report, &list);
    for (int i = 0; i < list.n; i++) {
        name_source(source, &list.kernel[i]);
        if (list.kernel[i].registers < 0)
            STK_TRY(stk_fail(STK_INTERNAL, "ptxas says nothing of kernel '%s'", list.kernel[i].name));
    }
    *out = list.kernel;
    *n = list.n;
    list.kernel = NULL;
done:
    free(list.kernel);
    return status;
}
