#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "top.h"

const char top_process_head[] = "    pid name        thr cores          resident  gpu  gpu mem   read/s  write/s";

typedef struct place {
    int64_t id;
    double key;
} place;

bool top_order_by_name(const char *name, top_order *out)
{
    static const char *const names[] = {"cores", "memory", "gpu", "pid"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, names[i])) continue;
        *out = (top_order)i;
        return true;
    }
    return false;
}

void top_order_by_key(char key, top_order *order)
{
    static const char keys[] = "cmgp";
    const char *found = key ? strchr(keys, key) : NULL;
    if (found) *order = (top_order)(found - keys);
}

static double rate(int64_t now, int64_t before, double s)
{
    return now < 0 || before < 0 || now < before || s <= 0 ? 0 : (double)(now - before) / s;
}

static double cores_of(const stk_watch_process *p, const stk_watch_sample *before, double s)
{
    const stk_watch_process *old = stk_watch_list_find(&before->processes, p->id);
    return old ? rate(p->cpu_us, old->cpu_us, s) / 1e6 : 0;
}

/* The largest first; alike ones by number. */
static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

void top_sort(const stk_watch_sample *now, const stk_watch_sample *before, double s, top_order order, int64_t *out)
{
    static place list[TOP_MOST_PROCESSES];
    size_t n = now->processes.n < TOP_MOST_PROCESSES ? now->processes.n : TOP_MOST_PROCESSES;
    for (size_t i = 0; i < n; i++) {
        const stk_watch_process *p = stk_watch_process_at(now, i);
        double cores = cores_of(p, before, s);
        list[i].id = p->id;
        list[i].key = order == TOP_BY_CORES    ? cores
                      : order == TOP_BY_MEMORY ? (double)p->resident_kb
                      : order == TOP_BY_GPU    ? (double)p->gpu_mb
                                               : 0;
        top_spark_add(p->id, cores);
    }
    qsort(list, n, sizeof(list[0]), compare);
    for (size_t i = 0; i < n; i++)
        out[i] = list[i].id;
}

void top_read_name(int64_t pid, char out[32])
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/cmdline", pid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) fclose(file);
    text[n] = 0;
    char *slash = strrchr(text, '/');
    snprintf(out, 32, "%.12s", slash ? slash + 1 : text);
}

void top_process_line(const stk_watch_sample *now, const stk_watch_sample *before, int64_t id, double s, char *out,
                      size_t bytes)
{
    char name[32], spark[TOP_SPARK_TEXT], resident[CLI_TEXT], gpu[CLI_TEXT] = "-", busy[CLI_TEXT] = "-", in[CLI_TEXT],
                                                              written[CLI_TEXT];
    const stk_watch_process *p = stk_watch_list_find(&now->processes, id);
    const stk_watch_process *old = stk_watch_list_find(&before->processes, id);
    out[0] = 0;
    if (!p) return;
    top_read_name(id, name);
    if (p->gpu_mb > 0) cli_bytes((double)p->gpu_mb * 1024 * 1024, gpu);
    if (p->gpu_busy_permille >= 0) snprintf(busy, sizeof(busy), "%" PRId64 "%%", p->gpu_busy_permille / 10);
    snprintf(out, bytes, "%7" PRId64 " %-10.10s %4" PRId64 " %5.2f %s %8s %4s %8s %8s %8s", id, name, p->n_threads,
             cores_of(p, before, s), top_spark_text(id, spark), cli_bytes((double)p->resident_kb * 1024, resident),
             busy, gpu, cli_bytes(old ? rate(p->read_kb, old->read_kb, s) * 1024 : 0, in),
             cli_bytes(old ? rate(p->written_kb, old->written_kb, s) * 1024 : 0, written));
}
