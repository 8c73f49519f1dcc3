/* What the kernel's files say of the machine, a process and a thread arrives in the sample's fields, in the units that
 * their names tell. From files laid over the machine's own. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "watch/sampler.h"

static char over[] = "/tmp/stoker-sampler-XXXXXX";
static int job; /* this process: a folder below /proc must be there */

/* Writes a file below `over`, and the folders that it lies in. */
static void put(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *text, const char *format, ...)
{
    char path[300], whole[512];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    snprintf(whole, sizeof(whole), "%s%s", over, path);
    for (char *slash = whole + strlen(over) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0777);
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void begin(stk_watch_sampler *sampler)
{
    stk_watch_config config = {.pid = job, .root = {.over = over, .without = "libnvidia"}};
    assert_int_equal(stk_watch_sampler_open(sampler, &config), STK_OK);
}

static void test_machine(void **state)
{
    (void)state;
    stk_watch_sampler sampler;
    const stk_watch_machine *m = &sampler.sample.machine;
    int64_t tick_ms = 1000 / sysconf(_SC_CLK_TCK);
    put("cpu  10 20 30 1000 5 6 7 8 0 0\ncpu0 5 10 15 500 2 3 3 4 0 0\ncpu1 5 10 15 500 2 3 3 4 0 0\nprocesses 77\n"
        "procs_running 3\n",
        "/proc/stat");
    put("some avg10=1.00 avg60=0.00 avg300=0.00 total=11\n", "/proc/pressure/cpu");
    put("some avg10=1.00 avg60=0.00 avg300=0.00 total=12\nfull total=1\n", "/proc/pressure/io");
    put("some avg10=1.00 avg60=0.00 avg300=0.00 total=13\nfull total=1\n", "/proc/pressure/memory");
    put("MemTotal:  100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\nCached: 20 kB\nSwapTotal: 9 kB\nSwapFree: 8 kB\n",
        "/proc/meminfo");
    put("pswpin 1\npswpout 2\noom_kill 3\nworkingset_refault_file 4\n", "/proc/vmstat");
    put("259 0 nvme0n1 10 0 200 5 20 0 400 6 0 50 11\n259 1 nvme0n1p1 10 0 200 5 20 0 400 6 0 50 11\n",
        "/proc/diskstats");
    put("Inter-| Receive\n lo: 99 1 0 0 0 0 0 0 99 1\n eth0:10240 1 0 0 0 0 0 0 20480 1\n", "/proc/net/dev");
    begin(&sampler);
    stk_watch_read_cores(&sampler);
    stk_watch_read_machine(&sampler);
    assert_int_equal(m->n_cpus, 2);
    assert_int_equal(m->busy_ms, (10 + 20 + 30 + 6 + 7) * tick_ms);
    assert_int_equal(m->iowait_ms, 5 * tick_ms);
    assert_int_equal(m->steal_ms, 8 * tick_ms);
    assert_int_equal(m->n_runnable, 3);
    assert_int_equal(sampler.n_forks, 77);
    assert_int_equal(m->psi_cpu_us, 11);
    assert_int_equal(m->psi_io_us, 12);
    assert_int_equal(m->psi_memory_us, 13);
    assert_int_equal(m->memory_kb, 100);
    assert_int_equal(m->available_kb, 40);
    assert_int_equal(m->cached_kb, 20);
    assert_int_equal(m->swap_kb, 9);
    assert_int_equal(m->swap_free_kb, 8);
    assert_int_equal(m->swapped_in_pages, 1);
    assert_int_equal(m->swapped_out_pages, 2);
    assert_int_equal(m->oom_kills, 3);
    assert_int_equal(m->refaults, 4);
    assert_int_equal(m->disk_read_kb, 100);
    assert_int_equal(m->disk_written_kb, 200);
    assert_int_equal(m->disk_busy_ms, 50);
    assert_int_equal(m->net_received_kb, 10);
    assert_int_equal(m->net_sent_kb, 20);
    stk_watch_sampler_close(&sampler);
}

static void put_process(int64_t ticks, const char *wchan)
{
    char text[400];
    snprintf(text, sizeof(text),
             "%d (a) b) S 17 4711 4000 0 -1 4194560 100 200 30 40 %" PRId64
             " 70 6 7 20 0 1 0 98765 1000000 2560 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
             job, ticks);
    put(text, "/proc/%d/stat", job);
    put(text, "/proc/%d/task/%d/stat", job, job);
    put("rchar: 10240\nwchar: 20480\nsyscr: 1\nread_bytes: 30720\nwrite_bytes: 40960\n", "/proc/%d/io", job);
    put("VmSwap:\t 12 kB\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n", "/proc/%d/status", job);
    put("5000000 3000000 9\n", "/proc/%d/task/%d/schedstat", job, job);
    put(wchan, "/proc/%d/task/%d/wchan", job, job);
}

static void test_process(void **state)
{
    (void)state;
    stk_watch_sampler sampler;
    int64_t tick_us = 1000000 / sysconf(_SC_CLK_TCK), page_kb = sysconf(_SC_PAGESIZE) / 1024;
    put("0\n", "/sys/devices/system/node/node0/cpulist");
    put("1-3\n", "/sys/devices/system/node/node1/cpulist");
    put_process(500, "folio_wait_bit_common");
    begin(&sampler);
    assert_int_equal(stk_watch_read_processes(&sampler, true), STK_OK);
    const stk_watch_process *p = stk_watch_list_find(&sampler.sample.processes, job);
    assert_non_null(p);
    assert_int_equal(p->parent, 17);
    assert_int_equal(p->start_ticks, 98765);
    assert_int_equal(p->state, 'S');
    assert_int_equal(p->wait, STK_WATCH_WAIT_DISK);
    assert_int_equal(p->n_threads, 1);
    assert_int_equal(p->cpu_us, 570 * tick_us);
    assert_int_equal(p->main_us, 5000);
    assert_int_equal(p->main_waited_us, 3000);
    assert_int_equal(p->major_faults, 30);
    assert_int_equal(p->resident_kb, 2560 * page_kb);
    assert_int_equal(p->swapped_kb, 12);
    assert_int_equal(p->asked_kb, 10);
    assert_int_equal(p->put_kb, 20);
    assert_int_equal(p->read_kb, 30);
    assert_int_equal(p->written_kb, 40);
    assert_int_equal(p->voluntary, 5);
    assert_int_equal(p->involuntary, 6);
    assert_int_equal(p->last_cpu, 1);
    assert_int_equal(p->numa_node, 1);
    assert_int_equal(p->is_active, 1); /* it waits for a disk */
    const stk_watch_thread *thread = stk_watch_list_find(&sampler.sample.threads, job);
    assert_non_null(thread);
    assert_int_equal(thread->process, job);
    assert_int_equal(thread->cpu_us, 5000);
    assert_int_equal(thread->waited_us, 3000);
    /* Nothing more has run, and it sleeps. */
    put_process(500, "hrtimer_nanosleep");
    assert_int_equal(stk_watch_read_processes(&sampler, true), STK_OK);
    p = stk_watch_list_find(&sampler.sample.processes, job);
    assert_int_equal(p->wait, STK_WATCH_WAIT_SLEEP);
    assert_int_equal(p->is_active, 0);
    put_process(600, "hrtimer_nanosleep");
    assert_int_equal(stk_watch_read_processes(&sampler, true), STK_OK);
    p = stk_watch_list_find(&sampler.sample.processes, job);
    assert_int_equal(p->is_active, 1);
    stk_watch_sampler_close(&sampler);
}

static int set_up(void **state)
{
    (void)state;
    job = (int)getpid();
    return mkdtemp(over) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return stk_tree_remove(over) == STK_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_machine), cmocka_unit_test(test_process)};
    return cmocka_run_group_tests_name("watch/sampler", tests, set_up, tear_down);
}
