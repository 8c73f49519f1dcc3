/* metrics.prom is whole and what is served next to it is the same text; a run's last step is in both. */
#include "run/publish.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char folder[] = "/tmp/stk-publish-XXXXXX";

/* As a text that is freed by the caller. */
static char *read_file(void)
{
    char path[64];
    uint8_t *data = NULL;
    size_t capacity = 0, n;
    snprintf(path, sizeof(path), "%s/metrics.prom", folder);
    assert_int_equal(stk_file_read(path, &data, &capacity, &n), STK_OK);
    char *text = realloc(data, n + 1);
    text[n] = 0;
    return text;
}

/* The body that a GET gets, within buffer. */
static const char *scrape(int port, char *buffer, size_t bytes)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    size_t n = 0;
    for (ssize_t got; (got = recv(fd, buffer + n, bytes - 1 - n, 0)) > 0;)
        n += (size_t)got;
    close(fd);
    buffer[n] = 0;
    const char *body = strstr(buffer, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

/* Whether a line of the text is name{run="RUN",folder="FOLDER"MORE} VALUE. */
static void expect_line(const char *text, const char *name, const char *run, const char *more, const char *value)
{
    char line[512];
    snprintf(line, sizeof(line), "\n%s{run=\"%s\",folder=\"%s\"%s} %s\n", name, run, folder, more, value);
    if (!strstr(text, line)) fail_msg("no line%sin:\n%s", line, text);
}

static void file_and_port_say_the_same(void **state)
{
    (void)state;
    static char buffer[65536];
    stk_publisher p;
    stk_train_event event = {.kind = STK_EVENT_STEP, .step = 12, .loss = NAN, .lr = 0.5, .train = {.accuracy = 0.25}};
    assert_int_equal(stk_publisher_open(folder, "a \"b\"", true, 0, &p), STK_OK);
    assert_string_equal(scrape(stk_exporter_port(p.exporter), buffer, sizeof(buffer)), "");
    assert_int_equal(stk_publish(&p, &event), STK_OK);
    event.step = 13;
    assert_int_equal(stk_publish(&p, &event), STK_OK); /* within the same second */
    char *text = read_file();
    assert_non_null(strstr(text, "# TYPE stoker_steps_total counter\n"));
    expect_line(text, "stoker_steps_total", "a \\\"b\\\"", "", "12");
    expect_line(text, "stoker_time_ratio", "a \\\"b\\\"", ",part=\"input\"", "0");
    assert_null(strstr(text, "stoker_train_loss{")); /* it was no number */
    assert_null(strstr(text, "stoker_valid_loss{")); /* there was no validation */
    assert_string_equal(scrape(stk_exporter_port(p.exporter), buffer, sizeof(buffer)), text);
    free(text);
    event.kind = STK_EVENT_EPOCH;
    event.valid = (stk_metrics){.loss = 0.5, .accuracy = -1, .n_samples = 3};
    assert_int_equal(stk_publish(&p, &event), STK_OK);
    event.kind = STK_EVENT_STEP;
    event.step = 14;
    assert_int_equal(stk_publish(&p, &event), STK_OK);
    stk_publisher_close(&p);
    text = read_file();
    expect_line(text, "stoker_steps_total", "a \\\"b\\\"", "", "14");
    expect_line(text, "stoker_valid_loss", "a \\\"b\\\"", "", "0.5");
    assert_null(strstr(text, "stoker_valid_accuracy_ratio{"));
    free(text);
}

static void one_that_fails_leaves_the_other(void **state)
{
    (void)state;
    static char buffer[65536];
    stk_publisher p, q;
    stk_train_event event = {.kind = STK_EVENT_EPOCH, .step = 1};
    assert_int_equal(stk_publisher_open("/tmp/stk-no-such-folder", "a", true, 0, &p), STK_OK);
    assert_int_not_equal(stk_publish(&p, &event), STK_OK);
    assert_int_equal(stk_publish(&p, &event), STK_OK); /* once is enough */
    assert_non_null(strstr(scrape(stk_exporter_port(p.exporter), buffer, sizeof(buffer)), "stoker_steps_total"));
    assert_int_equal(stk_publisher_open(folder, "a", true, stk_exporter_port(p.exporter), &q), STK_IO);
    assert_int_equal(stk_publish(&q, &event), STK_OK);
    char *text = read_file();
    expect_line(text, "stoker_steps_total", "a", "", "1");
    free(text);
    stk_publisher_close(&q);
    stk_publisher_close(&p);
}

static void nothing_wanted_nothing_done(void **state)
{
    (void)state;
    stk_publisher p;
    stk_train_event event = {.kind = STK_EVENT_EPOCH, .step = 1};
    assert_int_equal(stk_publisher_open("/tmp/stk-no-such-folder", "a", false, -1, &p), STK_OK);
    assert_int_equal(stk_publish(&p, &event), STK_OK);
    stk_publisher_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_and_port_say_the_same),
        cmocka_unit_test(one_that_fails_leaves_the_other),
        cmocka_unit_test(nothing_wanted_nothing_done),
    };
    if (!mkdtemp(folder)) return 1;
    int n = cmocka_run_group_tests_name("run/publish", tests, NULL, NULL);
    return stk_tree_remove(folder) == STK_OK ? n : 1;
}
