/* What launching a program costs the host on the device 'cuda': 300 kernels that do nothing are one launch, which costs
 * little more than the three calls of the driver that it is. On the played GPU (tests/device/play), or on what
 * STOKER_CUDA and STOKER_NVRTC name.
 */
#define DEVICE "cuda"

#include <stdio.h>

#include "base/clock.h"
#include "device/gpu/cuda/cuda.h"
#include "device/gpu/endless.h"

enum { N_KERNELS = 300, N_ROUNDS = 7, N_LAUNCHES = 20 };

static int n_graphs, n_kernels;
static cu_symbols real;

static int count_graph(cu_graph_exec exec, cu_stream stream)
{
    n_graphs++;
    return real.cuGraphLaunch(exec, stream);
}

static int count_kernel(cu_function f, unsigned nx, unsigned ny, unsigned nz, unsigned x, unsigned y, unsigned z,
                        unsigned bytes, cu_stream stream, void *const *arguments, void *const *extra)
{
    n_kernels++;
    return real.cuLaunchKernel(f, nx, ny, nz, x, y, z, bytes, stream, arguments, extra);
}

/* The least that one takes of some rounds, in ns. */
static int64_t time_launches(const stk_queue_class *queues, stk_queue *queue, const stk_capture *capture)
{
    int64_t least = INT64_MAX;
    int i_failed;
    for (int round = 0; round < N_ROUNDS; round++) {
        const int64_t begun = stk_clock_ns();
        for (int i = 0; i < N_LAUNCHES; i++)
            expect_ok(queues->launch(queue, capture, &i_failed));
        const int64_t took = (stk_clock_ns() - begun) / N_LAUNCHES;
        if (took < least) least = took;
        expect_ok(queues->finish(queue));
    }
    return least;
}

/* The same by nothing but the driver. */
static int64_t time_calls(const cuda_capture *capture, cu_stream stream)
{
    int64_t least = INT64_MAX;
    for (int round = 0; round < N_ROUNDS; round++) {
        const int64_t begun = stk_clock_ns();
        for (int i = 0; i < N_LAUNCHES; i++) {
            assert_int_equal(cu.cuEventRecord(capture->begin, stream), 0);
            assert_int_equal(cu.cuGraphLaunch(capture->graph, stream), 0);
            assert_int_equal(cu.cuEventRecord(capture->end, stream), 0);
        }
        const int64_t took = (stk_clock_ns() - begun) / N_LAUNCHES;
        if (took < least) least = took;
        expect_ok(cuda_wait_stream(capture->context, stream));
    }
    return least;
}

static void a_launch_costs_the_host_little(void **state)
{
    (void)state;
    stk_device *device = open_device();
    const stk_queue_class *queues = device->class->queues;
    endless_entry e;
    stk_capture *capture;
    stk_queue *queue;
    make_endless(device, N_KERNELS, 0, &e);
    expect_ok(queues->capture(device, &e.entry, 1, &capture));
    expect_ok(queues->open(device, &queue));
    real = cu;
    cu.cuGraphLaunch = count_graph;
    cu.cuLaunchKernel = count_kernel;
    const int64_t ours = time_launches(queues, queue, capture);
    assert_int_equal(n_graphs, N_ROUNDS * N_LAUNCHES);
    assert_int_equal(n_kernels, 0);
    cu = real;
    const int64_t bare = time_calls((const cuda_capture *)capture, cuda_stream_of(queue));
    print_message(
        "%d empty kernels are one launch: %.2f us of the host, of which the driver's own calls take %.2f us\n",
        N_KERNELS, (double)ours * 1e-3, (double)bare * 1e-3);
    /* A call more, to make the context the thread's own, and what notes the last launch. */
    assert_true(ours < 4 * bare + 2000);
    queues->close(queue);
    queues->release(capture);
    device->class->free(device, e.x, 256);
    stk_device_close(device);
    free_endless(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_launch_costs_the_host_little)};
    take_played_gpu();
    setenv("STOKER_CUBLASLT", "0", 1);
    if (!has_device()) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
