/* Datagrams that a listener gets, several one behind the other, with this job's token at their place so that what
 * follows it is read. What is taken must be sound, and whatever is known must give findings in words.
 *
 * covers: elastic/table_take.c elastic/judge.c
 */
#include <stdlib.h>
#include <string.h>

#include "elastic/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_RANKS = 3 };

static void check(const stk_beat_table *table)
{
    for (int r = 0; r < N_RANKS; r++) {
        const stk_beat_state *s = &table->rank[r].state;
        if (!table->rank[r].heard_ns) continue;
        if (s->rank != r || s->pid < 1 || strlen(s->log) >= sizeof(s->log) || strlen(s->host) >= sizeof(s->host))
            abort();
    }
}

static void judge(stk_judging *judging, const stk_beat_table *table, int64_t now_ns)
{
    stk_text text = {0};
    stk_finding found;
    (void)stk_judge_look(judging, table, now_ns, &found);
    if ((unsigned)found.kind >= STK_N_FAULTS || found.rank < 0 || found.rank >= N_RANKS) abort();
    stk_finding_add(&text, table, &found);
    stk_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_rank_seen ranks[N_RANKS] = {{.heard_ns = 0}};
    stk_beat_table table = {.n_ranks = N_RANKS, .token = 7, .rank = ranks, .host = "here"};
    stk_judging judging = {.limits = stk_judge_limits_default()};
    int64_t now_ns = 1;
    while (size > 0) {
        stk_beat_packet packet;
        size_t n = size < sizeof(packet) ? size : sizeof(packet);
        memcpy(&packet, data, n);
        if (n == sizeof(packet)) packet.head = (stk_beat_head){{'S', 'T', 'K', 'B'}, sizeof(packet), 7};
        (void)stk_beat_table_take(&table, &packet, n, now_ns);
        (void)stk_beat_table_take(&table, data, n, now_ns);
        check(&table);
        for (int r = 0; r < N_RANKS; r++) /* The system's word, by a number that else means little. */
            ranks[r].is_gone = ranks[r].state.from_memory == 2;
        judge(&judging, &table, now_ns);
        now_ns += (packet.state.from_memory == 3 ? 1100 : 700) * INT64_C(1000000);
        data += n;
        size -= n;
    }
    return 0;
}
