/* See events/exporter.h. */
#include "events/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "events/http_request.h"

enum { REQUEST_BYTES = 8192, N_WAITING = 16 };
static const int64_t CONNECTION_NS = 1000000000; /* for each way: what is asked, and the answer */

struct stk_exporter {
    int listen_fd, stop_fd; /* stop_fd: readable when it is over */
    int port;
    stk_thread thread;
    stk_mutex lock;
    stk_text text;   /* guarded by lock */
    stk_text answer; /* the thread's */
    char request[REQUEST_BYTES];
};

/* --- one connection --- */

/* Waits until fd can be read (POLLIN) or written (POLLOUT). False: the time is up, or the exporter closes. */
static bool wait_for(const stk_exporter *e, int fd, short events, int64_t until_ns)
{
    struct pollfd list[] = {{.fd = fd, .events = events}, {.fd = e->stop_fd, .events = POLLIN}};
    for (;;) {
        int64_t left_ns = until_ns - stk_clock_ns();
        if (left_ns <= 0) return false;
        int n = poll(list, 2, (int)(left_ns / 1000000) + 1);
        if (n < 0 && errno == EINTR) continue;
        return n > 0 && !list[1].revents && list[0].revents;
    }
}

static void send_all(const stk_exporter *e, int fd, const char *data, size_t n, int64_t until_ns)
{
    while (n > 0 && wait_for(e, fd, POLLOUT, until_ns)) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (sent < 0) return;
        data += sent;
        n -= (size_t)sent;
    }
}

static bool is_path(const stk_http_request *request, const char *path)
{
    return request->n_path == strlen(path) && !memcmp(request->path, path, request->n_path);
}

static void add_answer(stk_text *out, const char *status, const char *more, const char *body, size_t n, bool with_body)
{
    stk_text_add(out, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n", status, more, n);
    if (with_body) stk_text_add_bytes(out, body, n);
}

/* Makes e->answer. */
static void make_answer(stk_exporter *e, const stk_http_request *request)
{
    static const char plain[] = "Content-Type: text/plain; charset=utf-8\r\n",
                      metrics[] = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
                      allow[] = "Allow: GET, HEAD\r\n";
    static const char home[] = "A Stoker run; its numbers are at /metrics\n";
    stk_text *out = &e->answer;
    bool with_body = request->asks == STK_HTTP_GET;
    out->n = 0;
    if (request->asks == STK_HTTP_BAD || request->asks == STK_HTTP_MORE) {
        add_answer(out, "400 Bad Request", "", "", 0, false);
    } else if (request->asks == STK_HTTP_OTHER) {
        add_answer(out, "405 Method Not Allowed", allow, "", 0, false);
    } else if (is_path(request, "/metrics")) {
        stk_mutex_lock(&e->lock);
        add_answer(out, "200 OK", metrics, stk_text_get(&e->text), e->text.n, with_body);
        stk_mutex_unlock(&e->lock);
    } else if (is_path(request, "/")) {
        add_answer(out, "200 OK", plain, home, sizeof(home) - 1, with_body);
    } else {
        add_answer(out, "404 Not Found", "", "", 0, false);
    }
}

/* A request that does not end in time or in REQUEST_BYTES is a bad one; of a client that said nothing nothing is left
 * to answer. */
static void serve(stk_exporter *e, int fd)
{
    int64_t until_ns = stk_clock_ns() + CONNECTION_NS;
    stk_http_request request = {STK_HTTP_MORE, NULL, 0};
    size_t n = 0;
    while (request.asks == STK_HTTP_MORE && n < REQUEST_BYTES && wait_for(e, fd, POLLIN, until_ns)) {
        ssize_t got = recv(fd, e->request + n, REQUEST_BYTES - n, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got <= 0) break;
        n += (size_t)got;
        request = stk_http_parse(e->request, n);
    }
    if (n == 0) return;
    make_answer(e, &request);
    if (stk_text_status(&e->answer) == STK_OK)
        send_all(e, fd, e->answer.data, e->answer.n, stk_clock_ns() + CONNECTION_NS);
    else
        stk_text_free(&e->answer); /* No memory now; perhaps the next time. */
    /* What is left unread would have the system cut the answer off. */
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 8 && recv(fd, e->request, REQUEST_BYTES, MSG_DONTWAIT) > 0; i++)
        ;
}

/* --- the thread --- */

static void run(void *arg)
{
    stk_exporter *e = arg;
    struct pollfd list[] = {{.fd = e->listen_fd, .events = POLLIN}, {.fd = e->stop_fd, .events = POLLIN}};
    for (;;) {
        int n = poll(list, 2, -1);
        if (n < 0 && errno != EINTR) return;
        if (n > 0 && list[1].revents) return;
        if (n <= 0 || !list[0].revents) continue;
        int fd = accept4(e->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            serve(e, fd);
            close(fd);
        } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            (void)wait_for(e, e->stop_fd, 0, stk_clock_ns() + CONNECTION_NS / 10); /* Out of descriptors, perhaps. */
        }
    }
}

static stk_status listen_at(stk_exporter *e, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t n = sizeof(address);
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    e->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (e->listen_fd < 0) return stk_fail(STK_IO, "cannot make a socket: %s", stk_errno_text(errno));
    /* A port whose last connections have just ended is free. */
    (void)setsockopt(e->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(e->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(e->listen_fd, N_WAITING) < 0 ||
        getsockname(e->listen_fd, (struct sockaddr *)&address, &n) < 0)
        return stk_fail(STK_IO, "cannot listen at '127.0.0.1:%d': %s", port, stk_errno_text(errno));
    e->port = ntohs(address.sin_port);
    return STK_OK;
}

stk_status stk_exporter_open(int port, stk_exporter **out)
{
    stk_exporter *e = *out = NULL;
    stk_status status;
    if (port < 0 || port > 65535) return stk_fail(STK_INVALID, "port %d is not one of 0 to 65535", port);
    if (!(e = calloc(1, sizeof(*e)))) return stk_fail_memory(sizeof(*e));
    e->listen_fd = e->stop_fd = -1;
    status = stk_mutex_init(&e->lock);
    if (status != STK_OK) {
        free(e);
        return status;
    }
    STK_TRY(listen_at(e, port));
    if ((e->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        STK_TRY(stk_fail(STK_IO, "cannot make an event: %s", stk_errno_text(errno)));
    STK_TRY(stk_thread_start(&e->thread, "stk-metrics", true, run, e));
    *out = e;
    return STK_OK;
done:
    stk_exporter_close(e);
    return status;
}

int stk_exporter_port(const stk_exporter *exporter)
{
    return exporter->port;
}

stk_status stk_exporter_put(stk_exporter *exporter, const stk_text *text)
{
    stk_mutex_lock(&exporter->lock);
    exporter->text.n = 0;
    stk_text_add_bytes(&exporter->text, stk_text_get(text), text->n);
    stk_status status = stk_text_status(&exporter->text);
    if (status != STK_OK) stk_text_free(&exporter->text);
    stk_mutex_unlock(&exporter->lock);
    return status;
}

void stk_exporter_close(stk_exporter *exporter)
{
    uint64_t one = 1;
    if (!exporter) return;
    if (exporter->thread.started) {
        /* Cannot fail: the counter is 0. */
        ssize_t n = write(exporter->stop_fd, &one, sizeof(one));
        (void)n;
        stk_thread_join(&exporter->thread);
    }
    if (exporter->listen_fd >= 0) close(exporter->listen_fd);
    if (exporter->stop_fd >= 0) close(exporter->stop_fd);
    stk_mutex_destroy(&exporter->lock);
    stk_text_free(&exporter->text);
    stk_text_free(&exporter->answer);
    free(exporter);
}
