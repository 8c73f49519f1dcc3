/* The trainer's configuration from a recipe, and how much memory there is. See train/build.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/build.h"

/* A line "name:  123 kB" of /proc/meminfo, in bytes; 0 when there is none. */
static size_t read_meminfo(const char *name)
{
    char line[256];
    size_t n = strlen(name);
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file) return 0;
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, name, n) && line[n] == ':') kib = strtoull(line + n + 1, NULL, 10);
    fclose(file);
    return (size_t)kib * 1024;
}

static size_t read_number(const char *path)
{
    char line[64] = "";
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    char *got = fgets(line, sizeof(line), file);
    fclose(file);
    /* "max" reads as 0: no limit. */
    return got ? (size_t)strtoull(line, NULL, 10) : 0;
}

/* What the machine has, or this container where that is less. available: what is free now. */
static size_t memory_bytes(bool available)
{
    size_t total = read_meminfo(available ? "MemAvailable" : "MemTotal");
    size_t limit = read_number("/sys/fs/cgroup/memory.max"), used = read_number("/sys/fs/cgroup/memory.current");
    if (limit > 0) {
        size_t left = available ? (limit > used ? limit - used : 0) : limit;
        if (total == 0 || left < total) return left;
    }
    return total;
}

size_t stk_build_memory_limit(const stk_recipe *recipe)
{
    if (recipe->memory_bytes >= 0) return (size_t)recipe->memory_bytes;
    if (recipe->memory_bytes == -1) return memory_bytes(true);
    return (size_t)((double)memory_bytes(false) * recipe->memory_share);
}

stk_trainer_config stk_build_config(const stk_recipe *recipe)
{
    stk_trainer_config config = stk_trainer_config_default();
    config.device = recipe->device;
    config.n_threads = (int)recipe->max_threads;
    config.seed = recipe->seed;
    config.clip_norm = recipe->clip_norm;
    config.schedule = recipe->schedule;
    config.no_decay = recipe->no_decay;
    config.memory_limit_bytes = stk_build_memory_limit(recipe);
    config.patience = recipe->patience;
    return config;
}
