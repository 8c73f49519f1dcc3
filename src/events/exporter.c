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

typedef struct stk_connection {
    int fd;           /* -1: none */
    int64_t until_ns; /* it is given up */
    bool is_answered;
    stk_http_request asked;
    stk_text answer;
    size_t n, n_sent; /* bytes of request, and of answer */
    char request[REQUEST_BYTES];
} stk_connection;

struct stk_exporter {
    int listen_fd, stop_fd; /* stop_fd: readable when it is over */
    int port;
    stk_thread thread;
    stk_mutex lock;
    stk_text text, page;                  /* guarded by lock; page empty: none */
    stk_connection connection[N_WAITING]; /* the thread's */
};

/* --- one connection --- */

static bool is_path(const stk_http_request *request, const char *path)
{
    return request->n_path == strlen(path) && !memcmp(request->path, path, request->n_path);
}

static void add_answer(stk_text *out, const char *status, const char *more, const char *body, size_t n, bool with_body)
{
    stk_text_add(out, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n", status, more, n);
    if (with_body) stk_text_add_bytes(out, body, n);
}

static void make_answer(stk_exporter *e, stk_connection *c)
{
    static const char plain[] = "Content-Type: text/plain; charset=utf-8\r\n",
                      metrics[] = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n",
                      allow[] = "Allow: GET, HEAD\r\n";
    static const char home[] = "A Stoker run; its numbers are at /metrics\n",
                      live[] = "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nRefresh: 3\r\n";
    const stk_http_request *request = &c->asked;
    stk_text *out = &c->answer;
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
        stk_mutex_lock(&e->lock);
        if (e->page.n > 0)
            add_answer(out, "200 OK", live, stk_text_get(&e->page), e->page.n, with_body);
        else
            add_answer(out, "200 OK", plain, home, sizeof(home) - 1, with_body);
        stk_mutex_unlock(&e->lock);
    } else {
        add_answer(out, "404 Not Found", "", "", 0, false);
    }
}

/* A request that does not end in time or in REQUEST_BYTES is a bad one; of a client that said nothing nothing is left
 * to answer. */
static void answer(stk_exporter *e, stk_connection *c)
{
    make_answer(e, c);
    c->is_answered = true;
    c->until_ns = stk_clock_ns() + CONNECTION_NS;
    if (stk_text_status(&c->answer) != STK_OK) stk_text_free(&c->answer); /* No memory now; perhaps the next time. */
}

static void end(stk_connection *c)
{
    if (c->fd < 0) return;
    /* What is left unread would have the system cut the answer off. */
    shutdown(c->fd, SHUT_WR);
    for (int i = 0; i < 8 && recv(c->fd, c->request, REQUEST_BYTES, MSG_DONTWAIT) > 0; i++)
        ;
    close(c->fd);
    c->fd = -1;
}

static void take(stk_exporter *e, stk_connection *c)
{
    ssize_t got = recv(c->fd, c->request + c->n, REQUEST_BYTES - c->n, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) c->n += (size_t)got;
    c->asked = stk_http_parse(c->request, c->n);
    if (got > 0 && c->asked.asks == STK_HTTP_MORE && c->n < REQUEST_BYTES) return;
    if (c->n > 0)
        answer(e, c);
    else
        end(c);
}

static void give(stk_connection *c)
{
    if (c->n_sent < c->answer.n) {
        ssize_t sent = send(c->fd, c->answer.data + c->n_sent, c->answer.n - c->n_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) c->n_sent = c->answer.n;
        if (sent > 0) c->n_sent += (size_t)sent;
    }
    if (c->n_sent >= c->answer.n) end(c);
}

/* What came late is answered as it is. */
static void expire(stk_exporter *e, stk_connection *c, int64_t now_ns)
{
    if (c->fd < 0 || c->until_ns > now_ns) return;
    if (!c->is_answered && c->n > 0)
        answer(e, c);
    else
        end(c);
}

/* --- the thread --- */

/* A place for one more: a free one, or that of the client that has been slow for longest. */
static stk_connection *find_place(stk_exporter *e)
{
    stk_connection *best = &e->connection[0];
    for (int i = 0; i < N_WAITING; i++) {
        stk_connection *c = &e->connection[i];
        if (c->fd < 0) return c;
        if (c->until_ns < best->until_ns) best = c;
    }
    end(best);
    return best;
}

/* False: out of descriptors, perhaps. */
static bool accept_one(stk_exporter *e)
{
    int fd = accept4(e->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    stk_connection *c = find_place(e);
    c->fd = fd;
    c->n = c->n_sent = c->answer.n = 0;
    c->is_answered = false;
    c->until_ns = stk_clock_ns() + CONNECTION_NS;
    return true;
}

/* How long to wait for those that are connected; -1: none is. */
static int find_wait(const stk_exporter *e)
{
    int64_t now_ns = stk_clock_ns(), least_ns = INT64_MAX;
    for (int i = 0; i < N_WAITING; i++)
        if (e->connection[i].fd >= 0 && e->connection[i].until_ns < least_ns) least_ns = e->connection[i].until_ns;
    if (least_ns == INT64_MAX) return -1;
    return least_ns <= now_ns ? 0 : (int)((least_ns - now_ns) / 1000000) + 1;
}

/* All clients at once: one that is slow holds up no other. */
static void run(void *arg)
{
    stk_exporter *e = arg;
    struct pollfd list[N_WAITING + 2];
    bool can_accept = true;
    for (;;) {
        list[0] = (struct pollfd){.fd = e->stop_fd, .events = POLLIN};
        list[1] = (struct pollfd){.fd = can_accept ? e->listen_fd : -1, .events = POLLIN};
        for (int i = 0; i < N_WAITING; i++) {
            const stk_connection *c = &e->connection[i];
            list[2 + i] = (struct pollfd){.fd = c->fd, .events = c->is_answered ? POLLOUT : POLLIN};
        }
        int n = poll(list, N_WAITING + 2, can_accept ? find_wait(e) : 100);
        if (n < 0 && errno != EINTR) break;
        if (n > 0 && list[0].revents) break;
        for (int i = 0; n > 0 && i < N_WAITING; i++) {
            stk_connection *c = &e->connection[i];
            if (c->fd < 0 || !list[2 + i].revents) continue;
            c->is_answered ? give(c) : take(e, c);
        }
        for (int i = 0; i < N_WAITING; i++)
            expire(e, &e->connection[i], stk_clock_ns());
        can_accept = n > 0 && list[1].revents ? accept_one(e) : true;
    }
    for (int i = 0; i < N_WAITING; i++)
        end(&e->connection[i]);
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
    for (int i = 0; i < N_WAITING; i++)
        e->connection[i].fd = -1;
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

static stk_status put(stk_exporter *exporter, const stk_text *from, stk_text *to)
{
    stk_mutex_lock(&exporter->lock);
    to->n = 0;
    stk_text_add_bytes(to, stk_text_get(from), from->n);
    stk_status status = stk_text_status(to);
    if (status != STK_OK) stk_text_free(to);
    stk_mutex_unlock(&exporter->lock);
    return status;
}

stk_status stk_exporter_put(stk_exporter *exporter, const stk_text *text)
{
    return put(exporter, text, &exporter->text);
}

stk_status stk_exporter_put_page(stk_exporter *exporter, const stk_text *page)
{
    return put(exporter, page, &exporter->page);
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
    stk_text_free(&exporter->page);
    for (int i = 0; i < N_WAITING; i++)
        stk_text_free(&exporter->connection[i].answer);
    free(exporter);
}
