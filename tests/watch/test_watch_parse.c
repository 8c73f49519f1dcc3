/* The kernel's texts: what is read from true ones, and that damaged ones are refused. */
#include "watch/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_stat(void **state)
{
    (void)state;
    stk_watch_stat stat;
    assert_true(stk_watch_parse_stat(
        "4711 (a) b) (c) D 17 4711 4000 0 -1 4194560 100 200 30 40 500 70 6 7 20 0 12 0 98765 1000000 2560 "
        "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0",
        &stat));
    assert_string_equal(stat.name, "a) b) (c");
    assert_int_equal(stat.state, 'D');
    assert_int_equal(stat.pid, 4711);
    assert_int_equal(stat.parent, 17);
    assert_int_equal(stat.group, 4711);
    assert_int_equal(stat.session, 4000);
    assert_int_equal(stat.major_faults, 30);
    assert_int_equal(stat.cpu_ticks, 570);
    assert_int_equal(stat.n_threads, 12);
    assert_int_equal(stat.start_ticks, 98765);
    assert_int_equal(stat.resident_pages, 2560);
    assert_int_equal(stat.last_cpu, 3);
    assert_false(stk_watch_parse_stat("", &stat));
    assert_false(stk_watch_parse_stat("1 (x", &stat));
    assert_false(stk_watch_parse_stat("1 (x) S 2 3", &stat));
    assert_false(stk_watch_parse_stat("1 )x( S 2 3 4 5", &stat));
}

static void test_times(void **state)
{
    (void)state;
    int64_t run, waited;
    assert_true(stk_watch_parse_schedstat("27867 188597 2\n", &run, &waited));
    assert_int_equal(run, 27867);
    assert_int_equal(waited, 188597);
    assert_false(stk_watch_parse_schedstat("27867", &run, &waited));
    assert_false(stk_watch_parse_schedstat("-1 2 3", &run, &waited));
    stk_watch_cpu_times times;
    assert_true(stk_watch_parse_cpu_times(
        "cpu  10 20 30 1000 5 6 7 8 0 0\ncpu0 5 10 15 500 2 3 3 4 0 0\ncpu1 5 10 15 500 3 3 4 4 0 0\nintr 1 2\n"
        "procs_running 3\n",
        &times));
    assert_int_equal(times.busy, 73);
    assert_int_equal(times.iowait, 5);
    assert_int_equal(times.steal, 8);
    assert_int_equal(times.n_cpus, 2);
    assert_int_equal(times.n_runnable, 3);
    assert_false(stk_watch_parse_cpu_times("cpu 1 2 3", &times));
}

static void test_keys(void **state)
{
    (void)state;
    const char *text = "VmSwapped:\t9 kB\nVmSwap:\t     12 kB\nThreads: 3\nnr_throttled 5\nempty:\nmax";
    assert_int_equal(stk_watch_parse_key(text, "VmSwap"), 12);
    assert_int_equal(stk_watch_parse_key(text, "nr_throttled"), 5);
    assert_int_equal(stk_watch_parse_key(text, "nr_throttle"), -1);
    assert_int_equal(stk_watch_parse_key(text, "empty"), -1);
    assert_int_equal(stk_watch_parse_key(text, "max"), -1);
    assert_int_equal(stk_watch_parse_number("9223372036854771712\n"), -1);
    assert_int_equal(stk_watch_parse_number("max 100000\n"), -1);
    assert_int_equal(stk_watch_parse_number("50000 100000\n"), 50000);
    const char *psi = "some avg10=1.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 avg60=0 avg300=0 total=5\n";
    assert_int_equal(stk_watch_parse_pressure(psi, "some"), 77);
    assert_int_equal(stk_watch_parse_pressure(psi, "full"), 5);
    assert_int_equal(stk_watch_parse_pressure("some avg10=1.00\nfull total=5", "some"), -1);
}

static void test_traffic(void **state)
{
    (void)state;
    stk_watch_disks disks;
    int64_t received, sent;
    assert_true(stk_watch_parse_disks("   7 0 loop0 1 1 9 1 1 1 9 1 1 1 1\n"
                                      " 259 0 nvme0n1 10 0 100 5 20 0 200 6 0 50 11\n"
                                      " 259 1 nvme0n1p1 10 0 100 5 20 0 200 6 0 50 11\n"
                                      "   8 0 sda 1 0 7 0 1 0 8 0 0 3 0 0 0 0 0 0 0\n",
                                      &disks));
    assert_int_equal(disks.read_sectors, 107);
    assert_int_equal(disks.written_sectors, 208);
    assert_int_equal(disks.busy_ms, 53);
    assert_false(stk_watch_parse_disks("nothing", &disks));
    assert_true(stk_watch_parse_net("Inter-| Receive\n face |bytes\n    lo: 5 1 0 0 0 0 0 0 5 1 0 0\n"
                                    "  eth0:1000 1 0 0 0 0 0 0 2000 1 0 0\n",
                                    &received, &sent));
    assert_int_equal(received, 1000);
    assert_int_equal(sent, 2000);
}

static void test_cpu_lists(void **state)
{
    (void)state;
    bool has;
    assert_int_equal(stk_watch_parse_cpu_list("0-3,8,10-11\n", 8, &has), 7);
    assert_true(has);
    assert_int_equal(stk_watch_parse_cpu_list("0-3\n", 4, &has), 4);
    assert_false(has);
    assert_int_equal(stk_watch_parse_cpu_list("", 0, &has), 0);
    assert_int_equal(stk_watch_parse_cpu_list("3-1", 0, &has), -1);
    assert_int_equal(stk_watch_parse_cpu_list("1;2", 0, &has), -1);
    assert_int_equal(stk_watch_parse_cpu_list("0-99999999999", 0, &has), -1);
}

static void test_mounts(void **state)
{
    (void)state;
    char type[STK_WATCH_PATH], point[STK_WATCH_PATH];
    const char *text = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                       "30 20 0:40 / /data rw,nosuid shared:1 - nfs4 server:/x rw\n"
                       "31 30 0:41 / /data/fast rw - xfs /dev/sdb rw\n"
                       "32 30 0:42 / /data/slow rw - fuse.sshfs host: rw\n";
    assert_true(stk_watch_parse_mount(text, "/data/a.jpg", type, point));
    assert_string_equal(type, "nfs4");
    assert_true(stk_watch_parse_mount(text, "/data/fast/a.jpg", type, point));
    assert_string_equal(type, "xfs");
    assert_true(stk_watch_parse_mount(text, "/database/a", type, point));
    assert_string_equal(type, "ext4");
    assert_string_equal(point, "/");
    assert_true(stk_watch_parse_mount(text, "/data/slow", type, point));
    assert_true(stk_watch_is_remote(type));
    assert_true(stk_watch_is_remote("nfs4"));
    assert_false(stk_watch_is_remote("ext4"));
    assert_false(stk_watch_is_remote("fuseblk"));
    assert_false(stk_watch_parse_mount("", "/x", type, point));
}

static void test_words(void **state)
{
    (void)state;
    stk_watch_call call;
    assert_true(stk_watch_parse_call("0 0x5 0x7f 0x1000 0x0 0x0 0x0 0x7ffc 0x7f36\n", &call));
    assert_int_equal(call.number, 0);
    assert_int_equal(call.argument[0], 5);
    assert_int_equal(call.argument[2], 0x1000);
    assert_false(stk_watch_parse_call("running\n", &call));
    assert_false(stk_watch_parse_call("-1 0x7ffc 0x7f36\n", &call));
    stk_watch_connection here, there;
    int64_t inode;
    assert_true(stk_watch_parse_connection(
        "   1: 0100007F:A1B2 0200007F:1F90 01 00000000:00000000 02:000000AF 00000000     0        0 7771 2 0 20 4\n",
        &inode, &here));
    assert_int_equal(inode, 7771);
    assert_true(stk_watch_parse_connection("   0: 0000000000000000FFFF00000200007F:1F90 "
                                           "0000000000000000FFFF00000100007F:A1B2 01 0:0 0:0 0 0 0 7772 1\n",
                                           &inode, &there));
    assert_true(here.here == there.there && here.there == there.here && here.here != here.there);
    assert_false(stk_watch_parse_connection("   0: 0100007F:A1B2 00000000:0000 0A 0:0 0:0 0 0 0 7 1\n", &inode, &here));
    assert_false(stk_watch_parse_connection("  sl  local_address rem_address   st tx_queue rx_queue", &inode, &here));
    assert_int_equal(stk_watch_parse_wchan("request_wait_answer"), STK_WATCH_WAIT_REMOTE);
    assert_int_equal(stk_watch_parse_wchan("folio_wait_bit_common"), STK_WATCH_WAIT_DISK);
    assert_int_equal(stk_watch_parse_wchan("futex_wait_queue"), STK_WATCH_WAIT_LOCK);
    assert_int_equal(stk_watch_parse_wchan("wait_woken"), STK_WATCH_WAIT_NET);
    assert_int_equal(stk_watch_parse_wchan("hrtimer_nanosleep"), STK_WATCH_WAIT_SLEEP);
    assert_int_equal(stk_watch_parse_wchan("0"), STK_WATCH_WAIT_UNKNOWN);
    assert_string_equal(stk_watch_parse_framework("7f-80 r-xp 0 0 0 /x/torch/lib/libtorch_cpu.so\n"), "torch");
    assert_string_equal(stk_watch_parse_framework("55-56 r-xp 0 0 0 /usr/bin/stoker\n"), "stoker");
    assert_null(stk_watch_parse_framework("/usr/lib/libc.so.6\n"));
    stk_watch_code code[2];
    const char *maps = "7f10-7f20 r--p 0 0 0 /x/torch/lib/libgomp-a34b3233.so.1\n"
                       "7f20-7f80 r-xp 0 0 0 /x/torch/lib/libgomp-a34b3233.so.1\n"
                       "7f90-7fa0 r-xp 0 0 0 /libgomp/libc.so.6\n7fa0-7fb0 r-xp 0 0 0\n"
                       "7fb0-7fc0 r-xp 0 0 0 /usr/lib/libiomp5.so\n7fc0-7fd0 r-xp 0 0 0 /libomp.so.5\n";
    assert_int_equal(stk_watch_parse_openmp(maps, code, 2), 2);
    assert_true(code[0].begin == 0x7f20 && code[0].end == 0x7f80 && code[1].begin == 0x7fb0);
    assert_int_equal(stk_watch_parse_openmp("", code, 2), 0);
    assert_int_equal(stk_watch_parse_openmp("1-2 r-xp 0 0:0 9 /x/libgomp.so", code, 2), 1);
    assert_int_equal(stk_watch_parse_feeding(maps, code, 2), 0); /* Of other frameworks nothing is asked. */
    maps = "10-20 r-xp 0 0 0 /usr/bin/python3.13\n20-30 r--p 0 0 0 /usr/bin/python3.13\n"
           "30-40 r-xp 0 0 0 /v/lib/python3.13/site-packages/jaxlib/libjax_common.so\n40-50 r-xp 0 0 0\n"
           "50-60 r-xp 0 0 0 /usr/lib/libc.so.6\n60-70 r-xp 0 0 0 /usr/lib/libz.so.1\n";
    assert_int_equal(stk_watch_parse_feeding(maps, code, 2), 2);
    assert_true(code[0].begin == 0x10 && code[0].end == 0x20 && code[1].begin == 0x60 && code[1].end == 0x70);
    assert_int_equal(stk_watch_parse_feeding(maps, code, 1), 1);
    /* A small program with a library, which has what follows it without a name. */
    maps = "1000-3000 rw-p 0 0 0 /usr/bin/python3.13\n3000-4000 rw-p 0 0 0 [heap]\n"
           "8000-9000 r--p 0 0 0 /usr/lib/libpython3.13.so.1.0\n9000-b000 rw-p 0 0 0 /usr/lib/libpython3.13.so.1.0\n"
           "b000-d000 rw-p 0 0 0 \nd000-ff000 rw-p 0 0 0 /usr/lib/python3/numpy.so\n";
    assert_true(stk_watch_parse_interpreter(maps, code) && code[0].begin == 0x9000 && code[0].end == 0xd000);
    maps = "1000-2000 rw-p 0 0 0 /usr/bin/python3.11\n2000-9002000 rw-p 0 0 0\n9003000-a000000 rw-p 0 0 0\n";
    assert_true(stk_watch_parse_interpreter(maps, code) && code[0].begin == 0x1000 && code[0].end == 0x102000);
    maps = "1000-2000 r-xp 0 0 0 /usr/bin/python3.11\n2000-3000 rw-p 0 0 0\n5000-6000 rw-p 0 0 0 /x/libpython\n";
    assert_true(stk_watch_parse_interpreter(maps, code) && code[0].begin == 0x5000); /* as "libpython.so" */
    assert_false(stk_watch_parse_interpreter("1000-2000 rw-p 0 0 0 /usr/lib/python3/x.so\n", code));
    assert_false(stk_watch_parse_interpreter("", code));
    assert_int_equal(stk_watch_parse_ras("#0-0 MISMATCH\n  26 ranks have launched up to operation 6650\n"
                                         "  1 rank has launched up to operation 6649:\n  Rank 3 -- GPU 0 managed by\n"),
                     3);
    assert_int_equal(stk_watch_parse_ras("Job summary\n Rank 3 OK\n"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),      cmocka_unit_test(test_times),  cmocka_unit_test(test_keys),
        cmocka_unit_test(test_traffic),   cmocka_unit_test(test_mounts), cmocka_unit_test(test_words),
        cmocka_unit_test(test_cpu_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
