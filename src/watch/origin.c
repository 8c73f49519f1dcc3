#include "watch/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As torchrun, Open MPI, PMIx, MPICH and Slurm name it; the job's own word first. */
static const char *find_rank(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    enum { MOST_DIGITS = 9 };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        size_t n = text ? strlen(text) : 0;
        if (n > 0 && n <= MOST_DIGITS && strspn(text, "0123456789") == n) return text;
    }
    return NULL;
}

static void find_host(char *out, size_t bytes)
{
    if (gethostname(out, bytes) != 0) out[0] = 0;
    out[bytes - 1] = 0;
    out[strcspn(out, ".")] = 0;
}

stk_status stk_watch_origin_note(stk_watch_facts *facts)
{
    char host[128];
    struct timespec now;
    find_host(host, sizeof(host));
    clock_gettime(CLOCK_REALTIME, &now);
    stk_status status = stk_watch_facts_add(facts, "began", "%.3f", (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    if (status == STK_OK && host[0]) status = stk_watch_facts_add(facts, "host", "%s", host);
    if (status == STK_OK && find_rank()) status = stk_watch_facts_add(facts, "rank", "%s", find_rank());
    return status;
}

void stk_watch_origin_path(const char *path, char *out, size_t bytes)
{
    char host[128];
    const char *rank = find_rank();
    size_t n = 0;
    find_host(host, sizeof(host));
    for (const char *p = path; *p && n + 1 < bytes; p++) {
        const char *word = p[0] == '%' && p[1] == 'h' ? host : p[0] == '%' && p[1] == 'r' ? (rank ? rank : "0") : NULL;
        if (!word) {
            out[n++] = *p;
            continue;
        }
        for (; *word && n + 1 < bytes; word++)
            out[n++] = *word == '/' ? '-' : *word;
        p++;
    }
    out[n] = 0;
}
