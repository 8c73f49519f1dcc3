/* Event files are read back with the reader of TFRecord files and of protobuf fields that the input pipeline has. */
#include "events/event_file.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "data/codec/tfrecord.h"
#include "data/codec/wire.h"
#include "events/event_inside.h"

static char folder[] = "/tmp/stk-events-XXXXXX";

typedef struct records {
    uint8_t *data;
    size_t n;
    uint64_t start[64];
    int count;
} records;

static stk_span record_at(const records *r, int i)
{
    stk_span whole = {r->data + r->start[i], (size_t)(r->start[i + 1] - r->start[i])}, data;
    assert_int_equal(stk_tfrecord_parse(whole, &data), STK_OK);
    return data;
}

static records read_records(const char *path)
{
    records r = {0};
    size_t capacity = 0;
    assert_int_equal(stk_file_read(path, &r.data, &capacity, &r.n), STK_OK);
    for (uint64_t at = 0; at < r.n && r.count < 63;) {
        uint64_t n;
        r.start[r.count++] = at;
        assert_int_equal(stk_tfrecord_parse_header(r.data + at, &n), STK_OK);
        r.start[r.count] = at += n + STK_TFRECORD_FRAME_BYTES;
        assert_true(at <= r.n);
    }
    return r;
}

/* The i-th field of that number. */
static bool find(stk_span message, uint32_t number, int i, stk_wire_field *out)
{
    stk_wire w = stk_wire_start(message);
    while (w.p < w.end) {
        assert_true(stk_wire_next(&w, out));
        if (out->number == number && i-- == 0) return true;
    }
    return false;
}

static stk_span get(stk_span message, uint32_t number, int i)
{
    stk_wire_field field;
    assert_true(find(message, number, i, &field));
    return field.bytes;
}

static bool is_text(stk_span bytes, const char *text)
{
    return bytes.n == strlen(text) && !memcmp(bytes.data, text, bytes.n);
}

static void values_are_read_back(void **state)
{
    (void)state;
    stk_event_file *file;
    stk_wire_field field;
    float x[103], value;
    double row[3];
    uint8_t png[2][3] = {{1, 2, 3}, {4, 5, 6}};
    stk_event_image image[2] = {{png[0], 3}, {png[1], 3}};
    for (int i = 0; i < 100; i++)
        x[i] = (float)i;
    x[100] = NAN;
    x[101] = INFINITY;
    x[102] = -INFINITY;
    assert_int_equal(stk_event_file_open(folder, 0, &file), STK_OK);
    stk_event_begin(file, 300);
    stk_event_add_scalar(file, "a/loss", true, 0.5);
    stk_event_add_scalar(file, "a/rate", true, NAN);
    assert_int_equal(stk_event_end(file), STK_OK);
    stk_event_begin(file, 301);
    stk_event_add_scalar(file, "a/loss", false, -2);
    stk_event_add_histogram(file, "w", true, x, 103);
    stk_event_add_histogram(file, "none", true, x + 100, 3);
    stk_event_add_text(file, "t", true, "# recipe");
    stk_event_add_images(file, "i", true, image, 2, 20, 30);
    assert_int_equal(stk_event_end(file), STK_OK);
    stk_event_begin(file, 302);
    assert_int_equal(stk_event_end(file), STK_OK); /* nothing to write */
    records r = read_records(stk_event_file_path(file));
    assert_int_equal(r.count, 4); /* two of the file's own */
    assert_true(is_text(get(record_at(&r, 0), 3, 0), "brain.Event:2"));

    assert_true(find(record_at(&r, 2), 2, 0, &field) && field.value == 300);
    stk_span summary = get(record_at(&r, 2), 5, 0), first = get(summary, 1, 0);
    assert_true(is_text(get(first, 1, 0), "a/loss"));
    assert_true(is_text(get(get(get(first, 9, 0), 1, 0), 1, 0), "scalars"));
    stk_span content = get(get(first, 8, 0), 4, 0);
    memcpy(&value, content.data, 4);
    assert_true(content.n == 4 && value == 0.5F);

    summary = get(record_at(&r, 3), 5, 0);
    assert_false(find(get(summary, 1, 0), 9, 0, &field)); /* the plugin is named once */
    stk_span histogram = get(get(get(summary, 1, 1), 8, 0), 4, 0);
    assert_int_equal(histogram.n, 30 * 3 * 8);
    double count = 0;
    for (int i = 0; i < 30; i++) {
        memcpy(row, histogram.data + i * 24, 24);
        count += row[2];
        if (i == 0) assert_true(row[0] == 0);
        assert_true(row[2] == 3 || row[2] == 4); /* 0 to 99, spread evenly */
    }
    assert_true(count == 100 && row[1] == 99);
    assert_true(is_text(get(get(summary, 1, 2), 1, 0), "t")); /* the histogram of no number is left out */
    assert_true(is_text(get(get(get(summary, 1, 2), 8, 0), 8, 0), "# recipe"));
    stk_span images = get(get(summary, 1, 3), 8, 0);
    assert_true(is_text(get(images, 8, 0), "30") && is_text(get(images, 8, 1), "20"));
    assert_memory_equal(get(images, 8, 3).data, png[1], 3);
    free(r.data);
    stk_event_file_close(file);
}

static void graphs_are_read_back(void **state)
{
    (void)state;
    stk_event_file *file;
    int64_t shape[2] = {-1, 10};
    int input[1] = {0};
    stk_event_node node[2] = {{.name = "x", .op = "input", .shape = shape, .rank = 2},
                              {.name = "dense/matmul", .op = "matmul", .input = input, .n_inputs = 1, .rank = -1}};
    assert_int_equal(stk_event_file_open(folder, 0, &file), STK_OK);
    assert_int_equal(stk_event_write_graph(file, node, 2), STK_OK);
    records r = read_records(stk_event_file_path(file));
    stk_span graph = get(record_at(&r, 2), 4, 0);
    assert_true(is_text(get(get(graph, 1, 1), 3, 0), "x"));
    free(r.data);
    stk_event_file_close(file);
}

/* A resumed run: the newer file sorts last, and says from which step on the older ones do not count. */
static void later_files_go_on(void **state)
{
    (void)state;
    stk_event_file *file, *next;
    stk_wire_field field;
    assert_int_equal(stk_event_file_open(folder, 0, &file), STK_OK);
    for (int i = 38; i < 44; i++) {
        stk_event_begin(file, i);
        stk_event_add_scalar(file, "loss", i == 38, i);
        assert_int_equal(stk_event_end(file), STK_OK);
    }
    int fd = open(stk_event_file_path(file), O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "torn", 4), 4);
    close(fd);
    assert_int_equal(stk_event_file_open(folder, 40, &next), STK_OK);
    records before = read_records(stk_event_file_path(file));
    assert_int_equal(before.count, 5);
    assert_true(find(record_at(&before, 4), 2, 0, &field) && field.value == 40);
    free(before.data);
    assert_true(strcmp(stk_event_file_path(file), stk_event_file_path(next)) < 0);
    records r = read_records(stk_event_file_path(next));
    assert_int_equal(r.count, 2);
    assert_true(find(record_at(&r, 1), 2, 0, &field) && field.value == 41);
    assert_true(find(get(record_at(&r, 1), 7, 0), 1, 0, &field) && field.value == 1);
    free(r.data);
    stk_event_file_close(file);
    stk_event_file_close(next);
    assert_int_not_equal(stk_event_file_open("/proc/none", 0, &file), STK_OK);
    assert_null(file);
}

static void put_file(const char *path, const uint8_t *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    close(fd);
}

static size_t size_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (size_t)info.st_size;
}

/* However much of the last record a kill has left, it goes; whole records stay, and files of others. */
static void torn_ends_are_cut(void **state)
{
    (void)state;
    stk_event_file *file;
    char path[200];
    assert_int_equal(stk_event_file_open(folder, 0, &file), STK_OK);
    for (int i = 1; i < 4; i++) {
        stk_event_begin(file, i);
        stk_event_add_scalar(file, "loss", i == 1, i);
        assert_int_equal(stk_event_end(file), STK_OK);
    }
    records r = read_records(stk_event_file_path(file));
    size_t last = (size_t)r.start[r.count - 1];
    snprintf(path, sizeof(path), "%s", stk_event_file_path(file));
    stk_event_file_close(file);
    for (size_t n = last; n < r.n; n++) {
        put_file(path, r.data, n);
        assert_int_equal(stk_event_files_cut(folder, 3), STK_OK);
        assert_int_equal(size_of(path), last);
    }
    put_file(path, r.data, r.n);
    assert_int_equal(stk_event_files_cut(folder, 3), STK_OK);
    assert_int_equal(size_of(path), r.n);
    memset(r.data + last, 0, r.n - last); /* as file systems leave it when a machine goes down */
    put_file(path, r.data, r.n);
    assert_int_equal(stk_event_files_cut(folder, 3), STK_OK);
    assert_int_equal(size_of(path), last);
    put_file(path, r.data + 1, r.n - 1);
    assert_int_equal(stk_event_files_cut(folder, 0), STK_OK);
    assert_int_equal(size_of(path), r.n - 1);
    free(r.data);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return stk_tree_remove(folder) == STK_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_back),
        cmocka_unit_test(graphs_are_read_back),
        cmocka_unit_test(later_files_go_on),
        cmocka_unit_test(torn_ends_are_cut),
    };
    return cmocka_run_group_tests_name("events/event_file", tests, set_up, tear_down);
}
