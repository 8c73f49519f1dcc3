/* Entries that stand in a list again and again are a loop in the module where they can be one, and else stand there one
 * by one, with the same results. The text is that for a chip that is not here; numbers want a plug-in, test_pjrt.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/queue.h"

/* Three turns go over 8 rows: rows 0 to 2, 3 to 5, 5 to 7.
 *
 *   body    d = x * x; sum = sum + d, in place
 *   after   end = d + sum
 */
enum { N_TURNS = 3, N_ROWS = 8, ROWS = 3, COLUMNS = 2, N = ROWS * COLUMNS, N_ENTRIES = 2 * N_TURNS + 1 };
static const int first_row[N_TURNS] = {0, 3, 5};

typedef struct listing {
    stk_device *device;
    float *x, *sum, *end, *d; /* of the device */
    stk_kernel multiply, add, finish;
    void *pointer[N_ENTRIES][3];
    stk_entry entry[N_ENTRIES];
} listing;

static void expect_ok(stk_status status)
{
    if (status != STK_OK) fail_msg("%s: %s", stk_status_text(status), stk_error_text());
}

static void find_kernel(stk_device *device, int kind, stk_kernel *out)
{
    stk_attrs attrs = stk_attrs_zero();
    stk_tensor_desc part = stk_desc_make(STK_F32, STK_SHAPE(ROWS, COLUMNS)), in[2] = {part, part};
    stk_op_call call = {STK_OP_binary, &attrs, 2, 1, in, &part};
    attrs.element.kind = kind;
    expect_ok(device->class->kernel(device, &call, out));
}

static void set_entry(listing *l, int i, const stk_kernel *kernel, float *a, float *b, float *to)
{
    l->pointer[i][0] = a;
    l->pointer[i][1] = b;
    l->pointer[i][2] = to;
    l->entry[i] = (stk_entry){kernel, {.in = l->pointer[i], .out = l->pointer[i] + 2}};
}

static float *alloc_floats(stk_device *device, size_t n, stk_memory_kind kind)
{
    void *p;
    expect_ok(device->class->alloc(device, n * sizeof(float), kind, &p));
    return p;
}

/* own_places: d lies elsewhere in each turn. */
static void open_listing(listing *l, const char *device, bool own_places)
{
    expect_ok(stk_device_open(device, NULL, &l->device));
    find_kernel(l->device, STK_BINARY_mul, &l->multiply);
    find_kernel(l->device, STK_BINARY_add, &l->add);
    find_kernel(l->device, STK_BINARY_add, &l->finish);
    l->x = alloc_floats(l->device, N_ROWS * COLUMNS, STK_MEMORY_ZEROED);
    l->sum = alloc_floats(l->device, N, STK_MEMORY_ZEROED);
    l->end = alloc_floats(l->device, N, STK_MEMORY_ZEROED);
    l->d = alloc_floats(l->device, (size_t)N_TURNS * N, STK_MEMORY_SCRATCH);
    float *d = l->d;
    for (int t = 0; t < N_TURNS; t++) {
        float *x = l->x + (ptrdiff_t)first_row[t] * COLUMNS;
        d = l->d + (own_places ? (ptrdiff_t)t * N : 0);
        set_entry(l, 2 * t, &l->multiply, x, x, d);
        set_entry(l, 2 * t + 1, &l->add, l->sum, d, l->sum);
    }
    set_entry(l, N_ENTRIES - 1, &l->finish, d, l->sum, l->end);
}

static void close_listing(listing *l)
{
    stk_kernel_free(&l->multiply);
    stk_kernel_free(&l->add);
    stk_kernel_free(&l->finish);
    stk_device_close(l->device);
}

/* Operations of that name and of the parts' type. */
static int count_parts(const char *text, const char *name)
{
    static const char type[] = " : tensor<3x2xf32>\n";
    int n = 0;
    for (const char *p = text; (p = strstr(p, name)); p += strlen(name))
        n += !strncmp(p + strcspn(p, ":") - 1, type, sizeof(type) - 1);
    return n;
}

static void expect_text(bool own_places, bool is_loop, int n_products)
{
    listing l;
    stk_capture *capture;
    stk_text text = {0};
    open_listing(&l, "tpu:v5e:1x1", own_places);
    const stk_queue_class *queues = l.device->class->queues;
    expect_ok(queues->capture(l.device, l.entry, N_ENTRIES, &capture));
    expect_ok(queues->keep(capture, NULL, 0));
    expect_ok(queues->print(capture, NULL, 0, &text));
    int seen = count_parts(stk_text_get(&text), " = stablehlo.multiply ");
    if (!strstr(stk_text_get(&text), "stablehlo.while") == is_loop || seen != n_products)
        fail_msg("%s loop and %d products are wanted:\n%s", is_loop ? "a" : "no", n_products, stk_text_get(&text));
    stk_text_free(&text);
    queues->release(capture);
    close_listing(&l);
}

static void turns_are_a_loop(void **state)
{
    (void)state;
    expect_text(false, true, 1);
}

static void what_no_loop_can_say_stands_there_one_by_one(void **state)
{
    (void)state;
    expect_text(true, false, N_TURNS);
}

static void expect_numbers(bool own_places)
{
    listing l;
    stk_queue *queue;
    int i_failed;
    float x[N_ROWS * COLUMNS], sum[N], end[N], seen[N];
    open_listing(&l, "pjrt", own_places);
    expect_ok(l.device->class->queues->open(l.device, &queue));
    for (int i = 0; i < N_ROWS * COLUMNS; i++)
        x[i] = (float)(i % 7) - 2;
    for (int i = 0; i < N; i++)
        sum[i] = (float)i;
    expect_ok(stk_queue_copy_now(queue, l.x, x, sizeof(x), STK_COPY_TO_DEVICE));
    expect_ok(stk_queue_copy_now(queue, l.sum, sum, sizeof(sum), STK_COPY_TO_DEVICE));
    for (int run = 0; run < 2; run++) {
        for (int t = 0; t < N_TURNS; t++)
            for (int i = 0; i < N; i++) {
                float one = x[first_row[t] * COLUMNS + i];
                sum[i] += one * one;
                end[i] = one * one + sum[i];
            }
        expect_ok(stk_queue_run_now(queue, l.entry, N_ENTRIES, &i_failed));
        expect_ok(stk_queue_copy_now(queue, seen, l.sum, sizeof(seen), STK_COPY_TO_HOST));
        assert_memory_equal(seen, sum, sizeof(sum));
        expect_ok(stk_queue_copy_now(queue, seen, l.end, sizeof(seen), STK_COPY_TO_HOST));
        assert_memory_equal(seen, end, sizeof(end));
    }
    l.device->class->queues->close(queue);
    close_listing(&l);
}

static void both_compute_the_same(void **state)
{
    const char *path = getenv("STOKER_PJRT_PATH");
    (void)state;
    if (!path || !*path) {
        print_message("SKIP: no PJRT plug-in: STOKER_PJRT_PATH is not set\n");
        return;
    }
    expect_numbers(false);
    expect_numbers(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_a_loop),
        cmocka_unit_test(what_no_loop_can_say_stands_there_one_by_one),
        cmocka_unit_test(both_compute_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
