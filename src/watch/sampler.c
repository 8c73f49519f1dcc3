#include "watch/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* Together half a per cent of a core. */
static const stk_watch_pace fast_pace = {.share = 0.0025, .most_us = 2000000};
static const stk_watch_pace slow_pace = {.share = 0.0015, .least_us = 1000000, .most_us = 10000000};
static const stk_watch_pace scan_pace = {.share = 0.001, .least_us = 500000, .most_us = 5000000};
static const stk_watch_pace words_pace = {.share = 0.0005, .least_us = 4000000, .most_us = 60000000};
enum { EARLY_US = 4000000 }; /* in which frameworks are loaded */

static int64_t now_us(void)
{
    return stk_clock_ns() / 1000;
}

static int64_t own_cpu_us(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return 0;
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* --- how often --- */

static void begin_pace(stk_watch_pace *pace, const stk_watch_pace *model, int64_t least_us)
{
    *pace = *model;
    if (least_us > 0) pace->least_us = least_us;
    if (pace->most_us < pace->least_us) pace->most_us = pace->least_us;
    pace->every_us = pace->least_us;
    pace->done_us = INT64_MIN / 2;
}

static bool is_due(const stk_watch_pace *pace, int64_t now)
{
    return now - pace->done_us >= pace->every_us;
}

/* It was done at `now` and took from *cpu_us on, which goes on to the present. */
static void settle(stk_watch_pace *pace, int64_t now, int64_t *cpu_us)
{
    int64_t cpu = own_cpu_us(), cost = cpu - *cpu_us;
    *cpu_us = cpu;
    /* From 0 on: the first time takes longest, since no file is open yet and all processes are strangers. */
    pace->cost_us = (3 * pace->cost_us + cost) / 4;
    pace->every_us = (int64_t)((double)pace->cost_us / pace->share);
    if (pace->every_us < pace->least_us) pace->every_us = pace->least_us;
    if (pace->every_us > pace->most_us) pace->every_us = pace->most_us;
    pace->done_us = now;
}

stk_status stk_watch_sampler_open(stk_watch_sampler *sampler, const stk_watch_config *config)
{
    memset(sampler, 0, sizeof(*sampler));
    sampler->config = *config;
    sampler->ras_fd = -1;
    stk_watch_sample_init(&sampler->sample);
    sampler->text = malloc(STK_WATCH_TEXT);
    if (!sampler->text) return stk_fail_memory(STK_WATCH_TEXT);
    begin_pace(&sampler->fast, &fast_pace, config->interval_us);
    begin_pace(&sampler->slow, &slow_pace, 0);
    begin_pace(&sampler->scan, &scan_pace, 0);
    begin_pace(&sampler->words, &words_pace, 0);
    stk_watch_keeper_open(&sampler->keeper, &sampler->config.root);
    sampler->own_pid = getpid();
    sampler->n_forks = sampler->n_scanned_forks = sampler->n_listed_forks = -1;
    sampler->has_nodes =
        stk_watch_read(&config->root, sampler->text, STK_WATCH_SHORT, "/sys/devices/system/node/node1/cpulist");
    sampler->begin_us = now_us();
    sampler->left_cpu_us = own_cpu_us();
    stk_status status = stk_watch_driver_open(&sampler->driver, config->nvml, &config->root, &sampler->facts);
    if (status == STK_OK && sampler->config.pid > 0)
        status = stk_watch_list_add(&sampler->sample.processes, config->pid)
                     ? STK_OK
                     : stk_fail_memory(sizeof(stk_watch_process));
    if (status != STK_OK) stk_watch_sampler_close(sampler);
    return status;
}

int64_t stk_watch_sampler_interval_us(const stk_watch_sampler *sampler)
{
    return sampler->fast.every_us;
}

/* --- a sample --- */

stk_status stk_watch_sampler_take(stk_watch_sampler *sampler)
{
    int64_t now = now_us() - sampler->begin_us, cpu_us = own_cpu_us();
    int64_t outside_us = cpu_us - sampler->left_cpu_us;
    bool is_slow = sampler->config.each_whole || is_due(&sampler->slow, now);
    sampler->sample.time_us = now;
    stk_watch_read_spins(sampler); /* before the rest keeps others from their core, for whom they would spin */
    if (sampler->config.each_whole || is_due(&sampler->scan, now)) {
        stk_watch_read_cores(sampler);
        STK_RETURN_IF_ERROR(stk_watch_scan_tree(sampler));
        settle(&sampler->scan, now, &cpu_us);
    }
    STK_RETURN_IF_ERROR(stk_watch_read_processes(sampler, is_slow));
    if (is_slow) {
        stk_watch_read_machine(sampler);
        stk_watch_read_ras(sampler);
    }
    STK_RETURN_IF_ERROR(stk_watch_driver_read(sampler->driver, is_slow, &sampler->sample, &sampler->facts));
    /* What is done with each sample counts, too. */
    if (!is_slow) cpu_us -= outside_us;
    settle(is_slow ? &sampler->slow : &sampler->fast, now, &cpu_us);
    if (is_slow && (now < EARLY_US || is_due(&sampler->words, now))) {
        STK_RETURN_IF_ERROR(stk_watch_read_words(sampler));
        settle(&sampler->words, now, &cpu_us);
    }
    sampler->left_cpu_us = cpu_us;
    return STK_OK;
}

int64_t stk_watch_sampler_last_kills(stk_watch_sampler *sampler)
{
    stk_watch_machine *m = &sampler->sample.machine, before = *m;
    stk_watch_read_kills(sampler);
    int64_t of_group = m->group_oom_kills - before.group_oom_kills, of_all = m->oom_kills - before.oom_kills;
    int64_t kills = before.group_oom_kills >= 0 ? of_group : before.oom_kills >= 0 ? of_all : 0;
    return kills > 0 ? kills : 0;
}

double stk_watch_sampler_overhead(const stk_watch_sampler *sampler)
{
    int64_t elapsed = now_us() - sampler->begin_us;
    return elapsed > 0 ? (double)own_cpu_us() / (double)elapsed : 0;
}

void stk_watch_sampler_close(stk_watch_sampler *sampler)
{
    stk_watch_end_spins(sampler);
    stk_watch_driver_close(sampler->driver);
    sampler->driver = NULL;
    stk_watch_keeper_close(&sampler->keeper);
    if (sampler->ras_fd >= 0) close(sampler->ras_fd);
    sampler->ras_fd = -1;
    stk_watch_sample_free(&sampler->sample);
    stk_watch_facts_free(&sampler->facts);
    free(sampler->stranger);
    free(sampler->text);
    sampler->stranger = NULL;
    sampler->text = NULL;
    sampler->n_strangers = sampler->stranger_capacity = 0;
}
