/* NCCL's service for the health of a job (RAS, since 2.24), which listens on this machine's port 28028 and answers
 * "VERBOSE STATUS" with a text. It is asked without waiting: one step of the talk each second. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "watch/parse.h"
#include "watch/sampler.h"

enum { RAS_PORT = 28028, MOST_MISSES = 8 };

/* A socket that is connecting, or -1. */
static int begin_talk(void)
{
    const char *port = getenv("NCCL_RAS_PORT"); /* for jobs that moved it */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(port ? atoi(port) : RAS_PORT))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void end_talk(stk_watch_sampler *sampler)
{
    close(sampler->ras_fd);
    sampler->ras_fd = -1;
    sampler->ras_asked = false;
}

void stk_watch_read_ras(stk_watch_sampler *sampler)
{
    static const char question[] = "verbose status\n";
    if (stk_watch_is_hidden(&sampler->config.root, "/ras")) return;
    if (sampler->ras_fd < 0) {
        sampler->ras_fd = begin_talk();
        return;
    }
    if (!sampler->ras_asked) {
        sampler->ras_asked = send(sampler->ras_fd, question, sizeof(question) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                             (ssize_t)sizeof(question) - 1;
        if (sampler->ras_asked) return;
        /* It may listen later than the job begins. */
        if (sampler->sample.gpus.n > 1 && ++sampler->n_ras_misses == MOST_MISSES)
            (void)stk_watch_facts_add(&sampler->facts, "missing",
                                      "NCCL's view of ranks (RAS on port 28028: a job with NCCL 2.24 or newer)");
    } else {
        ssize_t n = recv(sampler->ras_fd, sampler->text, STK_WATCH_TEXT - 1, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) return;
        sampler->text[n > 0 ? n : 0] = 0;
        sampler->n_ras_misses = INT32_MIN;
        sampler->sample.machine.ras_lagging_rank = stk_watch_parse_ras(sampler->text);
    }
    end_talk(sampler);
}
