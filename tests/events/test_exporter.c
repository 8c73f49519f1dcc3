/* The exporter answers as HTTP/1.1 says, to many at once, to slow ones and to nonsense, and ends at once. */
#include "events/exporter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "events/http_request.h"

/* --- requests --- */

typedef struct request_case {
    const char *text;
    stk_http_asks asks;
    const char *path;
} request_case;

static void requests_are_understood(void **state)
{
    (void)state;
    static const request_case cases[] = {
        {"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", STK_HTTP_GET, "/metrics"},
        {"GET /metrics?a=b?c HTTP/1.0\n\n", STK_HTTP_GET, "/metrics"},
        {"HEAD / HTTP/1.1\r\n\r\n", STK_HTTP_HEAD, "/"},
        {"POST /metrics HTTP/1.1\r\n\r\nbody", STK_HTTP_OTHER, "/metrics"},
        {"GETS / HTTP/1.1\r\n\r\n", STK_HTTP_OTHER, "/"},
        {"GET http://localhost:9100/metrics?a HTTP/1.1\r\n\r\n", STK_HTTP_GET, "/metrics"},
        {"GET HTTP://[::1] HTTP/1.1\r\n\r\n", STK_HTTP_GET, "/"},
        {"GET http:///metrics HTTP/1.1\r\n\r\n", STK_HTTP_BAD, NULL},
        {"GET https://a/metrics HTTP/1.1\r\n\r\n", STK_HTTP_BAD, NULL},
        {"", STK_HTTP_MORE, NULL},
        {"GET /metrics HTTP/1.1", STK_HTTP_MORE, NULL},
        {"GET /metrics HTTP/1.1\r\nHost: a\r\n\r", STK_HTTP_MORE, NULL},
        {"GET /metrics HTTP/2.0\r\n\r\n", STK_HTTP_BAD, NULL},
        {"GET /metrics\r\n\r\n", STK_HTTP_BAD, NULL},
        {"GET  HTTP/1.1\r\n\r\n", STK_HTTP_BAD, NULL},
        {"GET metrics HTTP/1.1\r\n\r\n", STK_HTTP_BAD, NULL},
        {"GET /\x01 HTTP/1.1\r\n\r\n", STK_HTTP_BAD, NULL},
        {"\r\n", STK_HTTP_BAD, NULL},
        {"\n\n", STK_HTTP_BAD, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stk_http_request r = stk_http_parse(cases[i].text, strlen(cases[i].text));
        if (r.asks != cases[i].asks) fail_msg("'%s' asks %d", cases[i].text, r.asks);
        if (!cases[i].path) continue;
        assert_int_equal(r.n_path, strlen(cases[i].path));
        assert_memory_equal(r.path, cases[i].path, r.n_path);
    }
}

/* --- sockets --- */

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Sends text, reads until the end, closes. */
static void talk(int port, const char *text, size_t n_text, char *out, size_t bytes)
{
    int fd = connect_to(port);
    size_t n = 0;
    (void)send(fd, text, n_text, MSG_NOSIGNAL);
    for (ssize_t got; (got = recv(fd, out + n, bytes - 1 - n, 0)) > 0;)
        n += (size_t)got;
    out[n] = 0;
    close(fd);
}

static void expect(int port, const char *request, const char *answer)
{
    char got[4096];
    talk(port, request, strlen(request), got, sizeof(got));
    assert_string_equal(got, answer);
}

static stk_exporter *make(const char *words)
{
    stk_exporter *e;
    stk_text text = {0};
    assert_int_equal(stk_exporter_open(0, &e), STK_OK);
    stk_text_add(&text, "%s", words);
    assert_int_equal(stk_exporter_put(e, &text), STK_OK);
    stk_text_free(&text);
    return e;
}

static void answers_are_http(void **state)
{
    (void)state;
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                               "Content-Length: 4\r\nConnection: close\r\n\r\n";
    char whole[256];
    stk_exporter *e = make("a 1\n");
    int port = stk_exporter_port(e);
    snprintf(whole, sizeof(whole), "%sa 1\n", head);
    expect(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", whole);
    expect(port, "HEAD /metrics HTTP/1.1\r\n\r\n", head);
    expect(port, "GET /metricsx HTTP/1.1\r\n\r\n",
           "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    expect(port, "POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
           "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    static const char bad[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    expect(port, "nonsense\r\n\r\n", bad);
    char long_one[9000], got[4096];
    memset(long_one, 'x', sizeof(long_one)); /* no line within what a request may be */
    talk(port, long_one, sizeof(long_one), got, sizeof(got));
    assert_string_equal(got, bad);
    stk_exporter_close(e);
}

static void only_this_machine_is_answered(void **state)
{
    (void)state;
    stk_exporter *e = make("a 1\n"), *second;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)stk_exporter_port(e))};
    assert_int_equal(stk_exporter_open(stk_exporter_port(e), &second), STK_IO);
    assert_non_null(strstr(stk_error_text(), "address already in use"));
    assert_null(second);
    /* It is at 127.0.0.1 and at no other address, so that another one is free. */
    inet_pton(AF_INET, "127.0.0.2", &address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_not_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    stk_exporter_close(e);
    assert_int_equal(stk_exporter_open(70000, &second), STK_INVALID);
}

/* --- many, slow, gone --- */

enum { N_SCRAPERS = 4, N_SCRAPES = 50, N_BYTES = 50000 };

/* Each text is one letter, so that a torn one shows. */
static void *scrape(void *arg)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
    char *got = malloc(N_BYTES + 1000);
    for (int i = 0; got && i < N_SCRAPES; i++) {
        talk(*(int *)arg, request, sizeof(request) - 1, got, N_BYTES + 1000);
        const char *body = strstr(got, "\r\n\r\n");
        if (!body || strlen(body + 4) != N_BYTES || strspn(body + 4, (char[]){body[4], 0}) != N_BYTES) {
            free(got);
            return NULL;
        }
    }
    free(got);
    return arg;
}

static void scrapes_in_the_middle_of_changes_are_whole(void **state)
{
    (void)state;
    pthread_t thread[N_SCRAPERS];
    stk_text text = {0};
    char *letters = malloc(N_BYTES);
    stk_exporter *e;
    assert_int_equal(stk_exporter_open(0, &e), STK_OK);
    int port = stk_exporter_port(e);
    memset(letters, 'a', N_BYTES);
    stk_text_add_bytes(&text, letters, N_BYTES);
    assert_int_equal(stk_exporter_put(e, &text), STK_OK);
    for (int i = 0; i < N_SCRAPERS; i++)
        pthread_create(&thread[i], NULL, scrape, &port);
    for (int i = 0; i < 300; i++) {
        memset(text.data, 'a' + i % 26, N_BYTES);
        assert_int_equal(stk_exporter_put(e, &text), STK_OK);
        usleep(200);
    }
    for (int i = 0; i < N_SCRAPERS; i++) {
        void *good;
        pthread_join(thread[i], &good);
        assert_non_null(good);
    }
    stk_exporter_close(e);
    stk_text_free(&text);
    free(letters);
}

static void who_says_nothing_is_not_waited_for(void **state)
{
    (void)state;
    stk_exporter *e = make("a 1\n");
    int port = stk_exporter_port(e), silent = connect_to(port), half = connect_to(port), gone = connect_to(port);
    char got[4096];
    (void)send(half, "GET /met", 8, MSG_NOSIGNAL);
    close(gone);
    talk(port, "GET /metrics HTTP/1.1\r\n\r\n", 25, got, sizeof(got)); /* after those two had their second */
    assert_non_null(strstr(got, "\r\n\r\na 1\n"));
    ssize_t n = recv(half, got, sizeof(got) - 1, 0);
    got[n > 0 ? n : 0] = 0;
    assert_non_null(strstr(got, "400 Bad Request"));
    close(silent);
    close(half);
    /* Closing does not wait for one that is connected. */
    silent = connect_to(port);
    usleep(20000);
    int64_t begin = stk_clock_ns();
    stk_exporter_close(e);
    assert_true(stk_clock_ns() - begin < 900000000);
    close(silent);
}

static void slow_clients_hold_up_nobody(void **state)
{
    (void)state;
    enum { N_SILENT = 12 };
    stk_exporter *e = make("a 1\n");
    int port = stk_exporter_port(e), silent[40];
    char got[4096];
    for (int i = 0; i < N_SILENT; i++)
        silent[i] = connect_to(port);
    talk(port, "GET /metrics HTTP/1.1\r\n\r\n", 25, got, sizeof(got));
    assert_non_null(strstr(got, "\r\n\r\na 1\n"));
    /* They are still connected, so that nobody has waited for their second to end. */
    assert_int_equal(recv(silent[N_SILENT - 1], got, 1, MSG_DONTWAIT), -1);
    /* Of more than there is room for those that were slow for longest give way. */
    for (int i = N_SILENT; i < 40; i++)
        silent[i] = connect_to(port);
    talk(port, "GET /metrics HTTP/1.1\r\n\r\n", 25, got, sizeof(got));
    assert_non_null(strstr(got, "\r\n\r\na 1\n"));
    for (int i = 0; i < 40; i++)
        close(silent[i]);
    stk_exporter_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_understood),
        cmocka_unit_test(answers_are_http),
        cmocka_unit_test(only_this_machine_is_answered),
        cmocka_unit_test(slow_clients_hold_up_nobody),
        cmocka_unit_test(scrapes_in_the_middle_of_changes_are_whole),
        cmocka_unit_test(who_says_nothing_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("events/exporter", tests, NULL, NULL);
}
