/* See elastic/table.h. */
#include "elastic/table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

static stk_status make_token(uint64_t *out)
{
    if (getrandom(out, sizeof(*out), 0) == (ssize_t)sizeof(*out)) return STK_OK;
    return stk_fail(STK_IO, "cannot draw a token: %s", strerror(errno));
}

stk_status stk_beat_table_open(bool everywhere, int n_ranks, stk_beat_table *out)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(everywhere ? INADDR_ANY : INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    *out = (stk_beat_table){.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (out->socket < 0 || bind(out->socket, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        getsockname(out->socket, (struct sockaddr *)&address, &n) != 0) {
        stk_status status = stk_fail(STK_IO, "cannot listen to beats: %s", strerror(errno));
        if (out->socket >= 0) close(out->socket);
        *out = (stk_beat_table){.socket = 0};
        return status;
    }
    out->port = ntohs(address.sin_port);
    (void)gethostname(out->host, sizeof(out->host) - 1);
    stk_status status = stk_beat_table_restart(out, n_ranks);
    if (status != STK_OK) stk_beat_table_close(out);
    return status;
}

void stk_beat_table_close(stk_beat_table *table)
{
    if (table->port) close(table->socket);
    free(table->rank);
    *table = (stk_beat_table){.socket = 0};
}

stk_status stk_beat_table_restart(stk_beat_table *table, int n_ranks)
{
    stk_rank_seen *ranks = calloc((size_t)n_ranks, sizeof(*ranks));
    if (!ranks) return stk_fail_memory((size_t)n_ranks * sizeof(*ranks));
    free(table->rank);
    table->rank = ranks;
    table->n_ranks = n_ranks;
    table->begun_ns = stk_clock_ns();
    return make_token(&table->token);
}

void stk_beat_table_address(const stk_beat_table *table, const char *host, char out[STK_BEAT_ADDRESS])
{
    snprintf(out, STK_BEAT_ADDRESS, "%s:%d:%llx", host ? host : "127.0.0.1", table->port,
             (unsigned long long)table->token);
}

/* --- processes --- */

/* State and time of beginning, as /proc/PID/stat has them: fields 3 and 22. */
static bool read_process(int64_t pid, char *state, uint64_t *begun)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = 0;
    const char *p = strrchr(text, ')');
    if (!p || !p[1]) return false;
    *state = p[2];
    for (int field = 2; field < 22 && p; field++)
        p = strchr(p + 1, ' ');
    *begun = p ? strtoull(p + 1, NULL, 10) : 0;
    return p != NULL;
}

static void look_at_process(stk_rank_seen *r)
{
    char state = 0;
    uint64_t begun = 0;
    if (!r->heard_ns || !r->is_here || r->is_gone) return;
    bool is_there = read_process(r->state.pid, &state, &begun) && state != 'Z' && state != 'X';
    if (r->begun == 0) { /* A container may have this host's name, and processes of its own. */
        r->is_here = is_there;
        r->begun = begun;
        if (!is_there) return;
    }
    r->is_gone = !is_there || begun != r->begun;
    r->is_stopped = is_there && (state == 'T' || state == 't');
}

void stk_beat_table_update(stk_beat_table *table, int timeout_ms)
{
    char bytes[sizeof(stk_beat_packet) + 8];
    ssize_t n;
    /* Beats before processes: what ends says so, and is then gone. */
    struct pollfd wait = {.fd = table->socket, .events = POLLIN};
    (void)poll(&wait, 1, timeout_ms);
    for (int r = 0; r < table->n_ranks; r++) {
        bool was_gone = table->rank[r].is_gone;
        look_at_process(&table->rank[r]);
        table->rank[r].is_gone |= was_gone;
    }
    while ((n = recv(table->socket, bytes, sizeof(bytes), 0)) >= 0 || errno == EINTR)
        if (n > 0) (void)stk_beat_table_take(table, bytes, (size_t)n, stk_clock_ns());
}
