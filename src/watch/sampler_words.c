/* What is looked up now and then, and kept in words: the framework, and the file systems that open files lie on. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "watch/parse.h"
#include "watch/sampler.h"

enum { MOST_FILES = 256, MOST_PROCESSES = 32, MAPS_BYTES = 4 << 20 };

bool stk_watch_is_compiler(const char *name)
{
    static const char *const names[] = {"ptxas", "nvcc", "cicc", "cc1", "cc1plus", "gcc", "g++", "clang", "ld", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static stk_status read_framework(stk_watch_sampler *sampler, int64_t process)
{
    const stk_watch_root *root = &sampler->config.root;
    if (stk_watch_facts_get(&sampler->facts, "framework", 0)) return STK_OK;
    char *maps = malloc(MAPS_BYTES);
    if (!maps) return STK_OK; /* it is asked again */
    const char *found = NULL;
    if (stk_watch_read(root, maps, MAPS_BYTES, "/proc/%" PRId64 "/maps", process))
        found = stk_watch_parse_framework(maps);
    else
        stk_watch_miss(sampler, process, "libraries of processes (/proc/PID/maps: the same user), hence the framework");
    if (stk_watch_is_python(maps)) (void)stk_watch_facts_add(&sampler->facts, "python", "%" PRId64, process);
    free(maps);
    if (!found) return STK_OK;
    if (!strcmp(found, "tensorflow") &&
        stk_watch_read(root, sampler->text, STK_WATCH_TEXT, "/proc/%" PRId64 "/cmdline", process) &&
        strstr(sampler->text, "keras"))
        found = "keras";
    return stk_watch_facts_add(&sampler->facts, "framework", "%s", found);
}

/* Notes file systems behind a network that the process has files open on, and the record of a stoker run. */
static stk_status read_files(stk_watch_sampler *sampler, int64_t process)
{
    const stk_watch_root *root = &sampler->config.root;
    char path[STK_WATCH_PATH], type[STK_WATCH_PATH], point[STK_WATCH_PATH];
    stk_status status = STK_OK;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd", process);
    DIR *folder = stk_watch_is_hidden(root, path) ? NULL : opendir(path);
    if (!folder) {
        stk_watch_miss(sampler, process, "open files (/proc/PID/fd: the same user)");
        return STK_OK;
    }
    sampler->text[0] = 0;
    if (!stk_watch_read(root, sampler->text, STK_WATCH_TEXT, "/proc/%" PRId64 "/mountinfo", process))
        stk_watch_miss(sampler, process, "which file systems open files lie on (/proc/PID/mountinfo: the same user)");
    stk_watch_process *entry = stk_watch_list_find(&sampler->sample.processes, process);
    struct dirent *file;
    for (int i = 0; status == STK_OK && i < MOST_FILES && (file = readdir(folder)); i++) {
        if (file->d_name[0] == '.') continue;
        if (!stk_watch_read_link(root, path, sizeof(path), "/proc/%" PRId64 "/fd/%.16s", process, file->d_name) ||
            path[0] != '/')
            continue;
        if (!strncmp(path, "/dev/nvidia", 11) && path[11] >= '0' && path[11] <= '9' && entry) entry->holds_gpu = 1;
        const char *name = strrchr(path, '/');
        if (!strcmp(name, "/metrics.jsonl")) status = stk_watch_facts_add(&sampler->facts, "metrics", "%s", path);
        if (status == STK_OK && stk_watch_parse_mount(sampler->text, path, type, point) && stk_watch_is_remote(type))
            status = stk_watch_facts_add(&sampler->facts, "remote", "%.60s at %.200s", type, point);
    }
    closedir(folder);
    return status;
}

stk_status stk_watch_read_words(stk_watch_sampler *sampler)
{
    const stk_watch_list *list = &sampler->sample.processes;
    for (size_t i = 0; i < list->n && i < MOST_PROCESSES; i++) {
        int64_t id = stk_watch_process_at(&sampler->sample, i)->id;
        STK_RETURN_IF_ERROR(stk_watch_name(sampler, id));
        stk_status status = read_framework(sampler, id);
        if (status == STK_OK) status = read_files(sampler, id);
        if (status != STK_OK) return status;
    }
    stk_watch_read_talks(sampler);
    return STK_OK;
}
