#include "watch/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* Sampling may take this share of a core; above it, it becomes rarer. */
static const double most_overhead = 0.005;
enum { SLOW_US = 1000000, SCAN_US = 500000, FILES_US = 4000000, LONGEST_US = 2000000 };

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

stk_status stk_watch_sampler_open(stk_watch_sampler *sampler, const stk_watch_config *config)
{
    memset(sampler, 0, sizeof(*sampler));
    sampler->config = *config;
    sampler->ras_fd = -1;
    stk_watch_sample_init(&sampler->sample);
    sampler->text = malloc(STK_WATCH_TEXT);
    if (!sampler->text) return stk_fail_memory(STK_WATCH_TEXT);
    stk_status status = stk_watch_nvml_open(&sampler->nvml, config->nvml, &config->root, &sampler->facts);
    sampler->begin_us = sampler->own_at_us = now_us();
    sampler->own_cpu_us = own_cpu_us();
    sampler->slow_us = sampler->scan_us = sampler->files_us = sampler->group_us = INT64_MIN / 2;
    if (status == STK_OK && sampler->config.pid > 0)
        status = stk_watch_list_add(&sampler->sample.processes, config->pid)
                     ? STK_OK
                     : stk_fail_memory(sizeof(stk_watch_process));
    if (status != STK_OK) stk_watch_sampler_close(sampler);
    return status;
}

/* Samples less often where that took too much, and again as often as wanted where it would take little. */
static void settle_interval(stk_watch_sampler *sampler, int64_t wanted_us)
{
    int64_t now = now_us(), cpu = own_cpu_us();
    if (now - sampler->own_at_us < 2 * SLOW_US) return;
    double share = (double)(cpu - sampler->own_cpu_us) / (double)(now - sampler->own_at_us);
    int64_t *interval = &sampler->config.interval_us;
    if (share > most_overhead && *interval < LONGEST_US)
        *interval *= 2;
    else if (share < most_overhead / 3 && *interval > wanted_us)
        *interval /= 2;
    sampler->own_at_us = now;
    sampler->own_cpu_us = cpu;
}

stk_status stk_watch_sampler_take(stk_watch_sampler *sampler)
{
    int64_t now = now_us() - sampler->begin_us;
    bool is_slow = now - sampler->slow_us >= SLOW_US;
    if (now - sampler->scan_us >= SCAN_US) {
        STK_RETURN_IF_ERROR(stk_watch_scan_tree(sampler));
        sampler->scan_us = now;
    }
    STK_RETURN_IF_ERROR(stk_watch_read_processes(sampler, is_slow));
    STK_RETURN_IF_ERROR(stk_watch_read_machine(sampler, is_slow));
    STK_RETURN_IF_ERROR(stk_watch_nvml_read(&sampler->nvml, is_slow, &sampler->sample, &sampler->facts));
    if (is_slow) {
        stk_watch_read_ras(sampler);
        sampler->sample.machine.n_compilers = stk_watch_count_compilers(sampler);
        sampler->slow_us = now;
    }
    if (now - sampler->files_us >= FILES_US || (now < FILES_US && is_slow)) {
        STK_RETURN_IF_ERROR(stk_watch_read_words(sampler));
        sampler->files_us = now;
    }
    sampler->sample.time_us = now;
    settle_interval(sampler, 100000);
    return STK_OK;
}

double stk_watch_sampler_overhead(const stk_watch_sampler *sampler)
{
    int64_t elapsed = now_us() - sampler->begin_us;
    return elapsed > 0 ? (double)own_cpu_us() / (double)elapsed : 0;
}

void stk_watch_sampler_close(stk_watch_sampler *sampler)
{
    stk_watch_nvml_close(&sampler->nvml);
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
