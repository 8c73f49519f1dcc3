/* Which processes belong to the job: children of those that do, and processes whose session or group is led by one that
 * does, as after a double fork. Once in, a process stays in when its parent ends. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "watch/parse.h"
#include "watch/sampler.h"

enum { MOST_PROCESSES = 2000, FORGET_EVERY = 40, MOST_PASSES = 4 };

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool is_stranger(const stk_watch_sampler *sampler, size_t n_known, int64_t id)
{
    return n_known > 0 && bsearch(&id, sampler->stranger, n_known, sizeof(id), compare) != NULL;
}

static stk_status add_stranger(stk_watch_sampler *sampler, int64_t id)
{
    if (sampler->n_strangers == sampler->stranger_capacity) {
        size_t capacity = sampler->stranger_capacity ? 2 * sampler->stranger_capacity : 256;
        int64_t *grown = realloc(sampler->stranger, capacity * sizeof(*grown));
        if (!grown) return stk_fail_memory(capacity * sizeof(*grown));
        sampler->stranger = grown;
        sampler->stranger_capacity = capacity;
    }
    sampler->stranger[sampler->n_strangers++] = id;
    return STK_OK;
}

static bool belongs(const stk_watch_sampler *sampler, const stk_watch_stat *stat)
{
    const stk_watch_list *list = &sampler->sample.processes;
    if (sampler->config.is_ours && stat->parent == sampler->own_pid) return true;
    return stk_watch_list_find(list, stat->parent) || stk_watch_list_find(list, stat->session) ||
           stk_watch_list_find(list, stat->group);
}

static stk_status look_at(stk_watch_sampler *sampler, int64_t id, bool *grew)
{
    char text[1024];
    stk_watch_stat stat;
    if (!stk_watch_read(&sampler->config.root, text, sizeof(text), "/proc/%lld/stat", (long long)id) ||
        !stk_watch_parse_stat(text, &stat))
        return STK_OK;
    if (stat.state == 'Z' || !belongs(sampler, &stat) || sampler->sample.processes.n >= MOST_PROCESSES)
        return add_stranger(sampler, id);
    stk_watch_process *process = stk_watch_list_add(&sampler->sample.processes, id);
    if (!process) return stk_fail_memory(sizeof(*process));
    process->parent = stat.parent;
    process->start_ticks = stat.start_ticks;
    *grew = true;
    return stk_watch_facts_add(&sampler->facts, "process", "%lld %s", (long long)id, stat.name);
}

/* One pass over all processes that are not known to be strangers. */
static stk_status look_at_all(stk_watch_sampler *sampler, bool *grew)
{
    stk_status status = STK_OK;
    size_t n_known = sampler->n_strangers;
    DIR *folder = stk_watch_is_hidden(&sampler->config.root, "/proc/list") ? NULL : opendir("/proc");
    if (!folder) return stk_watch_facts_add(&sampler->facts, "missing", "child processes (need a list of /proc)");
    for (struct dirent *entry; status == STK_OK && (entry = readdir(folder));) {
        int64_t id = atoll(entry->d_name);
        if (id <= 0 || id == sampler->own_pid || id == sampler->tool_pid || is_stranger(sampler, n_known, id) ||
            stk_watch_list_find(&sampler->sample.processes, id))
            continue;
        status = look_at(sampler, id, grew);
    }
    closedir(folder);
    /* A child may have a smaller number than its parent: then the next pass finds it. */
    if (*grew) sampler->n_strangers = n_known;
    if (sampler->n_strangers > 1) qsort(sampler->stranger, sampler->n_strangers, sizeof(sampler->stranger[0]), compare);
    return status;
}

stk_status stk_watch_name(stk_watch_sampler *sampler, int64_t process)
{
    char text[1024];
    stk_watch_stat stat;
    long long id = process;
    if (id <= 0 || !stk_watch_read(&sampler->config.root, text, sizeof(text), "/proc/%lld/stat", id) ||
        !stk_watch_parse_stat(text, &stat))
        return STK_OK;
    return stk_watch_facts_add(&sampler->facts, "process", "%lld %s", id, stat.name);
}

stk_status stk_watch_scan_tree(stk_watch_sampler *sampler)
{
    stk_status status = STK_OK;
    bool grew = true;
    /* Nothing was started anywhere since the last time. */
    if (sampler->n_forks >= 0 && sampler->n_forks == sampler->n_scanned_forks) return STK_OK;
    sampler->n_scanned_forks = sampler->n_forks;
    /* A number may be given to another process later. */
    if (sampler->n_scans++ % FORGET_EVERY == 0) sampler->n_strangers = 0;
    for (int i = 0; status == STK_OK && grew && i < MOST_PASSES; i++) {
        grew = false;
        status = look_at_all(sampler, &grew);
    }
    return status;
}
